//! A member of a classic group.
use bytes::Bytes;

use crate::Ticket;
use pylog_wire::messages::JoinGroupRequest;
use pylog_wire::messages::describe_groups::DescribedGroupMember;
use pylog_wire::messages::join_group::{JoinGroupRequestProtocol, JoinGroupResponseMember};

/// A member. Only the roster changes whether it waits for an answer, because it counts those that do.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassicMember {
    /// Its id.
    pub member_id: String,
    /// The name that a static member keeps over restarts.
    pub instance_id: Option<String>,
    /// As the client called itself when it joined first.
    pub client_id: String,
    /// Its address then.
    pub client_host: String,
    /// How long the group waits for it in a rebalance.
    pub rebalance_timeout_ms: i32,
    /// How long it may be silent.
    pub session_timeout_ms: i32,
    /// The protocols that it supports, in the order of its preference.
    pub protocols: Vec<JoinGroupRequestProtocol>,
    /// What the leader gave it; empty before.
    pub assignment: Bytes,
    /// It has never been part of a generation: it has no id yet that it could send heartbeats with.
    pub is_new: bool,
    /// Its JoinGroup that waits for an answer.
    pub(super) join: Option<Ticket>,
    /// Its SyncGroup that waits for an answer.
    pub sync: Option<Ticket>,
}

/// About how many bytes a member takes besides its metadata.
pub const MEMBER_BYTES: usize = 1_000;

impl ClassicMember {
    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let texts = self.member_id.len() + self.client_id.len() + self.client_host.len();
        let instance = self.instance_id.as_ref().map_or(0, String::len);
        // Its id stands in its deadlines, too.
        MEMBER_BYTES + 2 * texts + instance + protocols_bytes(&self.protocols) + self.assignment.len()
    }

    /// The member that asks to join, under the id `member_id`.
    pub fn new(member_id: String, client_id: &str, client_host: &str, request: &JoinGroupRequest) -> Self {
        Self {
            member_id,
            instance_id: request.group_instance_id.clone(),
            client_id: client_id.to_owned(),
            client_host: client_host.to_owned(),
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            session_timeout_ms: request.session_timeout_ms,
            protocols: detached(&request.protocols),
            assignment: Bytes::new(),
            is_new: true,
            join: None,
            sync: None,
        }
    }

    /// Whether a JoinGroup of it waits.
    pub fn awaits_join(&self) -> bool {
        self.join.is_some()
    }

    /// Whether its session time-out does not count: a member that waits for an answer cannot send heartbeats. A new member can
    /// expire even then, since it would never be missed otherwise.
    pub fn is_excused(&self) -> bool {
        !self.is_new && (self.join.is_some() || self.sync.is_some())
    }

    /// What it says about itself under a protocol.
    pub fn metadata(&self, protocol: &str) -> Bytes {
        self.protocols
            .iter()
            .find(|known| known.name == protocol)
            .map_or_else(Bytes::new, |p| p.metadata.clone())
    }

    /// The protocol it prefers among those that `is_candidate`.
    pub fn vote(&self, is_candidate: impl Fn(&str) -> bool) -> Option<&str> {
        self.protocols.iter().map(|protocol| protocol.name.as_str()).find(|name| is_candidate(name))
    }

    /// As the answer to the leader shows it.
    pub fn for_leader(&self, protocol: &str) -> JoinGroupResponseMember {
        JoinGroupResponseMember {
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            metadata: self.metadata(protocol),
        }
    }

    /// As DescribeGroups shows it; the metadata under `protocol` when there is one.
    pub fn describe(&self, protocol: Option<&str>) -> DescribedGroupMember {
        DescribedGroupMember {
            member_id: self.member_id.clone(),
            group_instance_id: self.instance_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            member_metadata: protocol.map(|protocol| self.metadata(protocol)).unwrap_or_default(),
            member_assignment: self.assignment.clone(),
        }
    }
}

/// Bytes of the protocols that a member names.
pub fn protocols_bytes(protocols: &[JoinGroupRequestProtocol]) -> usize {
    protocols.iter().map(|protocol| 64 + protocol.name.len() + protocol.metadata.len()).sum()
}

/// Copies of the metadata: the request's own bytes would keep its whole frame in memory as long as the member lives.
pub fn detached(protocols: &[JoinGroupRequestProtocol]) -> Vec<JoinGroupRequestProtocol> {
    let copy = |protocol: &JoinGroupRequestProtocol| JoinGroupRequestProtocol {
        name: protocol.name.clone(),
        metadata: Bytes::copy_from_slice(&protocol.metadata),
    };
    protocols.iter().map(copy).collect()
}
