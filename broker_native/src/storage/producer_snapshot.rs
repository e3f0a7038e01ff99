//! `<offset>.snapshot`: the producers of a partition as they were at that offset, in Kafka's own format.
//!
//! ```text
//! version i16 = 1 | crc u32 | count i32 | count x entry
//! entry: producer_id i64 | epoch i16 | last_sequence i32 | last_offset i64 | offset_delta i32 | timestamp i64
//!        | coordinator_epoch i32 | current_txn_first_offset i64
//! ```
//! All big-endian; the CRC-32C covers what follows it (Kafka's ProducerSnapshot.json and `ProducerStateManager`).
//! Only the last batch of each producer is kept, as in Kafka: after a restart from a snapshot, an older batch that is
//! sent again is refused as out of order, never written twice. A snapshot that does not decode is worth nothing, and
//! recovery reads the log instead.
use std::collections::VecDeque;

use super::producer_state::{ProducedBatch, ProducerEntry, ProducerStates};

/// The only version there is.
const VERSION: i16 = 1;
const HEADER_LEN: usize = 2 + 4 + 4;
const ENTRY_LEN: usize = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8;
/// In the field of the coordinator's epoch, and in that of the open transaction: there is none.
const NONE: i64 = -1;

/// The file's bytes.
pub fn encode(states: &ProducerStates) -> Vec<u8> {
    let mut body = Vec::with_capacity(4 + states.len() * ENTRY_LEN);
    let mut count = 0i32;
    body.extend_from_slice(&count.to_be_bytes());
    for (producer_id, entry) in states.iter() {
        let Some(last) = entry.batches.back() else { continue };
        body.extend_from_slice(&producer_id.to_be_bytes());
        body.extend_from_slice(&entry.epoch.to_be_bytes());
        body.extend_from_slice(&last.last_sequence.to_be_bytes());
        body.extend_from_slice(&last.last_offset.to_be_bytes());
        body.extend_from_slice(&last.offset_delta.to_be_bytes());
        body.extend_from_slice(&last.timestamp.to_be_bytes());
        body.extend_from_slice(&(NONE as i32).to_be_bytes());
        body.extend_from_slice(&NONE.to_be_bytes());
        count += 1;
    }
    if let Some(field) = body.first_chunk_mut::<4>() {
        *field = count.to_be_bytes();
    }
    let mut file = Vec::with_capacity(HEADER_LEN + body.len());
    file.extend_from_slice(&VERSION.to_be_bytes());
    file.extend_from_slice(&crc32c::crc32c(&body).to_be_bytes());
    file.extend_from_slice(&body);
    file
}

/// The producers in a file's bytes; `None` when they are cut, damaged or of another version.
pub fn decode(bytes: &[u8]) -> Option<ProducerStates> {
    let (version, rest) = bytes.split_first_chunk::<2>()?;
    let (crc, body) = rest.split_first_chunk::<4>()?;
    if i16::from_be_bytes(*version) != VERSION || crc32c::crc32c(body) != u32::from_be_bytes(*crc) {
        return None;
    }
    let (count, entries) = body.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
    if entries.len() != count.checked_mul(ENTRY_LEN)? {
        return None;
    }
    let mut states = ProducerStates::new();
    for bytes in entries.chunks_exact(ENTRY_LEN) {
        let (producer_id, entry) = decode_entry(bytes)?;
        states.restore(producer_id, entry);
    }
    Some(states)
}

fn decode_entry(bytes: &[u8]) -> Option<(i64, ProducerEntry)> {
    let (producer_id, rest) = bytes.split_first_chunk::<8>()?;
    let (epoch, rest) = rest.split_first_chunk::<2>()?;
    let (last_sequence, rest) = rest.split_first_chunk::<4>()?;
    let (last_offset, rest) = rest.split_first_chunk::<8>()?;
    let (offset_delta, rest) = rest.split_first_chunk::<4>()?;
    let (timestamp, _) = rest.split_first_chunk::<8>()?;
    let batch = ProducedBatch {
        last_sequence: i32::from_be_bytes(*last_sequence),
        last_offset: i64::from_be_bytes(*last_offset),
        offset_delta: i32::from_be_bytes(*offset_delta),
        timestamp: i64::from_be_bytes(*timestamp),
    };
    let entry = ProducerEntry {
        epoch: i16::from_be_bytes(*epoch),
        // Kafka writes producers that only ended a transaction with sequence -1: nothing to compare with.
        batches: if batch.last_sequence < 0 { VecDeque::new() } else { VecDeque::from([batch]) },
        last_timestamp: batch.timestamp,
    };
    Some((i64::from_be_bytes(*producer_id), entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> ProducerStates {
        let mut states = ProducerStates::new();
        for id in 0..3 {
            let batch =
                ProducedBatch { last_sequence: 9, last_offset: 100 + id, offset_delta: 4, timestamp: 77 };
            let entry = ProducerEntry { epoch: 2, batches: VecDeque::from([batch]), last_timestamp: 77 };
            states.restore(id, entry);
        }
        states
    }

    #[test]
    fn what_is_written_is_read_back() {
        assert_eq!(decode(&encode(&sample())), Some(sample()));
        assert_eq!(decode(&encode(&ProducerStates::new())), Some(ProducerStates::new()));
    }

    #[test]
    fn the_bytes_are_those_of_kafka() {
        let mut states = ProducerStates::new();
        let batch = ProducedBatch { last_sequence: 1, last_offset: 2, offset_delta: 1, timestamp: 3 };
        states.restore(5, ProducerEntry { epoch: 4, batches: VecDeque::from([batch]), last_timestamp: 3 });
        let bytes = encode(&states);
        assert_eq!(bytes.len(), HEADER_LEN + ENTRY_LEN);
        assert_eq!(bytes[..2], [0, 1]);
        assert_eq!(bytes[6..10], 1i32.to_be_bytes());
        assert_eq!(bytes[10..20], [0, 0, 0, 0, 0, 0, 0, 5, 0, 4]);
        assert_eq!(bytes[44..], [255; 12]);
    }

    #[test]
    fn any_flipped_byte_and_any_cut_is_noticed() {
        let bytes = encode(&sample());
        for at in 0..bytes.len() {
            assert_eq!(decode(&bytes[..at]), None, "cut at {at}");
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x40;
            assert_eq!(decode(&flipped), None, "flipped at {at}");
        }
    }
}
