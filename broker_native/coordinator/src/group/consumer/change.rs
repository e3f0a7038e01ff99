//! Each change of a group as a record of `__consumer_offsets`, and back.
use std::collections::BTreeSet;

use super::member::{AssignedPartitions, ConsumerMember, MemberState, Owned};
use crate::Record;
use pylog_wire::WireError;
use pylog_wire::stored::consumer_groups::{
    self as stored, CurrentMemberAssignmentValue, GroupKey, GroupMetadataValue, MemberKey,
    MemberMetadataValue, OwnedTopicPartitions, RegularExpressionKey, RegularExpressionValue,
    TargetAssignmentMemberValue, TargetAssignmentMetadataValue, TargetTopicPartitions,
};
use pylog_wire::stored::{Stored, read_value, value_bytes};

/// Schema version of all values.
const VALUE: i16 = 0;

/// The topics that a regular expression matched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolved {
    /// Their names.
    pub topics: BTreeSet<String>,
    /// Version of the topics that were looked at.
    pub version: i64,
    /// When, milliseconds since the epoch.
    pub timestamp_ms: i64,
}

/// A change of a group. `None` removes.
#[derive(Debug, Clone, PartialEq)]
pub enum ConsumerChange {
    /// The group's epoch, and a hash over its topics.
    Epoch { epoch: i32, metadata_hash: i64 },
    /// The group is gone.
    Deleted,
    /// What a regular expression matched.
    Regex(String, Option<Resolved>),
    /// Who a member is and what it subscribes to; the rest of the [`ConsumerMember`] does not count.
    Member(String, Option<Box<ConsumerMember>>),
    /// The epoch of the target assignment, and when it was made.
    Assignment(Option<(i32, i64)>),
    /// What a member shall own.
    Target(String, Option<AssignedPartitions>),
    /// How far a member is; only that of the [`ConsumerMember`] counts.
    Current(String, Option<Box<ConsumerMember>>),
}

impl ConsumerChange {
    /// Whether it only removes something.
    pub fn is_removal(&self) -> bool {
        matches!(
            self,
            Self::Deleted
                | Self::Regex(_, None)
                | Self::Member(_, None)
                | Self::Assignment(None)
                | Self::Target(_, None)
                | Self::Current(_, None)
        )
    }

    /// The record.
    ///
    /// # Errors
    /// [`WireError::TooLong`] for a text of more than 32767 bytes; `request` lets none through.
    pub fn record(&self, group_id: &str) -> Result<Record, WireError> {
        let group = |number| GroupKey { group_id: group_id.to_owned() }.to_bytes(number);
        let member = |member_id: &String, number| {
            MemberKey { group_id: group_id.to_owned(), member_id: member_id.clone() }.to_bytes(number)
        };
        let (key, value) = match self {
            Self::Epoch { epoch, metadata_hash } => (
                group(stored::GROUP_METADATA)?,
                Some(GroupMetadataValue { epoch: *epoch, metadata_hash: *metadata_hash }.to_bytes(VALUE)?),
            ),
            Self::Deleted => (group(stored::GROUP_METADATA)?, None),
            Self::Regex(regex, resolved) => {
                let key =
                    RegularExpressionKey { group_id: group_id.to_owned(), regular_expression: regex.clone() };
                (
                    key.to_bytes(stored::REGULAR_EXPRESSION)?,
                    value_bytes(resolved.as_ref().map(resolved_value), VALUE)?,
                )
            }
            Self::Member(id, value) => (
                member(id, stored::MEMBER_METADATA)?,
                value_bytes(value.as_deref().map(member_value), VALUE)?,
            ),
            Self::Assignment(value) => {
                let value = value.map(|(assignment_epoch, assignment_timestamp)| {
                    TargetAssignmentMetadataValue { assignment_epoch, assignment_timestamp }
                });
                (group(stored::TARGET_ASSIGNMENT_METADATA)?, value_bytes(value, VALUE)?)
            }
            Self::Target(id, value) => (
                member(id, stored::TARGET_ASSIGNMENT_MEMBER)?,
                value_bytes(value.as_ref().map(target_value), VALUE)?,
            ),
            Self::Current(id, value) => (
                member(id, stored::CURRENT_MEMBER_ASSIGNMENT)?,
                value_bytes(value.as_deref().map(current_value), VALUE)?,
            ),
        };
        Ok(Record { key, value })
    }

    /// Reads a record whose key has the type `key_type`; `None` for one that this broker has no use for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(key_type: i16, record: &Record) -> Result<Option<Self>, WireError> {
        let member_id = || MemberKey::from_bytes(&record.key).map(|key| key.member_id);
        Ok(Some(match key_type {
            stored::GROUP_METADATA => match read_value::<GroupMetadataValue>(record.value.as_ref())? {
                Some(value) => Self::Epoch { epoch: value.epoch, metadata_hash: value.metadata_hash },
                None => Self::Deleted,
            },
            stored::MEMBER_METADATA => {
                let id = member_id()?;
                let value = read_value::<MemberMetadataValue>(record.value.as_ref())?;
                let member = value.map(|value| Box::new(read_member(&id, value)));
                Self::Member(id, member)
            }
            stored::TARGET_ASSIGNMENT_METADATA => Self::Assignment(
                read_value::<TargetAssignmentMetadataValue>(record.value.as_ref())?
                    .map(|value| (value.assignment_epoch, value.assignment_timestamp)),
            ),
            stored::TARGET_ASSIGNMENT_MEMBER => Self::Target(
                member_id()?,
                read_value::<TargetAssignmentMemberValue>(record.value.as_ref())?
                    .map(|value| read_target(&value)),
            ),
            stored::CURRENT_MEMBER_ASSIGNMENT => {
                let id = member_id()?;
                let value = read_value::<CurrentMemberAssignmentValue>(record.value.as_ref())?;
                let member = value.map(|value| Box::new(read_current(&id, &value)));
                Self::Current(id, member)
            }
            stored::REGULAR_EXPRESSION => {
                let regex = RegularExpressionKey::from_bytes(&record.key)?.regular_expression;
                let value =
                    read_value::<RegularExpressionValue>(record.value.as_ref())?.map(|value| Resolved {
                        topics: value.topics.into_iter().collect(),
                        version: value.version,
                        timestamp_ms: value.timestamp,
                    });
                Self::Regex(regex, value)
            }
            _ => return Ok(None),
        }))
    }
}

fn resolved_value(resolved: &Resolved) -> RegularExpressionValue {
    RegularExpressionValue {
        topics: resolved.topics.iter().cloned().collect(),
        version: resolved.version,
        timestamp: resolved.timestamp_ms,
    }
}

fn member_value(member: &ConsumerMember) -> MemberMetadataValue {
    MemberMetadataValue {
        instance_id: member.instance_id.clone(),
        rack_id: member.rack_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        subscribed_topic_names: member.subscribed_topic_names.iter().cloned().collect(),
        subscribed_topic_regex: member.subscribed_topic_regex.clone(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        server_assignor: member.server_assignor.clone(),
    }
}

fn read_member(member_id: &str, value: MemberMetadataValue) -> ConsumerMember {
    ConsumerMember {
        instance_id: value.instance_id,
        rack_id: value.rack_id,
        client_id: value.client_id,
        client_host: value.client_host,
        subscribed_topic_names: value.subscribed_topic_names.into_iter().collect(),
        subscribed_topic_regex: value.subscribed_topic_regex,
        rebalance_timeout_ms: value.rebalance_timeout_ms,
        server_assignor: value.server_assignor,
        ..ConsumerMember::new(member_id)
    }
}

fn target_value(target: &AssignedPartitions) -> TargetAssignmentMemberValue {
    let topics = target.iter().map(|(topic_id, partitions)| TargetTopicPartitions {
        topic_id: *topic_id,
        partitions: partitions.iter().copied().collect(),
    });
    TargetAssignmentMemberValue { topic_partitions: topics.collect() }
}

fn read_target(value: &TargetAssignmentMemberValue) -> AssignedPartitions {
    let topics = value.topic_partitions.iter().filter(|topic| !topic.partitions.is_empty());
    topics.map(|topic| (topic.topic_id, topic.partitions.iter().copied().collect())).collect()
}

fn current_value(member: &ConsumerMember) -> CurrentMemberAssignmentValue {
    CurrentMemberAssignmentValue {
        member_epoch: member.member_epoch,
        previous_member_epoch: member.previous_member_epoch,
        state: match member.state {
            MemberState::Stable => 0,
            MemberState::UnrevokedPartitions => 1,
            MemberState::UnreleasedPartitions => 2,
        },
        assigned_partitions: owned_value(&member.assigned),
        partitions_pending_revocation: owned_value(&member.pending_revocation),
    }
}

fn owned_value(owned: &Owned) -> Vec<OwnedTopicPartitions> {
    let topics = owned.iter().map(|(topic_id, partitions)| OwnedTopicPartitions {
        topic_id: *topic_id,
        partitions: partitions.keys().copied().collect(),
        assignment_epochs: Some(partitions.values().copied().collect()),
    });
    topics.collect()
}

fn read_current(member_id: &str, value: &CurrentMemberAssignmentValue) -> ConsumerMember {
    ConsumerMember {
        member_epoch: value.member_epoch,
        previous_member_epoch: value.previous_member_epoch,
        state: match value.state {
            1 => MemberState::UnrevokedPartitions,
            2 => MemberState::UnreleasedPartitions,
            _ => MemberState::Stable,
        },
        assigned: read_owned(&value.assigned_partitions, value.member_epoch),
        pending_revocation: read_owned(&value.partitions_pending_revocation, value.member_epoch),
        ..ConsumerMember::new(member_id)
    }
}

/// A record of Kafka before 4.3 has no epochs: the partitions count as owned since the member's own.
fn read_owned(topics: &[OwnedTopicPartitions], member_epoch: i32) -> Owned {
    let mut owned = Owned::new();
    for topic in topics.iter().filter(|topic| !topic.partitions.is_empty()) {
        let epochs = topic.assignment_epochs.as_deref().unwrap_or_default();
        let since = |at: usize| epochs.get(at).copied().unwrap_or(member_epoch);
        let partitions = topic.partitions.iter().enumerate().map(|(at, partition)| (*partition, since(at)));
        owned.insert(topic.topic_id, partitions.collect());
    }
    owned
}
