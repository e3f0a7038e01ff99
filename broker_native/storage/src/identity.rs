//! To whom a directory belongs: `meta.properties`, `partition.metadata`, and the clean-stop marker.
use std::path::Path;

use base64::alphabet;
use base64::engine::general_purpose::NO_PAD;
use base64::engine::{Engine, GeneralPurpose};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::config::ManagerConfig;
use super::disk::Disk;
use super::error::{Result, StorageError, TopicPartition};
use super::files::{SyncWhen, malformed, read_text, replace};
use super::names;

/// Kafka's form of ids: base64 for URLs without padding, 22 characters for 16 bytes. The last 4 bits of the text mean nothing.
const IDS: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// An id as Kafka writes it.
pub fn id_to_text(id: Uuid) -> String {
    IDS.encode(id.as_bytes())
}

/// The id that Kafka would read from `text`.
pub fn id_from_text(text: &str) -> Option<Uuid> {
    Uuid::from_slice(&IDS.decode(text).ok()?).ok()
}

/// Reads `meta.properties` and checks that it fits `config`, or writes it; returns the cluster id.
///
/// # Errors
/// [`StorageError::Mismatch`], [`StorageError::Malformed`], [`StorageError::Io`].
pub(super) fn claim_data_dir(disk: &dyn Disk, dir: &Path, config: &ManagerConfig) -> Result<String> {
    let path = dir.join(names::META_PROPERTIES);
    let Some(text) = read_text(disk, &path)? else {
        let cluster_id = match config.cluster_id.as_str() {
            "" => id_to_text(Uuid::new_v4()),
            given => given.to_owned(),
        };
        let directory_id = id_to_text(Uuid::new_v4());
        let node_id = config.node_id;
        let text = format!(
            "#\n#pylog\ncluster.id={cluster_id}\ndirectory.id={directory_id}\nnode.id={node_id}\nversion=1\n"
        );
        replace(disk, &path, text.as_bytes(), SyncWhen::Now, &TopicPartition::new("data directory", 0))?;
        return Ok(cluster_id);
    };
    let value = |key: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.split_once('=')).find(|(k, _)| k.trim() == key).map(|(_, v)| v.trim())
    };
    // ZooKeeper-era directories say broker.id.
    let node_id = value("node.id").or_else(|| value("broker.id"));
    let (Some(cluster_id), Some(node_id)) = (value("cluster.id"), node_id) else {
        return Err(malformed(&path, "cluster.id or node.id is missing"));
    };
    let mismatch = |reason| StorageError::Mismatch { file: path.clone(), reason };
    if node_id != config.node_id.to_string() {
        return Err(mismatch(format!(
            "it belongs to node {node_id}, this broker is node {}",
            config.node_id
        )));
    }
    if !config.cluster_id.is_empty() && config.cluster_id != cluster_id {
        return Err(mismatch(format!("it belongs to cluster {cluster_id}, not {}", config.cluster_id)));
    }
    Ok(cluster_id.to_owned())
}

/// The topic id of a partition's directory; `None` when the file is missing, or when a loss of power emptied it.
///
/// # Errors
/// [`StorageError::Malformed`], [`StorageError::Io`].
pub(super) fn read_topic_id(disk: &dyn Disk, dir: &Path) -> Result<Option<Uuid>> {
    let path = dir.join(names::PARTITION_METADATA);
    let text = read_text(disk, &path)?.unwrap_or_default();
    // A rename that reached the device before its bytes: the file has its length, in zeros, or none.
    if text.bytes().all(|b| b == 0) {
        return Ok(None);
    }
    let value = |key: &str| text.lines().filter_map(|l| l.split_once(':')).find(|(k, _)| *k == key);
    match (value("version"), value("topic_id").and_then(|(_, id)| id_from_text(id.trim()))) {
        (Some((_, version)), Some(id)) if version.trim() == "0" => Ok(Some(id)),
        _ => Err(malformed(&path, "it must hold `version: 0` and `topic_id: <id>`")),
    }
}

/// Writes a partition's topic id.
///
/// # Errors
/// [`StorageError::DiskFull`], [`StorageError::Io`].
pub(super) fn write_topic_id(
    disk: &dyn Disk,
    dir: &Path,
    id: Uuid,
    when: SyncWhen,
    at: &TopicPartition,
) -> Result<()> {
    let text = format!("version: 0\ntopic_id: {}", id_to_text(id));
    replace(disk, &dir.join(names::PARTITION_METADATA), text.as_bytes(), when, at)
}

/// Puts a new nonce into the data directory, as readable as the segments beside it.
///
/// # Errors
/// [`StorageError::DiskFull`], [`StorageError::Io`].
pub(super) fn leave_nonce(disk: &dyn Disk, dir: &Path) -> Result<Uuid> {
    let nonce = Uuid::new_v4();
    let at = TopicPartition::new("data directory", 0);
    replace(disk, &dir.join(names::LOCAL_READS), id_to_text(nonce).as_bytes(), SyncWhen::Later, &at)?;
    Ok(nonce)
}

/// What the clean-stop marker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CleanStop {
    version: i32,
    #[serde(rename = "brokerEpoch")]
    broker_epoch: i64,
}

/// Whether the last user of the directory stopped cleanly. The marker is gone when this returns, so that it
/// says nothing of what this process does.
///
/// # Errors
/// [`StorageError::Io`].
pub(super) fn take_clean_stop(disk: &dyn Disk, dir: &Path) -> Result<bool> {
    let path = dir.join(names::CLEAN_SHUTDOWN);
    // A marker that cannot be read counts as none: recovery is always right.
    let Some(text) = read_text(disk, &path).unwrap_or(Some(String::new())) else {
        return Ok(false);
    };
    let gone = disk.remove_file(&path).and_then(|()| disk.sync_dir(dir));
    gone.map_err(|e| StorageError::io("remove", &path, &e))?;
    // Kafka before 3.8 leaves an empty file: it looks like one that a loss of power emptied.
    Ok(serde_json::from_str::<CleanStop>(&text).is_ok_and(|marker| marker.version == 0))
}

/// Leaves the clean-stop marker; everything else must be on the device.
///
/// # Errors
/// [`StorageError::Io`].
pub(super) fn leave_clean_stop(disk: &dyn Disk, dir: &Path, broker_epoch: i64) -> Result<()> {
    let text = format!("{{\"version\":0,\"brokerEpoch\":{broker_epoch}}}");
    let at = TopicPartition::new("data directory", 0);
    replace(disk, &dir.join(names::CLEAN_SHUTDOWN), text.as_bytes(), SyncWhen::Now, &at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_kafka_writes_them() {
        // Kafka's Uuid(0, 1), its metadata topic's id, and one of all ones.
        assert_eq!(id_to_text(Uuid::from_u128(1)), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(id_to_text(Uuid::from_u128(u128::MAX)), "_____________________w");
    }

    #[test]
    fn ids_survive_a_round_trip() {
        for id in [Uuid::nil(), Uuid::from_u128(u128::MAX), Uuid::new_v4(), Uuid::new_v4()] {
            assert_eq!(id_from_text(&id_to_text(id)), Some(id));
        }
        assert_eq!(id_from_text("short"), None);
        assert_eq!(id_from_text("AAAAAAAAAAAAAAAAAAAA=="), None);
    }
}
