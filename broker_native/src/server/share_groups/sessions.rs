//! Share sessions (KIP-932): which partitions a member reads at this broker. A session ends when its member closes it, or with the
//! connection that it was opened on; what the member holds of its partitions is given back then.
//!
//! Pure but for its lock. There are at most `group.share.max.share.sessions` of them, with [`PARTITIONS_MAX`] partitions together.
use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::wire::ErrorCode;

/// Most partitions of all sessions together.
pub const PARTITIONS_MAX: usize = 1_000_000;
/// Epoch of a request that opens a session.
pub const OPENS: i32 = 0;
/// Epoch of a request that closes one.
pub const CLOSES: i32 = -1;

/// A topic and a number.
pub type TopicPartition = (Uuid, i32);

/// Whose session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKey {
    /// The group.
    pub group_id: String,
    /// The member.
    pub member_id: String,
}

#[derive(Debug)]
struct Session {
    /// The next request's.
    epoch: i32,
    connection: u64,
    partitions: Vec<TopicPartition>,
}

/// All sessions.
#[derive(Debug)]
pub struct Sessions {
    max: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    sessions: HashMap<SessionKey, Session>,
    /// By the connections that they were opened on.
    connections: HashMap<u64, Vec<SessionKey>>,
    partitions: usize,
}

impl Inner {
    fn remove(&mut self, key: &SessionKey) -> Option<Session> {
        let session = self.sessions.remove(key)?;
        self.partitions -= session.partitions.len();
        if let Some(keys) = self.connections.get_mut(&session.connection) {
            keys.retain(|other| other != key);
            if keys.is_empty() {
                self.connections.remove(&session.connection);
            }
        }
        Some(session)
    }

    /// The session, when `epoch` is its next one.
    fn step(&mut self, key: &SessionKey, epoch: i32) -> Result<&mut Session, ErrorCode> {
        let session = self.sessions.get_mut(key).ok_or(ErrorCode::ShareSessionNotFound)?;
        if session.epoch != epoch {
            return Err(ErrorCode::InvalidShareSessionEpoch);
        }
        // Behind the last number comes the first that opens nothing.
        session.epoch = epoch.checked_add(1).unwrap_or(OPENS + 1);
        Ok(session)
    }
}

impl Sessions {
    /// At most `max`.
    pub fn new(max: usize) -> Self {
        Self { max, inner: Mutex::default() }
    }

    /// A request that reads: opens a session or goes on with one. Gives its partitions, in turns another one first.
    ///
    /// # Errors
    /// SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED.
    pub fn read(
        &self,
        key: &SessionKey,
        epoch: i32,
        connection: u64,
        added: &[TopicPartition],
        forgotten: &[TopicPartition],
    ) -> Result<Vec<TopicPartition>, ErrorCode> {
        let mut inner = self.inner.lock();
        if epoch == OPENS {
            inner.remove(key);
            if inner.sessions.len() >= self.max {
                return Err(ErrorCode::ShareSessionLimitReached);
            }
            inner.connections.entry(connection).or_default().push(key.clone());
            let opened = Session { epoch: OPENS + 1, connection, partitions: Vec::new() };
            inner.sessions.insert(key.clone(), opened);
        } else {
            inner.step(key, epoch)?;
        }
        let room = PARTITIONS_MAX.saturating_sub(inner.partitions);
        let session = inner.sessions.get_mut(key).ok_or(ErrorCode::ShareSessionNotFound)?;
        let before = session.partitions.len();
        let gone: HashSet<_> = forgotten.iter().collect();
        session.partitions.retain(|one| !gone.contains(one));
        let mut known: HashSet<_> = session.partitions.iter().copied().collect();
        let new = added.iter().copied().filter(|one| !gone.contains(one) && known.insert(*one));
        session.partitions.extend(new.take(room));
        let after = session.partitions.len();
        let mut partitions = session.partitions.clone();
        inner.partitions = inner.partitions + after - before;
        if !partitions.is_empty() {
            let turn = usize::try_from(epoch).unwrap_or(0) % partitions.len();
            partitions.rotate_left(turn);
        }
        Ok(partitions)
    }

    /// A request that acknowledges only.
    ///
    /// # Errors
    /// SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH.
    pub fn acknowledge(&self, key: &SessionKey, epoch: i32) -> Result<(), ErrorCode> {
        if epoch == OPENS {
            return Err(ErrorCode::InvalidShareSessionEpoch);
        }
        self.inner.lock().step(key, epoch).map(|_session| ())
    }

    /// The member closes its session; gives its partitions.
    ///
    /// # Errors
    /// SHARE_SESSION_NOT_FOUND.
    pub fn close(&self, key: &SessionKey) -> Result<Vec<TopicPartition>, ErrorCode> {
        let session = self.inner.lock().remove(key).ok_or(ErrorCode::ShareSessionNotFound)?;
        Ok(session.partitions)
    }

    /// The connection is no more; gives the sessions that end with it.
    pub fn disconnected(&self, connection: u64) -> Vec<(SessionKey, Vec<TopicPartition>)> {
        let mut inner = self.inner.lock();
        let keys = inner.connections.remove(&connection).unwrap_or_default();
        let ended =
            keys.into_iter().filter_map(|key| inner.remove(&key).map(|ended| (key, ended.partitions)));
        ended.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(member: &str) -> SessionKey {
        SessionKey { group_id: "g".into(), member_id: member.into() }
    }

    fn partition(number: i32) -> TopicPartition {
        (Uuid::from_u128(1), number)
    }

    #[test]
    fn a_session_goes_on_with_the_next_epoch_only() {
        let sessions = Sessions::new(2);
        let all = [partition(0), partition(1)];
        assert_eq!(sessions.read(&key("m"), 0, 1, &all, &[]), Ok(all.to_vec()));
        assert_eq!(sessions.read(&key("m"), 2, 1, &[], &[]), Err(ErrorCode::InvalidShareSessionEpoch));
        assert_eq!(sessions.read(&key("m"), 1, 1, &[], &[]), Ok(vec![partition(1), partition(0)]));
        assert_eq!(sessions.acknowledge(&key("m"), 2), Ok(()));
        assert_eq!(sessions.acknowledge(&key("m"), 0), Err(ErrorCode::InvalidShareSessionEpoch));
        let without = sessions.read(&key("m"), 3, 1, &[partition(2)], &[partition(0)]).unwrap();
        assert_eq!(without.len(), 2);
        assert_eq!(sessions.read(&key("other"), 1, 1, &[], &[]), Err(ErrorCode::ShareSessionNotFound));
        assert_eq!(sessions.close(&key("m")).map(|partitions| partitions.len()), Ok(2));
        assert_eq!(sessions.close(&key("m")), Err(ErrorCode::ShareSessionNotFound));
        assert_eq!(sessions.inner.lock().partitions, 0);
    }

    #[test]
    fn there_are_no_more_than_the_bound_and_they_end_with_their_connection() {
        let sessions = Sessions::new(2);
        assert!(sessions.read(&key("a"), 0, 7, &[partition(0)], &[]).is_ok());
        assert!(sessions.read(&key("b"), 0, 8, &[partition(1)], &[]).is_ok());
        assert_eq!(sessions.read(&key("c"), 0, 8, &[], &[]), Err(ErrorCode::ShareSessionLimitReached));
        assert!(sessions.read(&key("a"), 0, 9, &[partition(2)], &[]).is_ok(), "it has a place");
        assert_eq!(sessions.disconnected(7), vec![], "it was opened anew elsewhere");
        assert_eq!(sessions.disconnected(9), vec![(key("a"), vec![partition(2)])]);
        assert_eq!(sessions.disconnected(9), vec![]);
        assert!(sessions.read(&key("c"), 0, 8, &[], &[]).is_ok());
        assert_eq!(sessions.inner.lock().connections.len(), 1);
    }

    #[test]
    fn the_last_epoch_is_followed_by_the_first() {
        let sessions = Sessions::new(1);
        sessions.read(&key("m"), 0, 1, &[], &[]).unwrap();
        sessions.inner.lock().sessions.get_mut(&key("m")).unwrap().epoch = i32::MAX;
        assert!(sessions.acknowledge(&key("m"), i32::MAX).is_ok());
        assert!(sessions.acknowledge(&key("m"), 1).is_ok());
    }
}
