//! What the requests that Python decides have in common: the message goes up as JSON, the answer comes down as JSON.
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::{Call, Outcome, Reply, guarded};
use crate::decide::{Kind, Undecided, ask};
use crate::io::room::holding;
use crate::io::shares::Share;
use pylog_log::loggers::REQUEST;
use pylog_log::{BUG, warn};
use pylog_wire::{ErrorCode, Message};

/// Questions up to this size take no room: the number of those that wait is bounded.
const FREE_BYTES: usize = /* 4 KiB */ 4 << 10;
/// How many times its bytes a question takes: what it was made of, what Python makes of it, the answer.
const TIMES: usize = 16;

/// What is to be decided, and what that takes.
#[derive(Debug, Clone, Copy)]
pub struct Decision {
    /// What.
    pub kind: Kind,
    /// The client waits for so long at least.
    pub timeout_ms: i32,
    /// What the answer has, where that is much more than the request.
    pub answer_bytes: usize,
    /// Whether a broker that has lost ZooKeeper cannot decide it.
    pub needs_store: bool,
}

impl From<Kind> for Decision {
    fn from(kind: Kind) -> Self {
        Self { kind, timeout_ms: 0, answer_bytes: 0, needs_store: kind.changes_cluster() }
    }
}

/// Asks for a decision. When there is none, `error_response` makes the answer from the error and a sentence.
pub fn decided<Q, R>(
    call: Call,
    decision: Decision,
    request: Q,
    error_response: fn(&Q, ErrorCode, &str) -> R,
) -> Outcome
where
    Q: Serialize + Send + Sync + 'static,
    R: Message + DeserializeOwned + 'static,
{
    decided_then(call, decision, request, error_response, |_answer| ())
}

/// As [`decided`]; `finish` is handed every answer before it is sent.
pub fn decided_then<Q, R>(
    call: Call,
    decision: Decision,
    request: Q,
    error_response: fn(&Q, ErrorCode, &str) -> R,
    finish: impl FnOnce(&mut R) + Send + 'static,
) -> Outcome
where
    Q: Serialize + Send + Sync + 'static,
    R: Message + DeserializeOwned + 'static,
{
    let Decision { kind, timeout_ms, answer_bytes, needs_store } = decision;
    call.shared.metrics.events.increment();
    let question = match needs_store && !call.shared.cluster.may_lead() {
        // Python's control loop waits for ZooKeeper, longer than clients wait for their answers.
        true => Err(Undecided::CutOff),
        false => question(&call, kind, &request).map_err(|error| Undecided::Malformed(error.to_string())),
    };
    let question = question.and_then(|json| Ok((room_for(&call, json.len(), answer_bytes)?, json)));
    let (held, json) = match question {
        Ok((held, json)) => (held, json),
        // Answered at once, so that the request's memory is freed.
        Err(why) => {
            let mut answer = undecided(&call, kind, &request, &why, error_response);
            finish(&mut answer);
            return Outcome::Now(call.answer(&answer));
        }
    };
    Outcome::later(async move {
        let asked = ask(call.shared.decider.as_ref(), kind, json, timeout_ms);
        let mut answer = match guarded(&call.shared, asked).await.map(|decided| decided.and_then(read)) {
            Some(Ok(answer)) => answer,
            Some(Err(why)) => undecided(&call, kind, &request, &why, error_response),
            None => error_response(&request, ErrorCode::UnknownServerError, BUG),
        };
        finish(&mut answer);
        match (call.answer(&answer), held) {
            (Reply::Answer(answer), Some(held)) => Reply::Answer(holding(answer, held)),
            (reply, _) => reply,
        }
    })
}

/// The JSON of a question.
fn question(call: &Call, kind: Kind, request: &impl Serialize) -> serde_json::Result<String> {
    if !kind.changes_rights() {
        return serde_json::to_string(request);
    }
    let mut question = serde_json::to_value(request)?;
    if let Some(fields) = question.as_object_mut() {
        fields.insert("principal".into(), call.principal.to_string().into());
    }
    serde_json::to_string(&question)
}

/// The memory that a question of `bytes` and its answer take while it is decided. Does not wait for it, because the request would stay in
/// memory while it waits.
///
/// # Errors
/// There is not enough now, or never will be.
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

fn read<R: DeserializeOwned>(json: String) -> Result<R, Undecided> {
    serde_json::from_str(&json).map_err(|error| Undecided::Malformed(error.to_string()))
}

fn undecided<Q, R>(
    call: &Call,
    kind: Kind,
    request: &Q,
    why: &Undecided,
    error_response: fn(&Q, ErrorCode, &str) -> R,
) -> R {
    let (client, kind) = (call.peer.ip(), kind.name());
    warn!(target: REQUEST, %client, "a {kind} request of {client} is not decided: {why}");
    // The sentence is repeated for each thing that the request names, which may be very many.
    let sentence = match why {
        Undecided::NoRoom => "the broker is busy; try again".into(),
        Undecided::TooLarge => "the request is too large; split it".into(),
        why => why.to_string(),
    };
    error_response(request, code(why), &sentence)
}

fn code(why: &Undecided) -> ErrorCode {
    match why {
        // Retriable: the client asks for the controller again, and finds it after the restart.
        Undecided::Refused | Undecided::CutOff | Undecided::NoRoom => ErrorCode::NotController,
        Undecided::TooLarge => ErrorCode::PolicyViolation,
        Undecided::TimedOut(_) => ErrorCode::RequestTimedOut,
        Undecided::Malformed(_) => ErrorCode::UnknownServerError,
    }
}
