//! All settings in tables: of clients, brokers, topics and groups. Each table is in the order of its names.
use crate::setting::Row;
use crate::{
    archive, client, client_security, cluster, groups, internal_topics, listener, log_defaults, sasl, server,
    share, topic, transactions,
};

/// The settings of a client.
pub fn client() -> Vec<Row> {
    sorted([client::Settings::rows(), client_security::Settings::rows()].concat())
}

/// The settings of a broker.
pub fn broker() -> Vec<Row> {
    let with_topics = topic::LogConfig::rows();
    let rows = with_topics.iter().filter_map(Row::of_broker);
    let declared = [
        server::Settings::rows(),
        listener::Settings::rows(),
        sasl::Settings::rows(),
        sasl::listener::Settings::rows(),
        groups::Settings::rows(),
        share::Settings::rows(),
        transactions::Settings::rows(),
        cluster::rows(),
        archive::rows(),
        log_defaults::rows(),
        internal_topics::rows(),
    ];
    sorted(rows.chain(declared.into_iter().flatten()).collect())
}

/// The settings of a topic. All may be changed while brokers run.
pub fn topic() -> Vec<Row> {
    sorted(topic::LogConfig::rows().into_iter().map(dynamic).collect())
}

/// The settings of a group; only share groups have some. All may be changed while brokers run.
pub fn group() -> Vec<Row> {
    sorted(share::GroupSettings::rows().into_iter().map(dynamic).collect())
}

fn dynamic(row: Row) -> Row {
    Row { setting: row.setting.dynamic(), ..row }
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| row.setting.name);
    rows
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::Refused;
    use crate::topic::{CleanupPolicy, LogConfig};

    fn all() -> [Vec<Row>; 4] {
        [client(), broker(), topic(), group()]
    }

    /// What is handed over: each row that is read into a field, with its default.
    fn read_into_fields(rows: &[Row]) -> Map<String, Value> {
        let read = rows.iter().filter(|row| row.setting.field.is_some());
        read.map(|row| (row.setting.name.to_owned(), row.default.clone())).collect()
    }

    fn log_config() -> Map<String, Value> {
        let mut values = read_into_fields(&topic());
        values.insert("compaction_roll_bytes".into(), json!(i64::MAX));
        values
    }

    #[test]
    fn a_name_stands_once_in_a_table_and_in_order() {
        for rows in all() {
            let mut names: Vec<_> = rows.iter().map(|row| row.setting.name).collect();
            names.dedup();
            assert_eq!(names.len(), rows.len());
            assert!(names.is_sorted());
        }
        let rows = broker();
        let names = rows.iter().map(|row| row.setting.name);
        let aliases = rows.iter().flat_map(|row| row.setting.aliases.iter().copied());
        let all: Vec<_> = names.chain(aliases).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    #[test]
    fn every_default_is_valid_and_every_setting_has_a_sentence() {
        for row in all().concat() {
            assert!(row.doc.ends_with('.') && !row.doc.contains("  "), "{}: {:?}", row.setting.name, row.doc);
            let is_valid = row.default.is_null() || row.default == "" || row.setting.accepts(&row.default);
            assert!(is_valid, "{} = {}", row.setting.name, row.default);
        }
    }

    #[test]
    fn what_a_topic_or_group_falls_back_to_is_a_setting_of_brokers_with_the_same_default() {
        let brokers = broker();
        for row in topic().into_iter().chain(group()) {
            let fallbacks = row.synonyms().into_iter().map(|synonym| {
                let found = brokers.iter().find(|row| row.setting.name == synonym.name);
                (found.unwrap_or_else(|| panic!("{} is not declared", synonym.name)), synonym.factor)
            });
            let mut given = Vec::new();
            for (fallback, factor) in fallbacks {
                assert!(fallback.setting.kind == row.setting.kind || factor > 1, "{}", row.setting.name);
                match (fallback.default.as_i64(), factor) {
                    (Some(number), 2..) => given.push(json!(number * factor)),
                    _ if fallback.default.is_null() => {}
                    _ => given.push(fallback.default.clone()),
                }
            }
            assert!(
                given.first().is_none_or(|given| *given == row.default),
                "{}: {given:?}",
                row.setting.name
            );
        }
    }

    #[test]
    fn the_rows_with_a_field_are_what_the_native_half_reads() {
        assert_eq!(LogConfig::read(log_config()), Ok(LogConfig::default()));
        let (of_listeners, of_brokers): (Vec<_>, Vec<_>) =
            broker().into_iter().partition(|row| row.setting.per_listener);
        assert_eq!(
            listener::Settings::read(read_into_fields(&of_listeners)),
            Ok(listener::Settings::default())
        );
        let mut values = read_into_fields(&of_brokers);
        for (field, value) in [
            ("cluster_id", json!("")),
            ("clustered", json!(false)),
            ("inter_broker", json!("PLAINTEXT")),
            ("inter_broker_client", json!({})),
        ] {
            values.insert(field.into(), value);
        }
        assert_eq!(server::Settings::read(values), Ok(server::Settings::default()));
        let values = read_into_fields(&group());
        assert_eq!(share::GroupSettings::read(values), Ok(share::GroupSettings::default()));
    }

    #[test]
    fn a_value_that_is_missing_unknown_or_of_another_type_is_refused_by_name() {
        for name in log_config().keys() {
            let mut values = log_config();
            values.remove(name);
            let refused = LogConfig::read(values).unwrap_err();
            assert_eq!(refused.to_string(), format!("the setting {name} is missing"));
            let mut values = log_config();
            values.insert(name.clone(), json!({ "another": "type" }));
            let refused = LogConfig::read(values).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("{name} must be ")), "{refused}");
        }
        let mut values = log_config();
        values.insert("retention.mss".into(), json!(1));
        let refused = LogConfig::read(values).unwrap_err();
        assert_eq!(refused, Refused::Unknown("retention.mss".into()));
        assert_eq!(refused.to_string(), "there is no setting retention.mss here");
    }

    #[test]
    fn a_value_outside_of_what_is_valid_is_refused() {
        for (name, value) in [
            ("segment.bytes", json!(13)),
            ("segment.bytes", json!(1_i64 << 31)),
            ("retention.ms", json!(-2)),
            ("retention.ms", json!(1.5)),
            ("retention.ms", Value::Null),
            ("min.cleanable.dirty.ratio", json!(1.01)),
            ("durability", json!("fsync")),
            ("cleanup.policy", json!("delete,compacted")),
            ("cleanup.policy", json!("")),
            ("preallocate", json!("true")),
        ] {
            let given = Map::from_iter([(name.to_owned(), value.clone())]);
            let refused = LogConfig::default().read_over(given).unwrap_err();
            assert!(
                matches!(refused, Refused::Unfit { name: refused, .. } if refused == name),
                "{name} = {value}"
            );
        }
    }

    #[test]
    fn what_is_given_is_read_over_what_stands() {
        let given = Map::from_iter([("cleanup.policy".to_owned(), json!("compact,delete"))]);
        let cleanup_policy = CleanupPolicy { delete: true, compact: true };
        let expected = LogConfig { cleanup_policy, ..LogConfig::default() };
        assert_eq!(LogConfig::default().read_over(given), Ok(expected));
    }
}
