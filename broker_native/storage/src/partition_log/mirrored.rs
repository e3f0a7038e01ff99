//! What a mirror writes: batches of another cluster, byte by byte but for the leader epoch, at the offsets that they have there.
//!
//! The log's end is the mirror's position: batches before it are passed over, so that all may be sent again. Where the
//! source has no record, the log has none; where the mirror might have left some out, nothing is written. Markers and
//! aborted transactions come with the batches. Nobody else writes to such a log ([`PartitionLog::refuse_mirror`]): a record between
//! them would take the offset of another.
//!
//! Not checked, as with a follower's batches: what the records are. Their checksums are.
use super::PartitionLog;
use super::append::place;
use super::follow::Fetched;
use super::view::Advanced;
use super::writing::Writing;
use crate::config::LogConfig;
use crate::error::{Result, StorageError};
use crate::types::{AppendOptions, TxnMarker};
use pylog_record::control::{EndTxn, Marker, mirror_end_batch};
use pylog_record::header::BatchHeader;

/// As of a coordinator that is older than all: the epochs of another cluster say nothing here.
const NO_COORDINATOR_EPOCH: i32 = -1;

/// Batches with what their markers say.
type Batches = Vec<(BatchHeader, Option<EndTxn>)>;

/// What an append did that may have stopped half-way.
struct Progress {
    advanced: Advanced,
    outcome: Result<()>,
}

impl PartitionLog {
    /// Writes batches of the cluster `source`, which are all that it has from offset `from` on. Those that the log has are passed over.
    /// Gives where the log ends then.
    ///
    /// # Errors
    /// [`StorageError::OffsetOutOfRange`] when the log ends before `from`; [`StorageError::OtherSource`];
    /// [`StorageError::InvalidBatch`] for damaged ones, of which none is written, and for one that the log has half of; those of
    /// [`PartitionLog::append`] for the disk. What came before stays written.
    pub fn append_mirrored(
        &self,
        source: &str,
        batches: &mut [u8],
        from: i64,
        how: AppendOptions,
    ) -> Result<i64> {
        let config = self.config();
        self.check_source(&config, source)?;
        let Fetched { batches: found, bad, .. } = Fetched::of(batches);
        if let Some(bad) = bad {
            return Err(self.invalid(bad.to_string()));
        }
        let now_ms = how.now_ms.unwrap_or_else(|| self.shared.clock.now_ms());
        let mut writer = self.writing();
        self.refuse_unusable(&writer)?;
        let leader_epoch = self.epoch_to_write(&writer, how.leader_epoch)?;
        if from > writer.next_offset {
            return Err(self.out_of_range(from));
        }
        let had = writer.next_offset;
        let Progress { advanced, outcome } =
            self.write_mirrored(&mut writer, batches, found, leader_epoch, &config, now_ms);
        let end = writer.next_offset;
        self.written(writer, advanced, end - had, &config);
        outcome.map(|()| end)
    }

    fn write_mirrored(
        &self,
        writer: &mut Writing<'_>,
        mut bytes: &mut [u8],
        found: Batches,
        leader_epoch: i32,
        config: &LogConfig,
        now_ms: i64,
    ) -> Progress {
        let mut progress = Progress { advanced: Advanced::Nothing, outcome: Ok(()) };
        for (header, end) in found {
            let Some((batch, rest)) = bytes.split_at_mut_checked(header.size()) else { break };
            bytes = rest;
            if header.last_offset() < writer.next_offset {
                continue;
            }
            let header = place(batch, header, header.base_offset, leader_epoch, -1);
            let written = self.make_room(writer, &header, end, config, now_ms).and_then(|()| {
                let (_, advanced) = self.write_placed(writer, batch, &header, end, config, now_ms)?;
                Ok(advanced)
            });
            match written {
                Ok(advanced) => progress.advanced = advanced,
                Err(error) => {
                    progress.outcome = Err(error);
                    break;
                }
            }
        }
        progress
    }

    /// Makes the active segment one that the batch may stand in.
    fn make_room(
        &self,
        writer: &mut Writing<'_>,
        header: &BatchHeader,
        end: Option<EndTxn>,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<()> {
        if header.base_offset < writer.next_offset {
            self.begin_before_start(writer, header, config, now_ms)?;
        }
        if writer.active.size() > 0 && self.is_roll_due(&writer.active, 0, header, config, now_ms) {
            self.roll(writer, config, now_ms)?;
        }
        if header.last_offset() - writer.active.base_offset > i64::from(i32::MAX) {
            let missing = header.base_offset - writer.next_offset;
            return Err(self.invalid(format!(
                "{missing} offsets are missing before it, more than a segment can leave out; delete the topic and mirror it anew"
            )));
        }
        self.allow_gaps(writer, &[(*header, end)])
    }

    /// The cluster `source` has nothing before `offset`: a log that is empty begins there. Gives where the log ends then.
    ///
    /// # Errors
    /// [`StorageError::OtherSource`]; those of [`PartitionLog::append_mirrored`] for the disk.
    pub fn begin_mirrored(&self, source: &str, offset: i64, how: AppendOptions) -> Result<i64> {
        self.check_source(&self.config(), source)?;
        self.begin_mirror_at(offset, how.leader_epoch)
    }

    /// The mirror has ended: aborts the transactions that are open, and forgets the other cluster's producers, whose ids may be those of
    /// producers here. The topic's setting must say `ended` for `mirror.source`. Gives where the log ends then.
    ///
    /// # Errors
    /// [`StorageError::OtherSource`]; those of [`PartitionLog::append`] for the disk.
    pub fn end_mirrored(&self, ended: &str, how: AppendOptions) -> Result<i64> {
        let config = self.config();
        self.check_source(&config, ended)?;
        let open = self.producers().into_iter().filter(|producer| producer.txn_first_offset.is_some());
        for producer in open {
            let marker = TxnMarker {
                producer_id: producer.producer_id,
                producer_epoch: producer.producer_epoch,
                marker: Marker::Abort,
                coordinator_epoch: NO_COORDINATOR_EPOCH.max(producer.coordinator_epoch),
                transaction_version: 0,
            };
            self.put_marker(marker, how, &config)?;
        }
        let now_ms = how.now_ms.unwrap_or_else(|| self.shared.clock.now_ms());
        let mut batch = mirror_end_batch(now_ms).map_err(|bad| self.invalid(bad.to_string()))?;
        let appended = self.put_control(&mut batch, None, how, &config)?;
        Ok(appended.last_offset + 1)
    }

    /// Refuses whoever is no mirror.
    pub(super) fn refuse_mirror(&self, config: &LogConfig) -> Result<()> {
        if config.mirror_source.is_empty() {
            return Ok(());
        }
        Err(StorageError::MirrorOnly { at: self.at.clone(), source_id: config.mirror_source.clone() })
    }

    fn check_source(&self, config: &LogConfig, given: &str) -> Result<()> {
        let known = &config.mirror_source;
        if !known.is_empty() && known == given {
            return Ok(());
        }
        let (at, known, given) = (self.at.clone(), known.clone(), given.to_owned());
        Err(StorageError::OtherSource { at, known, given })
    }
}
