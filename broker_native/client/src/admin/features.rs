//! Features: the levels that the cluster has, and raising one.
use serde::Deserialize;
use serde_json::{Value, json};

use super::{change, error_name, said, timeout_ms};
use crate::error::Result;
use crate::metadata::cluster::Cluster;
use crate::net::versions;
use pylog_wire::messages::UpdateFeaturesRequest;
use pylog_wire::messages::update_features::FeatureUpdateKey;

/// A feature and the level that it shall have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raise {
    /// Its name.
    pub feature: String,
    /// Not lower than it is.
    pub level: i16,
    /// Nothing is changed.
    pub validate_only: bool,
}

/// Each feature of the cluster: {feature, level, min, max}, the last two as the controller's broker understands it.
///
/// # Errors
/// Those of the connection.
pub fn list(cluster: &mut Cluster) -> Result<Vec<Value>> {
    let answer = cluster.retrying("list features", |cluster| {
        cluster.metadata(Some(&[]), false)?;
        cluster.call_controller(&versions::question())
    })?;
    let level = |name: &str| {
        let found = answer.finalized_features.iter().find(|feature| feature.name == name);
        found.map(|feature| feature.max_version_level)
    };
    let shown = answer.supported_features.iter().map(|feature| {
        json!({
            "feature": feature.name, "level": level(&feature.name),
            "min": feature.min_version, "max": feature.max_version,
        })
    });
    Ok(shown.collect())
}

/// Raises a level: one result, {feature, error, message}.
///
/// # Errors
/// Those of the connection.
pub fn raise(cluster: &mut Cluster, raise: &Raise) -> Result<Vec<Value>> {
    let update = FeatureUpdateKey {
        feature: raise.feature.clone(),
        max_version_level: raise.level,
        ..FeatureUpdateKey::default()
    };
    let request = UpdateFeaturesRequest {
        timeout_ms: timeout_ms(cluster),
        feature_updates: vec![update],
        validate_only: raise.validate_only,
    };
    let answer = change(cluster, "raise a level", &request)?;
    // Before version 2 each feature has an error of its own.
    let own = answer.results.first().filter(|_| answer.error_code == 0);
    let (error, message) = own.map_or((answer.error_code, answer.error_message.as_deref()), |result| {
        (result.error_code, result.error_message.as_deref())
    });
    Ok(vec![json!({"feature": raise.feature, "error": error_name(error), "message": said(error, message)})])
}
