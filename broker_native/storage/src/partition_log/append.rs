//! Appending: check, place, roll when due, write, publish.
use std::sync::Arc;

use super::flush_state::FlushNeed;
use super::mark::Mark;
use super::role::Role;
use super::view::{Advanced, TxnChange};
use super::writing::Writing;
use super::{PartitionLog, Writer};
use crate::config::{Durability, LogConfig, TimestampType};
use crate::error::{Result, StorageError, Want};
use crate::producers::SequenceCheck;
use crate::segment::{Segment, SegmentError, SegmentSettings};
use crate::types::{AppendOptions, Appended};
use pylog_record::control::EndTxn;
use pylog_record::header::BatchHeader;
use pylog_record::layout;

/// Bytes of the larger index entry.
const LARGEST_INDEX_ENTRY_BYTES: i64 = 12;

/// A batch that was checked and may be written.
pub(super) struct CheckedBatch<'a> {
    pub batch: &'a mut [u8],
    pub header: BatchHeader,
    /// What it says when it is a marker.
    pub end: Option<EndTxn>,
    pub leader_epoch: i32,
}

impl PartitionLog {
    /// Sets offset, leader epoch and (when the topic says so) append time of a validated producer batch, and writes
    /// it. A batch that an idempotent producer sent before is answered with its first offsets.
    ///
    /// The record is acknowledged only after [`PartitionLog::wait_durable`] says so.
    ///
    /// # Errors
    /// [`StorageError::DiskFull`], after which appends may be tried again; [`StorageError::Poisoned`] and
    /// [`StorageError::Io`], after which they may not; what is wrong with the batch. After an error nothing of the
    /// batch is in the log.
    pub fn append(&self, batch: &mut [u8], how: AppendOptions) -> Result<Appended> {
        let config = self.config();
        self.refuse_mirror(&config)?;
        let now_ms = how.now_ms.unwrap_or_else(|| self.shared.clock.now_ms());
        let header = self.check(batch, &config, now_ms, how.min_timestamp)?;
        let writer = self.writing();
        self.refuse_unusable(&writer)?;
        let leader_epoch = self.epoch_to_write(&writer, how.leader_epoch)?;
        let claim = writer.verifications.claim(&header, how.verified);
        let checked = writer.producers.check_sequence(&header, how.origin, claim, &self.at)?;
        let SequenceCheck::Duplicate { base_offset, last_offset, timestamp_ms } = checked else {
            let checked = CheckedBatch { batch, header, end: None, leader_epoch };
            return self.put(writer, checked, &config, now_ms);
        };
        drop(writer);
        Ok(Appended {
            base_offset,
            last_offset,
            // As in Kafka, also where it is the producer's time.
            log_append_time_ms: timestamp_ms,
            log_start_offset: self.view.log_start_offset(),
            duplicate: true,
        })
    }

    /// Writes it behind all others.
    pub(super) fn put(
        &self,
        mut writer: Writing<'_>,
        checked: CheckedBatch<'_>,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<Appended> {
        let CheckedBatch { batch, header, end, leader_epoch } = checked;
        let log_append_time_ms = append_time(config, now_ms);
        let header = place(batch, header, writer.next_offset, leader_epoch, log_append_time_ms);
        if self.is_roll_due(&writer.active, 0, &header, config, now_ms) {
            self.roll(&mut writer, config, now_ms)?;
        }
        let (log_start_offset, advanced) =
            self.write_placed(&mut writer, batch, &header, end, config, now_ms)?;
        self.written(writer, advanced, i64::from(header.last_offset_delta) + 1, config);
        Ok(Appended {
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            log_append_time_ms,
            log_start_offset,
            duplicate: false,
        })
    }

    /// Writes a batch that has its offset, and shows it; gives the log's start and what moved.
    pub(super) fn write_placed(
        &self,
        writer: &mut Writer,
        batch: &[u8],
        header: &BatchHeader,
        end: Option<EndTxn>,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<(i64, Advanced)> {
        let is_indexed = self.index_aborted(writer, header, end)?;
        writer.active.append(batch, header).map_err(|error| {
            if is_indexed {
                writer.active.drop_last_aborted();
            }
            self.undo(&writer.active, error)
        })?;
        Ok(self.publish(writer, header, end, config, now_ms))
    }

    /// Lets go of the log after `records` offsets were written, and calls whoever waits for them.
    pub(super) fn written(
        &self,
        mut writer: Writing<'_>,
        advanced: Advanced,
        records: i64,
        config: &LogConfig,
    ) {
        let forgotten = writer.producers.bound(self.shared.config.producer_id_max_count);
        let need = flush_need(&mut writer, records, config);
        drop(writer);
        if let Some(listener) = self.shared.on_crowded.get().filter(|_| forgotten > 0) {
            listener(&self.at, forgotten);
        }
        match advanced {
            Advanced::Nothing => {}
            Advanced::HighWatermark(offset) => self.high_watermark_moved(offset),
            Advanced::End(offset) => self.listeners.appended(offset),
        }
        self.ask_for_flush(need);
    }

    /// What can be checked of a batch without the log.
    fn check(
        &self,
        batch: &[u8],
        config: &LogConfig,
        now_ms: i64,
        min_timestamp: Option<i64>,
    ) -> Result<BatchHeader> {
        let invalid = |reason: String| StorageError::InvalidBatch { at: self.at.clone(), reason };
        let header = BatchHeader::parse(batch)
            .map_err(|bad| invalid(bad.to_string()))?
            .ok_or_else(|| invalid("shorter than a header".into()))?;
        if header.size() != batch.len() {
            return Err(invalid(format!("{} bytes hold a batch of {}", batch.len(), header.size())));
        }
        if header.last_offset_delta < 0 {
            return Err(invalid("its last offset delta is negative".into()));
        }
        if header.is_control() {
            return Err(invalid("only transaction coordinators write control batches".into()));
        }
        let (at, size) = (|| self.at.clone(), batch.len());
        let limit = usize::try_from(config.max_message_bytes).unwrap_or(usize::MAX);
        if size > limit {
            return Err(StorageError::RecordTooLarge { at: at(), size, limit });
        }
        let limit = usize::try_from(config.segment_bytes).unwrap_or(usize::MAX);
        if size > limit {
            return Err(StorageError::LargerThanSegment { at: at(), size, limit });
        }
        if config.message_timestamp_type == TimestampType::CreateTime
            && header.max_timestamp != layout::NO_TIMESTAMP
        {
            let earliest_ms = now_ms.saturating_sub(config.message_timestamp_before_max_ms);
            let latest_ms = now_ms.saturating_add(config.message_timestamp_after_max_ms);
            for timestamp_ms in [min_timestamp.unwrap_or(header.base_timestamp), header.max_timestamp] {
                if !(earliest_ms..=latest_ms).contains(&timestamp_ms) {
                    return Err(StorageError::InvalidTimestamp {
                        at: at(),
                        timestamp_ms,
                        earliest_ms,
                        latest_ms,
                    });
                }
            }
        }
        Ok(header)
    }

    pub(super) fn refuse_unusable(&self, writer: &Writer) -> Result<()> {
        if let Some(error) = self.poisoned() {
            return Err(error);
        }
        if writer.closed { Err(StorageError::Closed { at: self.at.clone() }) } else { Ok(()) }
    }

    /// The epoch of a batch; `known` is the leader epoch that the handler has seen. Its checks are void when this broker has not led all
    /// the time since.
    pub(super) fn epoch_to_write(&self, writer: &Writer, known: i32) -> Result<i32> {
        match writer.role {
            Role::Alone => Ok(known),
            Role::Leader if known >= writer.led_since => Ok(known.max(writer.leader_epoch)),
            Role::Leader | Role::Follower => Err(self.not_leader()),
        }
    }

    /// Whether `header`'s batch belongs into a new segment. `pending`: bytes that are to be written before it.
    pub(super) fn is_roll_due(
        &self,
        active: &Segment,
        pending: u64,
        header: &BatchHeader,
        config: &LogConfig,
        now_ms: i64,
    ) -> bool {
        let size = active.size() + pending;
        let fits_offsets = header.last_offset() - active.base_offset <= i64::from(i32::MAX);
        if size == 0 {
            return !fits_offsets;
        }
        let segment_bytes = config.segment_bytes.clamp(1, i64::from(i32::MAX)) as u64;
        let index_limit = (config.segment_index_bytes - LARGEST_INDEX_ENTRY_BYTES).max(0) as u64;
        let moment = if header.max_timestamp >= 0 { header.max_timestamp } else { now_ms };
        size + header.size() as u64 > segment_bytes
            || active.index_bytes() > index_limit
            || !fits_offsets
            || self.is_old(active, config, moment)
    }

    /// Whether the segment's first batch is so old at `moment_ms` that a new segment is due.
    pub(super) fn is_old(&self, active: &Segment, config: &LogConfig, moment_ms: i64) -> bool {
        // Different for each segment of each partition, the same after a restart.
        let spread = crc32c::crc32c(self.at.topic.as_bytes())
            .wrapping_add(self.at.partition as u32)
            .wrapping_add(active.base_offset as u32)
            .wrapping_mul(0x9E37_79B1);
        let jitter_ms = i64::from(spread) % config.segment_jitter_ms.clamp(0, i64::from(u32::MAX)).max(1);
        moment_ms.saturating_sub(active.first_timestamp()) > config.max_segment_ms().saturating_sub(jitter_ms)
    }

    /// Ends the active segment and begins one at the next offset. After an error the log goes on as it was.
    pub(super) fn roll(&self, writer: &mut Writer, config: &LogConfig, now_ms: i64) -> Result<()> {
        let snapshot = self.write_snapshot(&writer.producers, writer.next_offset);
        snapshot.map_err(|error| self.poison_by(error))?;
        let rolled = writer.active.retire(config.preallocate).and_then(|()| {
            let (pool, settings) = (&self.shared.pool, SegmentSettings::of(config, self.was_compacted()));
            let segment = Segment::create(pool, &self.dir, writer.next_offset, settings, now_ms)?;
            if config.preallocate {
                segment.reserve(config.segment_bytes.max(0) as u64)?;
            }
            Ok(segment)
        });
        let segment = Arc::new(rolled.map_err(|error| self.poison_unless_it_passes(error))?);
        self.flush.name_made();
        self.view.add_segment(segment.clone(), writer.next_offset);
        writer.active = segment;
        Ok(())
    }

    /// Takes the remains of a failed write away; when that fails, too, or the failure was not one that passes, the
    /// log is poisoned.
    pub(super) fn undo(&self, active: &Segment, error: SegmentError) -> StorageError {
        if error.want() == Some(Want::Space) && active.undo_append().is_err() {
            self.poison(error.of(&self.at).to_string());
            return self.poisoned_now();
        }
        self.poison_unless_it_passes(error)
    }

    /// Shows the batch to readers; gives the log's start and what moved.
    fn publish(
        &self,
        writer: &mut Writer,
        header: &BatchHeader,
        end: Option<EndTxn>,
        config: &LogConfig,
        now_ms: i64,
    ) -> (i64, Advanced) {
        self.note_epoch(writer, header.partition_leader_epoch, header.base_offset);
        writer.next_offset = header.last_offset() + 1;
        let ended = writer.producers.note(header, end, now_ms);
        self.flush.written(writer.active.base_offset, now_ms);
        let transactions = header.is_transactional().then(|| {
            writer.verifications.end(header.producer_id);
            TxnChange { first_open_offset: writer.producers.first_open_offset(), ended }
        });
        let counts = config.durability == Durability::PageCache;
        self.view.show_batch(end_mark(writer), counts, transactions)
    }
}

/// Where the log ends.
pub(super) fn end_mark(writer: &Writer) -> Mark {
    let Writer { active, next_offset, .. } = writer;
    Mark { offset: *next_offset, segment: active.base_offset, position: active.size() }
}

/// The append time where the topic wants it, -1 where the producers' timestamps count.
fn append_time(config: &LogConfig, now_ms: i64) -> i64 {
    if config.message_timestamp_type == TimestampType::LogAppendTime { now_ms } else { -1 }
}

/// Counts records towards `flush.messages` and says whether a flush is due.
pub(super) fn flush_need(writer: &mut Writer, records: i64, config: &LogConfig) -> FlushNeed {
    writer.unflushed_records += records;
    let never = config.flush_ms == i64::MAX && config.flush_messages == i64::MAX;
    if writer.unflushed_records >= config.flush_messages {
        writer.unflushed_records = 0;
        FlushNeed::Now
    } else if config.flush_ms < i64::MAX {
        FlushNeed::AfterMs(config.flush_ms)
    } else if never && config.durability == Durability::Flushed {
        FlushNeed::Now
    } else {
        FlushNeed::None
    }
}

/// Writes what a leader sets into a batch, and gives its header as it then is. Offset and epoch stand before the
/// range of the CRC; an append time does not, so the CRC is computed again.
pub(super) fn place(
    batch: &mut [u8],
    header: BatchHeader,
    base_offset: i64,
    leader_epoch: i32,
    append_time_ms: i64,
) -> BatchHeader {
    let mut set = |start: usize, bytes: &[u8]| {
        if let Some(field) = batch.get_mut(start..start + bytes.len()) {
            field.copy_from_slice(bytes);
        }
    };
    set(layout::BASE_OFFSET, &base_offset.to_be_bytes());
    set(layout::PARTITION_LEADER_EPOCH, &leader_epoch.to_be_bytes());
    let mut placed = BatchHeader { base_offset, partition_leader_epoch: leader_epoch, ..header };
    if append_time_ms >= 0 {
        placed.attributes |= layout::ATTR_LOG_APPEND_TIME;
        placed.max_timestamp = append_time_ms;
        set(layout::ATTRIBUTES, &placed.attributes.to_be_bytes());
        set(layout::MAX_TIMESTAMP, &append_time_ms.to_be_bytes());
        placed.crc = crc32c::crc32c(batch.get(layout::ATTRIBUTES..).unwrap_or_default());
        if let Some(field) = batch.get_mut(layout::CRC..layout::ATTRIBUTES) {
            field.copy_from_slice(&placed.crc.to_be_bytes());
        }
    }
    placed
}
