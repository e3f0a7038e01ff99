//! Share sessions (KIP-932): which partitions a member reads at this broker. A session ends when its member closes it, or with the
//! connection that it was opened on; what the member holds of its partitions is given back then.
//!
//! Pure but for its lock; any thread may call it. There are at most `group.share.max.share.sessions` of them, half of them at most of one
//! client address, with [`PARTITIONS_MAX`] partitions together; a client that finds no room gets SHARE_SESSION_LIMIT_REACHED.
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::io::shares::{Share, Shares};
use pylog_wire::ErrorCode;

/// Most partitions of all sessions together.
pub const PARTITIONS_MAX: usize = 1_000_000;
/// Epoch of a request that opens a session.
pub const OPENS: i32 = 0;
/// Epoch of a request that closes one.
pub const CLOSES: i32 = -1;

/// A topic and a number.
pub type TopicIdPartition = (Uuid, i32);

/// Whose session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShareSessionKey {
    /// The group.
    pub group_id: String,
    /// The member.
    pub member_id: String,
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub struct SessionClient {
    /// The client's address.
    pub address: IpAddr,
    /// The connection.
    pub connection: u64,
}

/// The partitions of a session, each request of it begins with another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPartitions {
    /// No two sessions have the same.
    pub session: u64,
    all: Arc<Vec<TopicIdPartition>>,
    first: usize,
}

impl SessionPartitions {
    /// The partitions, in the order in which this request serves them.
    pub fn iter(&self) -> impl Iterator<Item = &TopicIdPartition> {
        let (before, from) = self.all.split_at(self.first.min(self.all.len()));
        from.iter().chain(before)
    }

    /// Number of partitions.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The same turn with those partitions that are `wanted`, in their order.
    pub fn only(self, wanted: impl FnMut(&&TopicIdPartition) -> bool) -> Self {
        let all = Arc::new(self.iter().filter(wanted).copied().collect());
        Self { session: self.session, all, first: 0 }
    }
}

#[derive(Debug)]
struct ShareSession {
    id: u64,
    /// The next request's.
    epoch: i32,
    connection: u64,
    partitions: Arc<Vec<TopicIdPartition>>,
    /// Given back when the session ends.
    _place: Share,
}

/// All sessions.
#[derive(Debug)]
pub struct ShareSessions {
    places: Shares,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    sessions: HashMap<Arc<ShareSessionKey>, ShareSession>,
    /// By the connections that they were opened on.
    connections: HashMap<u64, Vec<Arc<ShareSessionKey>>>,
    partitions: usize,
    next_id: u64,
}

impl Inner {
    fn remove(&mut self, key: &ShareSessionKey) -> Option<ShareSession> {
        let session = self.sessions.remove(key)?;
        self.partitions -= session.partitions.len();
        if let Some(keys) = self.connections.get_mut(&session.connection) {
            keys.retain(|other| **other != *key);
            if keys.is_empty() {
                self.connections.remove(&session.connection);
            }
        }
        Some(session)
    }

    fn open(&mut self, key: &ShareSessionKey, connection: u64, place: Share) {
        let key = Arc::new(key.clone());
        self.connections.entry(connection).or_default().push(Arc::clone(&key));
        let (id, partitions) = (self.next_id, Arc::default());
        self.next_id += 1;
        let opened = ShareSession { id, epoch: OPENS + 1, connection, partitions, _place: place };
        self.sessions.insert(key, opened);
    }

    /// The session, when `epoch` is its next one.
    fn step(&mut self, key: &ShareSessionKey, epoch: i32) -> Result<&mut ShareSession, ErrorCode> {
        let session = self.sessions.get_mut(key).ok_or(ErrorCode::ShareSessionNotFound)?;
        if session.epoch != epoch {
            return Err(ErrorCode::InvalidShareSessionEpoch);
        }
        // Behind the last number comes the first that opens nothing.
        session.epoch = epoch.checked_add(1).unwrap_or(OPENS + 1);
        Ok(session)
    }
}

impl ShareSessions {
    /// At most `max`.
    pub fn new(max: usize) -> Self {
        let places = u32::try_from(max).unwrap_or(u32::MAX).min(u32::MAX >> 4);
        Self { places: Shares::new(places), inner: Mutex::default() }
    }

    /// A request that reads: opens a session or goes on with one. Gives its partitions. One that was forgotten and is added by the same
    /// request stays out.
    ///
    /// # Errors
    /// SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED.
    pub fn read(
        &self,
        key: &ShareSessionKey,
        epoch: i32,
        client: SessionClient,
        added: &[TopicIdPartition],
        forgotten: &[TopicIdPartition],
    ) -> Result<SessionPartitions, ErrorCode> {
        let mut inner = self.inner.lock();
        if epoch == OPENS {
            // The place of its own session before is freed.
            drop(inner.remove(key));
            let place = self.places.take_now(client.address, 1);
            let place = place.ok_or(ErrorCode::ShareSessionLimitReached)?;
            inner.open(key, client.connection, place);
        } else {
            inner.step(key, epoch)?;
        }
        let room = PARTITIONS_MAX.saturating_sub(inner.partitions);
        let session = inner.sessions.get_mut(key).ok_or(ErrorCode::ShareSessionNotFound)?;
        let before = session.partitions.len();
        if !(added.is_empty() && forgotten.is_empty()) {
            change(Arc::make_mut(&mut session.partitions), added, forgotten);
        }
        let (id, all) = (session.id, Arc::clone(&session.partitions));
        inner.partitions = inner.partitions + all.len() - before;
        if all.len() > before && all.len() - before > room {
            // Opened anew it may find room: what its member holds is given back when the locks are over.
            drop(inner.remove(key));
            return Err(ErrorCode::ShareSessionLimitReached);
        }
        let first = usize::try_from(epoch).unwrap_or(0).checked_rem(all.len()).unwrap_or(0);
        Ok(SessionPartitions { session: id, all, first })
    }

    /// Whether the session goes on: it was not closed, nor opened anew.
    pub fn goes_on(&self, key: &ShareSessionKey, turn: &SessionPartitions) -> bool {
        self.inner.lock().sessions.get(key).is_some_and(|session| session.id == turn.session)
    }

    /// A request that acknowledges only.
    ///
    /// # Errors
    /// SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
    pub fn acknowledge(&self, key: &ShareSessionKey, epoch: i32) -> Result<(), ErrorCode> {
        if epoch == OPENS {
            return Err(ErrorCode::InvalidShareSessionEpoch);
        }
        self.inner.lock().step(key, epoch).map(|_session| ())
    }

    /// The member closes its session; gives its partitions.
    ///
    /// # Errors
    /// SHARE_SESSION_NOT_FOUND.
    pub fn close(&self, key: &ShareSessionKey) -> Result<SessionPartitions, ErrorCode> {
        let session = self.inner.lock().remove(key).ok_or(ErrorCode::ShareSessionNotFound)?;
        Ok(session.ended())
    }

    /// The connection is no more; gives the sessions that end with it.
    pub fn disconnected(&self, connection: u64) -> Vec<(Arc<ShareSessionKey>, SessionPartitions)> {
        let mut inner = self.inner.lock();
        let keys = inner.connections.remove(&connection).unwrap_or_default();
        let ended =
            keys.into_iter().filter_map(|key| inner.remove(&key).map(|session| (key, session.ended())));
        ended.collect()
    }
}

impl ShareSession {
    fn ended(self) -> SessionPartitions {
        SessionPartitions { session: self.id, all: self.partitions, first: 0 }
    }
}

fn change(
    partitions: &mut Vec<TopicIdPartition>,
    added: &[TopicIdPartition],
    forgotten: &[TopicIdPartition],
) {
    let gone: HashSet<_> = forgotten.iter().collect();
    if !gone.is_empty() {
        partitions.retain(|partition| !gone.contains(partition));
    }
    let mut known: HashSet<_> = partitions.iter().copied().collect();
    let new = added.iter().copied().filter(|partition| !gone.contains(partition) && known.insert(*partition));
    partitions.extend(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(member: &str) -> ShareSessionKey {
        ShareSessionKey { group_id: "g".into(), member_id: member.into() }
    }

    fn partition(number: i32) -> TopicIdPartition {
        (Uuid::from_u128(1), number)
    }

    fn over(connection: u64) -> SessionClient {
        SessionClient { address: IpAddr::from([127, 0, 0, 1]), connection }
    }

    fn numbers(turn: Result<SessionPartitions, ErrorCode>) -> Result<Vec<i32>, ErrorCode> {
        turn.map(|turn| turn.iter().map(|(_, number)| *number).collect())
    }

    #[test]
    fn a_session_goes_on_with_the_next_epoch_only() {
        let sessions = ShareSessions::new(2);
        let all = [partition(0), partition(1)];
        assert_eq!(numbers(sessions.read(&key("m"), 0, over(1), &all, &[])), Ok(vec![0, 1]));
        assert_eq!(
            numbers(sessions.read(&key("m"), 2, over(1), &[], &[])),
            Err(ErrorCode::InvalidShareSessionEpoch)
        );
        assert_eq!(
            numbers(sessions.read(&key("m"), 1, over(1), &[], &[])),
            Ok(vec![1, 0]),
            "another one first"
        );
        assert_eq!(sessions.acknowledge(&key("m"), 2), Ok(()));
        assert_eq!(sessions.acknowledge(&key("m"), 0), Err(ErrorCode::InvalidShareSessionEpoch));
        let without = sessions.read(&key("m"), 3, over(1), &[partition(2)], &[partition(0)]).unwrap();
        assert_eq!(without.len(), 2);
        assert_eq!(
            numbers(sessions.read(&key("other"), 1, over(1), &[], &[])),
            Err(ErrorCode::ShareSessionNotFound)
        );
        assert!(sessions.goes_on(&key("m"), &without) && !sessions.goes_on(&key("other"), &without));
        sessions.read(&key("m"), 0, over(1), &all, &[]).unwrap();
        assert!(!sessions.goes_on(&key("m"), &without), "it was opened anew");
        assert_eq!(sessions.close(&key("m")).map(|partitions| partitions.len()), Ok(2));
        assert_eq!(sessions.close(&key("m")), Err(ErrorCode::ShareSessionNotFound));
        assert_eq!(sessions.inner.lock().partitions, 0);
    }

    #[test]
    fn one_address_has_half_of_them_and_they_end_with_their_connection() {
        let sessions = ShareSessions::new(4);
        let other = SessionClient { address: IpAddr::from([127, 0, 0, 2]), connection: 10 };
        assert!(sessions.read(&key("a"), 0, over(7), &[partition(0)], &[]).is_ok());
        assert!(sessions.read(&key("b"), 0, over(8), &[partition(1)], &[]).is_ok());
        assert_eq!(
            numbers(sessions.read(&key("c"), 0, over(8), &[], &[])),
            Err(ErrorCode::ShareSessionLimitReached)
        );
        assert!(sessions.read(&key("d"), 0, other, &[], &[]).is_ok(), "somebody else has room");
        assert!(sessions.read(&key("a"), 0, over(9), &[partition(2)], &[]).is_ok(), "it has a place");
        assert!(sessions.disconnected(7).is_empty(), "it was opened anew on another connection");
        let ended = sessions.disconnected(9);
        let ended: Vec<_> =
            ended.iter().map(|(key, turn)| (&**key, turn.iter().copied().collect::<Vec<_>>())).collect();
        assert_eq!(ended, vec![(&key("a"), vec![partition(2)])]);
        assert!(sessions.disconnected(9).is_empty());
        assert!(sessions.read(&key("c"), 0, over(8), &[], &[]).is_ok());
        assert_eq!(sessions.inner.lock().connections.len(), 2);
    }

    #[test]
    fn all_sessions_together_have_a_bounded_number_of_partitions() {
        let sessions = ShareSessions::new(4);
        let many: Vec<_> = (0..PARTITIONS_MAX as i32).map(partition).collect();
        assert_eq!(
            numbers(sessions.read(&key("a"), 0, over(1), &many[1..], &[])).map(|all| all.len()),
            Ok(many.len() - 1)
        );
        assert!(sessions.read(&key("b"), 0, over(2), &many[..1], &[]).is_ok());
        let refused = Err(ErrorCode::ShareSessionLimitReached);
        assert_eq!(numbers(sessions.read(&key("b"), 1, over(2), &many[1..2], &[])), refused);
        assert_eq!(
            numbers(sessions.read(&key("b"), 2, over(2), &[], &[])),
            Err(ErrorCode::ShareSessionNotFound)
        );
        assert!(sessions.read(&key("b"), 0, over(2), &many[..1], &[]).is_ok());
        assert_eq!(sessions.inner.lock().partitions, PARTITIONS_MAX);
    }

    #[test]
    fn the_last_epoch_is_followed_by_the_first() {
        let sessions = ShareSessions::new(1);
        sessions.read(&key("m"), 0, over(1), &[], &[]).unwrap();
        sessions.inner.lock().sessions.get_mut(&key("m")).unwrap().epoch = i32::MAX;
        assert!(sessions.acknowledge(&key("m"), i32::MAX).is_ok());
        assert!(sessions.acknowledge(&key("m"), 1).is_ok());
    }
}
