//! What the writing thread and the sending thread of a producer share: closed batches one way, results the other.
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::accumulator::Ready;
use crate::error::{ClientError, Result, kind};
use crate::metadata::topic_partition::TopicPartition;
use crate::net::poll::Waker;
use pylog_record::BatchBuilder;

/// What was acknowledged so far.
#[derive(Debug, Clone, Default)]
pub struct Delivered {
    /// Records.
    pub records: u64,
    /// Bytes of their batches as sent.
    pub bytes: u64,
    /// First and last offset for each topic and partition; -1 where the broker gave none (`acks=0`).
    pub offsets: BTreeMap<TopicPartition, (i64, i64)>,
}

/// The shared part. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Delivery(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<DeliveryState>,
    changed: Condvar,
    waker: Waker,
}

#[derive(Debug, Default)]
struct DeliveryState {
    ready: Vec<Ready>,
    spare: Vec<BatchBuilder>,
    queued_bytes: usize,
    queued_batches: usize,
    error: Option<ClientError>,
    closing: bool,
    delivered: Delivered,
}

impl Delivery {
    /// Nothing queued; `waker` wakes the sending thread.
    pub fn new(waker: Waker) -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), waker }))
    }

    /// Passes batches to the sending thread and takes empty builders back.
    ///
    /// # Errors
    /// The first delivery error of earlier batches.
    pub fn push(&self, batches: Vec<Ready>) -> Result<Vec<BatchBuilder>> {
        let mut state = self.0.state.lock();
        state.fail()?;
        state.queued_bytes += batches.iter().map(|ready| ready.size_bytes).sum::<usize>();
        state.queued_batches += batches.len();
        let any = !batches.is_empty();
        state.ready.extend(batches);
        let spare = std::mem::take(&mut state.spare);
        drop(state);
        if any {
            self.0.waker.wake();
        }
        Ok(spare)
    }

    /// Waits until at most `bytes` are queued; false when `time` was not enough.
    ///
    /// # Errors
    /// As [`Delivery::push`].
    pub fn wait_below(&self, bytes: usize, time: Duration) -> Result<bool> {
        let until = Instant::now() + time;
        let mut state = self.0.state.lock();
        loop {
            state.fail()?;
            if state.queued_bytes <= bytes {
                return Ok(true);
            }
            if self.0.changed.wait_until(&mut state, until).timed_out() {
                state.fail()?;
                return Ok(state.queued_bytes <= bytes);
            }
        }
    }

    /// What was acknowledged so far.
    pub fn delivered(&self) -> Delivered {
        self.0.state.lock().delivered.clone()
    }

    /// Ends the sending thread; whether everything was acknowledged, so that it waits for nobody.
    pub fn close(&self) -> bool {
        let mut state = self.0.state.lock();
        state.closing = true;
        let is_done = state.queued_batches == 0 && state.error.is_none();
        drop(state);
        self.0.waker.wake();
        is_done
    }

    /// For the sending thread: the batches that were passed since, `None` when it is to end.
    pub fn take(&self) -> Option<Vec<Ready>> {
        let mut state = self.0.state.lock();
        if state.closing { None } else { Some(std::mem::take(&mut state.ready)) }
    }

    /// For the sending thread: an empty builder to use again.
    pub fn give_back(&self, builder: BatchBuilder) {
        self.0.state.lock().spare.push(builder);
    }

    /// For the sending thread: a batch of `records` records is acknowledged at `base_offset`.
    pub fn done(
        &self,
        topic_partition: &TopicPartition,
        base_offset: i64,
        records: u64,
        sent_bytes: usize,
        queued_bytes: usize,
    ) {
        let mut state = self.0.state.lock();
        state.delivered.records += records;
        state.delivered.bytes += sent_bytes as u64;
        let last = if base_offset < 0 { -1 } else { base_offset + records as i64 - 1 };
        let entry = state.delivered.offsets.entry(topic_partition.clone());
        let range = entry.or_insert((base_offset, last));
        if base_offset >= 0 {
            let first = if range.0 < 0 { base_offset } else { range.0.min(base_offset) };
            *range = (first, range.1.max(last));
        }
        state.queued_bytes -= queued_bytes.min(state.queued_bytes);
        state.queued_batches -= 1.min(state.queued_batches);
        drop(state);
        self.0.changed.notify_all();
    }

    /// For the sending thread: one batch became `parts`.
    pub fn split_into(&self, parts: usize) {
        self.0.state.lock().queued_batches += parts.saturating_sub(1);
    }

    /// For the sending thread: nothing more will be delivered.
    pub fn fail(&self, error: ClientError) {
        self.0.state.lock().error.get_or_insert(error);
        self.0.changed.notify_all();
    }

    /// Waits until nothing is queued; false when `time` was not enough.
    ///
    /// # Errors
    /// As [`Delivery::push`].
    pub fn wait_empty(&self, time: Duration) -> Result<bool> {
        let until = Instant::now() + time;
        let mut state = self.0.state.lock();
        loop {
            state.fail()?;
            if state.queued_batches == 0 {
                return Ok(true);
            }
            if self.0.changed.wait_until(&mut state, until).timed_out() {
                state.fail()?;
                return Ok(state.queued_batches == 0);
            }
        }
    }
}

impl DeliveryState {
    fn fail(&self) -> Result<()> {
        match &self.error {
            Some(error) => Err(error.clone()),
            None if self.closing => {
                Err(ClientError::fatal(kind::CLOSED, "this writer is closed; make a new one"))
            }
            None => Ok(()),
        }
    }
}
