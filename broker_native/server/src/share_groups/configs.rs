//! The groups' own settings, as Python hands them over: what a group does not set, the broker does.
use std::collections::HashMap;

use parking_lot::RwLock;
use serde_json::{Map, Value};

use pylog_coordinator::group::share::Membership;
use pylog_coordinator::share::GroupSettings;
use pylog_settings::{Refused, groups, share};

/// What a group set, under Kafka's names.
pub type OwnConfigs = Map<String, Value>;

/// All of them.
#[derive(Debug)]
pub struct GroupConfigs {
    broker: share::GroupSettings,
    groups: RwLock<HashMap<String, share::GroupSettings>>,
}

impl GroupConfigs {
    /// None.
    pub fn new(shares: &share::Settings, groups: &groups::Settings) -> Self {
        Self { broker: share::GroupSettings::of_broker(shares, groups), groups: RwLock::default() }
    }

    /// Takes the place of all before.
    ///
    /// # Errors
    /// A name is unknown or a value does not fit; nothing is changed then.
    pub fn apply(&self, own: HashMap<String, OwnConfigs>) -> Result<(), Refused> {
        let read = own.into_iter().map(|(group, own)| Ok((group, self.broker.read_over(own)?)));
        *self.groups.write() = read.collect::<Result<_, Refused>>()?;
        Ok(())
    }

    /// The groups that have some.
    pub fn groups(&self) -> Vec<String> {
        self.groups.read().keys().cloned().collect()
    }

    /// Those of a group's members.
    pub fn membership_of(&self, group_id: &str) -> Membership {
        self.groups.read().get(group_id).unwrap_or(&self.broker).into()
    }

    /// Those of a group's records.
    pub fn of(&self, group_id: &str) -> GroupSettings {
        self.groups.read().get(group_id).unwrap_or(&self.broker).into()
    }
}

#[cfg(test)]
mod tests {
    use pylog_coordinator::share::{IsolationLevel, OffsetReset};

    use super::*;

    #[test]
    fn a_group_has_what_it_set_and_else_what_the_broker_has() {
        let configs = GroupConfigs::new(&share::Settings::default(), &groups::Settings::default());
        let json = r#"{"g": {"share.auto.offset.reset": {"by_duration_ms": 7}, "share.isolation.level": "read_committed"},
            "h": {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": 15000, "share.session.timeout.ms": 50000}}"#;
        configs.apply(serde_json::from_str(json).unwrap()).unwrap();
        let broker = GroupSettings::from(&share::Settings::default());
        let (reset, isolation) = (OffsetReset::ByDuration(7), IsolationLevel::ReadCommitted);
        assert_eq!(configs.of("g"), GroupSettings { reset, isolation, ..broker });
        let (reset, record_lock_ms) = (OffsetReset::Earliest, 15_000);
        assert_eq!(configs.of("h"), GroupSettings { reset, record_lock_ms, ..broker });
        assert_eq!(configs.of("other"), broker);
        let membership = configs.membership_of("other");
        assert_eq!(membership, Membership { session_timeout_ms: 45_000, heartbeat_interval_ms: 5_000 });
        assert_eq!(configs.membership_of("h"), Membership { session_timeout_ms: 50_000, ..membership });
        let mut groups = configs.groups();
        groups.sort_unstable();
        assert_eq!(groups, ["g", "h"]);
    }

    #[test]
    fn a_name_or_value_that_does_not_fit_is_refused_and_changes_nothing() {
        let configs = GroupConfigs::new(&share::Settings::default(), &groups::Settings::default());
        configs
            .apply(serde_json::from_str(r#"{"g": {"share.session.timeout.ms": 50000}}"#).unwrap())
            .unwrap();
        for (own, sentence) in [
            (r#"{"share_session_timeout_ms": 1}"#, "there is no setting share_session_timeout_ms here"),
            (r#"{"share.session.timeout.ms": "1"}"#, "share.session.timeout.ms must be a whole number"),
            (r#"{"share.auto.offset.reset": {"by_duration": 1}}"#, "share.auto.offset.reset must be"),
        ] {
            let own = HashMap::from([("h".to_owned(), serde_json::from_str(own).unwrap())]);
            let refused = configs.apply(own).unwrap_err().to_string();
            assert!(refused.starts_with(sentence), "{refused}");
        }
        assert_eq!(configs.groups(), ["g"]);
    }
}
