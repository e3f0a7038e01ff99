//! The groups' own settings, as Python hands them over: what a group does not set, the broker does.
use std::collections::HashMap;

use parking_lot::RwLock;
use serde::Deserialize;

use pylog_coordinator::group::{self, share::Membership};
use pylog_coordinator::share::{GroupSettings, IsolationLevel, OffsetReset, Settings};

/// What a group set; the names are Kafka's, in snake_case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OwnConfigs {
    share_delivery_count_limit: Option<i16>,
    share_partition_max_record_locks: Option<i64>,
    share_record_lock_duration_ms: Option<i64>,
    share_auto_offset_reset: Option<Reset>,
    share_isolation_level: Option<IsolationLevel>,
    share_renew_acknowledge_enable: Option<bool>,
    share_session_timeout_ms: Option<i32>,
    share_heartbeat_interval_ms: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reset {
    Earliest,
    Latest,
    ByDurationMs(i64),
}

/// All of them.
#[derive(Debug)]
pub struct GroupConfigs {
    broker: GroupSettings,
    membership: Membership,
    own: RwLock<HashMap<String, OwnConfigs>>,
}

impl GroupConfigs {
    /// None.
    pub fn new(shares: &Settings, groups: &group::Settings) -> Self {
        Self { broker: shares.into(), membership: groups.into(), own: RwLock::default() }
    }

    /// Takes the place of all before.
    pub fn apply(&self, own: HashMap<String, OwnConfigs>) {
        *self.own.write() = own;
    }

    /// The groups that have some.
    pub fn groups(&self) -> Vec<String> {
        self.own.read().keys().cloned().collect()
    }

    /// Those of a group's members.
    pub fn membership_of(&self, group_id: &str) -> Membership {
        let (broker, own) = (self.membership, self.own.read());
        let Some(own) = own.get(group_id) else { return broker };
        Membership {
            session_timeout_ms: own.share_session_timeout_ms.unwrap_or(broker.session_timeout_ms),
            heartbeat_interval_ms: own.share_heartbeat_interval_ms.unwrap_or(broker.heartbeat_interval_ms),
        }
    }

    /// Those of a group's records.
    pub fn of(&self, group_id: &str) -> GroupSettings {
        let broker = self.broker;
        let own = self.own.read();
        let Some(own) = own.get(group_id) else { return broker };
        GroupSettings {
            delivery_count_limit: own.share_delivery_count_limit.unwrap_or(broker.delivery_count_limit),
            max_record_locks: own.share_partition_max_record_locks.unwrap_or(broker.max_record_locks),
            record_lock_ms: own.share_record_lock_duration_ms.unwrap_or(broker.record_lock_ms),
            reset: own.share_auto_offset_reset.map_or(broker.reset, |reset| match reset {
                Reset::Earliest => OffsetReset::Earliest,
                Reset::Latest => OffsetReset::Latest,
                Reset::ByDurationMs(ms) => OffsetReset::ByDuration(ms),
            }),
            isolation: own.share_isolation_level.unwrap_or(broker.isolation),
            renews: own.share_renew_acknowledge_enable.unwrap_or(broker.renews),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_what_it_set_and_else_what_the_broker_has() {
        let configs = GroupConfigs::new(&Settings::default(), &group::Settings::default());
        let json = r#"{"g": {"share_auto_offset_reset": {"by_duration_ms": 7}, "share_isolation_level": "read_committed"},
            "h": {"share_auto_offset_reset": "earliest", "share_record_lock_duration_ms": 15000, "share_session_timeout_ms": 50000}}"#;
        configs.apply(serde_json::from_str(json).unwrap());
        let broker = GroupSettings::from(&Settings::default());
        let (reset, isolation) = (OffsetReset::ByDuration(7), IsolationLevel::ReadCommitted);
        assert_eq!(configs.of("g"), GroupSettings { reset, isolation, ..broker });
        let (reset, record_lock_ms) = (OffsetReset::Earliest, 15_000);
        assert_eq!(configs.of("h"), GroupSettings { reset, record_lock_ms, ..broker });
        assert_eq!(configs.of("other"), broker);
        let membership = configs.membership_of("other");
        assert_eq!(membership, Membership::from(&group::Settings::default()));
        assert_eq!(configs.membership_of("h"), Membership { session_timeout_ms: 50_000, ..membership });
        let mut groups = configs.groups();
        groups.sort_unstable();
        assert_eq!(groups, ["g", "h"]);
    }
}
