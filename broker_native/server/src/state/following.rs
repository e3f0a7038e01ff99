//! Hands what Python applies on to the followers' threads: which partitions this broker copies, and where their leaders are.
use std::collections::HashMap;

use uuid::Uuid;

use super::topics::MetadataImage;
use crate::cluster::spec::{PartitionSpec, TopicSpec};
use crate::cluster::view::{ClusterView, Endpoint};
use crate::settings::Settings;
use pylog_replica::following::exchange::Address;
use pylog_replica::following::{self, Assignment, ReplicaManager};
use pylog_replica::throttle;
use pylog_storage::PartitionLog;

/// A manager that follows nothing yet.
pub fn manager(settings: &Settings) -> ReplicaManager {
    let settings = following::FollowerSettings {
        node_id: settings.node_id,
        fetchers: settings.num_replica_fetchers,
        wait_max_ms: settings.replica_fetch_wait_max_ms,
        partition_max_bytes: settings.replica_fetch_max_bytes,
        response_max_bytes: settings.replica_fetch_response_max_bytes,
        backoff_max_ms: settings.replica_fetch_backoff_ms,
        socket_timeout_ms: settings.replica_socket_timeout_ms,
        client: settings.inter_broker_client.clone(),
    };
    ReplicaManager::new(settings)
}

/// Before `specs` are applied: no thread may write a log that is going to be led here, or to follow somebody else.
pub fn let_go(replicas: &ReplicaManager, node_id: i32, specs: &[TopicSpec]) {
    for topic in specs {
        let followed: HashMap<_, _> = topic
            .partitions
            .iter()
            .filter(|spec| is_followed(spec, node_id))
            .map(|spec| (spec.partition, (spec.leader, spec.leader_epoch)))
            .collect();
        replicas.let_go(&topic.topic_id, |partition| followed.get(&partition).copied());
    }
}

/// After the topics `ids` were applied: follows what is to be followed of them.
pub fn follow(replicas: &ReplicaManager, node_id: i32, image: &MetadataImage, ids: &[Uuid]) {
    let partitions = ids
        .iter()
        .filter_map(|id| image.with_id(id))
        .flat_map(|topic| topic.partitions.iter().map(move |partition| (topic.id, partition)));
    let followed = partitions.filter(|(_, partition)| is_followed(&partition.spec, node_id));
    replicas.follow(followed.filter_map(|(topic_id, partition)| {
        Some(Assignment {
            topic_id,
            partition: partition.spec.partition,
            leader: partition.spec.leader,
            leader_epoch: partition.spec.leader_epoch,
            log: partition.log.as_ref().ok()?.clone(),
            throttled: is_throttled(partition.log.as_ref().ok()?, partition.spec.partition, node_id),
        })
    }));
}

/// Applies a new view of the cluster: which brokers are alive, and the addresses of their `listener`s.
pub fn meet(replicas: &ReplicaManager, node_id: i32, listener: &str, view: &ClusterView) {
    let others = view.brokers.iter().filter(|broker| broker.id != node_id);
    let addresses = others.filter_map(|broker| {
        let Endpoint(host, port) = broker.endpoints.get(listener)?;
        Some((broker.id, Address { host: host.clone(), port: *port }))
    });
    replicas.meet(addresses.collect(), view.broker(node_id).map(|me| me.epoch));
}

/// Whether this broker copies the partition from another.
fn is_followed(spec: &PartitionSpec, node_id: i32) -> bool {
    spec.leader >= 0 && spec.leader != node_id && spec.replicas.contains(&node_id)
}

/// Whether the topic lists this replica among those that are copied at the throttle's rate.
fn is_throttled(log: &PartitionLog, partition: i32, node_id: i32) -> bool {
    throttle::names(&log.config().follower_replication_throttled_replicas, partition, node_id)
}
