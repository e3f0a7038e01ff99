//! ListConfigResources: what can be configured: topics, brokers, their loggers, and groups that have settings of their own.
//!
//! Version 0 asks for client metrics (KIP-714); 1 for settings of any kind (KIP-1142).
use super::common::brokers::Brokers;
use crate::authorization::table::LIST_CONFIG_RESOURCES_CLUSTER;
use crate::call::{Call, Outcome};
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_configs::{
    RESOURCE_BROKER, RESOURCE_BROKER_LOGGER, RESOURCE_GROUP, RESOURCE_TOPIC,
};
use pylog_wire::messages::list_config_resources::ConfigResource;
use pylog_wire::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};

/// Metrics of clients: Kafka has settings of these too, pylog has none.
const CLIENT_METRICS: i8 = 16;
const KNOWN: [i8; 5] =
    [RESOURCE_TOPIC, RESOURCE_BROKER, RESOURCE_BROKER_LOGGER, RESOURCE_GROUP, CLIENT_METRICS];
/// Before this version there were only metrics of clients.
const TYPES_FROM: i16 = 1;

/// Answers with the names of all topics, live brokers and groups with settings, or of one of these types.
pub fn handle(call: &Call, request: &ListConfigResourcesRequest) -> Outcome {
    if let Err(error) = call.check_cluster(&LIST_CONFIG_RESOURCES_CLUSTER) {
        return Outcome::Now(
            call.answer(&ListConfigResourcesResponse { error_code: error.code(), ..Default::default() }),
        );
    }
    let asked = &request.resource_types;
    if !asked.iter().all(|one| KNOWN.contains(one)) {
        let error_code = ErrorCode::UnsupportedVersion.code();
        return Outcome::Now(call.answer(&ListConfigResourcesResponse { error_code, ..Default::default() }));
    }
    let wanted =
        |resource_type| call.version >= TYPES_FROM && (asked.is_empty() || asked.contains(&resource_type));
    let mut config_resources = Vec::new();
    if wanted(RESOURCE_TOPIC) {
        let topics = call.shared.topics.now();
        config_resources.extend(topics.all().map(|topic| named(RESOURCE_TOPIC, topic.name.clone())));
    }
    for kind in [RESOURCE_BROKER, RESOURCE_BROKER_LOGGER] {
        if wanted(kind) {
            let brokers = Brokers::of(call).all();
            config_resources.extend(brokers.iter().map(|broker| named(kind, broker.id.to_string())));
        }
    }
    if wanted(RESOURCE_GROUP) {
        let groups = call.shared.share_groups.configs.groups();
        config_resources.extend(groups.into_iter().map(|group| named(RESOURCE_GROUP, group)));
    }
    Outcome::Now(call.answer(&ListConfigResourcesResponse { config_resources, ..Default::default() }))
}

fn named(resource_type: i8, resource_name: String) -> ConfigResource {
    ConfigResource { resource_name, resource_type }
}
