//! Brokers that belong to the cluster without living: seeing them, and forgetting them.
use serde_json::{Value, json};

use super::{change, error_name, refuse, said};
use crate::error::Result;
use crate::metadata::cluster::Cluster;
use pylog_wire::messages::{DescribeClusterRequest, UnregisterBrokerRequest};

/// The brokers that are registered and do not live: {node_id, host, port, rack}. A broker that does not know them (Kafka before 4.1)
/// shows none.
///
/// # Errors
/// Those of the connection.
pub fn dead(cluster: &mut Cluster) -> Result<Vec<Value>> {
    let request = DescribeClusterRequest { include_fenced_brokers: true, ..Default::default() };
    let answer = cluster.retrying("list dead brokers", |cluster| cluster.call_any(&request))?;
    refuse(answer.error_code, "list dead brokers")?;
    let shown =
        answer.brokers.iter().filter(|broker| broker.is_fenced).map(
            |broker| json!({"node_id": broker.broker_id, "host": broker.host, "port": broker.port, "rack": broker.rack}),
        );
    Ok(shown.collect())
}

/// Forgets a broker that is gone for good: one result, {broker, error, message}.
///
/// # Errors
/// Those of the connection.
pub fn unregister(cluster: &mut Cluster, broker_id: i32) -> Result<Vec<Value>> {
    let answer = change(cluster, "unregister a broker", &UnregisterBrokerRequest { broker_id })?;
    let (error, message) = (answer.error_code, answer.error_message.as_deref());
    Ok(vec![json!({"broker": broker_id, "error": error_name(error), "message": said(error, message)})])
}
