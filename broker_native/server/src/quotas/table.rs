//! Which limit counts for a client: Kafka's order of precedence over users and client ids (KIP-55). Pure.
use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// Bytes of Produce requests in a second (KIP-13).
    Produce,
    /// Bytes of records in answers to Fetch and ShareFetch in a second (KIP-13).
    Consume,
    /// Time of threads, in percent of one thread (KIP-124).
    Request,
}

impl Quota {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Produce, Self::Consume, Self::Request];

    /// Kafka's name of the limit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Produce => "producer_byte_rate",
            Self::Consume => "consumer_byte_rate",
            Self::Request => "request_percentage",
        }
    }
}

/// The limits of one entity, as they are stored: parts of the entity (`user`, `client-id`, `ip`) with their names, null for the
/// default of all; limits by Kafka's names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntityQuotas {
    /// Whose limits.
    pub entity: BTreeMap<String, Option<String>>,
    /// The limits.
    pub values: BTreeMap<String, f64>,
}

/// Whose use is added up: the parts are empty where the limit is not of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Share<'a> {
    /// The user's name.
    pub user: &'a str,
    /// The client id.
    pub client_id: &'a str,
}

/// The limits of one user, or of all, by client id.
#[derive(Debug, Default)]
struct ByClient {
    named: HashMap<String, f64>,
    default: Option<f64>,
    /// Whatever the client id.
    any: Option<f64>,
}

impl ByClient {
    fn of_client(&self, client_id: &str) -> Option<f64> {
        self.named.get(client_id).copied().or(self.default)
    }
}

/// The limits of one kind.
#[derive(Debug, Default)]
pub struct QuotaLimits {
    users: HashMap<String, ByClient>,
    default_user: ByClient,
    without_user: ByClient,
}

impl QuotaLimits {
    /// The limits called `quota` in what is stored. Entities with other parts than users and client ids have none.
    pub fn of(quota: Quota, stored: &[EntityQuotas]) -> Self {
        let mut limits = Self::default();
        for EntityQuotas { entity, values } in stored {
            let known = entity.keys().all(|part| part == "user" || part == "client-id");
            if let (Some(limit), true) = (values.get(quota.name()), known) {
                limits.set(entity.get("user"), entity.get("client-id"), *limit);
            }
        }
        limits
    }

    fn set(&mut self, user: Option<&Option<String>>, client_id: Option<&Option<String>>, limit: f64) {
        let by_client = match user {
            Some(Some(name)) => self.users.entry(name.clone()).or_default(),
            Some(None) => &mut self.default_user,
            None => &mut self.without_user,
        };
        match client_id {
            Some(Some(name)) => {
                by_client.named.insert(name.clone(), limit);
            }
            Some(None) => by_client.default = Some(limit),
            None => by_client.any = Some(limit),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        let Self { users, default_user, without_user } = self;
        users.is_empty()
            && [default_user, without_user].iter().all(|by_client| {
                by_client.named.is_empty() && by_client.default.is_none() && by_client.any.is_none()
            })
    }

    /// The limit of a client, and whose use counts for it; `None` when there is no limit.
    pub fn find<'a>(&self, user: &'a str, client_id: &'a str) -> Option<(Share<'a>, f64)> {
        let share = |user, client_id| Share { user, client_id };
        for by_client in self.users.get(user).into_iter().chain([&self.default_user]) {
            if let Some(limit) = by_client.of_client(client_id) {
                return Some((share(user, client_id), limit));
            }
            if let Some(limit) = by_client.any {
                return Some((share(user, ""), limit));
            }
        }
        let limit = self.without_user.of_client(client_id)?;
        Some((share("", client_id), limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(stored: &str) -> QuotaLimits {
        QuotaLimits::of(Quota::Produce, &serde_json::from_str::<Vec<EntityQuotas>>(stored).unwrap())
    }

    fn row(entity: &str, limit: f64) -> String {
        format!(r#"{{"entity": {{{entity}}}, "values": {{"producer_byte_rate": {limit}}}}}"#)
    }

    #[test]
    fn the_most_specific_limit_counts_in_kafkas_order() {
        let rows = [
            (r#""user": "alice", "client-id": "app""#, "alice", "app"),
            (r#""user": "alice", "client-id": null"#, "alice", "app"),
            (r#""user": "alice""#, "alice", ""),
            (r#""user": null, "client-id": "app""#, "alice", "app"),
            (r#""user": null, "client-id": null"#, "alice", "app"),
            (r#""user": null"#, "alice", ""),
            (r#""client-id": "app""#, "", "app"),
            (r#""client-id": null"#, "", "app"),
        ];
        for first in 0..rows.len() {
            let stored: Vec<String> =
                (first..rows.len()).map(|number| row(rows[number].0, number as f64)).collect();
            let limits = limits(&format!("[{}]", stored.join(",")));
            let share = Share { user: rows[first].1, client_id: rows[first].2 };
            assert_eq!(limits.find("alice", "app").unwrap(), (share, first as f64));
        }
    }

    #[test]
    fn a_client_that_no_limit_names_has_none() {
        let stored = format!("[{},{}]", row(r#""user": "bob""#, 1.0), row(r#""client-id": "other""#, 2.0));
        let limits = limits(&stored);
        assert!(!limits.is_empty());
        assert_eq!(limits.find("alice", "app"), None);
        assert!(QuotaLimits::of(Quota::Consume, &[]).is_empty());
    }

    #[test]
    fn limits_of_addresses_and_of_other_kinds_are_not_taken_for_these() {
        let stored = r#"[{"entity": {"ip": "10.0.0.1"}, "values": {"producer_byte_rate": 1, "connection_creation_rate": 5}},
                         {"entity": {"user": "alice"}, "values": {"consumer_byte_rate": 7}}]"#;
        assert!(limits(stored).is_empty());
    }
}
