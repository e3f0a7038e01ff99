//! What this broker is to a partition.

/// What this broker is to a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It has the only replica.
    Alone,
    /// It leads; others have replicas, too.
    Leader,
    /// It copies the leader's log.
    Follower,
}
