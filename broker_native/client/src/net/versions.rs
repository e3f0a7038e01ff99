//! Which version of each request both sides speak.
use crate::error::{ClientError, Result};
use pylog_wire::messages::{ApiVersionsRequest, ApiVersionsResponse};
use pylog_wire::{ApiKey, ErrorCode, Request};

/// The version ApiVersions is asked in; a broker that does not know it answers in version 0 with its range.
pub const FIRST_ASKED: i16 = 3;
/// The version every broker answers ApiVersions in.
pub const LAST_RESORT: i16 = 0;

/// The cluster's feature that says how transactions go.
const TRANSACTION_VERSION: &str = "transaction.version";

/// What a broker said it speaks.
#[derive(Debug, Clone, Default)]
pub struct Versions {
    /// API key, lowest and highest version.
    apis: Vec<(i16, i16, i16)>,
    transaction_version: i16,
}

impl Versions {
    /// Reads a broker's answer.
    pub fn new(answer: &ApiVersionsResponse) -> Self {
        let transaction_version = answer
            .finalized_features
            .iter()
            .find(|feature| feature.name == TRANSACTION_VERSION)
            .map_or(0, |feature| feature.max_version_level);
        let apis =
            answer.api_keys.iter().map(|api| (api.api_key, api.min_version, api.max_version)).collect();
        Self { apis, transaction_version }
    }

    /// Whether the cluster's transactions are of version 2 (KIP-890): a produced batch adds its partition, and every end
    /// raises the epoch.
    pub fn batches_add_partitions(&self) -> bool {
        self.transaction_version >= 2
    }

    /// The highest version of `Q` that both sides speak.
    ///
    /// # Errors
    /// `UNSUPPORTED_VERSION` naming the broker, the request and both ranges.
    pub fn pick<Q: Request>(&self, broker: &str) -> Result<i16> {
        let ours = Q::API;
        let refuse = |said: String| {
            Err(ClientError::fatal(
                ErrorCode::UnsupportedVersion.name(),
                format!("broker {broker} {said}, this client needs versions {} to {}", ours.min, ours.max),
            ))
        };
        let name = ours.key.name();
        match self.apis.iter().find(|(key, _, _)| *key == ours.key.code()) {
            None => refuse(format!("does not know {name} requests")),
            Some((_, min, max)) => {
                let version = newest(ours.key, ours.max).min(*max);
                if version >= ours.min && version >= *min {
                    return Ok(version);
                }
                refuse(format!("speaks {name} in versions {min} to {max}"))
            }
        }
    }

    /// Whether the broker knows an API at all.
    pub fn knows(&self, key: ApiKey) -> bool {
        self.apis.iter().any(|(known, _, _)| *known == key.code())
    }
}

/// The newest version that this client speaks of an API whose codec goes up to `max`. Offsets of groups are asked for by
/// the topics' names, which end with version 9.
fn newest(key: ApiKey, max: i16) -> i16 {
    match key {
        ApiKey::OffsetCommit | ApiKey::OffsetFetch => max.min(9),
        _ => max,
    }
}

/// The first request on a connection.
pub fn question() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "pylog".into(),
        client_software_version: env!("CARGO_PKG_VERSION").into(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pylog_wire::Message;
    use pylog_wire::messages::{
        ApiVersion, FetchRequest, MetadataRequest, OffsetCommitRequest, OffsetFetchRequest,
    };

    fn versions(api_key: i16, min_version: i16, max_version: i16) -> Versions {
        let api_keys = vec![ApiVersion { api_key, min_version, max_version }];
        Versions::new(&ApiVersionsResponse { api_keys, ..Default::default() })
    }

    #[test]
    fn the_highest_common_version_is_taken() {
        assert_eq!(versions(1, 0, 11).pick::<FetchRequest>("b").unwrap(), 11);
        assert_eq!(versions(1, 0, 99).pick::<FetchRequest>("b").unwrap(), FetchRequest::API.max);
    }

    #[test]
    fn offsets_of_groups_are_asked_for_by_the_names_of_topics() {
        assert_eq!(versions(8, 2, 10).pick::<OffsetCommitRequest>("b").unwrap(), 9);
        assert_eq!(versions(9, 1, 10).pick::<OffsetFetchRequest>("b").unwrap(), 9);
        assert_eq!(versions(9, 1, 5).pick::<OffsetFetchRequest>("b").unwrap(), 5);
    }

    #[test]
    fn no_common_version_is_an_error_that_names_both_ranges() {
        let error = versions(1, 0, 3).pick::<FetchRequest>("b:1").unwrap_err();
        assert_eq!(error.kind, "UNSUPPORTED_VERSION");
        assert!(error.message.contains("0 to 3") && error.message.contains("b:1"), "{}", error.message);
        assert!(versions(1, 90, 99).pick::<FetchRequest>("b").is_err());
        assert!(versions(1, 0, 11).pick::<MetadataRequest>("b").is_err());
    }
}
