//! Whether a new leader still has what was read from the one before (KIP-320).
use super::sources::Source;
use crate::error::{ClientError, Result, code, kind};
use crate::metadata::cluster::Cluster;
use crate::metadata::offsets::partition_error;
use crate::metadata::topic_partition::TopicPartition;
use pylog_wire::ErrorCode;
use pylog_wire::messages::OffsetForLeaderEpochRequest;
use pylog_wire::messages::offset_for_leader_epoch::{OffsetForLeaderPartition, OffsetForLeaderTopic};

/// Asks the leader where the epoch of the last batch read ended in its log.
///
/// # Errors
/// `LOG_TRUNCATED` when that is before `position`; those of the connection and of the partition, retriable.
pub fn check(
    cluster: &mut Cluster,
    topic_partition: &TopicPartition,
    leader: &Source,
    read_epoch: i32,
    position: i64,
) -> Result<()> {
    let partition = OffsetForLeaderPartition {
        partition: topic_partition.partition,
        current_leader_epoch: leader.leader_epoch,
        leader_epoch: read_epoch,
    };
    let topic = OffsetForLeaderTopic { topic: (*topic_partition.topic).into(), partitions: vec![partition] };
    let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![topic] };
    let answer = cluster.call_at(&leader.address, &request)?;
    let epoch_end = answer.topics.into_iter().next().and_then(|topic| topic.partitions.into_iter().next());
    let Some(epoch_end) = epoch_end else {
        let broker = format!("{}:{}", leader.address.0, leader.address.1);
        return Err(ClientError::protocol(&broker, "no answer about the end of an epoch"));
    };
    match code(epoch_end.error_code) {
        ErrorCode::None => check_end(topic_partition, leader.leader_epoch, epoch_end.end_offset, position),
        error => Err(partition_error(&topic_partition.topic, topic_partition.partition, error)),
    }
}

/// A leader that knows nothing of so old an epoch (-1) has not contradicted it.
fn check_end(
    topic_partition: &TopicPartition,
    leader_epoch: i32,
    end_offset: i64,
    position: i64,
) -> Result<()> {
    if end_offset < 0 || end_offset >= position {
        return Ok(());
    }
    Err(truncated(topic_partition, leader_epoch, end_offset, position))
}

/// The error of a reader that was at `position` when the log was cut at `end_offset`.
pub fn truncated(
    topic_partition: &TopicPartition,
    leader_epoch: i32,
    end_offset: i64,
    position: i64,
) -> ClientError {
    ClientError::fatal(
        kind::LOG_TRUNCATED,
        format!(
            "partition {topic_partition} was read up to offset {position}, but its new leader (epoch {leader_epoch}) has that log only up to offset {end_offset}: an election gave up the records between"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_end_before_the_position_is_a_truncation() {
        let topic_partition = TopicPartition::by_name("t", 2);
        for (end, position) in [(-1, 10), (10, 10), (11, 10)] {
            assert_eq!(check_end(&topic_partition, 7, end, position), Ok(()));
        }
        let error = check_end(&topic_partition, 7, 9, 10).unwrap_err();
        assert_eq!((error.kind, error.retriable), ("LOG_TRUNCATED", false));
        for part in ["t-2", "offset 10", "epoch 7", "offset 9"] {
            assert!(error.message.contains(part), "{}", error.message);
        }
    }
}
