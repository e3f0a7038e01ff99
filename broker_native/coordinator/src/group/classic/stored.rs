//! The group's record in `__consumer_offsets`: written when a generation has its assignments, when a static member is replaced
//! and when the last member is gone. What members are in between is not kept: they join again.
use bytes::Bytes;

use super::group::ClassicGroup;
use super::member::ClassicMember;
use super::state::ClassicState;
use crate::Record;
use crate::group::context::GroupContext;
use pylog_wire::messages::join_group::JoinGroupRequestProtocol;
use pylog_wire::stored::Stored;
use pylog_wire::stored::group_metadata::{GroupMetadataKey, GroupMetadataValue, MemberMetadata};

/// The key's type, and its only version.
const KEY_TYPE: i16 = 2;
/// What Kafka 4 writes.
const VALUE_VERSION: i16 = 3;
/// A group's largest record: what fits into a batch under Kafka's default of `max.message.bytes` (1 MiB), with room for what
/// stands around it. Checked here, so that a group that is too large is refused by itself and not with its whole partition.
const RECORD_MAX_BYTES: usize = 1_000_000;

impl ClassicGroup {
    /// Writes the group into the log; `false`, and nothing is written, when it is too large for that.
    pub(super) fn persist(&mut self, cx: &mut GroupContext<'_>) -> bool {
        // Neither fails: names that are too long for a record were refused when their members came.
        let (Some(key), Ok(value)) = (key(cx.group_id), self.to_value().to_bytes(VALUE_VERSION)) else {
            return false;
        };
        if value.len() > RECORD_MAX_BYTES {
            return false;
        }
        cx.effects.record(Record { key, value: Some(value) });
        self.in_log = true;
        true
    }

    pub(super) fn to_value(&self) -> GroupMetadataValue {
        let protocol = self.protocol_name.as_deref().unwrap_or_default();
        let stored = |member: &ClassicMember| MemberMetadata {
            member_id: member.member_id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout: member.rebalance_timeout_ms,
            session_timeout: member.session_timeout_ms,
            subscription: member.metadata(protocol),
            assignment: member.assignment.clone(),
        };
        GroupMetadataValue {
            protocol_type: self.protocol_type().to_owned(),
            generation: self.generation_id,
            protocol: self.protocol_name.clone(),
            leader: self.roster.leader().map(str::to_owned),
            current_state_timestamp: self.since_ms.unwrap_or(-1),
            members: self.roster.iter().map(stored).collect(),
        }
    }

    pub(super) fn from_value(value: GroupMetadataValue) -> Self {
        let mut group = Self::new(0);
        group.in_log = true;
        group.state = if value.members.is_empty() { ClassicState::Empty } else { ClassicState::Stable };
        group.since_ms = Some(value.current_state_timestamp).filter(|&at| at >= 0);
        group.generation_id = value.generation;
        group.protocol_type = Some(value.protocol_type).filter(|name| !name.is_empty());
        group.protocol_name = value.protocol;
        for member in value.members {
            group.roster.add(loaded_member(member, group.protocol_name.as_deref()));
        }
        if let Some(leader) = value.leader {
            group.roster.set_leader(&leader);
        }
        group.topics = group.subscribed_topics();
        group
    }
}

/// As far as the log knows, a member supports only the protocol that the group agreed upon.
fn loaded_member(member: MemberMetadata, protocol: Option<&str>) -> ClassicMember {
    let session_timeout_ms = member.session_timeout;
    ClassicMember {
        member_id: member.member_id,
        instance_id: member.group_instance_id,
        client_id: member.client_id,
        client_host: member.client_host,
        rebalance_timeout_ms: if member.rebalance_timeout == -1 {
            session_timeout_ms
        } else {
            member.rebalance_timeout
        },
        session_timeout_ms,
        protocols: vec![JoinGroupRequestProtocol {
            name: protocol.unwrap_or_default().to_owned(),
            // Copies, so that the batch they were read from is not kept.
            metadata: Bytes::copy_from_slice(&member.subscription),
        }],
        assignment: Bytes::copy_from_slice(&member.assignment),
        is_new: false,
        join: None,
        sync: None,
    }
}

/// What the record says: the group, or `None` when it is deleted.
pub(super) fn read(key_type: i16, record: &Record) -> Result<Option<ClassicGroup>, String> {
    if key_type != KEY_TYPE {
        return Err(format!("records of type {key_type} are not of classic groups"));
    }
    let Some(value) = &record.value else { return Ok(None) };
    let value = GroupMetadataValue::from_bytes(value).map_err(|error| error.to_string())?;
    Ok(Some(ClassicGroup::from_value(value)))
}

/// The record that deletes the group.
pub(super) fn tombstone(group_id: &str) -> Option<Record> {
    key(group_id).map(|key| Record { key, value: None })
}

fn key(group_id: &str) -> Option<Bytes> {
    GroupMetadataKey { group: group_id.to_owned() }.to_bytes(KEY_TYPE).ok()
}
