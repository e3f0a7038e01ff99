//! What a client may do with a resource, for clients that ask: a bit for each of Kafka's operations.
use crate::call::Call;
use pylog_security::acl::{CLUSTER_NAME, ResourceType};
use pylog_wire::messages::metadata::OPERATIONS_NOT_ASKED;

/// What may be done with the topic.
pub fn on_topic(call: &Call, asked: bool, name: &str) -> i32 {
    allowed(call, asked, (ResourceType::Topic, name))
}

/// What may be done with the cluster.
pub fn on_cluster(call: &Call, asked: bool) -> i32 {
    allowed(call, asked, (ResourceType::Cluster, CLUSTER_NAME))
}

/// What may be done with the group.
pub fn on_group(call: &Call, asked: bool, name: &str) -> i32 {
    allowed(call, asked, (ResourceType::Group, name))
}

fn allowed(call: &Call, asked: bool, resource: (ResourceType, &str)) -> i32 {
    if !asked {
        return OPERATIONS_NOT_ASKED;
    }
    let operations = resource.0.operations().iter();
    let allowed = operations.filter(|operation| call.could(**operation, resource));
    allowed.fold(0, |bits, operation| bits | 1 << operation.code())
}
