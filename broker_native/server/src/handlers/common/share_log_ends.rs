//! Where the log of a partition ends, asked of the broker that leads it: how far a share group lags is computed from it.
use crate::call::Call;
use crate::state::topics::Partition;
use pylog_wire::messages::ListOffsetsRequest;
use pylog_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsTopic};

/// Asks for the end, as a consumer does.
const LATEST: i64 = -1;
const CONSUMER: i32 = -1;
const NO_EPOCH: i32 = -1;

/// The high watermark; `None` when the leader cannot be asked now.
pub async fn end_of(call: &Call, topic: &str, partition: &Partition) -> Option<i64> {
    let leader = partition.spec.leader;
    if leader == call.shared.settings.node_id {
        return partition.log.as_ref().ok().map(|log| log.offsets().high_watermark);
    }
    let (partition_index, current_leader_epoch) = (partition.spec.partition, NO_EPOCH);
    let asked = ListOffsetsPartition { partition_index, current_leader_epoch, timestamp: LATEST };
    let request = ListOffsetsRequest {
        replica_id: CONSUMER,
        topics: vec![ListOffsetsTopic { name: topic.to_owned(), partitions: vec![asked] }],
        ..Default::default()
    };
    let answer = call.shared.peers.call(leader, &request).await.ok()?;
    let mut partitions = answer.topics.into_iter().flat_map(|topic| topic.partitions);
    partitions.next().filter(|partition| partition.error_code == 0).map(|partition| partition.offset)
}
