//! Ends the mirror of a topic in its partitions: open transactions are aborted, producers of the source forgotten.
use super::handing_over::{HandedOver, hand_over};
use crate::error::Result;
use crate::metadata::cluster::Cluster;
use crate::metadata::topic_partition::TopicPartition;
use pylog_wire::ErrorCode;
use pylog_wire::messages::produce::mirrored::{END, ENDED};

/// Ends the mirror in all `partitions`, whose topic's `mirror.source` is [`ENDED`]. May be repeated.
///
/// # Errors
/// Those of the partitions; retriable ones after `default.api.timeout.ms`. Some partitions may have ended then.
pub fn end(cluster: &mut Cluster, partitions: &[TopicPartition]) -> Result<()> {
    let mut left: Vec<TopicPartition> = partitions.to_vec();
    cluster.retrying("end the mirror", |cluster| {
        let ending = |partition: &TopicPartition| HandedOver {
            partition: partition.clone(),
            from: END,
            batches: None,
        };
        let taken = hand_over(cluster, ENDED, left.iter().map(ending).collect())?;
        let mut failed = None;
        for each in taken {
            match each.error {
                None => left.retain(|partition| !partition.has_name_of(&each.partition)),
                Some(mut error) => {
                    // A leader that has not heard of the setting yet.
                    error.retriable |= error.kind == ErrorCode::InvalidConfig.name();
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    })
}
