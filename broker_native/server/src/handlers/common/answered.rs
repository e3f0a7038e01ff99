//! An answer that waits for a coordinator's machine.
use crate::call::{Call, Outcome, Reply};
use crate::coordinators::Waiting;
use pylog_wire::ErrorCode;

/// Answers with what `reply` makes of the machine's answer: at once when it is there, which is usual.
pub fn answered<R: Send + Unpin + 'static>(
    call: Call,
    mut waiting: Waiting<R>,
    reply: impl FnOnce(&Call, Result<R, ErrorCode>) -> Reply + Send + 'static,
) -> Outcome {
    match waiting.take() {
        Some(answer) => Outcome::Now(reply(&call, answer)),
        None => Outcome::later(async move { reply(&call, waiting.await) }),
    }
}
