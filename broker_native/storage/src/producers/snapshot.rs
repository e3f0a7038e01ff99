//! Producer state across restarts: `.snapshot` files in Kafka's format, named by the offset they stand for:
//! ```text
//! version i16 = 1 | crc32c u32 of what follows | entries i32 |
//! entry: producer_id i64 | epoch i16 | last_sequence i32 | last_offset i64 | offset_delta i32 | timestamp i64 |
//!        coordinator_epoch i32 | current_txn_first_offset i64
//! ```
//! Kafka keeps the last batch of a producer there. This log writes one entry for each batch it remembers, oldest first:
//! Kafka takes the last of them, this log all, so that a retry is known after a restart, too. The timestamp of the last
//! entry is that of the producer, whose last word may have been a marker.
use super::{Batch, Producer, Producers};

const SNAPSHOT_VERSION: i16 = 1;
const SNAPSHOT_HEADER_BYTES: usize = 10;
const SNAPSHOT_CRC_START: usize = 6;
const SNAPSHOT_ENTRY_BYTES: usize = 46;

impl Producers {
    /// The bytes of a snapshot file.
    pub fn to_snapshot(&self) -> Vec<u8> {
        let mut producers: Vec<_> = self.known.iter().collect();
        producers.sort_unstable_by_key(|(id, _)| **id);
        let nothing = Batch { last_sequence: -1, offset_delta: 0, last_offset: -1, timestamp: -1 };
        let mut body = Vec::new();
        let mut entries = 0_i32;
        for (id, producer) in producers {
            let placeholder = (producer.count == 0).then_some(&nothing);
            for (place, batch) in producer.known().chain(placeholder).enumerate() {
                let is_last = place + 1 >= producer.count;
                let timestamp = if is_last { producer.last_timestamp } else { batch.timestamp };
                body.extend_from_slice(&id.to_be_bytes());
                body.extend_from_slice(&producer.epoch.to_be_bytes());
                body.extend_from_slice(&batch.last_sequence.to_be_bytes());
                body.extend_from_slice(&batch.last_offset.to_be_bytes());
                body.extend_from_slice(&batch.offset_delta.to_be_bytes());
                body.extend_from_slice(&timestamp.to_be_bytes());
                body.extend_from_slice(&producer.coordinator_epoch.to_be_bytes());
                body.extend_from_slice(&producer.txn_first_offset.to_be_bytes());
                entries += 1;
            }
        }
        let mut bytes = Vec::with_capacity(SNAPSHOT_HEADER_BYTES + body.len());
        bytes.extend_from_slice(&SNAPSHOT_VERSION.to_be_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&entries.to_be_bytes()), &body);
        bytes.extend_from_slice(&crc.to_be_bytes());
        bytes.extend_from_slice(&entries.to_be_bytes());
        bytes.extend_from_slice(&body);
        bytes
    }

    /// The producers of a snapshot file, seen `now_ms`; `None` when it is damaged.
    pub fn from_snapshot(bytes: &[u8], now_ms: i64) -> Option<Self> {
        let version = i16::from_be_bytes(*bytes.first_chunk()?);
        let crc = u32::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
        let covered = bytes.get(SNAPSHOT_CRC_START..)?;
        let entries = i32::from_be_bytes(*covered.first_chunk()?);
        let body = bytes.get(SNAPSHOT_HEADER_BYTES..)?;
        let fits = usize::try_from(entries).ok()?.checked_mul(SNAPSHOT_ENTRY_BYTES) == Some(body.len());
        if version != SNAPSHOT_VERSION || crc32c::crc32c(covered) != crc || !fits {
            return None;
        }
        let mut producers = Self::default();
        for entry in body.chunks_exact(SNAPSHOT_ENTRY_BYTES) {
            producers.restore(entry, now_ms)?;
        }
        let open = producers.known.values().map(|producer| producer.txn_first_offset);
        producers.open = open.filter(|first| *first >= 0).collect();
        Some(producers)
    }

    fn restore(&mut self, entry: &[u8], now_ms: i64) -> Option<()> {
        let long = |at: usize| Some(i64::from_be_bytes(*entry.get(at..)?.first_chunk()?));
        let int = |at: usize| Some(i32::from_be_bytes(*entry.get(at..)?.first_chunk()?));
        let epoch = i16::from_be_bytes(*entry.get(8..)?.first_chunk()?);
        let producer = self.known.entry(long(0)?).or_insert_with(|| Producer::new(epoch, now_ms));
        producer.begin_epoch(epoch);
        producer.coordinator_epoch = int(34)?;
        producer.txn_first_offset = long(38)?.max(super::NO_OFFSET);
        producer.last_timestamp = long(26)?;
        let batch = Batch {
            last_sequence: int(10)?,
            last_offset: long(14)?,
            offset_delta: int(22)?,
            timestamp: long(26)?,
        };
        if batch.last_offset >= 0 {
            producer.remember(batch);
        }
        Some(())
    }
}
