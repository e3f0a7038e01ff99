//! One group: what kind it is, and its offsets. What all kinds can be asked.
use super::claim::{OffsetClaim, Retention};
use super::classic::group::ClassicGroup;
use super::consumer::group::ConsumerGroup;
use super::offsets::GroupOffsets;
use super::share::group::ShareGroup;
use crate::Record;
use pylog_wire::ErrorCode;

/// Calls the same method of whatever kind it is.
macro_rules! each_kind {
    ($kind:expr, simple => $simple:expr, $group:ident => $asked:expr) => {
        match $kind {
            GroupKind::Simple => $simple,
            GroupKind::Classic($group) => $asked,
            GroupKind::Consumer($group) => $asked,
            GroupKind::Share($group) => $asked,
        }
    };
}

/// A group. The module of a kind may put its kind into a group that has none ([`GroupKind::Simple`]) or that lets itself be
/// taken over, and takes it out again when the last trace of it leaves the log.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Its members, if it has.
    pub kind: GroupKind,
    /// Its offsets.
    pub offsets: GroupOffsets,
}

impl Group {
    /// What it costs in memory besides its id, about.
    pub fn bytes(&self) -> usize {
        self.offsets.bytes() + each_kind!(&self.kind, simple => 0, group => group.bytes())
    }

    /// Whether nothing of it is in the log: such a group is not there.
    pub fn is_vacant(&self) -> bool {
        matches!(self.kind, GroupKind::Simple) && self.offsets.is_empty()
    }
}

/// What a group is.
#[derive(Debug, Clone, Default)]
pub enum GroupKind {
    /// Offsets only, by a consumer that assigns itself or by a tool. No record but its offsets.
    #[default]
    Simple,
    /// Members of the classic protocol.
    Classic(Box<ClassicGroup>),
    /// Members of the KIP-848 protocol.
    Consumer(Box<ConsumerGroup>),
    /// Members of a share group (KIP-932).
    Share(Box<ShareGroup>),
}

impl GroupKind {
    /// Whether `claim` may commit offsets now.
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID, STALE_MEMBER_EPOCH, REBALANCE_IN_PROGRESS...
    pub fn check_commit(&self, claim: &OffsetClaim<'_>) -> Result<(), ErrorCode> {
        each_kind!(self, simple => check_simple_commit(claim), group => group.check_commit(claim))
    }

    /// Whether `claim` may fetch offsets now.
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
    pub fn check_fetch(&self, claim: &OffsetClaim<'_>) -> Result<(), ErrorCode> {
        each_kind!(self, simple => Ok(()), group => group.check_fetch(claim))
    }

    /// Whether offsets of topics that nobody is subscribed to may be deleted now (OffsetDelete).
    ///
    /// # Errors
    /// NON_EMPTY_GROUP.
    pub fn check_offset_delete(&self) -> Result<(), ErrorCode> {
        each_kind!(self, simple => Ok(()), group => group.check_offset_delete())
    }

    /// Whether the group may be deleted now.
    ///
    /// # Errors
    /// NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND.
    pub fn check_delete(&self) -> Result<(), ErrorCode> {
        each_kind!(self, simple => Ok(()), group => group.check_delete())
    }

    /// Whether a member is subscribed to the topic.
    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        each_kind!(self, simple => false, group => group.is_subscribed_to(topic))
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        each_kind!(self, simple => true, group => group.is_empty())
    }

    /// Since when its offsets grow old.
    pub fn retention(&self) -> Retention {
        each_kind!(self, simple => Retention::SinceCommit, group => group.retention())
    }

    /// Kafka's word for its state: `Empty`, `Stable`...
    pub fn state_name(&self) -> &'static str {
        each_kind!(self, simple => "Empty", group => group.state_name())
    }

    /// Kafka's word for its type, as ListGroups gives it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Simple | Self::Classic(_) => "classic",
            Self::Consumer(_) => "consumer",
            Self::Share(_) => "share",
        }
    }

    /// `consumer`, `connect`...; empty when it has none.
    pub fn protocol_type(&self) -> &str {
        each_kind!(self, simple => "", group => group.protocol_type())
    }

    /// The records that delete the group (its offsets are not this module's).
    pub fn tombstones(&self, group_id: &str) -> Vec<Record> {
        each_kind!(self, simple => Vec::new(), group => group.tombstones(group_id))
    }
}

/// A group without members takes only commits that name no member.
fn check_simple_commit(claim: &OffsetClaim<'_>) -> Result<(), ErrorCode> {
    if claim.generation_or_epoch < 0 {
        return Ok(());
    }
    Err(ErrorCode::UnknownMemberId)
}
