//! UpdateFeatures (57): the cluster's level of a feature is raised (KIP-584).
use crate::schema::messages;

messages! {
    /// Levels to change.
    UpdateFeaturesRequest of UpdateFeatures {
        timeout_ms: i32 [0+] = 60_000,
        feature_updates: Vec<FeatureUpdateKey> [0+],
        validate_only: bool [1+],
    }

    /// A feature and the level it shall have.
    FeatureUpdateKey {
        feature: String [0+],
        max_version_level: i16 [0+],
        /// Whether the level may become lower.
        allow_downgrade: bool [0-0],
        /// 1: only higher; 2: also lower where nothing is lost; 3: lower in any case.
        upgrade_type: i8 [1+] = 1,
    }

    /// What became of it. From version 2 on there is one error for all.
    UpdateFeaturesResponse of UpdateFeatures {
        throttle_time_ms: i32 [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        results: Vec<UpdatableFeatureResult> [0-1],
    }

    /// Outcome for a feature.
    UpdatableFeatureResult {
        feature: String [0+],
        error_code: i16 [0+],
        error_message: Option<String> [0+],
    }
}
