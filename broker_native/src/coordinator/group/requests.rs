//! Events and answers of groups: the wire's own messages, one variant for each request.
//!
//! Each room of a request adds its variants here, to [`GroupRequest::group_id`] and to the routing in
//! [`super::machine`]. Requests about many groups are cut into one event for each group by their handlers.
use crate::coordinator::{Caller, Ticket};
use crate::wire::messages::consumer_group_describe::DescribedGroup;
use crate::wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

/// Somebody asks something of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupEvent {
    /// Where the answer goes.
    pub ticket: Ticket,
    /// Who asks.
    pub caller: Caller,
    /// What.
    pub request: GroupRequest,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupRequest {
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
}

impl GroupRequest {
    /// Which group is asked.
    pub fn group_id(&self) -> &str {
        match self {
            Self::DeleteGroup(group_id) | Self::ConsumerDescribe(group_id) => group_id,
            Self::ConsumerHeartbeat { request, .. } => &request.group_id,
        }
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupReply {
    /// To [`GroupRequest::DeleteGroup`]: its error code.
    DeleteGroup(i16),
    /// To [`GroupRequest::ConsumerHeartbeat`].
    ConsumerHeartbeat(ConsumerGroupHeartbeatResponse),
    /// To [`GroupRequest::ConsumerDescribe`].
    ConsumerDescribe(DescribedGroup),
}
