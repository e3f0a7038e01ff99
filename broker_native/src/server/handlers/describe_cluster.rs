//! DescribeCluster: the one broker there is.
use super::metadata::advertised;
use crate::server::dispatch::{Call, Outcome};
use crate::wire::ErrorCode;
use crate::wire::messages::describe_cluster::DescribeClusterBroker;
use crate::wire::messages::{DescribeClusterRequest, DescribeClusterResponse};

/// `endpoint_type` of brokers; the other, controllers, has no listener here.
const BROKERS: i8 = 1;

/// Answers with this broker.
pub fn handle(call: &Call, request: &DescribeClusterRequest) -> Outcome {
    if request.endpoint_type != BROKERS {
        return Outcome::Now(call.answer(&DescribeClusterResponse {
            error_code: ErrorCode::UnsupportedEndpointType.code(),
            error_message: Some(
                "this broker has no controller endpoints; ask for brokers (endpoint type 1)".into(),
            ),
            ..Default::default()
        }));
    }
    let settings = &call.shared.settings;
    let (host, port) = advertised(call);
    Outcome::Now(call.answer(&DescribeClusterResponse {
        endpoint_type: BROKERS,
        cluster_id: settings.cluster_id.clone(),
        controller_id: settings.node_id,
        brokers: vec![DescribeClusterBroker {
            broker_id: settings.node_id,
            host,
            port,
            ..Default::default()
        }],
        ..Default::default()
    }))
}
