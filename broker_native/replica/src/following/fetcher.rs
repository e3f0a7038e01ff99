//! A thread that follows one leader: asks for all of its partitions at once, writes what comes, asks again.
//!
//! A request that waits for records is broken off when there is another partition to follow, so that no new partition
//! waits for the others' silence. The connection is then opened anew, and a full request ends the old session.
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::context::FollowerContext;
use super::exchange::{Address, Exchange};
use super::machine::{Need, Step};
use super::session::{Key, Session};
use super::slot::Slot;
use pylog_client::error::{ClientError, Result, code, kind};
use pylog_client::net::stop::Stop;
use pylog_log::broker::carried;
use pylog_log::loggers::REPLICATION;
use pylog_log::warn;
use pylog_wire::ErrorCode;
use pylog_wire::messages::FetchResponse;
use pylog_wire::messages::fetch::PartitionData;

/// The first pause after a leader could not be reached; it doubles up to `replica.fetch.backoff.ms`.
const FIRST_PAUSE_MS: u64 = 20;
/// Failed requests in a row until a leader that does not answer is logged: the first ones are usual when it stops.
const LOGGED_AT: u32 = 5;
/// What a round that panicked failed with.
const PANICKED: &str = "a bug of this broker (see the panic above); please report it";
/// Threads that sync the logs of one answer.
const SYNC_THREADS: usize = 4;
/// How long a throttled partition is left out when too much was copied.
const THROTTLE_PAUSE_MS: u64 = 100;

/// What the thread is to do, as others ask.
#[derive(Default)]
struct Inbox {
    mail: Mutex<Mail>,
    came: Condvar,
}

#[derive(Default)]
struct Mail {
    added: Vec<Arc<Slot>>,
    removed: Vec<Arc<Slot>>,
    stopped: bool,
    /// Of the connection now.
    stop: Stop,
    /// Whether the thread waits for an answer that may take long.
    polling: bool,
}

impl Inbox {
    /// Waits up to `time` (`None`: for ever) for something to come.
    fn wait(&self, time: Option<Duration>) {
        let mut mail = self.mail.lock();
        let until = time.map(|time| std::time::Instant::now() + time);
        while mail.added.is_empty() && mail.removed.is_empty() && !mail.stopped {
            let over = match until {
                Some(until) => self.came.wait_until(&mut mail, until).timed_out(),
                None => {
                    self.came.wait(&mut mail);
                    false
                }
            };
            if over {
                return;
            }
        }
    }
}

/// The thread, seen from outside. Dropping it stops the thread and does not wait.
pub struct Fetcher {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
}

impl Fetcher {
    /// Starts thread `number` of those that follow the leader at `address`.
    ///
    /// # Errors
    /// The operating system has no thread left, or the address is none.
    pub fn start(
        context: Arc<FollowerContext>,
        leader: i32,
        number: usize,
        address: Address,
    ) -> std::result::Result<Self, String> {
        let inbox = Arc::new(Inbox::default());
        let client_id = format!("broker-{}-fetcher-{number}", context.settings.node_id);
        let settings = &context.settings;
        let exchange = Exchange::new(address, &client_id, settings.socket_timeout_ms, &settings.client);
        let exchange = exchange.map_err(|error| error.message)?;
        let worker = Worker {
            inbox: Arc::clone(&inbox),
            leader,
            exchange,
            stop: Stop::default(),
            slots: HashMap::new(),
            session: Session::default(),
            touched: BTreeSet::new(),
            due: BTreeSet::new(),
            seeking: BTreeSet::new(),
            failures: 0,
            context,
        };
        let name = format!("pylog-fetch-{leader}-{number}");
        let thread = std::thread::Builder::new().name(name).spawn(carried(move || worker.run()));
        Ok(Self { inbox, thread: Some(thread.map_err(|error| error.to_string())?) })
    }

    /// Follows one more partition, at once.
    pub fn add(&self, slot: Arc<Slot>) {
        let mut mail = self.inbox.mail.lock();
        mail.added.push(slot);
        if std::mem::take(&mut mail.polling) {
            mail.stop.stop();
        }
        self.inbox.came.notify_one();
    }

    /// Forgets a partition that was let go of.
    pub fn remove(&self, slot: Arc<Slot>) {
        self.inbox.mail.lock().removed.push(slot);
        self.inbox.came.notify_one();
    }

    /// Ends the thread, whatever it waits for; the handle is there once.
    pub fn stop(&mut self) -> Option<JoinHandle<()>> {
        let mut mail = self.inbox.mail.lock();
        mail.stopped = true;
        mail.stop.stop();
        self.inbox.came.notify_one();
        drop(mail);
        self.thread.take()
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The thread, seen from inside.
struct Worker {
    context: Arc<FollowerContext>,
    inbox: Arc<Inbox>,
    leader: i32,
    exchange: Exchange,
    /// Of the connection now.
    stop: Stop,
    slots: HashMap<Key, Arc<Slot>>,
    session: Session,
    /// Whose next question may be another than it was.
    touched: BTreeSet<Key>,
    /// Those that wait, by when they are looked at again.
    due: BTreeSet<(u64, Key)>,
    /// Those that ask where the leader's log begins and ends.
    seeking: BTreeSet<Key>,
    /// Rounds without an answer, one after the other.
    failures: u32,
}

impl Worker {
    fn run(mut self) {
        while self.take_mail() {
            self.look();
            if self.session.is_empty() && self.seeking.is_empty() {
                let next = self.due.first().map(|(at, _)| at.saturating_sub(self.context.now_ms()));
                self.inbox.wait(next.map(|ms| Duration::from_millis(ms.max(1))));
                continue;
            }
            // The next round begins with a connection and a session of its own; the logs keep what they have.
            let round = catch_unwind(AssertUnwindSafe(|| self.round()));
            match round.unwrap_or_else(|_panic| Err(ClientError::fatal(kind::INTERNAL, PANICKED))) {
                Ok(()) => self.failures = 0,
                Err(error) => self.give_up_round(&error),
            }
        }
    }

    /// Takes over what came; `false` when the thread is to end.
    fn take_mail(&mut self) -> bool {
        let mut mail = self.inbox.mail.lock();
        if mail.stopped {
            return false;
        }
        let (added, removed) = (std::mem::take(&mut mail.added), std::mem::take(&mut mail.removed));
        if self.stop.is_stopped() {
            // The answer came before the connection ended.
            self.exchange.close();
            self.session.begin_again();
        }
        if !self.exchange.is_open() {
            // A stop ends only the connection that it was made for.
            self.stop = Stop::default();
            mail.stop = self.stop.clone();
        }
        drop(mail);
        for slot in removed {
            if self.slots.get(&slot.key).is_some_and(|known| Arc::ptr_eq(known, &slot)) {
                self.slots.remove(&slot.key);
                self.touched.insert(slot.key);
            }
        }
        for slot in added {
            self.touched.insert(slot.key);
            self.slots.insert(slot.key, slot);
        }
        true
    }

    /// Looks at what is to be asked of those partitions for which it may have changed.
    fn look(&mut self) {
        let now_ms = self.context.now_ms();
        while let Some((at, key)) = self.due.first().copied().filter(|(at, _)| *at <= now_ms) {
            self.due.remove(&(at, key));
            self.touched.insert(key);
        }
        for key in std::mem::take(&mut self.touched) {
            self.seeking.remove(&key);
            match self.need(&key, now_ms) {
                Need::Fetch(position) => self.session.want(key, position),
                other => {
                    self.session.drop(&key);
                    match other {
                        Need::Ends => _ = self.seeking.insert(key),
                        Need::Wait(until_ms) => _ = self.due.insert((until_ms, key)),
                        _ => {}
                    }
                }
            }
        }
    }

    fn need(&self, key: &Key, now_ms: u64) -> Need {
        let Some(slot) = self.slots.get(key) else { return Need::Nothing };
        let need = slot.with(|following, log| following.need(log, now_ms)).unwrap_or(Need::Nothing);
        let slowed = slot.is_throttled() && slot.lag() != Some(0) && self.context.throttle.is_exceeded();
        match need {
            Need::Fetch(_) if slowed => Need::Wait(now_ms + THROTTLE_PAUSE_MS),
            need => need,
        }
    }

    fn round(&mut self) -> Result<()> {
        self.exchange.open(&self.stop)?;
        self.seek()?;
        if self.session.is_empty() {
            return Ok(());
        }
        if !self.begin_poll() {
            return Ok(());
        }
        let settings = &self.context.settings;
        let mut request = self.session.request(settings.partition_max_bytes);
        request.max_wait_ms = self.patience_ms();
        request.min_bytes = 1;
        request.max_bytes = settings.response_max_bytes;
        let answer = self.exchange.fetch(request, self.context.identity());
        self.inbox.mail.lock().polling = false;
        self.take(answer?)
    }

    /// How long the leader may wait for records.
    fn patience_ms(&self) -> i32 {
        let most = self.context.settings.wait_max_ms;
        let next = self.due.first().map(|(at, _)| at.saturating_sub(self.context.now_ms()));
        next.map_or(most, |ms| i32::try_from(ms).unwrap_or(most).clamp(0, most))
    }

    /// From now on news breaks the request off; `false` when there is some already.
    fn begin_poll(&self) -> bool {
        let mut mail = self.inbox.mail.lock();
        mail.polling = mail.added.is_empty() && !mail.stopped;
        mail.polling
    }

    /// Asks for the ends of the leader's logs, where an offset was out of range.
    fn seek(&mut self) -> Result<()> {
        for key in std::mem::take(&mut self.seeking) {
            self.touched.insert(key);
            let Some(slot) = self.slots.get(&key).cloned() else { continue };
            let at = slot.log.topic_partition();
            let ends = self.exchange.ends(at, slot.leader_epoch, self.context.identity())?;
            let now_ms = self.context.now_ms();
            let step = slot.with(|following, log| following.found(slot.leader_epoch, ends, log, now_ms));
            self.report(&slot, step);
        }
        self.look();
        Ok(())
    }

    fn take(&mut self, answer: FetchResponse) -> Result<()> {
        let error = code(answer.error_code);
        match error {
            ErrorCode::None => self.session.answered(answer.session_id),
            ErrorCode::FetchSessionIdNotFound => self.session.lost(),
            ErrorCode::InvalidFetchSessionEpoch | ErrorCode::FetchSessionTopicIdError => {
                self.session.begin_again();
            }
            _ => {}
        }
        if error != ErrorCode::None {
            let text = format!("broker {} refused a fetch of this follower: {error}", self.leader);
            return Err(ClientError::retriable(error.name(), text));
        }
        let mut unsynced = Vec::new();
        for topic in &answer.responses {
            for data in &topic.partitions {
                self.copy((topic.topic_id, data.partition_index), data, &mut unsynced);
            }
        }
        self.sync(unsynced);
        Ok(())
    }

    /// Works on the answer for one partition.
    fn copy(&mut self, key: Key, data: &PartitionData, unsynced: &mut Vec<Arc<Slot>>) {
        let (Some(slot), Some(asked)) = (self.slots.get(&key), self.session.asked(&key)) else { return };
        let slot = Arc::clone(slot);
        let now_ms = self.context.now_ms();
        let step = slot.with(|following, log| following.fetched(asked, data, log, now_ms));
        let bytes = step.as_ref().map_or(0, |step| step.appended);
        if bytes > 0 {
            self.context.counted(bytes);
            if slot.is_throttled() {
                self.context.throttle.record(bytes);
            }
            if slot.log.is_flushed() {
                unsynced.push(Arc::clone(&slot));
            }
        }
        self.report(&slot, step);
        self.touched.insert(key);
    }

    /// Brings what was appended to the device: with the next fetch the leader knows that it is there.
    fn sync(&self, slots: Vec<Arc<Slot>>) {
        let work = |slots: &[Arc<Slot>]| {
            for slot in slots {
                if let Err(error) = slot.log.sync() {
                    slot.with(|following, _| following.sync_failed());
                    self.report(slot, Some(Step { news: Some(error.to_string()), ..Step::default() }));
                }
            }
        };
        if slots.len() <= 1 {
            return work(&slots);
        }
        std::thread::scope(|scope| {
            for part in slots.chunks(slots.len().div_ceil(SYNC_THREADS)) {
                scope.spawn(carried(|| work(part)));
            }
        });
    }

    fn report(&self, slot: &Slot, step: Option<Step>) {
        let Some(Step { truncated, news, .. }) = step else { return };
        let at = slot.log.topic_partition();
        if let Some((before, after)) = truncated {
            let leader = self.leader;
            warn!(
                target: REPLICATION, partition = %at, peer = leader,
                "{at}: removed records that its leader, broker {leader}, does not have: the log ended at offset {before}, and now ends at offset {after}"
            );
        }
        if let Some(news) = news {
            let leader = self.leader;
            warn!(
                target: REPLICATION, partition = %at, peer = leader,
                "{at} cannot follow its leader, broker {leader}: {news}"
            );
        }
    }

    /// After an error of the connection: nothing is known of the session, and a leader that does not answer is left alone
    /// for a while.
    fn give_up_round(&mut self, error: &ClientError) {
        self.exchange.close();
        self.session.begin_again();
        let broken_off = {
            let mail = self.inbox.mail.lock();
            mail.stopped || !mail.added.is_empty()
        };
        if broken_off {
            return;
        }
        if self.failures == LOGGED_AT {
            let leader = self.leader;
            warn!(target: REPLICATION, peer = leader, "cannot follow broker {leader}: {error}");
        }
        let pause = FIRST_PAUSE_MS.saturating_mul(1 << self.failures.min(16));
        let pause = pause.min(self.context.settings.backoff_max_ms);
        self.failures = self.failures.saturating_add(1);
        self.inbox.wait(Some(Duration::from_millis(pause)));
    }
}
