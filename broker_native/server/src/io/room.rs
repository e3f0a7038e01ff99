//! `queued.max.response.bytes`: the room for what large requests take while they are answered, and for answers until they are
//! sent. One client address has at most half of it ([`Shares`]). Any thread.
//!
//! | who | takes | finds none |
//! |---|---|---|
//! | a large request ([`crate::handlers::common::large`]) | before it is read | waits, then its connection is closed |
//! | a request that Python decides ([`crate::handlers`]) | before it asks | is refused, and may be sent again |
//! | an answer of more than [`FREE_BYTES`] without a share of its own | when it is made | waits, then its connection is closed |
//!
//! An answer that waits is in memory already. So what waits has a bound too, a part of the room on top of it ([`WAITING_PART`]);
//! an answer beyond that is dropped with its connection.
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::outbox::Answer;
use super::shares::{Share, Shares};
use crate::dispatch::{Later, Reply};
use crate::shared::Shared;

/// Answers up to this size are not counted.
pub const FREE_BYTES: usize = super::budget::FREE_BYTES;
/// Answers that wait for room have at most so large a part of it, in addition.
pub const WAITING_PART: usize = 4;
/// One unit of the room stands for so many bytes.
const UNIT_BYTES: usize = 1024;

/// The room.
#[derive(Debug)]
pub struct Room {
    taken: Shares,
    waiting: Shares,
}

impl Room {
    /// A room of `bytes`.
    pub fn new(bytes: usize) -> Self {
        Self { taken: Shares::new(units(bytes)), waiting: Shares::new(units(bytes / WAITING_PART)) }
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

/// Takes `bytes` for `what` of a client at `address`, waiting for others to give back.
///
/// # Errors
/// The reply that ends the connection: it would be more than an address may have, others left nothing for too long, or the broker
/// stops.
pub async fn take(shared: &Shared, address: IpAddr, bytes: usize, what: &str) -> Result<Share, Reply> {
    let patience = Duration::from_millis(shared.settings.socket_request_receive_timeout_ms);
    let why = tokio::select! {
        held = shared.room.taken.take(address, units(bytes), 0) => match held {
            Some(held) => return Ok(held),
            None => format!("{what} takes {bytes} bytes, more than half of queued.max.response.bytes"),
        },
        () = tokio::time::sleep(patience) => format!(
            "{what} found no room beside others of its address within {} ms (queued.max.response.bytes)",
            patience.as_millis()
        ),
        () = shared.shutdown.wait() => "the broker stops".into(),
    };
    Err(Reply::Close(why))
}

/// The answer with what it takes of the room; or, when that is not there at once, what waits for it.
///
/// # Errors
/// The wait, whose reply has the answer when there is room.
pub fn admit(shared: &Arc<Shared>, address: IpAddr, answer: Answer) -> Result<Answer, Later> {
    let bytes = answer.bytes();
    if bytes <= FREE_BYTES || answer.held.is_some() {
        return Ok(answer);
    }
    if let Some(held) = shared.room.take_now(address, bytes) {
        return Ok(Answer { held: Some(held), ..answer });
    }
    let Some(place) = shared.room.waiting.take_now(address, units(bytes)) else {
        let why = format!(
            "too many answers wait for room, and its own of {bytes} bytes is dropped (queued.max.response.bytes)"
        );
        return Err(Box::pin(std::future::ready(Reply::Close(why))));
    };
    let shared = Arc::clone(shared);
    Err(Box::pin(async move {
        let taken = take(&shared, address, bytes, "an answer").await;
        drop(place);
        taken.map_or_else(|closed| closed, |held| Reply::Answer(Answer { held: Some(held), ..answer }))
    }))
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
