//! ElectLeaders: decided by Python.
//!
//! KIP-183. Version 1 may elect replicas that are not in sync (KIP-460).
use super::common::decided::{Decision, decided};
use super::common::repeated::is_repeated;
use crate::authorization::table::ELECT_LEADERS_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::elect_leaders::{PartitionResult, ReplicaElectionResult};
use pylog_wire::messages::{ElectLeadersRequest, ElectLeadersResponse};

/// Asks for the elections.
pub fn handle(call: Call, request: ElectLeadersRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&ELECT_LEADERS_CLUSTER) {
        let mut answer = error_response(&request, error, error.sentence());
        answer.replica_election_results = refusals(&request, error);
        return Outcome::Now(call.answer(&answer));
    }
    let timeout_ms = request.timeout_ms;
    decided(call, Decision { timeout_ms, ..Kind::ElectLeaders.into() }, request, error_response)
}

/// All that was asked, each with the error: before version 1 there is no other place for it.
fn refusals(request: &ElectLeadersRequest, error: ErrorCode) -> Vec<ReplicaElectionResult> {
    let asked = request.topic_partitions.as_deref().unwrap_or_default();
    if !is_repeated(asked.iter().map(|topic| topic.partitions.len())) {
        return Vec::new();
    }
    let refused = |partition_id: &i32| PartitionResult {
        partition_id: *partition_id,
        error_code: error.code(),
        error_message: Some(error.sentence().to_owned()),
    };
    let topics = asked.iter().map(|topic| ReplicaElectionResult {
        topic: topic.topic.clone(),
        partition_result: topic.partitions.iter().map(refused).collect(),
    });
    topics.collect()
}

fn error_response(_request: &ElectLeadersRequest, error: ErrorCode, _why: &str) -> ElectLeadersResponse {
    ElectLeadersResponse { error_code: error.code(), ..Default::default() }
}
