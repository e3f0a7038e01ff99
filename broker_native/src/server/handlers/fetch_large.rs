//! Fetch requests of thousands of partitions. They wait for room before they are read, and their answers hold some until
//! they are sent (`queued.max.response.bytes`). One client address has at most half of it, and one request no more than that.
//!
//! While such a request waits for records, `fetch.wait.max.partitions` bounds what it takes.
use std::time::Duration;

use super::fetch;
use crate::server::budget;
use crate::server::dispatch::{Call, Later, Outcome, Reply, read};
use crate::server::outbox::Answer;
use crate::server::shares::{Share, Shares};
use crate::wire::Reader;

/// How many times its bytes a request takes while it is read and answered. Measured 42 to 51 times: a partition has 16 bytes, and takes
/// some 800 in the tables of the handler and in the answer.
pub const TIMES: usize = 52;
/// One unit of the room stands for so many bytes.
const UNIT_BYTES: usize = 1024;

/// The room for large requests: `bytes` in all.
pub fn room(bytes: usize) -> Shares {
    Shares::new(units(bytes))
}

/// Reads and answers the request when there is room for that.
pub fn handle(call: Call, reader: Reader) -> Outcome {
    Outcome::Owning(Box::new(move |request| -> Later { Box::pin(when_there_is_room(call, reader, request)) }))
}

async fn when_there_is_room(call: Call, reader: Reader, request_bytes: budget::Share) -> Reply {
    let held = match take(&call, reader.left()).await {
        Ok(held) => held,
        Err(closed) => return closed,
    };
    let request = match read(reader, call.version) {
        Ok(request) => request,
        Err(error) => return Reply::Close(error.to_string()),
    };
    drop(request_bytes);
    match fetch::handle(call, request) {
        Outcome::Now(Reply::Answer(answer)) => Reply::Answer(holding(answer, held)),
        Outcome::Now(reply) => reply,
        waits => {
            drop(held);
            waits.reply().await
        }
    }
}

async fn take(call: &Call, bytes: usize) -> Result<Share, Reply> {
    let (shared, closed) = (&call.shared, |why: String| Err(Reply::Close(why)));
    let patience = Duration::from_millis(shared.settings.socket_request_receive_timeout_ms);
    let wanted = bytes.saturating_mul(TIMES);
    tokio::select! {
        held = shared.answering.take(call.peer.ip(), units(wanted), 0) => held.map_or_else(
            || closed(format!("a fetch of {bytes} bytes takes {wanted}, more than half of queued.max.response.bytes")),
            Ok,
        ),
        () = tokio::time::sleep(patience) => closed(format!(
            "large fetches of its address left it no room within {} ms (queued.max.response.bytes)", patience.as_millis()
        )),
        () = shared.shutdown.wait() => closed("the broker stops".into()),
    }
}

/// The answer with as much of `held` as it takes itself.
fn holding(answer: Answer, mut held: Share) -> Answer {
    held.keep(units(answer.bytes()));
    Answer { held: Some(held), ..answer }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, u32::MAX >> 4)
}
