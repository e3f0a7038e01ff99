//! UpdateFeatures: the level of the cluster is decided by Python; the levels of the other features never change, so what is
//! asked of them is refused with Kafka's error, or so already.
//!
//! KIP-584. Version 1 may only ask, and says which way a level may go (KIP-778); 2 answers for all features at once
//! (KIP-1022).
use super::api_versions::fixed;
use super::common::decided::{Decision, decided};
use super::common::share_call::are_kept;
use crate::authorization::table::UPDATE_FEATURES_CLUSTER;
use crate::call::{Call, Outcome};
use crate::decide::Kind;
use pylog_wire::ErrorCode;
use pylog_wire::messages::update_features::{FeatureUpdateKey, UpdatableFeatureResult};
use pylog_wire::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};

/// `upgrade_type` of an update that may only raise the level.
const UPGRADE: i8 = 1;
/// Those that may lower it.
const DOWNGRADES: [i8; 2] = [2, 3];

/// Asks for the levels. All is done that is asked, or nothing.
pub fn handle(call: Call, mut request: UpdateFeaturesRequest) -> Outcome {
    if let Err(code) = call.check_cluster(&UPDATE_FEATURES_CLUSTER) {
        return Outcome::Now(call.answer(&error(code, code.sentence())));
    }
    let with_shares = are_kept(&call.shared.cluster);
    if let Some(why) = request.feature_updates.iter().find_map(|update| refusal_reason(update, with_shares)) {
        return Outcome::Now(call.answer(&error(ErrorCode::InvalidUpdateVersion, &why)));
    }
    let level = |update: &FeatureUpdateKey| fixed(&update.feature, with_shares).is_none();
    if !request.feature_updates.is_empty() && !request.feature_updates.iter().any(level) {
        return Outcome::Now(call.answer(&all_so_already(&request)));
    }
    request.feature_updates.retain(level);
    let timeout_ms = request.timeout_ms;
    let decision = Decision { timeout_ms, ..Kind::UpdateFeatures.into() };
    decided(call, decision, request, |_request, code, why| error(code, why))
}

/// Why an update of a feature with a fixed level cannot be made.
fn refusal_reason(update: &FeatureUpdateKey, with_shares: bool) -> Option<String> {
    let (name, wanted) = (&update.feature, update.max_version_level);
    let (min, now) = fixed(name, with_shares)?;
    let downgrade = DOWNGRADES.contains(&update.upgrade_type) || update.allow_downgrade;
    let why = if !downgrade && update.upgrade_type != UPGRADE {
        format!("{} is not a valid upgrade type", update.upgrade_type)
    } else if wanted < min || wanted > now {
        format!("this broker supports {min} to {now}")
    } else if wanted != now {
        format!("it is at {now} and never changes here")
    } else {
        return None;
    };
    Some(format!("Level {wanted} of feature {name} is refused: {why}."))
}

fn all_so_already(request: &UpdateFeaturesRequest) -> UpdateFeaturesResponse {
    let result = |update: &FeatureUpdateKey| UpdatableFeatureResult {
        feature: update.feature.clone(),
        ..Default::default()
    };
    UpdateFeaturesResponse {
        results: request.feature_updates.iter().map(result).collect(),
        ..Default::default()
    }
}

fn error(code: ErrorCode, why: &str) -> UpdateFeaturesResponse {
    UpdateFeaturesResponse { error_code: code.code(), error_message: Some(why.into()), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(feature: &str, max_version_level: i16, upgrade_type: i8) -> FeatureUpdateKey {
        FeatureUpdateKey { feature: feature.into(), max_version_level, upgrade_type, ..Default::default() }
    }

    fn of(feature: &str, max_version_level: i16, upgrade_type: i8) -> Option<String> {
        refusal_reason(&update(feature, max_version_level, upgrade_type), /* with_shares */ true)
    }

    #[test]
    fn a_fixed_level_can_only_be_asked_to_be_what_it_is() {
        assert_eq!(of("transaction.version", 2, UPGRADE), None);
        assert_eq!(of("pylog.version", 5, UPGRADE), None, "the controller decides that");
        assert_eq!(of("share.version", 1, UPGRADE), None, "it is so already");
        assert!(of("share.version", 2, UPGRADE).is_some());
        let in_an_old_cluster =
            refusal_reason(&update("share.version", 2, UPGRADE), /* with_shares */ false);
        assert_eq!(
            in_an_old_cluster, None,
            "a cluster of a lower level has no such feature, which the controller says"
        );
        for (level, kind, why) in [
            (1, UPGRADE, "never changes"),
            (1, 2, "never changes"),
            (3, UPGRADE, "supports 1 to 2"),
            (-1, UPGRADE, "supports 1 to 2"),
            (2, 0, "not a valid upgrade type"),
            (2, 4, "not a valid upgrade type"),
        ] {
            let reason = of("transaction.version", level, kind).unwrap();
            assert!(reason.contains(why), "{level} {kind}: {reason}");
        }
    }
}
