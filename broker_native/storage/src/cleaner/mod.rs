//! Compaction: of each key only the last record stays. What Apache Kafka's log cleaner does, on the same files.
//!
//! [`LogManager::clean_dirtiest`] cleans one log and is called again and again by threads of the server. Any number of
//! threads may; no two clean the same log.
//!
//! | file | what it does |
//! |---|---|
//! | `bounds`, `stats` | what a cleaning may use; what it did |
//! | `select` | pure: what is dirty, how urgent, which segments become one |
//! | `offset_map` | last offset of each key, in bounded memory |
//! | `transactions` | pure: what was aborted, which markers are of no more use |
//! | `filter` | pure: what stays of a batch |
//! | `stream` | the batches of a segment, checked |
//! | `run` | one cleaning of one log |
//!
//! # What is promised
//! - Offsets, timestamps, headers, codec and order of what stays do not change.
//! - The last record of each key stays; a tombstone or marker at least `delete.retention.ms` after the first cleaning
//!   that kept it. A reader that follows the log sees every key's last value.
//! - Never touched: the active segment, all from the first open transaction or unacknowledged record on, records
//!   younger than `min.compaction.lag.ms`.
//! - Memory: the map (`log.cleaner.dedupe.buffer.size` over all threads) and the buffers (`log.cleaner.io.buffer.size`,
//!   more only for a batch that is larger).
//! - A segment is replaced whole or not at all, also when the power goes away: see `partition_log/swap`.
//! - A log that cannot be cleaned (a damaged batch) is reported once and then left alone until a restart; one for which the
//!   device is full is tried again after [`RETRY_MS`].
//!
//! [`LogManager::clean_dirtiest`]: super::manager::LogManager::clean_dirtiest
mod bounds;
mod filter;
mod offset_map;
mod run;
mod select;
mod stats;
mod stream;
mod transactions;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

pub use self::bounds::{CleanerConfig, Pace};
use self::run::{Ended, candidate, clean_log};
use self::select::{Dirt, dirt};
pub use self::stats::Stats;
use super::error::{Result, StorageError, TopicPartition};
use super::partition_log::PartitionLog;
use super::shared::Shared;

/// A log to clean, and how dirty it is.
type Chosen = (Arc<PartitionLog>, Dirt);

/// How long a log is left alone when the device was full.
const RETRY_MS: i64 = /* 10 minutes */ 600_000;

/// What [`super::LogManager::clean_dirtiest`] did.
#[derive(Debug)]
pub enum Cleaning {
    /// No log is dirty enough.
    Nothing,
    /// A log was cleaned, as far as the map reached.
    Done(TopicPartition, Stats),
    /// It was begun and not ended: the server stops, or the topic was removed.
    Interrupted(TopicPartition),
    /// It went wrong; the log is left alone from now on.
    Failed(TopicPartition, StorageError),
}

/// Which logs are not to be cleaned now. One for each data directory.
#[derive(Default)]
pub(super) struct Cleaner {
    /// Until when, milliseconds since the epoch; `i64::MAX` while it is being cleaned, or for good.
    excluded: Mutex<HashMap<TopicPartition, i64>>,
}

impl Cleaner {
    /// Cleans the one of `logs` that needs it most.
    pub fn clean_dirtiest(
        &self,
        shared: &Shared,
        logs: &[Arc<PartitionLog>],
        settings: &CleanerConfig,
        pace: &dyn Pace,
    ) -> Cleaning {
        let (log, dirt) = match self.choose(shared, logs) {
            Ok(Some(chosen)) => chosen,
            Ok(None) => return Cleaning::Nothing,
            Err((at, error)) => return Cleaning::Failed(at, error),
        };
        let at = log.topic_partition().clone();
        let mut stats = Stats::default();
        let now_ms = shared.clock.now_ms();
        let cleaned =
            catch_unwind(AssertUnwindSafe(|| clean(shared, &log, &dirt, settings, pace, &mut stats)));
        // It stays excluded, as a log that fails for good: the others go on.
        let cleaned = cleaned.unwrap_or_else(|_panic| {
            Err(StorageError::Poisoned { at: at.clone(), reason: "its compaction panicked".into() })
        });
        match cleaned {
            Ok(true) => {
                self.forget(&at);
                Cleaning::Done(at, stats)
            }
            Ok(false) => {
                self.forget(&at);
                Cleaning::Interrupted(at)
            }
            Err(_) if log.is_unusable() => {
                self.forget(&at);
                Cleaning::Interrupted(at)
            }
            Err(error) => {
                let until = if error.passes() { now_ms.saturating_add(RETRY_MS) } else { i64::MAX };
                self.excluded.lock().insert(at.clone(), until);
                Cleaning::Failed(at, error)
            }
        }
    }

    /// The log was removed, or may be cleaned again.
    pub fn forget(&self, at: &TopicPartition) {
        self.excluded.lock().remove(at);
    }

    /// The dirtiest log that is due; from now on no other thread cleans it.
    fn choose(
        &self,
        shared: &Shared,
        logs: &[Arc<PartitionLog>],
    ) -> Result<Option<Chosen>, (TopicPartition, StorageError)> {
        let now_ms = shared.clock.now_ms();
        let mut best: Option<(&Arc<PartitionLog>, Dirt)> = None;
        let mut excluded = self.excluded.lock();
        for log in logs {
            let at = log.topic_partition();
            let waits = excluded.get(at).is_some_and(|until| *until > now_ms);
            if waits || !log.config().cleanup_policy.compact || log.is_unusable() {
                continue;
            }
            let found = match measure(shared, log, now_ms) {
                Err(_) if log.is_unusable() => None,
                Err(error) => {
                    excluded.insert(at.clone(), i64::MAX);
                    return Err((at.clone(), error));
                }
                Ok(found) => found,
            };
            let is_dirtier = |dirt: &Dirt| best.as_ref().is_none_or(|(_, known)| known.ratio < dirt.ratio);
            let due = found.filter(|dirt| dirt.is_due(&log.config())).filter(is_dirtier);
            best = due.map(|dirt| (log, dirt)).or(best);
        }
        let Some((log, dirt)) = best else { return Ok(None) };
        excluded.insert(log.topic_partition().clone(), i64::MAX);
        Ok(Some((log.clone(), dirt)))
    }
}

/// How dirty a log is; `None` when there is nothing but the active segment.
fn measure(shared: &Shared, log: &PartitionLog, now_ms: i64) -> Result<Option<Dirt>> {
    let segments = log.segments();
    if segments.len() < 2 {
        return Ok(None);
    }
    let config = log.config();
    let first_ms = config.max_compaction_lag_ms < i64::MAX;
    let candidates = segments.iter().map(|s| candidate(s, first_ms).map_err(|e| log.wrong(e)));
    let candidates = candidates.collect::<Result<Vec<_>>>()?;
    let offsets = log.offsets();
    let cleaned = shared.cleaner_offsets.get(log.topic_partition());
    Ok(dirt(&candidates, cleaned, offsets.log_start_offset..offsets.last_stable_offset, &config, now_ms))
}

/// Cleans and writes down how far.
fn clean(
    shared: &Shared,
    log: &PartitionLog,
    dirt: &Dirt,
    settings: &CleanerConfig,
    pace: &dyn Pace,
    stats: &mut Stats,
) -> Result<bool> {
    let at = log.topic_partition();
    let note = |offset: i64| {
        shared.update_cleaner_offsets(|offsets| {
            offsets.insert(at.clone(), offset);
        })
    };
    // Before the first hole: who opens the log must know that there may be holes, whatever its settings say then.
    note(dirt.first_dirty)?;
    match clean_log(log, dirt, settings, pace, stats)? {
        Ended::At(end) => note(end).map(|()| true),
        Ended::Early => Ok(false),
    }
}
