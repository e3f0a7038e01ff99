//! DescribeConfigs (32): settings of topics and brokers, with their types and where they come from.
use crate::schema::messages;

/// `resource_type` of a topic, here and in the messages that alter settings.
pub const RESOURCE_TOPIC: i8 = 2;
/// `resource_type` of a broker; its name is the broker's id.
pub const RESOURCE_BROKER: i8 = 4;
/// Levels of a broker's loggers (KIP-412).
pub const RESOURCE_BROKER_LOGGER: i8 = 8;
/// `resource_type` of groups.
pub const RESOURCE_GROUP: i8 = 32;

messages! {
    /// Topics and brokers to describe.
    DescribeConfigsRequest of DescribeConfigs {
        resources: Vec<DescribeConfigsResource> [0+],
        include_synonyms: bool [1+],
        include_documentation: bool [3+],
    }

    /// A topic or broker; null keys ask for all settings.
    DescribeConfigsResource {
        resource_type: i8 [0+],
        resource_name: String [0+],
        configuration_keys: Option<Vec<String>> [0+],
    }

    /// The settings of each.
    DescribeConfigsResponse of DescribeConfigs {
        throttle_time_ms: i32 [0+],
        results: Vec<DescribeConfigsResult> [0+],
    }

    /// The settings of a topic or broker.
    DescribeConfigsResult {
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        resource_type: i8 [0+],
        resource_name: String [0+],
        configs: Vec<DescribeConfigsResourceResult> [0+],
    }

    /// A setting.
    DescribeConfigsResourceResult {
        name: String [0+],
        value: Option<String> [0+],
        read_only: bool [0+],
        /// 1: the topic; 2: broker, dynamic; 3: all brokers, dynamic; 4: broker, at start; 5: default.
        config_source: i8 [1+] = -1,
        is_sensitive: bool [0+],
        synonyms: Vec<DescribeConfigsSynonym> [1+],
        /// 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password.
        config_type: i8 [3+],
        documentation: Option<String> [3+] = Some(String::new()),
    }

    /// Where the value would come from otherwise.
    DescribeConfigsSynonym {
        name: String [1+],
        value: Option<String> [1+],
        source: i8 [1+],
    }
}
