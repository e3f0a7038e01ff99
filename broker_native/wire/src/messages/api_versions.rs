//! ApiVersions (18): which APIs and versions a broker speaks; the first request of nearly every client.
use crate::api::ApiInfo;
use crate::schema::messages;

messages! {
    /// Asks for the APIs; names the client's library, and from version 5 on (KIP-1242) whom it means to ask, when it knows.
    ApiVersionsRequest of ApiVersions {
        client_software_name: String [3+],
        client_software_version: String [3+],
        cluster_id: Option<String> [5+],
        /// -1: not known.
        node_id: i32 [5+] = -1,
    }

    /// The APIs and the cluster's features.
    ApiVersionsResponse of ApiVersions {
        error_code: i16 [0+],
        api_keys: Vec<ApiVersion> [0+],
        throttle_time_ms: i32 [1+],
        supported_features: Vec<SupportedFeatureKey> [3+ tag 0],
        finalized_features_epoch: i64 [3+ tag 1] = -1,
        finalized_features: Vec<FinalizedFeatureKey> [3+ tag 2],
        zk_migration_ready: bool [3+ tag 3],
    }

    /// An API and its range of versions.
    ApiVersion {
        api_key: i16 [0+],
        min_version: i16 [0+],
        max_version: i16 [0+],
    }

    /// A feature that this broker could have.
    SupportedFeatureKey {
        name: String [3+],
        min_version: i16 [3+],
        max_version: i16 [3+],
    }

    /// A feature that the cluster has.
    FinalizedFeatureKey {
        name: String [3+],
        max_version_level: i16 [3+],
        min_version_level: i16 [3+],
    }
}

impl ApiInfo {
    /// The API's entry in an ApiVersions response.
    pub const fn advertisement(&self) -> ApiVersion {
        ApiVersion {
            api_key: self.key.code(),
            min_version: self.advertised_min,
            max_version: self.advertised_max,
        }
    }
}
