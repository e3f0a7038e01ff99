//! Events and answers of groups: the wire's own messages, one variant for each request.
//!
//! Each module that takes requests adds its variants here, to [`GroupRequest::group_id`] and to the routing in
//! [`super::machine`]. Requests about many groups are cut into one event for each group by their handlers.
use uuid::Uuid;

use super::refusal::Refusal;
use super::share::membership::Membership;
use crate::{Caller, Ticket};
use pylog_wire::messages::consumer_group_describe::DescribedGroup as DescribedConsumerGroup;
use pylog_wire::messages::describe_groups::DescribedGroup;
use pylog_wire::messages::offset_fetch::{OffsetFetchRequestGroup, OffsetFetchResponseGroup};
use pylog_wire::messages::share_group_describe::DescribedGroup as DescribedShareGroup;
use pylog_wire::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, HeartbeatRequest, HeartbeatResponse,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse, OffsetCommitRequest,
    OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse, ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse, SyncGroupRequest, SyncGroupResponse, TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
};

/// A request to a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupEvent {
    /// Where the answer goes.
    pub ticket: Ticket,
    /// The client that asks.
    pub caller: Caller,
    /// What.
    pub request: GroupRequest,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupRequest {
    /// OffsetCommit.
    OffsetCommit(OffsetCommitRequest),
    /// TxnOffsetCommit.
    TxnOffsetCommit(TxnOffsetCommitRequest),
    /// OffsetFetch, one of its groups.
    OffsetFetch {
        /// What is wanted.
        group: OffsetFetchRequestGroup,
        /// Whether offsets that an open transaction may change are refused.
        require_stable: bool,
    },
    /// OffsetDelete.
    OffsetDelete(OffsetDeleteRequest),
    /// DeleteGroups, one of them.
    DeleteGroup(String),
    /// ConsumerGroupHeartbeat.
    ConsumerHeartbeat {
        /// What the member says.
        request: ConsumerGroupHeartbeatRequest,
        /// For a member that joins without an id.
        fresh_member_id: String,
    },
    /// ConsumerGroupDescribe, one of its groups.
    ConsumerDescribe(String),
    /// ShareGroupHeartbeat.
    ShareHeartbeat {
        /// The request.
        request: ShareGroupHeartbeatRequest,
        /// The settings that the group has now.
        membership: Membership,
    },
    /// ShareGroupDescribe, one of its groups.
    ShareDescribe(String),
    /// AlterShareGroupOffsets: whether the group may be moved now.
    ShareMove {
        /// Which one.
        group_id: String,
        /// Whether anything is moved: only then a group that is not there is made.
        moves: bool,
    },
    /// JoinGroup.
    JoinGroup {
        /// The request.
        request: JoinGroupRequest,
        /// Makes the id of a new member: chance comes from outside.
        uuid: Uuid,
    },
    /// SyncGroup.
    SyncGroup(SyncGroupRequest),
    /// Heartbeat.
    Heartbeat(HeartbeatRequest),
    /// LeaveGroup, with every member in `members` also when the version has only one.
    LeaveGroup(LeaveGroupRequest),
    /// DescribeGroups, one of them.
    DescribeGroup(String),
}

impl GroupRequest {
    /// Which group is asked.
    pub fn group_id(&self) -> &str {
        match self {
            Self::ConsumerHeartbeat { request, .. } => &request.group_id,
            Self::DeleteGroup(group_id)
            | Self::DescribeGroup(group_id)
            | Self::ShareDescribe(group_id)
            | Self::ConsumerDescribe(group_id) => group_id,
            Self::ShareHeartbeat { request, .. } => &request.group_id,
            Self::ShareMove { group_id, .. } => group_id,
            Self::JoinGroup { request, .. } => &request.group_id,
            Self::SyncGroup(request) => &request.group_id,
            Self::Heartbeat(request) => &request.group_id,
            Self::LeaveGroup(request) => &request.group_id,
            Self::OffsetCommit(request) => &request.group_id,
            Self::TxnOffsetCommit(request) => &request.group_id,
            Self::OffsetFetch { group, .. } => &group.group_id,
            Self::OffsetDelete(request) => &request.group_id,
        }
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupReply {
    /// To [`GroupRequest::OffsetCommit`].
    OffsetCommit(OffsetCommitResponse),
    /// To [`GroupRequest::TxnOffsetCommit`].
    TxnOffsetCommit(TxnOffsetCommitResponse),
    /// To [`GroupRequest::OffsetFetch`].
    OffsetFetch(OffsetFetchResponseGroup),
    /// To [`GroupRequest::OffsetDelete`].
    OffsetDelete(OffsetDeleteResponse),
    /// To [`GroupRequest::DeleteGroup`]: its error code.
    DeleteGroup(i16),
    /// To [`GroupRequest::ConsumerHeartbeat`].
    ConsumerHeartbeat(ConsumerGroupHeartbeatResponse),
    /// To [`GroupRequest::ConsumerDescribe`].
    ConsumerDescribe(DescribedConsumerGroup),
    /// To [`GroupRequest::ShareHeartbeat`].
    ShareHeartbeat(ShareGroupHeartbeatResponse),
    /// To [`GroupRequest::ShareDescribe`].
    ShareDescribe(DescribedShareGroup),
    /// To [`GroupRequest::ShareMove`].
    ShareMove(Result<(), Refusal>),
    /// To [`GroupRequest::JoinGroup`], when the group has agreed.
    JoinGroup(JoinGroupResponse),
    /// To [`GroupRequest::SyncGroup`], when the leader has brought the assignments.
    SyncGroup(SyncGroupResponse),
    /// To [`GroupRequest::Heartbeat`].
    Heartbeat(HeartbeatResponse),
    /// To [`GroupRequest::LeaveGroup`].
    LeaveGroup(LeaveGroupResponse),
    /// To [`GroupRequest::DescribeGroup`].
    DescribeGroup(DescribedGroup),
}
