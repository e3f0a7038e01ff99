//! Requests about groups, transactions, replicas and rights by name, with their arguments as JSON: what Python calls.
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    acls, brokers, features, group_offsets, groups, quotas, replicas, scram_users, share_groups, transactions,
};
use crate::error::{ClientError, Result};
use crate::metadata::cluster::Cluster;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListGroups {
    states: Vec<String>,
    types: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    names: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupOffsets {
    group: String,
    stable: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AlterGroupOffsets {
    group: String,
    offsets: Vec<group_offsets::CommittedOffset>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    group: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AlterShareGroupOffsets {
    group: String,
    offsets: Vec<share_groups::StartOffset>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteGroupOffsets {
    group: String,
    partitions: Vec<(String, i32)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Partitions {
    partitions: Vec<(String, i32)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Broker {
    broker: i32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Moves {
    moves: Vec<replicas::ReplicaMove>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Acls {
    acls: Vec<acls::Acl>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AclFilter {
    filter: acls::Filter,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AclFilters {
    filters: Vec<acls::Filter>,
}

/// Carries out the request called `name`, with the fields that `Admin` of `pylog_spark/client` gives it.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown request or arguments that do not fit it; those of the request.
pub fn call(cluster: &mut Cluster, name: &str, arguments: &str) -> Result<Vec<Value>> {
    match name {
        "list_groups" => {
            let ListGroups { states, types } = read(arguments)?;
            groups::list(cluster, &states, &types)
        }
        "describe_groups" => groups::describe(cluster, &read::<Names>(arguments)?.names),
        "delete_groups" => groups::delete(cluster, &read::<Names>(arguments)?.names),
        "group_offsets" => {
            let GroupOffsets { group, stable } = read(arguments)?;
            group_offsets::list(cluster, &group, stable)
        }
        "alter_group_offsets" => {
            let AlterGroupOffsets { group, offsets } = read(arguments)?;
            group_offsets::alter(cluster, &group, &offsets)
        }
        "delete_group_offsets" => {
            let DeleteGroupOffsets { group, partitions } = read(arguments)?;
            group_offsets::delete(cluster, &group, &partitions)
        }
        "share_group_offsets" => share_groups::offsets(cluster, &read::<Group>(arguments)?.group),
        "alter_share_group_offsets" => {
            let AlterShareGroupOffsets { group, offsets } = read(arguments)?;
            share_groups::alter(cluster, &group, &offsets)
        }
        "list_transactions" => transactions::list(cluster, &read(arguments)?),
        "describe_transactions" => transactions::describe(cluster, &read::<Names>(arguments)?.names),
        "describe_producers" => transactions::producers(cluster, &read::<Partitions>(arguments)?.partitions),
        "abort_transaction" => Ok(vec![transactions::abort(cluster, &read(arguments)?)?]),
        "fence_producers" => transactions::fence(cluster, &read::<Names>(arguments)?.names),
        "reassign_partitions" => replicas::reassign(cluster, &read::<Moves>(arguments)?.moves),
        "list_reassignments" => read::<Nothing>(arguments).and_then(|_| replicas::moving(cluster)),
        "features" => read::<Nothing>(arguments).and_then(|_| features::list(cluster)),
        "update_features" => features::raise(cluster, &read(arguments)?),
        "dead_brokers" => read::<Nothing>(arguments).and_then(|_| brokers::dead(cluster)),
        "unregister_broker" => brokers::unregister(cluster, read::<Broker>(arguments)?.broker),
        "elect_leaders" => replicas::elect(cluster, &read(arguments)?),
        "describe_acls" => acls::describe(cluster, &read::<AclFilter>(arguments)?.filter),
        "create_acls" => acls::create(cluster, &read::<Acls>(arguments)?.acls),
        "delete_acls" => acls::delete(cluster, &read::<AclFilters>(arguments)?.filters),
        "describe_user_scram_credentials" => scram_users::describe(cluster, &read::<Names>(arguments)?.names),
        "alter_user_scram_credentials" => scram_users::alter(cluster, &read(arguments)?),
        "describe_client_quotas" => quotas::describe(cluster, &read(arguments)?),
        "alter_client_quotas" => quotas::alter(cluster, &read(arguments)?),
        _ => Err(ClientError::invalid(format!("there is no admin request called {name:?}"))),
    }
}

fn read<T: DeserializeOwned>(arguments: &str) -> Result<T> {
    serde_json::from_str(arguments)
        .map_err(|error| ClientError::invalid(format!("the arguments do not fit the request: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fake::FakeBroker;

    #[test]
    fn an_unknown_request_and_arguments_that_do_not_fit_are_the_callers_mistake() {
        let broker = FakeBroker::start(|_| None);
        let mut cluster = broker.cluster(&[]);
        for (name, arguments) in [("no_such", "{}"), ("delete_groups", "{}"), ("describe_groups", "nonsense")]
        {
            let error = call(&mut cluster, name, arguments).unwrap_err();
            assert_eq!(error.kind, "INVALID_ARGUMENT", "{name}: {}", error.message);
        }
    }
}
