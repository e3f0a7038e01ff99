//! Each change of a share group as a record of `__consumer_offsets`, and back.
use super::member::ShareMember;
use crate::Record;
use crate::group::consumer::member::AssignedPartitions;
use pylog_wire::WireError;
use pylog_wire::stored::consumer_groups::TargetTopicPartitions;
use pylog_wire::stored::share_groups::{
    self as stored, ShareCurrentValue, ShareGroupKey, ShareGroupMetadataValue, ShareMemberKey,
    ShareMemberMetadataValue, ShareTargetMetadataValue, ShareTargetValue,
};
use pylog_wire::stored::{Stored, read_value, value_bytes};

/// Schema version of all values.
const VALUE: i16 = 0;
/// `state` of a member: there is no other.
const STABLE: i8 = 0;

/// A change of a group. `None` removes.
#[derive(Debug, Clone, PartialEq)]
pub enum ShareChange {
    /// The group's epoch, and a hash over its topics.
    Epoch { epoch: i32, metadata_hash: i64 },
    /// The group is gone.
    Deleted,
    /// Who a member is and what it subscribes to; the rest of the [`ShareMember`] does not count.
    Member(String, Option<Box<ShareMember>>),
    /// The epoch of the target assignment, and when it was made.
    Assignment(Option<(i32, i64)>),
    /// What a member shall read.
    Target(String, Option<AssignedPartitions>),
    /// What a member was given; only that of the [`ShareMember`] counts.
    Current(String, Option<Box<ShareMember>>),
}

impl ShareChange {
    /// Whether it only removes something.
    pub fn is_removal(&self) -> bool {
        matches!(
            self,
            Self::Deleted
                | Self::Member(_, None)
                | Self::Assignment(None)
                | Self::Target(_, None)
                | Self::Current(_, None)
        )
    }

    /// The record.
    ///
    /// # Errors
    /// [`WireError::TooLong`] for a text of more than 32767 bytes; `heartbeat` lets none through.
    pub fn record(&self, group_id: &str) -> Result<Record, WireError> {
        let group = |number| ShareGroupKey { group_id: group_id.to_owned() }.to_bytes(number);
        let member = |member_id: &String, number| {
            ShareMemberKey { group_id: group_id.to_owned(), member_id: member_id.clone() }.to_bytes(number)
        };
        let (key, value) = match self {
            Self::Epoch { epoch, metadata_hash } => {
                let value = ShareGroupMetadataValue { epoch: *epoch, metadata_hash: *metadata_hash };
                (group(stored::GROUP_METADATA)?, Some(value.to_bytes(VALUE)?))
            }
            Self::Deleted => (group(stored::GROUP_METADATA)?, None),
            Self::Member(id, value) => (
                member(id, stored::MEMBER_METADATA)?,
                value_bytes(value.as_deref().map(member_value), VALUE)?,
            ),
            Self::Assignment(value) => {
                let value = value.map(|(assignment_epoch, assignment_timestamp)| ShareTargetMetadataValue {
                    assignment_epoch,
                    assignment_timestamp,
                });
                (group(stored::TARGET_ASSIGNMENT_METADATA)?, value_bytes(value, VALUE)?)
            }
            Self::Target(id, value) => {
                let value = value
                    .as_ref()
                    .map(|target| ShareTargetValue { topic_partitions: stored_partitions(target) });
                (member(id, stored::TARGET_ASSIGNMENT_MEMBER)?, value_bytes(value, VALUE)?)
            }
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
        let member_id = || ShareMemberKey::from_bytes(&record.key).map(|key| key.member_id);
        Ok(Some(match key_type {
            stored::GROUP_METADATA => match read_value::<ShareGroupMetadataValue>(record.value.as_ref())? {
                Some(value) => Self::Epoch { epoch: value.epoch, metadata_hash: value.metadata_hash },
                None => Self::Deleted,
            },
            stored::MEMBER_METADATA => {
                let value = read_value::<ShareMemberMetadataValue>(record.value.as_ref())?;
                Self::Member(member_id()?, value.map(|value| Box::new(read_member(value))))
            }
            stored::TARGET_ASSIGNMENT_METADATA => Self::Assignment(
                read_value::<ShareTargetMetadataValue>(record.value.as_ref())?
                    .map(|value| (value.assignment_epoch, value.assignment_timestamp)),
            ),
            stored::TARGET_ASSIGNMENT_MEMBER => {
                let value = read_value::<ShareTargetValue>(record.value.as_ref())?;
                Self::Target(member_id()?, value.map(|value| read_partitions(&value.topic_partitions)))
            }
            stored::CURRENT_MEMBER_ASSIGNMENT => {
                let value = read_value::<ShareCurrentValue>(record.value.as_ref())?;
                Self::Current(member_id()?, value.map(|value| Box::new(read_current(&value))))
            }
            _ => return Ok(None),
        }))
    }
}

fn member_value(member: &ShareMember) -> ShareMemberMetadataValue {
    ShareMemberMetadataValue {
        rack_id: member.rack_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        subscribed_topic_names: member.subscribed_topic_names.iter().cloned().collect(),
    }
}

fn read_member(value: ShareMemberMetadataValue) -> ShareMember {
    ShareMember {
        rack_id: value.rack_id,
        client_id: value.client_id,
        client_host: value.client_host,
        subscribed_topic_names: value.subscribed_topic_names.into_iter().collect(),
        ..ShareMember::default()
    }
}

fn current_value(member: &ShareMember) -> ShareCurrentValue {
    ShareCurrentValue {
        member_epoch: member.member_epoch,
        previous_member_epoch: member.previous_member_epoch,
        state: STABLE,
        assigned_partitions: stored_partitions(&member.assigned),
    }
}

fn read_current(value: &ShareCurrentValue) -> ShareMember {
    ShareMember {
        member_epoch: value.member_epoch,
        previous_member_epoch: value.previous_member_epoch,
        assigned: read_partitions(&value.assigned_partitions),
        ..ShareMember::default()
    }
}

fn stored_partitions(partitions: &AssignedPartitions) -> Vec<TargetTopicPartitions> {
    let topics = partitions.iter().map(|(topic_id, numbers)| TargetTopicPartitions {
        topic_id: *topic_id,
        partitions: numbers.iter().copied().collect(),
    });
    topics.collect()
}

fn read_partitions(topics: &[TargetTopicPartitions]) -> AssignedPartitions {
    let topics = topics.iter().filter(|topic| !topic.partitions.is_empty());
    topics.map(|topic| (topic.topic_id, topic.partitions.iter().copied().collect())).collect()
}
