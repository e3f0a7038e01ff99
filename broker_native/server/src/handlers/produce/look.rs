//! What is looked at in the batches of a Produce request before the first of them is appended.
//!
//! Records that open to little are looked at where the request was read. What takes longer is done among the slow requests
//! ([`slow`]), so that it holds up nobody but its sender.
//!
//! [`slow`]: crate::io::slow
use std::ops::Range;

use super::find::find;
use super::keys::unkeyed;
use super::mirrored::is_mirror;
use super::schemas;
use crate::call::Call;
use crate::handlers::common::lookup::led;
use pylog_record::BatchError;
use pylog_record::validate::{OPENED_BYTES_MAX, ProduceInfo, validate_opening};
use pylog_storage::PartitionLog;
use pylog_wire::ErrorCode;
use pylog_wire::messages::ProduceRequest;

/// A request whose records have more bytes in all, opened, is a slow one.
pub const AT_ONCE_BYTES: usize = /* 4 MiB */ 4 << 20;

/// A request with more partitions is a slow one, and its answer a large one; at most this many errors of one answer have a sentence.
pub const MANY: usize = 1_000;

/// A request, and what is known of its batches, in their order.
pub struct Batches {
    /// The request, without its records.
    pub request: ProduceRequest,
    /// Where they lie in the request's bytes.
    pub ranges: Vec<Option<Range<usize>>>,
    /// For each topic why the client may not write to it; empty where nobody asks.
    pub refusals: Vec<Option<ErrorCode>>,
    /// What was seen.
    pub looked: Vec<Looked>,
    /// Whether the schema registry has looked for what was not known at first.
    pub is_sure: bool,
}

/// What was seen of one batch.
#[derive(Default)]
pub struct Looked {
    /// What is known of it, or what is wrong with it; `None` where no log takes it.
    pub info: Option<Result<ProduceInfo, BatchError>>,
    /// Records without a key, when a compacted topic refuses the batch for them.
    pub unkeyed: Vec<i32>,
    /// Records without the schemas that the topic asks for; `None` when it asks for none.
    pub faults: Option<schemas::Faults>,
    /// Where the topic wants these to go instead of refusing them.
    pub dead_letter_topic: Option<DeadLetterTopic>,
    /// Why they could not be written there.
    pub not_diverted: Option<schemas::NotDiverted>,
    /// As of [`Batches`].
    pub is_sure: bool,
}

/// The dead letter topic of a topic.
pub struct DeadLetterTopic {
    /// The topic that records were written to.
    pub topic: String,
    /// Where they go.
    pub to: String,
    /// Who named it there.
    pub owner: String,
}

/// Time left for records that are opened.
struct Left {
    bytes: usize,
}

/// There is too much to do it at once.
struct Slow;

impl Batches {
    /// Whether there are so many that even a short look at each takes long.
    pub fn is_of_many(&self) -> bool {
        self.ranges.len() > MANY
    }

    /// Whether records name schemas that are not known, and the registry was not asked yet.
    pub fn must_ask_registry(&self) -> bool {
        let are_unsure = |looked: &Looked| looked.faults.as_ref().is_some_and(schemas::Faults::are_unsure);
        !self.is_sure && self.looked.iter().any(are_unsure)
    }

    /// Whether records are to go to a dead letter topic.
    pub fn have_dead_letters(&self) -> bool {
        self.looked.iter().any(|looked| looked.dead_letter_topic.is_some())
    }

    /// Looks at all batches in the request's `bytes`, unless they are a mirror's; false when their records have more than `most` bytes.
    pub fn look(&mut self, call: &Call, bytes: &[u8], most: usize) -> bool {
        let topics = call.shared.topics.now();
        let (mut ranges, mut left) = (self.ranges.iter(), Left { bytes: most });
        self.looked.clear();
        if is_mirror(&self.request) {
            return true;
        }
        for (at, asked) in self.request.topic_data.iter().enumerate() {
            let topic = find(call, &topics, asked, refusal(&self.refusals, at)).ok();
            for data in &asked.partition_data {
                let batch = ranges.next().cloned().flatten().and_then(|range| bytes.get(range));
                let log = led(&call.shared, topic, data.index, -1).ok();
                let looked = match (batch, log) {
                    (Some(batch), Some((_, log))) => left.look(call, batch, log),
                    _ => Ok(Looked::default()),
                };
                let Ok(looked) = looked else { return false };
                self.looked.push(Looked { is_sure: self.is_sure, ..looked });
            }
        }
        true
    }
}

impl Left {
    fn look(&mut self, call: &Call, batch: &[u8], log: &PartitionLog) -> Result<Looked, Slow> {
        // Its checksum is over all of it.
        self.bytes = self.bytes.checked_sub(batch.len()).ok_or(Slow)?;
        let most = self.bytes.min(OPENED_BYTES_MAX);
        let is_slow =
            |error: &BatchError| *error == BatchError::Decompressed(most as u64) && most < OPENED_BYTES_MAX;
        let info = validate_opening(batch, max_bytes(log), most);
        match &info {
            Ok(info) => self.bytes = self.bytes.saturating_sub(info.opened_bytes),
            Err(error) if is_slow(error) => return Err(Slow),
            Err(_) => {}
        }
        let faults = match schemas::are_asked_for(log) && info.is_ok() {
            true => match schemas::faults(call, log, batch, most) {
                Err(error) if is_slow(&error) => return Err(Slow),
                faults => faults.ok(),
            },
            false => None,
        };
        let (to, owner) = (&log.config().dead_letter_topic, &log.config().dead_letter_owner);
        let is_diverted = !to.is_empty() && faults.as_ref().is_some_and(|faults| !faults.are_none());
        let topic = &log.topic_partition().topic;
        let dead_letter_topic = is_diverted.then(|| DeadLetterTopic {
            topic: topic.to_string(),
            to: to.clone(),
            owner: owner.clone(),
        });
        let has_keys = info.as_ref().is_ok_and(|info| info.all_keyed);
        if has_keys || !log.config().cleanup_policy.compact {
            return Ok(Looked { info: Some(info), faults, dead_letter_topic, ..Looked::default() });
        }
        match unkeyed(batch, most) {
            Err(error) if is_slow(&error) => Err(Slow),
            unkeyed => {
                let unkeyed = unkeyed.unwrap_or_default();
                Ok(Looked { info: Some(info), unkeyed, faults, dead_letter_topic, ..Looked::default() })
            }
        }
    }
}

/// Why the client may not write to the topic at this place of the request.
pub fn refusal(refusals: &[Option<ErrorCode>], at: usize) -> Option<ErrorCode> {
    refusals.get(at).copied().flatten()
}

/// Size of the largest batch that the log takes.
pub fn max_bytes(log: &PartitionLog) -> usize {
    usize::try_from(log.config().max_message_bytes).unwrap_or(usize::MAX)
}
