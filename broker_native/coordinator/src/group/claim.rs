//! Who commits or fetches a group's offsets, and how long they are kept: each kind of group answers by these.

/// Who commits or fetches offsets, as the request says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetClaim<'a> {
    /// Empty: no member.
    pub member_id: &'a str,
    /// Of a static member.
    pub group_instance_id: Option<&'a str>,
    /// Generation of a classic group, epoch of a KIP-848 member; -1: none.
    pub generation_or_epoch: i32,
    /// Whether the commit is part of a transaction.
    pub transactional: bool,
    /// The request's version.
    pub version: i16,
}

/// Since when an offset of a topic that nobody is subscribed to grows old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// The group is in use: never.
    Keep,
    /// Since it was committed.
    SinceCommit,
    /// Since the group has no members, milliseconds since the epoch.
    Since(i64),
}
