//! ListConfigResources (74): what there are settings of. Version 0 asked for client metrics only.
use crate::schema::messages;

/// `resource_type` of the metrics of clients.
const CLIENT_METRICS: i8 = 16;

messages! {
    /// Of which types; an empty list stands for all that the broker knows.
    ListConfigResourcesRequest of ListConfigResources {
        resource_types: Vec<i8> [1+],
    }

    /// The resources.
    ListConfigResourcesResponse of ListConfigResources {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        config_resources: Vec<ConfigResource> [0+],
    }

    /// One of them.
    ConfigResource {
        resource_name: String [0+],
        resource_type: i8 [1+] = CLIENT_METRICS,
    }
}
