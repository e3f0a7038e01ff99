//! OffsetCommit and TxnOffsetCommit.
use uuid::Uuid;

use super::{CommittedOffset, record};
use crate::group::claim::OffsetClaim;
use crate::group::consumer::group::ConsumerGroup;
use crate::group::context::GroupContext;
use crate::group::requests::GroupReply;
use crate::group::state::{Group, GroupKind};
use crate::{Caller, Ticket};
use pylog_wire::ErrorCode;
use pylog_wire::messages::offset_commit::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use pylog_wire::messages::txn_offset_commit::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use pylog_wire::messages::{
    OffsetCommitRequest, OffsetCommitResponse, TxnOffsetCommitRequest, TxnOffsetCommitResponse,
};

/// From this version of OffsetCommit on a group that does not exist has an error of its own, other than ILLEGAL_GENERATION.
const NOT_FOUND_FROM: i16 = 9;
/// From this version of OffsetCommit on topics are named by id.
const TOPIC_IDS_FROM: i16 = 10;
/// From this version of TxnOffsetCommit on (KIP-1319) topics are named by id, and the errors of OffsetCommit are known.
const TXN_TOPIC_IDS_FROM: i16 = 6;
/// No retention of its own.
const NO_RETENTION: i64 = -1;

/// A commit of one partition.
struct PartitionCommit {
    partition: i32,
    offset: i64,
    leader_epoch: i32,
    metadata: Option<String>,
}

/// Commits. `order` is the place of the first commit; it is moved behind the last.
pub fn commit(
    group: &mut Group,
    ticket: Ticket,
    caller: &Caller,
    mut request: OffsetCommitRequest,
    order: &mut i64,
    cx: &mut GroupContext<'_>,
) {
    let ids = caller.version >= TOPIC_IDS_FROM;
    if ids {
        for topic in &mut request.topics {
            topic.name = name_of(&topic.topic_id, cx);
        }
    }
    let claim = OffsetClaim {
        member_id: &request.member_id,
        group_instance_id: request.group_instance_id.as_deref(),
        generation_or_epoch: request.generation_id_or_member_epoch,
        transactional: false,
        version: caller.version,
    };
    let asked = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| (topic.name.as_str(), partition.partition_index))
    });
    let allowed = check(group, &claim, asked, cx);
    if let (Ok(()), GroupKind::Classic(classic)) = (allowed, &mut group.kind) {
        classic.committed(&request.member_id, cx);
    }
    let expire_timestamp_ms = match request.retention_time_ms {
        NO_RETENTION => -1,
        retention_ms => cx.now_ms.saturating_add(retention_ms),
    };
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let known = known(&topic.name, ids, cx);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in topic.partitions {
            let partition_index = asked.partition_index;
            let commit = PartitionCommit {
                partition: partition_index,
                offset: asked.committed_offset,
                leader_epoch: asked.committed_leader_epoch,
                metadata: asked.committed_metadata,
            };
            let before = group.offsets.get(&topic.name, partition_index);
            let before_bytes = before.map_or(0, |before| before.bytes(&topic.name));
            let committed = check_partition(&commit, known, allowed, cx)
                .and_then(|()| committed(&topic.name, commit, expire_timestamp_ms, *order, before_bytes, cx));
            let error = match committed {
                Ok(committed) => {
                    *order += 1;
                    group.offsets.put(&topic.name, partition_index, committed, None);
                    ErrorCode::None
                }
                Err(error) => error,
            };
            partitions.push(OffsetCommitResponsePartition { partition_index, error_code: error.code() });
        }
        topics.push(OffsetCommitResponseTopic { name: topic.name, topic_id: topic.topic_id, partitions });
    }
    let response = OffsetCommitResponse { topics, ..Default::default() };
    cx.effects.reply(ticket, GroupReply::OffsetCommit(response));
}

/// Commits when the transaction does. The group changes when the shell has appended the records and replays them: an
/// append that is refused (a fenced producer) leaves it as it was.
pub fn commit_in_transaction(
    group: &Group,
    ticket: Ticket,
    caller: &Caller,
    mut request: TxnOffsetCommitRequest,
    cx: &mut GroupContext<'_>,
) {
    let ids = caller.version >= TXN_TOPIC_IDS_FROM;
    if ids {
        for topic in &mut request.topics {
            topic.name = name_of(&topic.topic_id, cx);
        }
    }
    let claim = OffsetClaim {
        member_id: &request.member_id,
        group_instance_id: request.group_instance_id.as_deref(),
        generation_or_epoch: request.generation_id,
        transactional: true,
        version: caller.version,
    };
    let asked = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| (topic.name.as_str(), partition.partition_index))
    });
    let allowed = check(group, &claim, asked, cx);
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let known = known(&topic.name, ids, cx);
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in topic.partitions {
            let partition_index = asked.partition_index;
            let commit = PartitionCommit {
                partition: partition_index,
                offset: asked.committed_offset,
                leader_epoch: asked.committed_leader_epoch,
                metadata: asked.committed_metadata,
            };
            let outcome = check_partition(&commit, known, allowed, cx)
                .and_then(|()| committed(&topic.name, commit, -1, 0, 0, cx).map(drop));
            let error_code = outcome.err().unwrap_or(ErrorCode::None).code();
            partitions.push(TxnOffsetCommitResponsePartition { partition_index, error_code });
        }
        topics.push(TxnOffsetCommitResponseTopic { name: topic.name, topic_id: topic.topic_id, partitions });
    }
    if !cx.effects.records.is_empty() {
        cx.effects.transaction = Some((request.producer_id, request.producer_epoch));
    }
    let response = TxnOffsetCommitResponse { topics, ..Default::default() };
    cx.effects.reply(ticket, GroupReply::TxnOffsetCommit(response));
}

/// The topic's name; no topic has an empty one.
fn name_of(id: &Uuid, cx: &GroupContext<'_>) -> String {
    cx.topics.topic_with_id(id).map_or_else(String::new, |(name, _)| name)
}

/// How many partitions the topic has; it was asked for by its id or by its name.
fn known(name: &str, by_id: bool, cx: &GroupContext<'_>) -> Result<i32, ErrorCode> {
    let unknown = if by_id { ErrorCode::UnknownTopicId } else { ErrorCode::UnknownTopicOrPartition };
    cx.topics.topic(name).map(|(_, partitions)| partitions).ok_or(unknown)
}

/// Whether the group takes commits of `claim` for all that is `asked`.
fn check<'a>(
    group: &Group,
    claim: &OffsetClaim<'_>,
    mut asked: impl Iterator<Item = (&'a str, i32)>,
    cx: &GroupContext<'_>,
) -> Result<(), ErrorCode> {
    if group.is_vacant() && claim.generation_or_epoch >= 0 {
        let from = if claim.transactional { TXN_TOPIC_IDS_FROM } else { NOT_FOUND_FROM };
        return Err(if claim.version >= from {
            ErrorCode::GroupIdNotFound
        } else {
            ErrorCode::IllegalGeneration
        });
    }
    let mut still_owned = |members: &ConsumerGroup| {
        asked.all(|(topic, partition)| {
            cx.topics.topic(topic).is_some_and(|(id, _)| members.owned_at(claim, &id, partition))
        })
    };
    match (group.kind.check_commit(claim), &group.kind) {
        (Err(ErrorCode::StaleMemberEpoch), GroupKind::Consumer(members)) if still_owned(members) => Ok(()),
        // Older producers do not know it.
        (Err(ErrorCode::StaleMemberEpoch), _)
            if claim.transactional && claim.version < TXN_TOPIC_IDS_FROM =>
        {
            Err(ErrorCode::IllegalGeneration)
        }
        (allowed, _) => allowed,
    }
}

/// Whether this offset can be committed; `allowed`: whether the group takes commits of this caller. A partition that does not exist
/// comes first: Kafka looks for it before it asks the group.
fn check_partition(
    commit: &PartitionCommit,
    partitions: Result<i32, ErrorCode>,
    allowed: Result<(), ErrorCode>,
    cx: &GroupContext<'_>,
) -> Result<(), ErrorCode> {
    if !(0..partitions?).contains(&commit.partition) {
        return Err(ErrorCode::UnknownTopicOrPartition);
    }
    allowed?;
    let limit = usize::try_from(cx.settings.offset_metadata_max_bytes).unwrap_or(0);
    let metadata = commit.metadata.as_deref().unwrap_or_default();
    // As Java counts: UTF-16 units, of which there are at most as many as bytes.
    if metadata.len() > limit && metadata.encode_utf16().count() > limit {
        return Err(ErrorCode::OffsetMetadataTooLarge);
    }
    Ok(())
}

/// Adds the record, if there is room for more than the `before_bytes` that the partition's offset costs now.
fn committed(
    topic: &str,
    commit: PartitionCommit,
    expire_timestamp_ms: i64,
    order: i64,
    before_bytes: usize,
    cx: &mut GroupContext<'_>,
) -> Result<CommittedOffset, ErrorCode> {
    let committed = CommittedOffset {
        offset: commit.offset,
        leader_epoch: commit.leader_epoch,
        metadata: commit.metadata.unwrap_or_default(),
        commit_timestamp_ms: cx.now_ms,
        expire_timestamp_ms,
        order,
    };
    if !cx.room.has(committed.bytes(topic).saturating_sub(before_bytes)) {
        return Err(ErrorCode::InvalidCommitOffsetSize);
    }
    let record = record(cx.group_id, topic, commit.partition, Some(&committed));
    cx.effects.record(record.map_err(|_too_long| ErrorCode::InvalidCommitOffsetSize)?);
    Ok(committed)
}
