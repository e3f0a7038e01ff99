//! The writing side for one thread: rows in, acknowledged batches out.
//!
//! The thread that calls [`Producer::append`] fills batches; full ones go to a sending thread, started with the first.
//! Memory: open batches take at most one half of `buffer.memory`, queued ones the other.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

use super::accumulator::{Accumulator, Limits, Ready, Row};
use super::delivery::{Delivered, Delivery};
use super::identity::{ProducerId, ProducerIdentity};
use super::sender::Sender;
use super::transaction::{Handle, Transaction};
use crate::config::{Acks, Settings, millis};
use crate::error::{ClientError, Owner, Result, code, kind};
use crate::metadata::address::Address;
use crate::metadata::cluster::Cluster;
use crate::net::poll;
use crate::net::retry::Retry;
use crate::net::stop::Stop;
use pylog_record::layout::HEADER_LEN;
use pylog_wire::ErrorCode;
use pylog_wire::messages::InitProducerIdRequest;

/// Room in a request for what is not records.
const REQUEST_OVERHEAD: usize = 512;
/// How long a topic that a broker is just creating may stay unknown.
const AUTO_CREATE_GRACE: Duration = Duration::from_millis(3000);

/// Appends rows to partitions. Not for several threads.
#[derive(Debug)]
pub struct Producer {
    settings: Settings,
    owner: Owner,
    stop: Stop,
    accumulator: Accumulator,
    cluster: Arc<Mutex<Cluster>>,
    sending: Option<Sending>,
    transaction: Option<Transaction>,
    closed: bool,
}

#[derive(Debug)]
struct Sending {
    delivery: Delivery,
    thread: JoinHandle<()>,
}

impl Producer {
    /// Opens nothing yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for settings that make no sense.
    pub fn new(settings: Settings) -> Result<Self> {
        let stop = Stop::default();
        let bytes = |value: i64| usize::try_from(value).unwrap_or(usize::MAX);
        let request = bytes(settings.max_request_size).saturating_sub(REQUEST_OVERHEAD + HEADER_LEN);
        let quarter = bytes(settings.buffer_memory) / 4;
        let limits = Limits {
            batch_bytes: bytes(settings.batch_size).min(request).min(quarter),
            record_bytes: request,
        };
        let cluster = Arc::new(Mutex::new(Cluster::new(settings.clone(), stop.clone())?));
        Ok(Self {
            accumulator: Accumulator::new(limits),
            cluster,
            owner: Owner::current(),
            sending: None,
            transaction: None,
            closed: false,
            settings,
            stop,
        })
    }

    /// As [`Producer::new`], writing one transaction under `transactional_id`; the first batch begins it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for settings that make no sense, or that give no guarantee.
    pub fn transactional(settings: Settings, transactional_id: String) -> Result<Self> {
        if settings.acks != Acks::All || !settings.enable_idempotence {
            return Err(ClientError::invalid(
                "a transaction needs acks=all and enable.idempotence=true; leave both settings out",
            ));
        }
        if transactional_id.is_empty() {
            return Err(ClientError::invalid("a transactional id must not be empty"));
        }
        let mut producer = Self::new(settings)?;
        let (cluster, stop) = (producer.cluster.clone(), producer.stop.clone());
        producer.transaction = Some(Transaction::new(transactional_id, &producer.settings, cluster, stop));
        Ok(producer)
    }

    /// Begins the transaction now.
    ///
    /// # Errors
    /// Those of [`Transaction::begin`].
    pub fn begin(&mut self) -> Result<ProducerId> {
        self.open_transaction()?.begin()
    }

    /// Prepares the transaction ([`Transaction::prepare`]); `None` when nothing was written.
    ///
    /// # Errors
    /// Those of [`Transaction::prepare`]; `INVALID_ARGUMENT` before all is acknowledged.
    pub fn prepare(&mut self) -> Result<Option<Handle>> {
        let delivered = self.all_acknowledged()?;
        let transaction = self.open_transaction()?;
        if delivered.records == 0 { Ok(None) } else { transaction.prepare().map(Some) }
    }

    /// Ends the transaction and waits until every partition knows. What is not acknowledged is given up by an abort.
    ///
    /// # Errors
    /// Those of [`Transaction::end`]; `INVALID_ARGUMENT` for a commit before all is acknowledged.
    pub fn end(&mut self, commit: bool) -> Result<()> {
        self.open_transaction()?;
        if commit {
            self.all_acknowledged()?;
        } else {
            // What is under way must not arrive behind the abort.
            self.join(|sending| {
                sending.delivery.close();
            });
        }
        self.open_transaction()?.end(commit)
    }

    fn open_transaction(&mut self) -> Result<&mut Transaction> {
        self.check()?;
        let without =
            || ClientError::invalid("this writer has no transaction; make it with a transactional id");
        self.transaction.as_mut().ok_or_else(without)
    }

    /// What was acknowledged, which must be all.
    fn all_acknowledged(&self) -> Result<Delivered> {
        let delivered = self.wait_flushed(Duration::ZERO)?;
        delivered.filter(|_| self.accumulator.open_bytes() == 0).ok_or_else(|| {
            ClientError::invalid("records of the transaction are not acknowledged yet; flush first")
        })
    }

    /// The handle of topic `name`, looked up (and with `allow.auto.create.topics` created) the first time.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC_OR_PARTITION` saying how to create it; `UNREACHABLE` and others after `max.block.ms`.
    pub fn topic(&mut self, name: &str) -> Result<usize> {
        if let Some(handle) = self.accumulator.topic(name) {
            return Ok(handle);
        }
        self.check()?;
        let create = self.settings.allow_auto_create_topics;
        let grace = if create { AUTO_CREATE_GRACE } else { Duration::ZERO };
        let limit = millis(self.settings.max_block_ms);
        let mut retry = Retry::new(format!("look up topic {name}"), limit, &self.stop);
        let started = Instant::now();
        loop {
            let found = self.look_up(name, create);
            let error = match found {
                Ok((id, leaders)) if !leaders.is_empty() => {
                    return Ok(self.accumulator.add_topic(name, id, leaders, next_turn));
                }
                Ok(_) => ClientError::retriable(
                    ErrorCode::LeaderNotAvailable.name(),
                    format!("topic {name} has no partitions yet"),
                ),
                Err(error) => error,
            };
            let unknown = error.kind == ErrorCode::UnknownTopicOrPartition.name();
            let grace = grace.max(self.cluster.lock().news_take());
            let retriable = if unknown { started.elapsed() < grace } else { error.retriable };
            if unknown && create && !retriable {
                return Err(self.cluster.lock().not_created(name));
            }
            retry.after(ClientError { retriable, ..error }, &self.settings)?;
        }
    }

    /// The topic's id, and the leader of each partition.
    fn look_up(&self, name: &str, create: bool) -> Result<(Uuid, Vec<Option<Address>>)> {
        let mut cluster = self.cluster.lock();
        let topic = cluster.topic(name, create).inspect_err(|_| cluster.distrust_metadata())?;
        let mut leaders = vec![None; topic.partitions.len()];
        for partition in &topic.partitions {
            let at = usize::try_from(partition.partition_index).ok().and_then(|at| leaders.get_mut(at));
            if let Some(leader) = at {
                *leader = cluster.address(partition.leader_id).ok();
            }
        }
        Ok((topic.topic_id, leaders))
    }

    /// Looks a topic up again that lacks the partition of a row: it may have been added since, and the broker that is
    /// asked may learn of it later than others. Leaves it to the accumulator to refuse what is still unknown then.
    #[cold]
    fn look_for(&mut self, topic: usize, name: &str, partition: i32) -> Result<()> {
        self.check()?;
        let limit = millis(self.settings.max_block_ms);
        let mut retry = Retry::new(format!("look up partition {name}-{partition}"), limit, &self.stop);
        let started = Instant::now();
        loop {
            let error = match self.look_up(name, false) {
                Ok((id, leaders)) => {
                    self.accumulator.grow(topic, id, leaders);
                    let grace = self.cluster.lock().news_take();
                    if self.accumulator.lacks(topic, partition).is_none() || started.elapsed() >= grace {
                        return Ok(());
                    }
                    self.cluster.lock().distrust_metadata();
                    let unknown = ErrorCode::UnknownTopicOrPartition.name();
                    ClientError::retriable(unknown, format!("topic {name} has no partition {partition} yet"))
                }
                Err(error) => error,
            };
            retry.after(error, &self.settings)?;
        }
    }

    /// Appends a row to a topic; may block for `buffer.memory`, and to look up a partition that is not known yet.
    ///
    /// # Errors
    /// Those of the row ([`Accumulator::append`]); the first delivery error of earlier rows; `TIMED_OUT` when memory
    /// does not become free within `max.block.ms`.
    #[inline]
    pub fn append(&mut self, topic: usize, row: &Row<'_>) -> Result<()> {
        if let Some(partition) = row.partition
            && let Some(name) = self.accumulator.lacks(topic, partition)
        {
            self.look_for(topic, &name, partition)?;
        }
        if let Some(ready) = self.accumulator.append(topic, row)? {
            self.push(vec![ready])?;
        }
        if self.accumulator.open_bytes() as i64 > self.settings.buffer_memory / 2 {
            self.close_batches(Duration::ZERO)?;
        }
        Ok(())
    }

    /// Sends batches that are open for longer than `linger.ms`; to be called now and then, for each Arrow batch say.
    ///
    /// # Errors
    /// As for [`Producer::append`].
    pub fn linger(&mut self) -> Result<()> {
        self.check()?;
        self.close_batches(millis(self.settings.linger_ms))
    }

    /// Sends all that is open.
    ///
    /// # Errors
    /// As for [`Producer::append`].
    pub fn begin_flush(&mut self) -> Result<()> {
        self.check()?;
        self.close_batches(Duration::ZERO)
    }

    /// Waits up to `time` for what was sent; `None` when that was not enough, else what was acknowledged since the start.
    ///
    /// # Errors
    /// The first delivery error.
    pub fn wait_flushed(&self, time: Duration) -> Result<Option<Delivered>> {
        self.check()?;
        let Some(sending) = &self.sending else { return Ok(Some(Delivered::default())) };
        let empty = sending.delivery.wait_empty(time)?;
        Ok(empty.then(|| sending.delivery.delivered()))
    }

    /// Gives up what is not acknowledged, ends the thread, closes the connections. Idempotent.
    pub fn close(&mut self) {
        self.closed = true;
        let stop = self.stop.clone();
        self.join(|sending| {
            if !sending.delivery.close() {
                stop.stop();
            }
        });
        if self.owner.check("writer").is_ok() {
            self.cluster.lock().close();
        }
    }

    /// Waits for the sending thread, which `end` ends.
    fn join(&mut self, end: impl FnOnce(&Sending)) {
        let Some(sending) = self.sending.take() else { return };
        if self.owner.check("writer").is_err() {
            // The thread is not in this process; its handle must not be waited for, nor its sockets shut down.
            std::mem::forget(sending);
            return;
        }
        end(&sending);
        // The thread cannot panic with a value worth passing on.
        let _ = sending.thread.join();
    }

    fn check(&self) -> Result<()> {
        self.owner.check("writer")?;
        if self.closed {
            return Err(ClientError::fatal(kind::CLOSED, "this writer is closed; make a new one"));
        }
        Ok(())
    }

    fn close_batches(&mut self, age: Duration) -> Result<()> {
        let ready = self.accumulator.close_older_than(age);
        if ready.is_empty() && self.sending.is_none() { Ok(()) } else { self.push(ready) }
    }

    fn push(&mut self, ready: Vec<Ready>) -> Result<()> {
        self.check()?;
        if let Some(transaction) = &mut self.transaction {
            transaction.add(ready.iter().map(|ready| &ready.topic_partition))?;
        }
        let half = usize::try_from(self.settings.buffer_memory / 2).unwrap_or(usize::MAX);
        let limit = millis(self.settings.max_block_ms);
        let delivery = self.sending()?;
        let spare = delivery.push(ready)?;
        if !delivery.wait_below(half, limit)? {
            return Err(ClientError::fatal(
                kind::TIMED_OUT,
                format!(
                    "buffer.memory is full and brokers took nothing for max.block.ms ({} s)",
                    limit.as_secs_f64()
                ),
            ));
        }
        self.accumulator.recycle(spare);
        Ok(())
    }

    /// The sending thread, started if needed.
    fn sending(&mut self) -> Result<&Delivery> {
        let sending = match self.sending.take() {
            Some(sending) => sending,
            None => self.start()?,
        };
        Ok(&self.sending.insert(sending).delivery)
    }

    fn start(&mut self) -> Result<Sending> {
        let identity = self.identity()?;
        let no_resources = |error: std::io::Error| {
            ClientError::fatal(kind::PROTOCOL, format!("could not start a writer: {error}"))
        };
        let (waker, wakeable) = poll::waker().map_err(no_resources)?;
        let delivery = Delivery::new(waker);
        let (settings, cluster, shared) = (self.settings.clone(), self.cluster.clone(), delivery.clone());
        let thread = std::thread::Builder::new()
            .name("pylog-sender".to_owned())
            .spawn(move || Sender::run(settings, cluster, identity, shared, wakeable))
            .map_err(no_resources)?;
        Ok(Sending { delivery, thread })
    }

    fn identity(&mut self) -> Result<ProducerIdentity> {
        let Some(transaction) = &mut self.transaction else {
            return Ok(ProducerIdentity { producer: self.producer_id()?, ..ProducerIdentity::default() });
        };
        Ok(ProducerIdentity {
            producer: Some(transaction.begin()?),
            transactional_id: Some(transaction.id().to_owned()),
            adds_partitions: transaction.batches_add(),
        })
    }

    /// A producer id for idempotence, unless it is switched off or (not asked for explicitly) not to be had.
    fn producer_id(&self) -> Result<Option<ProducerId>> {
        let settings = &self.settings;
        if !settings.enable_idempotence || settings.acks != Acks::All {
            return Ok(None);
        }
        let request = InitProducerIdRequest { producer_id: -1, producer_epoch: -1, ..Default::default() };
        let mut retry = Retry::new("get a producer id", millis(settings.max_block_ms), &self.stop);
        loop {
            let answer = self.cluster.lock().call_any(&request);
            let error = match answer {
                Ok(answer) => match code(answer.error_code) {
                    ErrorCode::None => return Ok(Some((answer.producer_id, answer.producer_epoch))),
                    error => ClientError {
                        kind: error.name(),
                        message: format!("no producer id for an idempotent writer: {}", error.sentence()),
                        retriable: error.is_retriable(),
                    },
                },
                Err(error) => error,
            };
            let absent = error.kind == ErrorCode::UnsupportedVersion.name();
            if absent && !settings.is_given("enable.idempotence") {
                return Ok(None);
            }
            retry.after(error, settings)?;
        }
    }
}

/// Where the next writer of this process begins with rows that have neither a partition nor a key. A worker of Spark's runs one
/// small task after the other, each with a writer of its own: they go on from partition to partition, and workers that start
/// together do not all begin with the first.
fn next_turn() -> usize {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    (std::process::id() as usize).wrapping_add(TURN.fetch_add(1, Ordering::Relaxed))
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.close();
    }
}
