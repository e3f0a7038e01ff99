//! IncrementalAlterConfigs (44): changes single settings.
use crate::schema::messages;

/// `config_operation` that gives the setting a value.
pub const SET: i8 = 0;
/// `config_operation` that takes the setting back to its default.
pub const DELETE: i8 = 1;
/// `config_operation` that adds to a list.
pub const APPEND: i8 = 2;
/// `config_operation` that removes from a list.
pub const SUBTRACT: i8 = 3;

messages! {
    /// Changes by topic and broker.
    IncrementalAlterConfigsRequest of IncrementalAlterConfigs {
        resources: Vec<AlterConfigsResource> [0+],
        /// Check only, change nothing.
        validate_only: bool [0+],
    }

    /// The changes of a topic or broker.
    AlterConfigsResource {
        resource_type: i8 [0+],
        resource_name: String [0+],
        configs: Vec<AlterableConfig> [0+],
    }

    /// A change.
    AlterableConfig {
        name: String [0+],
        config_operation: i8 [0+],
        value: Option<String> [0+],
    }

    /// What became of each.
    IncrementalAlterConfigsResponse of IncrementalAlterConfigs {
        throttle_time_ms: i32 [0+],
        responses: Vec<AlterConfigsResourceResponse> [0+],
    }

    /// Whether the settings of a topic or broker were changed.
    AlterConfigsResourceResponse {
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        resource_type: i8 [0+],
        resource_name: String [0+],
    }
}
