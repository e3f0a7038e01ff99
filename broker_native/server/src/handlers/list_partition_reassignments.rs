//! ListPartitionReassignments: answered by Python.
//!
//! KIP-455.
use super::common::decided::{Decision, decided};
use super::common::repeated::is_repeated;
use crate::authorization::table::LIST_PARTITION_REASSIGNMENTS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::list_partition_reassignments::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use pylog_wire::messages::{ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse};

/// Asks for the moves that are under way.
pub fn handle(call: Call, request: ListPartitionReassignmentsRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&LIST_PARTITION_REASSIGNMENTS_CLUSTER) {
        let mut answer = error_response(&request, error, error.sentence());
        answer.topics = repeated(&request);
        return Outcome::Now(call.answer(&answer));
    }
    let timeout_ms = request.timeout_ms;
    decided(call, Decision { timeout_ms, ..Kind::ListPartitionReassignments.into() }, request, error_response)
}

/// All that was asked, without a word about it.
fn repeated(request: &ListPartitionReassignmentsRequest) -> Vec<OngoingTopicReassignment> {
    let asked = request.topics.as_deref().unwrap_or_default();
    if !is_repeated(asked.iter().map(|topic| topic.partition_indexes.len())) {
        return Vec::new();
    }
    let one = |partition_index: &i32| OngoingPartitionReassignment {
        partition_index: *partition_index,
        ..Default::default()
    };
    let topics = asked.iter().map(|topic| OngoingTopicReassignment {
        name: topic.name.clone(),
        partitions: topic.partition_indexes.iter().map(one).collect(),
    });
    topics.collect()
}

fn error_response(
    _request: &ListPartitionReassignmentsRequest,
    error: ErrorCode,
    why: &str,
) -> ListPartitionReassignmentsResponse {
    ListPartitionReassignmentsResponse {
        error_code: error.code(),
        error_message: Some(why.into()),
        ..Default::default()
    }
}
