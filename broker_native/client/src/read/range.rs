//! Reads ranges `[start, end)` of partitions as Arrow batches: a thread fetches and decodes ahead of the consumer.
//!
//! Ranges are read one after the other, in the order given, by the same thread over the same connections. A batch holds
//! rows of one range only.
//!
//! The thread sends the next fetch before it decodes the answer it has, so that broker, network and decoding overlap;
//! finished batches wait in a queue of [`QUEUED_BATCHES`]. Memory: two fetch answers, the queue, one batch being built.
//! The thread starts with the first pull and ends when the range is read, on an error, or when the reader is dropped.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::feed::{Feed, FeedPump};
use super::local::LocalCounters;
use super::plan::{OffsetRange, RangeOutput, ReadPlan};
use super::pump::Pump;
use crate::config::Settings;
use crate::error::{ClientError, Owner, Result, kind};
use crate::metadata::cluster::Cluster;
use crate::net::stop::Stop;
use pylog_columnar::{RecordBatch, SchemaRef};

/// Finished batches that may wait for the consumer.
const QUEUED_BATCHES: usize = 3;

/// The consumer's end. Not for several threads at once.
#[derive(Debug)]
pub struct RangeReader {
    origin: Origin,
    plan: ReadPlan,
    owner: Owner,
    stop: Stop,
    running: Option<Running>,
    range_index: usize,
    next_offset: i64,
    at_end: bool,
    failed: bool,
    bytes_fetched: Arc<AtomicU64>,
    local: Arc<LocalCounters>,
}

/// Where the records are.
#[derive(Debug)]
enum Origin {
    Brokers(Box<Settings>),
    /// Who brings the batches; taken by the thread.
    Fed(Mutex<Option<Box<dyn Feed>>>),
}

#[derive(Debug)]
struct Running {
    batches: Receiver<RangeOutput>,
    thread: JoinHandle<()>,
}

impl RangeReader {
    /// A reader of what brokers have. Opens nothing yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a range that is none.
    pub fn new(settings: Settings, plan: ReadPlan) -> Result<Self> {
        Self::of(Origin::Brokers(Box::new(settings)), plan)
    }

    /// A reader of what a feed brings. Opens nothing yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a range that is none, or that follows the log.
    pub fn fed(feed: Box<dyn Feed>, plan: ReadPlan) -> Result<Self> {
        if plan.ranges.iter().any(|range| range.end.is_none()) {
            return Err(ClientError::invalid(
                "a directory or an archive is read up to an offset; only brokers say what comes after",
            ));
        }
        Self::of(Origin::Fed(Mutex::new(Some(feed))), plan)
    }

    fn of(origin: Origin, plan: ReadPlan) -> Result<Self> {
        for OffsetRange { start, end, .. } in &plan.ranges {
            let end = end.unwrap_or(i64::MAX);
            if *start < 0 || end < *start {
                return Err(ClientError::invalid(format!(
                    "offsets {start} to {end} are no range; both must be resolved offsets, start before end"
                )));
            }
        }
        let next_offset = plan.ranges.first().map_or(0, |range| range.start);
        let at_end = plan.ranges.iter().all(|range| range.end == Some(range.start));
        let owner = Owner::current();
        Ok(Self {
            origin,
            plan,
            owner,
            stop: Stop::default(),
            running: None,
            range_index: 0,
            next_offset,
            at_end,
            failed: false,
            bytes_fetched: Arc::default(),
            local: Arc::default(),
        })
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// Whether everything was given to the consumer.
    pub fn at_end(&self) -> bool {
        self.at_end
    }

    /// The number of the range being read, counted from 0.
    pub fn range_index(&self) -> usize {
        self.range_index
    }

    /// Everything of the range being read before this offset was given to the consumer.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// Bytes of records that came from the brokers, over the network.
    pub fn bytes_fetched(&self) -> u64 {
        self.bytes_fetched.load(Ordering::Relaxed)
    }

    /// What came from the brokers' files.
    pub fn local(&self) -> &LocalCounters {
        &self.local
    }

    /// The next batch; `None` at the end, or when nothing came within `time`.
    ///
    /// # Errors
    /// Those of [`Fetcher::fetch`], `CORRUPT_BATCH`, `BAD_RECORD`, `UNKNOWN_WRITERS`, `TIMED_OUT` when the log does not reach the end of the range;
    /// `CLOSED` after [`RangeReader::stop`]; `FORKED`. After an error the reader is of no more use.
    pub fn next(&mut self, time: Duration) -> Result<Option<RecordBatch>> {
        self.owner.check("reader")?;
        let until = Instant::now() + time;
        while !self.at_end {
            if self.stop.is_stopped() {
                return Err(closed());
            }
            let left = until.saturating_duration_since(Instant::now());
            let (index, batch) = match self.running()?.batches.recv_timeout(left) {
                Ok(output) => output,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) if self.stop.is_stopped() || self.failed => {
                    return Err(closed());
                }
                Err(RecvTimeoutError::Disconnected) => return Err(ClientError::internal("reader")),
            };
            if index != self.range_index {
                let start = self.plan.ranges.get(index).map_or(0, |range| range.start);
                (self.range_index, self.next_offset) = (index, start);
            }
            let decoded = batch.inspect_err(|_| self.failed = true)?;
            self.next_offset = decoded.next_offset;
            self.at_end = decoded.last;
            if decoded.batch.is_some() {
                return Ok(decoded.batch);
            }
        }
        Ok(None)
    }

    /// What ends the thread, and a `next` that waits, from another thread.
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// Ends the thread. Idempotent.
    pub fn stop(&mut self) {
        let Some(running) = self.running.take() else { return };
        if self.owner.check("reader").is_err() {
            // The thread is not in this process; its handle must not be waited for, nor its sockets shut down.
            std::mem::forget(running);
            return;
        }
        // A thread that gave everything ends by itself, and its connections are as good as before.
        if !self.at_end {
            self.stop.stop();
        }
        drop(running.batches);
        // The thread cannot panic with a value worth passing on.
        let _ = running.thread.join();
    }

    fn running(&mut self) -> Result<&Running> {
        let running = match self.running.take() {
            Some(running) => running,
            None => self.start()?,
        };
        Ok(self.running.insert(running))
    }

    fn start(&self) -> Result<Running> {
        let (sender, batches) = sync_channel(QUEUED_BATCHES);
        let (plan, stop, fetched) = (self.plan.clone(), self.stop.clone(), self.bytes_fetched.clone());
        let named = std::thread::Builder::new().name("pylog-reader".to_owned());
        let thread = match &self.origin {
            Origin::Brokers(settings) => {
                let cluster = Cluster::new((**settings).clone(), stop.clone())?;
                let pump = Pump::new(cluster, plan, stop, sender, fetched, self.local.clone())?;
                named.spawn(move || pump.run())
            }
            Origin::Fed(feed) => {
                let feed = feed.lock().take().ok_or_else(closed)?;
                let pump = FeedPump::new(feed, plan, stop, sender)?;
                named.spawn(move || pump.run())
            }
        };
        let thread = thread.map_err(|error| {
            ClientError::fatal(kind::PROTOCOL, format!("could not start a reader thread: {error}"))
        })?;
        Ok(Running { batches, thread })
    }
}

impl Drop for RangeReader {
    fn drop(&mut self) {
        self.stop();
    }
}

fn closed() -> ClientError {
    ClientError::fatal(kind::CLOSED, "this reader was stopped or failed before; make a new one")
}
