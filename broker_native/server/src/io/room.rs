//! `queued.max.response.bytes`: the room for what large requests take while they are answered, and for answers until they are
//! sent. One client address has at most half of it ([`Shares`]). Any thread.
//!
//! | who | takes | finds none |
//! |---|---|---|
//! | a large request (`handlers/common/large`) | before it is read | waits, then its connection is closed |
//! | a request that Python decides (`handlers`) | before it asks | is refused, and may be sent again |
//! | an answer of more than [`FREE_BYTES`] without a share of its own | when it is made | waits, then its connection is closed |
//!
//! An answer that waits is in memory already. So what waits has a bound too, a part of the room on top of it ([`WAITING_PART`]);
//! an answer beyond that is dropped with its connection.
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::response_queue::Answer;
use super::shares::{Share, Shares};
use crate::shutdown::Shutdown;

/// Answers up to this size are not counted.
pub const FREE_BYTES: usize = super::budget::FREE_BYTES;
/// Answers that wait for room may use another 1/4 of it, in addition.
pub const WAITING_PART: usize = 4;
/// Bytes that one unit stands for.
const UNIT_BYTES: usize = 1024;

/// Why there is no room; the connection ends with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// It will never be there.
    #[error("{what} takes {bytes} bytes, more than half of queued.max.response.bytes")]
    TooLarge {
        /// Who asked.
        what: String,
        /// For how much.
        bytes: usize,
    },
    /// Others left nothing for too long.
    #[error(
        "{what} got no memory within {waited_ms} ms, because other requests and answers use it (queued.max.response.bytes)"
    )]
    TimedOut {
        /// Who asked.
        what: String,
        /// How long it waited.
        waited_ms: u128,
    },
    /// What waits has a bound, too.
    #[error(
        "too many answers wait for memory, so an answer of {0} bytes is dropped (queued.max.response.bytes)"
    )]
    TooManyWait(usize),
    /// Nothing is answered any more.
    #[error("the broker stops")]
    Stopping,
}

/// An answer that waits for room.
pub type WaitingAnswer = Pin<Box<dyn Future<Output = Result<Answer, NoRoom>> + Send>>;

/// The room.
#[derive(Debug)]
pub struct Room {
    taken: Shares,
    waiting: Shares,
    timeout: Duration,
    shutdown: Arc<Shutdown>,
}

impl Room {
    /// Room for `bytes`. A request that waits for some is refused after `timeout`, or when the broker stops.
    pub fn new(bytes: usize, timeout: Duration, shutdown: &Arc<Shutdown>) -> Arc<Self> {
        let (taken, waiting) = (Shares::new(units(bytes)), Shares::new(units(bytes / WAITING_PART)));
        Arc::new(Self { taken, waiting, timeout, shutdown: Arc::clone(shutdown) })
    }

    /// Takes `bytes` for `what` of a client at `address`, waiting for others to give back.
    ///
    /// # Errors
    /// It would be more than an address may have, others left nothing for too long, or the broker stops.
    pub async fn take(&self, address: IpAddr, bytes: usize, what: &str) -> Result<Share, NoRoom> {
        let what = || what.to_owned();
        tokio::select! {
            held = self.taken.take(address, units(bytes), 0) => {
                held.ok_or_else(|| NoRoom::TooLarge { what: what(), bytes })
            }
            () = tokio::time::sleep(self.timeout) => {
                Err(NoRoom::TimedOut { what: what(), waited_ms: self.timeout.as_millis() })
            }
            () = self.shutdown.wait() => Err(NoRoom::Stopping),
        }
    }

    /// The answer with what it takes of the room; or, when that is not there at once, what waits for it.
    ///
    /// # Errors
    /// The wait, which gives the answer when there is room.
    pub fn admit(self: &Arc<Self>, address: IpAddr, answer: Answer) -> Result<Answer, WaitingAnswer> {
        let bytes = answer.bytes();
        if bytes <= FREE_BYTES || answer.held.is_some() {
            return Ok(answer);
        }
        if let Some(held) = self.take_now(address, bytes) {
            return Ok(Answer { held: Some(held), ..answer });
        }
        let Some(place) = self.waiting.take_now(address, units(bytes)) else {
            return Err(Box::pin(std::future::ready(Err(NoRoom::TooManyWait(bytes)))));
        };
        let room = Arc::clone(self);
        Err(Box::pin(async move {
            let taken = room.take(address, bytes, "an answer").await;
            drop(place);
            taken.map(|held| Answer { held: Some(held), ..answer })
        }))
    }

    /// Takes `bytes` for a client at `address` when they are there.
    pub fn take_now(&self, address: IpAddr, bytes: usize) -> Option<Share> {
        self.taken.take_now(address, units(bytes))
    }

    /// Whether `bytes` are more than a client may ever have.
    pub fn is_too_small_for(&self, bytes: usize) -> bool {
        units(bytes) > self.taken.each()
    }

    /// Bytes of answers that wait for room.
    pub fn waiting_bytes(&self) -> usize {
        (self.waiting.count() - self.waiting.free()) * UNIT_BYTES
    }

    /// Bytes that nobody holds.
    pub fn free_bytes(&self) -> usize {
        self.taken.free() * UNIT_BYTES
    }
}

/// The answer with as much of `held` as it takes itself; with nothing when it takes more, so that it asks again.
pub fn holding(answer: Answer, mut held: Share) -> Answer {
    let wanted = units(answer.bytes());
    if answer.held.is_some() || wanted > held.units() {
        return answer;
    }
    held.keep(wanted);
    Answer { held: Some(held), ..answer }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, u32::MAX >> 4)
}
