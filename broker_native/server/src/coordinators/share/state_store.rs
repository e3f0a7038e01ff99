//! Where the states of share partitions are kept: the machine of a partition of `__share_group_state`, at this broker or, by Kafka's
//! own requests, at the one that leads that partition.
//!
//! A request that fails because there is no leader is tried again for [`STATE_TIMEOUT`]. Requests that arrive twice or late do no harm:
//! see [`pylog_coordinator::share::state`].
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::remote;
use crate::cluster::peers::Peers;
use crate::coordinators::{Coordinator, Waiting};
use crate::state::topics::Topics;
use pylog_coordinator::share::ShareKey;
use pylog_coordinator::share::leader::is_passing;
use pylog_coordinator::share::state::StateMachine;
use pylog_coordinator::share::state_requests::{
    StateEvent, StateReply, StateRequest, StoredState, Summary, UNKNOWN, Written,
};
use pylog_log::loggers::COORDINATOR;
use pylog_log::warn;
use pylog_wire::ErrorCode;

/// How long a read or write is tried again before it fails. As Kafka's `offsets.commit.timeout.ms`.
pub const STATE_TIMEOUT: Duration = Duration::from_secs(5);
/// Between the first two tries; each wait is twice the one before.
const RETRY_MIN: Duration = Duration::from_millis(20);
/// Between the last ones.
const RETRY_MAX: Duration = Duration::from_millis(500);

/// Something that is under way.
pub type Work<T> = Pin<Box<dyn Future<Output = Result<T, ErrorCode>> + Send>>;

/// Something that was begun.
pub enum Begun<T> {
    /// It is done.
    Done(Result<T, ErrorCode>),
    /// It is done when this is.
    Later(Work<T>),
}

/// See the module.
pub struct ShareStateStore {
    /// This broker.
    pub node_id: i32,
    /// Who leads what.
    pub topics: Arc<Topics>,
    /// The way to other brokers.
    pub peers: Arc<Peers>,
    /// What is kept here.
    pub states: Arc<Coordinator<StateMachine>>,
}

/// Where a state is kept.
enum Keeper {
    Here,
    At(i32),
}

impl ShareStateStore {
    /// Reads the state for the leader of `leader_epoch`, and makes it before when it is not there and that is wanted. INVALID_REQUEST
    /// says that it is not there.
    pub fn read(self: &Arc<Self>, key: &ShareKey, leader_epoch: i32, makes: bool) -> Begun<StoredState> {
        let read = StateRequest::Read { leader_epoch };
        if !makes {
            return self.begin(key, read, kept);
        }
        let make = StateRequest::Initialize { state_epoch: 0, start_offset: UNKNOWN };
        match self.begin(key, make, done) {
            Begun::Done(Ok(())) => self.begin(key, read, kept),
            // Somebody made it, and it went on.
            Begun::Done(Err(ErrorCode::FencedStateEpoch)) => self.begin(key, read, kept),
            Begun::Done(Err(code)) => Begun::Done(Err(code)),
            Begun::Later(made) => {
                let (me, key) = (Arc::clone(self), key.clone());
                Begun::Later(Box::pin(async move {
                    match made.await {
                        Ok(()) | Err(ErrorCode::FencedStateEpoch) => kept(me.ask(&key, read).await),
                        Err(code) => Err(code),
                    }
                }))
            }
        }
    }

    /// Writes the state.
    pub fn write(self: &Arc<Self>, key: &ShareKey, written: Written) -> Begun<()> {
        self.begin(key, StateRequest::Write(written), done)
    }

    /// Where the group is in the partition; `None`: it has not read it.
    ///
    /// # Errors
    /// COORDINATOR_NOT_AVAILABLE and the like.
    pub async fn summary(self: &Arc<Self>, key: &ShareKey) -> Result<Option<Summary>, ErrorCode> {
        match self.ask(key, StateRequest::Summary).await? {
            StateReply::Summary(summary) => Ok(summary),
            _ => Err(ErrorCode::UnknownServerError),
        }
    }

    /// Moves the group to `start_offset`; everything that was done with what is behind it is forgotten.
    ///
    /// # Errors
    /// As [`ShareStateStore::summary`]; FENCED_STATE_EPOCH when somebody else does the same.
    pub async fn reset(self: &Arc<Self>, key: &ShareKey, start_offset: i64) -> Result<(), ErrorCode> {
        let epoch = self.summary(key).await?.map(|summary| summary.state_epoch);
        let state_epoch = epoch.map_or(0, |epoch| epoch.saturating_add(1));
        done(self.ask(key, StateRequest::Initialize { state_epoch, start_offset }).await)
    }

    /// Forgets the state.
    ///
    /// # Errors
    /// As [`ShareStateStore::summary`].
    pub async fn delete(self: &Arc<Self>, key: &ShareKey) -> Result<(), ErrorCode> {
        done(self.ask(key, StateRequest::Delete).await)
    }

    fn begin<T: 'static>(
        self: &Arc<Self>,
        key: &ShareKey,
        request: StateRequest,
        read: fn(Result<StateReply, ErrorCode>) -> Result<T, ErrorCode>,
    ) -> Begun<T> {
        let first = match self.keeper(key) {
            Ok(Keeper::Here) => {
                let mut waiting = self.here(key, request.clone());
                match waiting.take() {
                    // An error that may pass is tried again, after a pause.
                    Some(Ok(reply)) if !refusal_of(&reply).is_some_and(is_passing) => {
                        return Begun::Done(read(Ok(reply)));
                    }
                    Some(answer) => Some(Waiting::now(answer)),
                    None => Some(waiting),
                }
            }
            _ => None,
        };
        let (me, key) = (Arc::clone(self), key.clone());
        Begun::Later(Box::pin(async move { read(me.ask_on(&key, request, first).await) }))
    }

    async fn ask(self: &Arc<Self>, key: &ShareKey, request: StateRequest) -> Result<StateReply, ErrorCode> {
        self.ask_on(key, request, None).await
    }

    /// Asks until there is an answer; `first` is the first try, when it is begun already.
    async fn ask_on(
        &self,
        key: &ShareKey,
        request: StateRequest,
        mut first: Option<Waiting<StateReply>>,
    ) -> Result<StateReply, ErrorCode> {
        let until = Instant::now() + STATE_TIMEOUT;
        let mut wait = RETRY_MIN;
        loop {
            let tried = async {
                match first.take() {
                    Some(waiting) => waiting.await,
                    None => self.try_once(key, &request).await,
                }
            };
            let outcome = tokio::time::timeout_at(until, tried).await;
            let outcome = outcome.unwrap_or(Err(ErrorCode::CoordinatorNotAvailable));
            let code = match outcome {
                Ok(reply) => match refusal_of(&reply) {
                    Some(code) if is_passing(code) => code,
                    _ => return Ok(reply),
                },
                Err(code) if is_passing(code) => code,
                Err(code) => return Err(code),
            };
            if Instant::now() + wait >= until {
                tokio::time::sleep_until(until).await;
                let timeout = STATE_TIMEOUT.as_secs();
                let why = code.sentence();
                warn!(target: COORDINATOR, "the state of a share partition was not read or written within {timeout} s: {why}");
                return Err(code);
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(RETRY_MAX);
        }
    }

    async fn try_once(&self, key: &ShareKey, request: &StateRequest) -> Result<StateReply, ErrorCode> {
        match self.keeper(key)? {
            Keeper::Here => self.here(key, request.clone()).await,
            Keeper::At(id) => remote::ask(&self.peers, id, key, request).await,
        }
    }

    fn here(&self, key: &ShareKey, request: StateRequest) -> Waiting<StateReply> {
        self.states.call(&key.text(), |ticket| StateEvent { ticket, key: key.clone(), request })
    }

    fn keeper(&self, key: &ShareKey) -> Result<Keeper, ErrorCode> {
        let none = ErrorCode::CoordinatorNotAvailable;
        let number = self.states.partition_of(&key.text()).ok_or(none)?;
        match self.leader_of(number) {
            Some(id) if id == self.node_id => Ok(Keeper::Here),
            Some(id) if id >= 0 => Ok(Keeper::At(id)),
            _ => Err(none),
        }
    }

    fn leader_of(&self, number: i32) -> Option<i32> {
        let image = self.topics.now();
        Some(image.named(self.states.topic())?.partition(number)?.spec.leader)
    }

    /// The share partitions of a group: those that are kept here, and of all others those that their keepers know.
    ///
    /// # Errors
    /// As [`ShareStateStore::summary`], while they are not all known.
    pub async fn keys(self: &Arc<Self>, group_id: &str) -> Result<Vec<ShareKey>, ErrorCode> {
        let mut keys = Vec::new();
        self.states.for_each_loaded(|states| keys.extend(states.keys_of(group_id).cloned()))?;
        let mut remote: BTreeMap<i32, Vec<ShareKey>> = BTreeMap::new();
        for key in self.possible(group_id) {
            if let Keeper::At(id) = self.keeper(&key)? {
                remote.entry(id).or_default().push(key);
            }
        }
        for (id, asked) in remote {
            for some in asked.chunks(remote::SUMMARIES_MAX) {
                keys.extend(remote::known(&self.peers, id, group_id, some).await?);
            }
        }
        keys.sort_unstable();
        Ok(keys)
    }

    /// Every partition that a group may have read; none when all states are kept here.
    fn possible(&self, group_id: &str) -> Vec<ShareKey> {
        let image = self.topics.now();
        let kept = image.named(self.states.topic());
        let has_remote = kept.is_some_and(|topic| {
            topic.partitions.iter().any(|partition| partition.spec.leader != self.node_id)
        });
        if !has_remote {
            return Vec::new();
        }
        let topics = image.all();
        let keys = topics.flat_map(|topic| {
            topic.partitions.iter().map(|partition| ShareKey {
                group_id: group_id.to_owned(),
                topic_id: topic.id,
                partition: partition.spec.partition,
            })
        });
        keys.collect()
    }
}

fn done(answer: Result<StateReply, ErrorCode>) -> Result<(), ErrorCode> {
    match answer? {
        StateReply::Done(ErrorCode::None) => Ok(()),
        StateReply::Done(code) => Err(code),
        _ => Err(ErrorCode::UnknownServerError),
    }
}

fn kept(answer: Result<StateReply, ErrorCode>) -> Result<StoredState, ErrorCode> {
    match answer? {
        StateReply::Read(kept) => kept,
        _ => Err(ErrorCode::UnknownServerError),
    }
}

/// Why a keeper did not do it.
fn refusal_of(reply: &StateReply) -> Option<ErrorCode> {
    match reply {
        StateReply::Done(code) | StateReply::Read(Err(code)) => Some(*code),
        _ => None,
    }
}
