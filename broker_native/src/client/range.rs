//! Reads `[start, end)` of one partition as Arrow batches: a thread fetches and decodes ahead of the consumer.
//!
//! The thread sends the next fetch before it decodes the answer it has, so that broker, network and decoding overlap;
//! finished batches wait in a queue of [`QUEUED_BATCHES`]. Memory: two fetch answers, the queue, one batch being built.
//! The thread starts with the first pull and ends when the range is read, on an error, or when the reader is dropped.
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::config::Settings;
use super::error::{ClientError, Owner, Result, kind};
use super::fetcher::{Fetched, Fetcher, Target};
use super::stop::Stop;
use crate::columnar::{BatchDecoder, Column, DecodeError, DecodeOptions, RecordBatch, SchemaRef, schema};
use crate::record::batches;

/// Finished batches that may wait for the consumer.
const QUEUED_BATCHES: usize = 3;

/// What to read and in which pieces.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The partition.
    pub target: Target,
    /// First offset.
    pub start: i64,
    /// Offset to stop before; `None` follows the log.
    pub end: Option<i64>,
    /// Columns to build.
    pub columns: Vec<Column>,
    /// An Arrow batch ends at about this many bytes.
    pub batch_bytes: usize,
    /// An Arrow batch has at most this many rows.
    pub max_rows: usize,
}

/// A batch and the offset that follows it.
#[derive(Debug)]
pub struct Piece {
    /// The rows; `None` when offsets passed without rows.
    pub batch: Option<RecordBatch>,
    /// Everything before this offset was handed out.
    pub next_offset: i64,
}

/// The consumer's end. Not for several threads at once.
#[derive(Debug)]
pub struct RangeReader {
    settings: Settings,
    plan: Plan,
    owner: Owner,
    stop: Stop,
    running: Option<Running>,
    next_offset: i64,
    at_end: bool,
    failed: bool,
}

#[derive(Debug)]
struct Running {
    pieces: Receiver<Result<Piece>>,
    thread: JoinHandle<()>,
}

impl RangeReader {
    /// Opens nothing yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a range that is none.
    pub fn new(settings: Settings, plan: Plan) -> Result<Self> {
        let end = plan.end.unwrap_or(i64::MAX);
        if plan.start < 0 || end < plan.start {
            return Err(ClientError::invalid(format!(
                "offsets {} to {end} are no range; both must be resolved offsets, start before end",
                plan.start
            )));
        }
        let (next_offset, at_end) = (plan.start, plan.start == end);
        let owner = Owner::current();
        Ok(Self {
            settings,
            plan,
            owner,
            stop: Stop::default(),
            running: None,
            next_offset,
            at_end,
            failed: false,
        })
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        schema(&self.plan.columns)
    }

    /// Whether all of the range was handed out.
    pub fn at_end(&self) -> bool {
        self.at_end
    }

    /// Everything before this offset was handed out.
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// The next batch; `None` at the end, or when nothing came within `time`.
    ///
    /// # Errors
    /// Those of [`Fetcher::fetch`], `CORRUPT_BATCH`, `TIMED_OUT` when the log does not reach the end of the range;
    /// `CLOSED` after [`RangeReader::stop`]; `FORKED`. After an error the reader is of no more use.
    pub fn next(&mut self, time: Duration) -> Result<Option<RecordBatch>> {
        self.owner.check("reader")?;
        let until = Instant::now() + time;
        while !self.at_end {
            if self.stop.is_stopped() {
                return Err(closed());
            }
            let left = until.saturating_duration_since(Instant::now());
            let piece = match self.running()?.pieces.recv_timeout(left) {
                Ok(piece) => piece.inspect_err(|_| self.failed = true)?,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) if self.stop.is_stopped() || self.failed => {
                    return Err(closed());
                }
                Err(RecvTimeoutError::Disconnected) => return Err(ClientError::internal("reader")),
            };
            self.next_offset = piece.next_offset;
            self.at_end = self.plan.end.is_some_and(|end| piece.next_offset >= end);
            if piece.batch.is_some() {
                return Ok(piece.batch);
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
        self.stop.stop();
        drop(running.pieces);
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
        let cluster = Cluster::new(self.settings.clone(), self.stop.clone())?;
        let (sender, pieces) = sync_channel(QUEUED_BATCHES);
        let pump = Pump::new(cluster, &self.settings, &self.plan, self.stop.clone(), sender);
        let thread = std::thread::Builder::new().name("pylog-reader".to_owned()).spawn(move || pump.run());
        let thread = thread.map_err(|error| {
            ClientError::fatal(kind::PROTOCOL, format!("could not start a reader thread: {error}"))
        })?;
        Ok(Running { pieces, thread })
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

/// The thread's end.
struct Pump {
    fetcher: Fetcher,
    decoder: BatchDecoder,
    stop: Stop,
    sender: SyncSender<Result<Piece>>,
    follow: bool,
    end: i64,
    /// How long the log may stay short of the end.
    patience: Duration,
}

impl Pump {
    fn new(
        cluster: Cluster,
        settings: &Settings,
        plan: &Plan,
        stop: Stop,
        sender: SyncSender<Result<Piece>>,
    ) -> Self {
        let options = DecodeOptions {
            batch_bytes: plan.batch_bytes,
            max_rows: plan.max_rows,
            max_decompressed_bytes: usize::try_from(settings.decompressed_batch_max_bytes)
                .unwrap_or(usize::MAX),
            check_crcs: settings.check_crcs,
        };
        let end = plan.end.unwrap_or(i64::MAX);
        let Target { topic, partition, .. } = &plan.target;
        let decoder = BatchDecoder::new(&plan.columns, topic.as_str(), *partition, plan.start..end, options);
        let fetcher = Fetcher::new(cluster, plan.target.clone(), plan.start);
        Self {
            fetcher,
            decoder,
            stop,
            sender,
            follow: plan.end.is_none(),
            end,
            patience: settings.api_timeout(),
        }
    }

    fn run(mut self) {
        if let Err(error) = self.pump() {
            // Nobody listens any more: then nobody wants to know.
            let _ = self.sender.send(Err(error));
        }
    }

    fn pump(&mut self) -> Result<()> {
        let mut progress = Instant::now();
        while !self.decoder.at_end() && !self.stop.is_stopped() {
            let fetched = self.fetcher.fetch()?;
            let before = self.decoder.next_offset();
            self.fetcher.advance(next_position(&fetched, before));
            if next_position(&fetched, before) < self.end {
                self.fetcher.ask();
            }
            let delivered = self.decode(&fetched)?;
            if !delivered {
                return Ok(());
            }
            if self.decoder.next_offset() > before {
                progress = Instant::now();
            } else if !self.follow && progress.elapsed() > self.patience {
                return Err(self.short(&fetched));
            }
        }
        self.flush().map(drop)
    }

    /// Decodes an answer and hands full batches on; false when nobody listens any more.
    fn decode(&mut self, fetched: &Fetched) -> Result<bool> {
        self.decoder.add_aborted(fetched.aborted.iter().copied());
        for view in batches(&fetched.records) {
            let view = view.map_err(|error| self.corrupt(&error.to_string()))?;
            self.decoder.push(&view).map_err(|error| damaged(&error))?;
            while let Some(batch) = self.decoder.next_batch() {
                let next_offset = self.decoder.resume_offset();
                if !self.hand_over(Piece { batch: Some(batch), next_offset }) {
                    return Ok(false);
                }
            }
        }
        // Who polls wants what is there now rather than a full batch.
        if self.follow { self.flush() } else { Ok(true) }
    }

    fn flush(&mut self) -> Result<bool> {
        let batch = self.decoder.flush().map_err(|error| damaged(&error))?;
        let next_offset = self.decoder.resume_offset();
        Ok(self.hand_over(Piece { batch, next_offset }))
    }

    fn hand_over(&self, piece: Piece) -> bool {
        match self.sender.try_send(Ok(piece)) {
            Ok(()) => true,
            Err(TrySendError::Full(piece)) => self.sender.send(piece).is_ok(),
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    fn corrupt(&self, what: &str) -> ClientError {
        let message = format!(
            "partition {} holds damaged bytes at or after offset {}: {what}",
            self.fetcher.name(),
            self.decoder.next_offset()
        );
        ClientError::fatal(kind::CORRUPT_BATCH, message)
    }

    fn short(&self, fetched: &Fetched) -> ClientError {
        let seconds = self.patience.as_secs_f64();
        let message = format!(
            "partition {} is visible up to offset {} only, {} was asked for; nothing came for default.api.timeout.ms ({seconds} s)",
            self.fetcher.name(),
            fetched.visible_end,
            self.end
        );
        ClientError::fatal(kind::TIMED_OUT, message)
    }
}

fn damaged(error: &DecodeError) -> ClientError {
    ClientError::fatal(kind::CORRUPT_BATCH, error.to_string())
}

/// The offset after the last whole batch of an answer, found by its headers alone.
fn next_position(fetched: &Fetched, before: i64) -> i64 {
    let last = batches(&fetched.records).map_while(std::result::Result::ok).last();
    last.map_or(before, |(header, _)| header.last_offset().saturating_add(1).max(before))
}
