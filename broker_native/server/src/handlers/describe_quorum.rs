//! DescribeQuorum: one broker controls, so it is the only voter, and the other live brokers follow.
//!
//! There is no log of metadata: offsets and times are answered as not known (-1).
//!
//! KIP-595. Version 1 has times (KIP-836); 2 sentences, addresses and directories (KIP-853).
use uuid::Uuid;

use super::common::brokers::Brokers;
use crate::authorization::table::DESCRIBE_QUORUM_CLUSTER;
use crate::call::{Call, Outcome};
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_quorum::{
    QuorumListener, QuorumNode, QuorumPartition, QuorumTopic, ReplicaState,
};
use pylog_wire::messages::{DescribeQuorumRequest, DescribeQuorumResponse};

/// Kafka's topic of metadata, the only one that has a quorum.
const METADATA: &str = "__cluster_metadata";
/// What is not known.
const UNKNOWN: i64 = -1;

/// Answers with the controller.
pub fn handle(call: &Call, request: &DescribeQuorumRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&DESCRIBE_QUORUM_CLUSTER) {
        let error_message = Some(error.sentence().to_owned());
        return Outcome::Now(call.answer(&DescribeQuorumResponse {
            error_code: error.code(),
            error_message,
            ..Default::default()
        }));
    }
    Outcome::Now(call.answer(&described(call, request)))
}

fn described(call: &Call, request: &DescribeQuorumRequest) -> DescribeQuorumResponse {
    if !asks_for_metadata(request) {
        return unknown(request);
    }
    let brokers = Brokers::of(call);
    let Some(controller) = brokers.find(brokers.controller_id()) else {
        return DescribeQuorumResponse {
            error_code: ErrorCode::NotLeaderOrFollower.code(),
            error_message: Some("The cluster has no controller at the moment: try again.".into()),
            ..Default::default()
        };
    };
    let others = brokers.all().into_iter().filter(|broker| broker.id != controller.id);
    let partition = QuorumPartition {
        leader_id: controller.id,
        leader_epoch: brokers.controller_epoch(),
        high_watermark: UNKNOWN,
        current_voters: vec![replica(controller.id)],
        observers: others.map(|broker| replica(broker.id)).collect(),
        ..Default::default()
    };
    let listener = QuorumListener {
        name: brokers.listener().name.clone(),
        host: controller.host,
        port: u16::try_from(controller.port).unwrap_or_default(),
    };
    DescribeQuorumResponse {
        topics: vec![QuorumTopic { topic_name: METADATA.into(), partitions: vec![partition] }],
        nodes: vec![QuorumNode { node_id: controller.id, listeners: vec![listener] }],
        ..Default::default()
    }
}

/// Whether partition 0 of the metadata is asked for, and nothing else.
fn asks_for_metadata(request: &DescribeQuorumRequest) -> bool {
    match request.topics.as_slice() {
        [topic] if topic.topic_name == METADATA => {
            matches!(topic.partitions.as_slice(), [partition] if partition.partition_index == 0)
        }
        _ => false,
    }
}

fn unknown(request: &DescribeQuorumRequest) -> DescribeQuorumResponse {
    let topics = request.topics.iter().map(|topic| QuorumTopic {
        topic_name: topic.topic_name.clone(),
        partitions: topic
            .partitions
            .iter()
            .map(|partition| QuorumPartition {
                partition_index: partition.partition_index,
                error_code: ErrorCode::UnknownTopicOrPartition.code(),
                ..Default::default()
            })
            .collect(),
    });
    DescribeQuorumResponse { topics: topics.collect(), ..Default::default() }
}

fn replica(replica_id: i32) -> ReplicaState {
    ReplicaState {
        replica_id,
        replica_directory_id: Uuid::nil(),
        log_end_offset: UNKNOWN,
        ..Default::default()
    }
}
