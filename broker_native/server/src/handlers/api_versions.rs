//! ApiVersions: what this broker speaks.
//!
//! Version 3 has the client's name and version (KIP-511), and features (KIP-584); 4 features that begin at 0 (KAFKA-17011); 5
//! the cluster and the broker that the client means (KIP-1242).
use super::common::share_call::are_kept;
use crate::call::{Call, Outcome, SERVED};
use crate::cluster::view::Level;
use pylog_wire::messages::api_versions::{FinalizedFeatureKey, SupportedFeatureKey};
use pylog_wire::messages::{ApiVersionsRequest, ApiVersionsResponse};
use pylog_wire::{ApiKey, ErrorCode};

/// A feature of the cluster: its name, its oldest level that this broker could have, and the level it has.
type Feature = (&'static str, i16, i16);

/// What clients and tools look at. The level of `metadata.version` is Kafka's 3.9-IV0, that of
/// `inter.broker.protocol.version`: kafbat lets configs be edited only where it finds one of them.
/// `group.version` 1 is KIP-848; `transaction.version` 2 is KIP-890: every end of a transaction raises the epoch.
/// `share.version` 1 is KIP-932, which the brokers of a cluster have from a level on; before it they refuse the requests.
const FEATURES: &[Feature] =
    &[("group.version", 1, 1), ("metadata.version", 7, 21), ("transaction.version", 1, 2)];
const SHARES: Feature = ("share.version", 1, 1);
/// Stands for a broker that the client does not know yet.
const NO_NODE: i32 = -1;
/// The level of a cluster of pylog's brokers: raised when all of them are new enough.
const LEVEL: &str = "pylog.version";

fn features(with_shares: bool) -> impl Iterator<Item = &'static Feature> {
    FEATURES.iter().chain(with_shares.then_some(&SHARES))
}

/// The oldest level that this broker could have of a feature whose level never changes, and the one that it has.
pub fn fixed(name: &str, with_shares: bool) -> Option<(i16, i16)> {
    features(with_shares).find(|feature| feature.0 == name).map(|&(_, min, level)| (min, level))
}

/// Answers with the table; to a client that means another cluster or another broker (KIP-1242: an address that was given to
/// somebody new) only with that.
pub fn handle(call: &Call, request: &ApiVersionsRequest) -> Outcome {
    Outcome::Now(match meant(call, request) {
        ErrorCode::None => call.answer(&table(call, ErrorCode::None)),
        error => call.answer(&ApiVersionsResponse { error_code: error.code(), ..Default::default() }),
    })
}

/// Whether this broker is the one that the client means.
fn meant(call: &Call, request: &ApiVersionsRequest) -> ErrorCode {
    let settings = &call.shared.settings;
    match (&request.cluster_id, request.node_id) {
        (None, NO_NODE) => ErrorCode::None,
        // A broker is only identified by both: other clusters have brokers of the same number.
        (None, _) | (_, NO_NODE) => ErrorCode::InvalidRequest,
        (Some(cluster), node) if *cluster == settings.cluster_id && node == settings.node_id => {
            ErrorCode::None
        }
        _ => ErrorCode::RebootstrapRequired,
    }
}

/// A version newer than ours: version 0 of the answer, whatever was asked for, with the table, so that the client can
/// choose again. Closing instead breaks new clients.
pub fn unknown_version(mut call: Call) -> Outcome {
    call.version = 0;
    Outcome::Now(call.answer(&table(&call, ErrorCode::UnsupportedVersion)))
}

fn table(call: &Call, error: ErrorCode) -> ApiVersionsResponse {
    let level = call.shared.cluster.now().level;
    let prepares = call.shared.settings.transactions.transaction_two_phase_commit_enable;
    let advertisement = |key: ApiKey| {
        let mut advertisement = key.info().advertisement();
        // The version of two-phase commit is of use only where that is allowed.
        if key == ApiKey::InitProducerId && prepares {
            advertisement.max_version = key.info().max;
        }
        advertisement
    };
    let with_shares = are_kept(&call.shared.cluster);
    let features = || features(with_shares);
    ApiVersionsResponse {
        error_code: error.code(),
        supported_features: features().map(supported).chain(level.map(could_be)).collect(),
        // Only the level ever changes.
        finalized_features_epoch: level.map_or(0, |level| level.now.into()),
        finalized_features: features().map(finalized).chain(level.map(is)).collect(),
        // Requests about share groups in any cluster, as Kafka does it: a client believes what it found here as long as it is
        // connected, and some wait in silence for an API that is missing; a refused request at least gets an error.
        api_keys: SERVED.iter().copied().map(advertisement).collect(),
        ..Default::default()
    }
}

fn supported(feature: &Feature) -> SupportedFeatureKey {
    let (name, min_version, max_version) = *feature;
    SupportedFeatureKey { name: name.into(), min_version, max_version }
}

fn finalized(feature: &Feature) -> FinalizedFeatureKey {
    let (name, _, level) = *feature;
    FinalizedFeatureKey { name: name.into(), max_version_level: level, min_version_level: level }
}

fn could_be(level: Level) -> SupportedFeatureKey {
    supported(&(LEVEL, level.min, level.max))
}

fn is(level: Level) -> FinalizedFeatureKey {
    finalized(&(LEVEL, level.min, level.now))
}
