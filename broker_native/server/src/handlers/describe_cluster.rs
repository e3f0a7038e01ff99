//! DescribeCluster: the live brokers, when asked for the dead ones too, and who controls.
//!
//! KIP-700. Version 1 asks for brokers or controllers (KIP-919); 2 for dead brokers too (KIP-1073).
use super::common::brokers::{BrokerEndpoint, Brokers};
use super::common::operations::on_cluster;
use crate::authorization::table::DESCRIBE_CLUSTER_OPERATIONS;
use crate::call::{Call, Outcome};
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_cluster::DescribeClusterBroker;
use pylog_wire::messages::{DescribeClusterRequest, DescribeClusterResponse};

/// `endpoint_type` of brokers.
const BROKERS: i8 = 1;
/// `endpoint_type` of controllers, which have no listener here.
const CONTROLLERS: i8 = 2;
/// From this version on there are errors about endpoints.
const ENDPOINT_TYPES_FROM: i16 = 1;

/// Answers with the brokers.
pub fn handle(call: &Call, request: &DescribeClusterRequest) -> Outcome {
    if request.endpoint_type != BROKERS {
        return Outcome::Now(call.answer(&error_response(call.version, request.endpoint_type)));
    }
    let settings = &call.shared.settings;
    let brokers = Brokers::of(call);
    let mut shown: Vec<_> = brokers.all().into_iter().map(|broker| listed(broker, false)).collect();
    if request.include_fenced_brokers {
        shown.extend(brokers.dead().into_iter().map(|broker| listed(broker, true)));
    }
    let asked = request.include_cluster_authorized_operations;
    // Nothing, to who may not even describe the cluster.
    let operations = match !asked || call.may_cluster(&DESCRIBE_CLUSTER_OPERATIONS) {
        true => on_cluster(call, asked),
        false => 0,
    };
    Outcome::Now(call.answer(&DescribeClusterResponse {
        endpoint_type: BROKERS,
        cluster_id: settings.cluster_id.clone(),
        controller_id: brokers.controller_id(),
        brokers: shown,
        cluster_authorized_operations: operations,
        ..Default::default()
    }))
}

fn listed(broker: BrokerEndpoint, is_fenced: bool) -> DescribeClusterBroker {
    let BrokerEndpoint { id, host, port, rack } = broker;
    DescribeClusterBroker { broker_id: id, host, port, rack, is_fenced }
}

fn error_response(version: i16, endpoint_type: i8) -> DescribeClusterResponse {
    let error = match endpoint_type {
        _ if version < ENDPOINT_TYPES_FROM => ErrorCode::InvalidRequest,
        CONTROLLERS => ErrorCode::MismatchedEndpointType,
        _ => ErrorCode::UnsupportedEndpointType,
    };
    let why = format!(
        "this broker does not answer for endpoint type {endpoint_type}; ask for brokers (endpoint type 1)"
    );
    DescribeClusterResponse { error_code: error.code(), error_message: Some(why), ..Default::default() }
}
