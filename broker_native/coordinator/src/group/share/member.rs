//! A member of a share group: who it is, what it subscribes to, what it reads.
use std::collections::BTreeSet;

use crate::Caller;
use crate::group::consumer::member::AssignedPartitions;
use pylog_wire::messages::ShareGroupHeartbeatRequest;

/// About how many bytes a member takes besides its texts.
const MEMBER_BYTES: usize = 1_000;

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShareMember {
    /// The rack where it runs, as it says.
    pub rack_id: Option<String>,
    /// As it calls itself.
    pub client_id: String,
    /// Its address.
    pub client_host: String,
    /// Topics by name.
    pub subscribed_topic_names: BTreeSet<String>,
    /// The assignment epoch that it was given.
    pub member_epoch: i32,
    /// The epoch before: its last answer may have been lost.
    pub previous_member_epoch: i32,
    /// What it was given to read.
    pub assigned: AssignedPartitions,
}

impl ShareMember {
    /// About how many bytes it takes; what it reads is bounded by the topics that exist.
    pub fn bytes(&self, member_id: &str) -> usize {
        let names = self.subscribed_topic_names.iter().map(|name| 64 + name.len()).sum::<usize>();
        let rack = self.rack_id.as_ref().map_or(0, String::len);
        MEMBER_BYTES + rack + names + 4 * (member_id.len() + self.client_id.len() + self.client_host.len())
    }

    /// The same with what `request` says.
    pub fn updated(&self, request: &ShareGroupHeartbeatRequest, who: &Caller) -> Self {
        let mut member = self.clone();
        if request.rack_id.is_some() {
            member.rack_id.clone_from(&request.rack_id);
        }
        if let Some(names) = &request.subscribed_topic_names {
            member.subscribed_topic_names = names.iter().cloned().collect();
        }
        member.client_id.clone_from(&who.client_id);
        member.client_host.clone_from(&who.host);
        member
    }
}
