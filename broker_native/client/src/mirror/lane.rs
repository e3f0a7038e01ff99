//! The thread that copies what one broker of the source leads: fetches, hands over, and begins again where the target ends.
//!
//! An error of one partition leaves the others alone. One of a connection is tried again for ever, and shown meanwhile: a mirror
//! waits for brokers that are away.
use std::sync::Arc;
use std::time::Duration;

use super::fetching::{self, Brought, NAMES_UP_TO};
use super::handing_over::{HandedOver, Taken, hand_over};
use super::progress::{Progress, Shared, UNKNOWN};
use crate::config::Isolation;
use crate::error::{ClientError, Result, code};
use crate::metadata::cluster::Cluster;
use crate::metadata::offsets::{EARLIEST, Found, OffsetQuery, list_offsets, partition_error};
use crate::metadata::topic_partition::TopicPartition;
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::PartitionData;

/// Stands for the end of a log.
const LATEST: i64 = -1;
/// How long a lane without partitions waits for some.
const IDLE: Duration = Duration::from_millis(50);

/// See the module.
#[derive(Debug)]
pub struct Lane {
    /// The broker of the source.
    pub leader: i32,
    /// Its cluster.
    pub source: Cluster,
    /// The other one.
    pub target: Cluster,
    /// What all lanes share.
    pub shared: Arc<Shared>,
}

impl Lane {
    /// Copies until stopped.
    pub fn run(mut self) {
        let (mut failed, mut turn) = (0, 0);
        while !self.shared.stop.is_stopped() {
            turn += 1;
            match self.round(turn) {
                Ok(true) => {
                    failed = 0;
                    self.shared.note(self.leader, None);
                }
                Ok(false) => _ = self.shared.stop.pause(IDLE),
                Err(error) => {
                    self.shared.note(self.leader, Some(error));
                    self.shared.leaders_are_stale();
                    self.target.forget_leaders();
                    let pause = self.source.settings().backoff(failed);
                    failed += 1;
                    self.shared.stop.pause(pause);
                }
            }
        }
    }

    /// One fetch and what follows from it; whether there was something to ask for.
    fn round(&mut self, turn: usize) -> Result<bool> {
        let mut mine = self.shared.led_by(self.leader);
        if mine.is_empty() {
            self.shared.note(self.leader, None);
            return Ok(false);
        }
        self.find_ends(&mut mine)?;
        let request =
            fetching::request(self.source.settings(), &mine, |most| self.shared.pace.fetch_bytes(most), turn);
        if !self.source.is_known() {
            self.source.metadata(Some(&[]), false)?;
        }
        let address = self.source.address(self.leader);
        let answer = address.and_then(|address| self.source.call_up_to(&address, NAMES_UP_TO, &request));
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                // The broker may be back under another address.
                let _ = self.source.metadata(Some(&[]), false);
                return Err(error);
            }
        };
        let mut found = fetching::by_name(answer);
        let (mut all, mut size) = (Vec::new(), 0);
        for (partition, progress) in &mine {
            let Some(data) = found.remove(partition) else { continue };
            if let Some(brought) = self.brought(partition, progress, &data)? {
                size += brought.batches.len();
                let (from, batches) = (progress.end, Some(brought.batches));
                all.push(HandedOver { partition: partition.clone(), from, batches });
            }
        }
        if !all.is_empty() {
            self.shared.pace.take(size as u64, &self.shared.stop);
            self.hand_over(all)?;
        }
        Ok(true)
    }

    /// Asks where the target's logs end that were not copied yet.
    fn find_ends(&mut self, mine: &mut [(TopicPartition, Progress)]) -> Result<()> {
        let new: Vec<&mut (TopicPartition, Progress)> =
            mine.iter_mut().filter(|(_, progress)| progress.end == UNKNOWN).collect();
        if new.is_empty() {
            return Ok(());
        }
        let latest = |(partition, _): &&mut (TopicPartition, Progress)| at(partition, LATEST);
        let wanted: Vec<OffsetQuery> = new.iter().map(latest).collect();
        let found = list_offsets(&mut self.target, &wanted, Isolation::ReadUncommitted)?;
        for ((partition, progress), found) in new.into_iter().zip(found) {
            progress.ends_at(found.offset);
            self.shared.update(partition, |known| known.ends_at(found.offset));
        }
        Ok(())
    }

    /// What an answer brought for one partition, when that is something to hand over.
    fn brought(
        &mut self,
        partition: &TopicPartition,
        progress: &Progress,
        data: &PartitionData,
    ) -> Result<Option<Brought>> {
        let error = match code(data.error_code) {
            ErrorCode::None => {
                let brought = data.records.as_ref().map(|records| fetching::whole(partition, records));
                let brought = brought.transpose().map(|brought| brought.filter(|found| found.next.is_some()));
                self.shared.update(partition, |known| {
                    (known.source_start, known.source_end) = (data.log_start_offset, data.high_watermark);
                    match &brought {
                        Ok(None) => known.goes_on(),
                        // Whether it goes on, the target says.
                        Ok(Some(_)) => {}
                        Err(error) => known.fail(error.clone()),
                    }
                });
                return Ok(brought.unwrap_or(None));
            }
            ErrorCode::OffsetOutOfRange => return self.outside(partition, progress).map(|()| None),
            error => error,
        };
        self.shared.leaders_are_stale();
        let mut error = partition_error(&partition.topic, partition.partition, error);
        error.message = format!("the source: {}", error.message);
        self.shared.update(partition, |known| known.fail(error));
        Ok(None)
    }

    /// The source does not have the offset at which the target ends.
    fn outside(&mut self, partition: &TopicPartition, progress: &Progress) -> Result<()> {
        let wanted = [at(partition, EARLIEST), at(partition, LATEST)];
        let found = list_offsets(&mut self.source, &wanted, Isolation::ReadUncommitted)?;
        let [Found { offset: start, .. }, Found { offset: source_end, .. }] = found[..] else {
            return Ok(());
        };
        let end = progress.end;
        if end > source_end {
            let message = format!(
                "partition {partition} ends at {source_end} in the source, before its copy, which ends at {end}: the source has lost records, or it is another topic of that name; delete the topic in the target to copy it anew, or promote it"
            );
            let error = ClientError::fatal(ErrorCode::OffsetOutOfRange.name(), message);
            self.shared.update(partition, |known| known.fail(error));
        } else if end < start {
            let begin = HandedOver { partition: partition.clone(), from: start, batches: None };
            self.hand_over(vec![begin])?;
            // Where the target has records before them, the gap comes with the next batches.
            self.shared.update(partition, |known| {
                known.fetch_from = known.end.max(start);
            });
        }
        Ok(())
    }

    fn hand_over(&mut self, all: Vec<HandedOver>) -> Result<()> {
        let sizes: Vec<(TopicPartition, u64)> = all
            .iter()
            .map(|each| {
                (each.partition.clone(), each.batches.as_ref().map_or(0, |batches| batches.len() as u64))
            })
            .collect();
        let taken = hand_over(&mut self.target, &self.shared.source_id, all)?;
        for Taken { partition, end, error } in taken {
            let size = sizes.iter().find(|(known, _)| *known == partition).map_or(0, |(_, size)| *size);
            self.shared.update(&partition, |known| {
                if end >= 0 {
                    known.ends_at(end);
                }
                match error {
                    None => {
                        known.bytes += size;
                        known.goes_on();
                    }
                    // The target's log ends at another offset than was thought.
                    Some(error) if error.kind == ErrorCode::OffsetOutOfRange.name() && end >= 0 => {}
                    Some(error) => known.fail(error),
                }
            });
        }
        Ok(())
    }
}

fn at(partition: &TopicPartition, timestamp: i64) -> OffsetQuery {
    OffsetQuery { topic_partition: partition.clone(), timestamp }
}
