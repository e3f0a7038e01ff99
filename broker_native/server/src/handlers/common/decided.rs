//! What the requests that Python decides have in common: the message goes up as JSON, the answer comes down as JSON.
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::{Call, Outcome, Reply, guarded};
use crate::decide::{Kind, Undecided, ask};
use crate::io::room::holding;
use crate::io::shares::Share;
use crate::notice::{BUG, notice};
use pylog_wire::{ErrorCode, Message};

/// Questions up to this size take no room: the number of those that wait is bounded.
const FREE_BYTES: usize = /* 4 KiB */ 4 << 10;
/// How many times its bytes a question takes: what it was made of, what Python makes of it, the answer.
const TIMES: usize = 16;

/// Asks for a decision; `refused` makes the answer when there is none, from the error and a sentence.
pub fn decided<Q, R>(
    call: Call,
    kind: Kind,
    request: Q,
    timeout_ms: i32,
    refused: fn(&Q, ErrorCode, &str) -> R,
) -> Outcome
where
    Q: Serialize + Send + Sync + 'static,
    R: Message + DeserializeOwned + 'static,
{
    decided_with(call, kind, request, timeout_ms, 0, refused)
}

/// As [`decided`] of a request whose answer has about `answer_bytes`, much more than the request.
pub fn decided_with<Q, R>(
    call: Call,
    kind: Kind,
    request: Q,
    timeout_ms: i32,
    answer_bytes: usize,
    refused: fn(&Q, ErrorCode, &str) -> R,
) -> Outcome
where
    Q: Serialize + Send + Sync + 'static,
    R: Message + DeserializeOwned + 'static,
{
    call.shared.metrics.events.one();
    let question = serde_json::to_string(&request).map_err(|error| Undecided::Malformed(error.to_string()));
    let question = question.and_then(|json| Ok((room_for(&call, json.len(), answer_bytes)?, json)));
    let (held, json) = match question {
        Ok((held, json)) => (held, json),
        // At once, so that nothing of it stays.
        Err(why) => return Outcome::Now(undecided(&call, kind, &request, &why, refused)),
    };
    Outcome::later(async move {
        let asked = ask(call.shared.decider.as_ref(), kind, json, timeout_ms);
        let Some(answer) = guarded(&call.shared, asked).await else {
            return call.answer(&refused(&request, ErrorCode::UnknownServerError, BUG));
        };
        let answer: Result<R, Undecided> = answer.and_then(|json| {
            serde_json::from_str(&json).map_err(|error| Undecided::Malformed(error.to_string()))
        });
        let reply = match answer {
            Ok(answer) => call.answer(&answer),
            Err(why) => undecided(&call, kind, &request, &why, refused),
        };
        match (reply, held) {
            (Reply::Answer(answer), Some(held)) => Reply::Answer(holding(answer, held)),
            (reply, _) => reply,
        }
    })
}

/// What a question of `bytes`, and its answer, may take while it is decided: nobody waits for it, because what it was made of would
/// wait in memory as well.
///
/// # Errors
/// There is no room, or never enough.
pub fn room_for(call: &Call, bytes: usize, answer_bytes: usize) -> Result<Option<Share>, Undecided> {
    let wanted = bytes.saturating_mul(TIMES).saturating_add(answer_bytes);
    if wanted <= FREE_BYTES * TIMES {
        return Ok(None);
    }
    let room = &call.shared.room;
    match room.take_now(call.peer.ip(), wanted) {
        None if room.is_too_small_for(wanted) => Err(Undecided::TooLarge),
        None => Err(Undecided::NoRoom),
        held => Ok(held),
    }
}

fn undecided<Q, R: Message>(
    call: &Call,
    kind: Kind,
    request: &Q,
    why: &Undecided,
    refused: fn(&Q, ErrorCode, &str) -> R,
) -> Reply {
    notice(&format!("no decision about {}: {why}", kind.name()));
    // Each thing that is named gets the sentence, and there may be very many.
    let sentence = match why {
        Undecided::NoRoom => "no room".into(),
        Undecided::TooLarge => "too much at once".into(),
        why => why.to_string(),
    };
    call.answer(&refused(request, code(why), &sentence))
}

fn code(why: &Undecided) -> ErrorCode {
    match why {
        // Retriable: the client asks for the controller again, and finds it after the restart.
        Undecided::Refused | Undecided::NoRoom => ErrorCode::NotController,
        Undecided::TooLarge => ErrorCode::PolicyViolation,
        Undecided::TimedOut(_) => ErrorCode::RequestTimedOut,
        Undecided::Malformed(_) => ErrorCode::UnknownServerError,
    }
}
