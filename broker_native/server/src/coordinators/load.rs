//! A log into a machine: every entry from the log's start, in the order of the offsets.
use bytes::Bytes;

use pylog_coordinator::{LogEntry, Machine, Record};
use pylog_log::loggers::COORDINATOR;
use pylog_log::warn;
use pylog_record::batches::{BatchView, batches, body};
use pylog_record::compression::{Codec, decompress};
use pylog_record::header::BatchError;
use pylog_record::{control, reader};
use pylog_storage::{PartitionLog, ReadUpTo};

/// Bytes of the log that are in memory at once, unless one batch has more.
const CHUNK_BYTES: usize = /* 1 MiB */ 1 << 20;
/// Most bytes that a compressed batch (copied from another broker) may unpack to.
const BATCH_BYTES_MAX: usize = /* 128 MiB */ 128 << 20;

/// Replays the whole log into `machine`.
///
/// # Errors
/// A sentence when the log cannot be read. An entry that cannot be understood is skipped, with a line in the broker's log.
pub fn load<M: Machine>(machine: &mut M, log: &PartitionLog) -> Result<(), String> {
    let offsets = log.offsets();
    let mut at = offsets.log_start_offset;
    while at < offsets.log_end_offset {
        let slice = log.read(at, CHUNK_BYTES, true, ReadUpTo::LogEnd).map_err(|error| error.to_string())?;
        if slice.len == 0 {
            break;
        }
        let bytes = slice.read().map_err(|error| format!("reading at offset {at}: {error}"))?;
        for view in batches(&bytes) {
            let outcome = view.and_then(|view| replay(machine, &view, at, log));
            if let Err(error) = outcome {
                let partition = log.topic_partition();
                warn!(target: COORDINATOR, %partition, "skipped a batch of {partition} near offset {at}: {error}");
            }
        }
        at = slice.next_offset.max(at + 1);
    }
    Ok(())
}

fn replay<M: Machine>(
    machine: &mut M,
    view: &BatchView<'_>,
    from: i64,
    log: &PartitionLog,
) -> Result<(), BatchError> {
    let header = &view.0;
    let producer = (header.producer_id, header.producer_epoch);
    if header.is_control() {
        if let Some(marker) = control::marker(view)? {
            let entry = LogEntry::Marker { producer_id: producer.0, producer_epoch: producer.1, marker };
            log_skipped(machine.replay(&entry), header.base_offset, log);
        }
        return Ok(());
    }
    let codec = Codec::from_attributes(header.attributes)?;
    let unpacked = decompress(codec, body(view.1), BATCH_BYTES_MAX)?;
    for record in reader::records(&unpacked, header) {
        let record = record?;
        if record.offset < from {
            continue;
        }
        let entry = LogEntry::Record {
            offset: record.offset,
            timestamp_ms: record.timestamp,
            transaction: header.is_transactional().then_some(producer),
            record: Record {
                key: Bytes::copy_from_slice(record.key.unwrap_or_default()),
                value: record.value.map(Bytes::copy_from_slice),
            },
        };
        log_skipped(machine.replay(&entry), record.offset, log);
    }
    Ok(())
}

fn log_skipped(outcome: Result<(), String>, offset: i64, log: &PartitionLog) {
    if let Err(why) = outcome {
        let partition = log.topic_partition();
        warn!(target: COORDINATOR, %partition, "skipped the record at offset {offset} of {partition}: {why}");
    }
}
