//! AlterConfigs (33): replaces all settings at once; what is not named goes back to its default.
use crate::schema::messages;

messages! {
    /// Settings by topic and broker.
    AlterConfigsRequest of AlterConfigs {
        resources: Vec<AlterConfigsResource> [0+],
        /// Check only, change nothing.
        validate_only: bool [0+],
    }

    /// All settings of a topic or broker.
    AlterConfigsResource {
        resource_type: i8 [0+],
        resource_name: String [0+],
        configs: Vec<AlterableConfig> [0+],
    }

    /// A setting.
    AlterableConfig {
        name: String [0+],
        value: Option<String> [0+],
    }

    /// What became of each.
    AlterConfigsResponse of AlterConfigs {
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
