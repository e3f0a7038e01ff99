//! Fetch sessions (KIP-227): a consumer of many partitions names them once, and afterwards only changes go over the wire.
//!
//! The cache is bounded by [`FetchSessions::new`]'s slots (`max.incremental.fetch.session.cache.slots`) and by
//! [`CACHED_PARTITIONS_MAX`]. A client that finds no room gets session id 0, which every client understands as "none", and goes on
//! with full requests. A new session takes the place of one that nobody used for [`EVICTION_MS`], or of the smallest
//! that is at least that old and smaller than the new one, as in Kafka (FetchSessionCache). Who names what no topic can be called gets no
//! session, because nothing but the frame bounds such a name.
//!
//! No sockets, no clock. Locks: the cache's first, then a session's; neither is held while a log is read.
mod session;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use pylog_security::principal::Principal;
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::ForgottenTopic;
pub use session::{AnsweredPartition, AskedPartition, Partitions, Position, TopicKey, topic_key};

/// How long a session is kept after it was made, and after its last use, even when others need room.
pub const EVICTION_MS: i64 = /* 2 minutes */ 120_000;
/// Most partitions in all sessions together; about 200 bytes each, and a name of at most 249: 112 MB in all.
pub const CACHED_PARTITIONS_MAX: usize = 250_000;
/// `session_id` of a client without a session.
pub const NO_SESSION: i32 = 0;
/// `session_epoch` of a request that begins a session.
const INITIAL_EPOCH: i32 = 0;
/// `session_epoch` of a request that ends its session, or wants none.
const FINAL_EPOCH: i32 = -1;

/// The part of a fetch request that concerns sessions.
#[derive(Debug)]
pub struct SessionRequest<'a> {
    /// Who sends it. A session is its principal's: for others it is not there.
    pub principal: &'a Arc<Principal>,
    /// `session_id`.
    pub id: i32,
    /// `session_epoch`.
    pub epoch: i32,
    /// Whether topics are named by id in this version.
    pub by_id: bool,
    /// Partitions named.
    pub asked: Vec<AskedPartition>,
    /// Partitions to leave out from now on.
    pub forgotten: &'a [ForgottenTopic],
}

impl SessionRequest<'_> {
    /// Whether a session may keep what the request names.
    fn may_be_kept(&self) -> bool {
        self.asked.iter().all(|partition| partition.topic.may_exist())
    }
}

/// What is to happen when the answer is there.
#[derive(Debug)]
pub enum SessionPlan {
    /// All partitions are sent, without a session.
    Sessionless,
    /// All partitions are sent, and a session begins if there is room.
    Begin {
        /// Whose it is.
        principal: Arc<Principal>,
        /// Whether topics are named by id.
        by_id: bool,
    },
    /// What changed is sent.
    Continue {
        /// The session.
        session: Arc<Mutex<FetchSession>>,
        /// Its epoch while this request is worked on; another one means that the client sent it twice.
        epoch: i32,
    },
}

impl SessionPlan {
    /// The session's id, for an answer with nothing in it: the session is as it was, and one that would begin does not.
    pub fn unchanged_id(&self) -> i32 {
        match self {
            Self::Sessionless | Self::Begin { .. } => NO_SESSION,
            Self::Continue { session, .. } => session.lock().id,
        }
    }
}

/// What the session says about an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct SessionOutcome {
    /// `session_id` of the answer.
    pub id: i32,
    /// For each partition, whether it is sent; `None`: all.
    pub sent: Option<Vec<bool>>,
}

/// One session.
#[derive(Debug)]
pub struct FetchSession {
    id: i32,
    principal: Arc<Principal>,
    by_id: bool,
    /// What the next request must carry.
    epoch: i32,
    partitions: Partitions,
}

#[derive(Debug)]
struct CacheEntry {
    session: Arc<Mutex<FetchSession>>,
    created_ms: i64,
    last_used_ms: i64,
    /// Partitions at the last use.
    size: usize,
}

#[derive(Debug, Default)]
struct Cache {
    sessions: HashMap<i32, CacheEntry>,
    /// By last use, milliseconds since the epoch.
    last_used: BTreeSet<(i64, i32)>,
    /// Sessions old enough to be pushed out by a larger one, by size.
    evictable: BTreeSet<(usize, i32)>,
    /// Partitions of all sessions.
    partitions: usize,
    evictions: u64,
}

/// All sessions of a broker. Every method may be called from any thread.
#[derive(Debug)]
pub struct FetchSessions {
    slots: usize,
    cache: Mutex<Cache>,
    /// A positive number, each time another; not to be guessed.
    new_id: fn() -> i32,
}

impl FetchSessions {
    /// Room for `slots` sessions; none with 0.
    pub fn new(slots: usize) -> Self {
        Self { slots, cache: Mutex::default(), new_id: random_id }
    }

    /// What to read for a request, and what to do with the answer ([`FetchSessions::complete`]).
    ///
    /// # Errors
    /// FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR: the client begins again.
    pub fn take(
        &self,
        request: SessionRequest<'_>,
        now_ms: i64,
    ) -> Result<(Vec<AskedPartition>, SessionPlan), ErrorCode> {
        if matches!(request.epoch, INITIAL_EPOCH | FINAL_EPOCH) {
            if request.id != NO_SESSION {
                self.end(&request);
            }
            let begins = request.epoch == INITIAL_EPOCH && self.slots > 0 && request.may_be_kept();
            let plan = match begins {
                true => {
                    let principal = Arc::clone(request.principal);
                    SessionPlan::Begin { principal, by_id: request.by_id }
                }
                false => SessionPlan::Sessionless,
            };
            return Ok((once_each(request.asked), plan));
        }
        let mut cache = self.cache.lock();
        let entry = cache.sessions.get(&request.id).ok_or(ErrorCode::FetchSessionIdNotFound)?;
        let shared = Arc::clone(&entry.session);
        let mut session = shared.lock();
        if session.principal != *request.principal {
            return Err(ErrorCode::FetchSessionIdNotFound);
        }
        if session.epoch != request.epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.by_id != request.by_id {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        if !request.may_be_kept() {
            cache.remove(request.id);
            return Err(ErrorCode::FetchSessionIdNotFound);
        }
        session.partitions.update(request.asked);
        session.partitions.forget(request.forgotten, request.by_id);
        let asked = session.partitions.asked();
        if asked.is_empty() {
            cache.remove(request.id);
            return Ok((asked, SessionPlan::Sessionless));
        }
        cache.touch(request.id, asked.len(), now_ms);
        if cache.partitions > CACHED_PARTITIONS_MAX {
            cache.remove(request.id);
            return Err(ErrorCode::FetchSessionIdNotFound);
        }
        session.epoch = next_epoch(session.epoch);
        let epoch = session.epoch;
        drop(session);
        Ok((asked, SessionPlan::Continue { session: shared, epoch }))
    }

    /// Notes what the answer says about each partition of `asked`, in its order.
    ///
    /// # Errors
    /// INVALID_FETCH_SESSION_EPOCH when the session went on meanwhile, with the session's id.
    pub fn complete(
        &self,
        plan: &SessionPlan,
        asked: &[AskedPartition],
        answered: &[AnsweredPartition],
        now_ms: i64,
    ) -> Result<SessionOutcome, (ErrorCode, i32)> {
        match plan {
            SessionPlan::Sessionless => Ok(SessionOutcome { id: NO_SESSION, sent: None }),
            SessionPlan::Begin { principal, by_id } => {
                let id = self.begin((principal, *by_id), asked, answered, now_ms);
                Ok(SessionOutcome { id, sent: None })
            }
            SessionPlan::Continue { session, epoch } => {
                let mut session = session.lock();
                if session.epoch != *epoch {
                    return Err((ErrorCode::InvalidFetchSessionEpoch, session.id));
                }
                Ok(SessionOutcome { id: session.id, sent: Some(session.partitions.note_answer(answered)) })
            }
        }
    }

    /// Number of sessions, of partitions in them, and of sessions that made room for others.
    pub fn counts(&self) -> (usize, usize, u64) {
        let cache = self.cache.lock();
        (cache.sessions.len(), cache.partitions, cache.evictions)
    }

    /// Ends the session that the request names, if it is its sender's.
    fn end(&self, request: &SessionRequest<'_>) {
        let mut cache = self.cache.lock();
        let entry = cache.sessions.get(&request.id);
        if entry.is_some_and(|entry| entry.session.lock().principal == *request.principal) {
            cache.remove(request.id);
        }
    }

    /// The id of a new session, [`NO_SESSION`] when there is no room.
    fn begin(
        &self,
        (principal, by_id): (&Arc<Principal>, bool),
        asked: &[AskedPartition],
        answered: &[AnsweredPartition],
        now_ms: i64,
    ) -> i32 {
        let mut cache = self.cache.lock();
        if !cache.make_room(self.slots, asked.len(), now_ms) {
            return NO_SESSION;
        }
        let mut partitions = Partitions::default();
        partitions.update(asked.to_vec());
        partitions.note_answer(answered);
        let id = loop {
            let id = (self.new_id)();
            if id > NO_SESSION && !cache.sessions.contains_key(&id) {
                break id;
            }
        };
        let session = FetchSession {
            id,
            principal: Arc::clone(principal),
            by_id,
            epoch: next_epoch(INITIAL_EPOCH),
            partitions,
        };
        let session = Arc::new(Mutex::new(session));
        cache.sessions.insert(id, CacheEntry { session, created_ms: now_ms, last_used_ms: now_ms, size: 0 });
        cache.touch(id, asked.len(), now_ms);
        id
    }
}

impl Cache {
    /// Whether a session of `size` partitions may begin, one of the others making room if need be.
    fn make_room(&mut self, slots: usize, size: usize, now_ms: i64) -> bool {
        // No session may crowd out all others for its size.
        if size == 0 || size > CACHED_PARTITIONS_MAX {
            return false;
        }
        while self.sessions.len() >= slots || self.partitions + size > CACHED_PARTITIONS_MAX {
            let Some(id) = self.victim(size, now_ms) else { return false };
            self.remove(id);
            self.evictions += 1;
        }
        true
    }

    /// The session that makes room: the one unused for longest if that is longer than [`EVICTION_MS`], else the smallest old one if it is
    /// smaller than the new one.
    fn victim(&self, size: usize, now_ms: i64) -> Option<i32> {
        let (used_ms, stale) = self.last_used.first()?;
        if now_ms - used_ms > EVICTION_MS {
            return Some(*stale);
        }
        let (smallest, id) = self.evictable.first()?;
        (*smallest < size).then_some(*id)
    }

    fn remove(&mut self, id: i32) {
        if let Some(entry) = self.sessions.remove(&id) {
            self.last_used.remove(&(entry.last_used_ms, id));
            self.evictable.remove(&(entry.size, id));
            self.partitions -= entry.size;
        }
    }

    /// Notes a use, and how many partitions the session has now.
    fn touch(&mut self, id: i32, size: usize, now_ms: i64) {
        let Some(entry) = self.sessions.get_mut(&id) else { return };
        self.last_used.remove(&(entry.last_used_ms, id));
        self.evictable.remove(&(entry.size, id));
        self.partitions = self.partitions - entry.size + size;
        entry.last_used_ms = now_ms;
        entry.size = size;
        self.last_used.insert((now_ms, id));
        if now_ms - entry.created_ms > EVICTION_MS {
            self.evictable.insert((size, id));
        }
    }
}

/// The epoch of the request after one with `epoch`; 0 and -1 have meanings of their own.
fn next_epoch(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}

/// Each partition once, at its first place and with its last position, as Kafka reads a request.
fn once_each(asked: Vec<AskedPartition>) -> Vec<AskedPartition> {
    // Sorting is much cheaper than hashing, and hardly any request names a partition twice.
    let mut sorted: Vec<_> =
        asked.iter().map(|partition| (&partition.topic, partition.position.partition)).collect();
    sorted.sort_unstable();
    if sorted.windows(2).all(|pair| pair.first() != pair.last()) {
        return asked;
    }
    let mut places = HashMap::with_capacity(asked.len());
    let mut each: Vec<AskedPartition> = Vec::with_capacity(asked.len());
    for partition in asked {
        let place =
            *places.entry((partition.topic.clone(), partition.position.partition)).or_insert(each.len());
        match each.get_mut(place) {
            Some(known) => known.position = partition.position,
            None => each.push(partition),
        }
    }
    each
}

/// Not to be guessed: whoever knows its id may use a session.
fn random_id() -> i32 {
    let (high, _) = uuid::Uuid::new_v4().as_u64_pair();
    i32::try_from(high >> 33).unwrap_or(1)
}

#[cfg(test)]
mod tests;
