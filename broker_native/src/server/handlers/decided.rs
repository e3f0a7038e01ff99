//! What the requests that Python decides have in common: the message goes up as JSON, the answer comes down as JSON.
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::server::decide::{Kind, Undecided, ask};
use crate::server::dispatch::{Call, Outcome, guarded};
use crate::server::notice::{BUG, notice};
use crate::wire::{ErrorCode, Message};

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
    call.shared.metrics.events.one();
    let question = serde_json::to_string(&request).map_err(|error| Undecided::Malformed(error.to_string()));
    Outcome::later(async move {
        let answer = match question {
            Ok(json) => {
                let asked = ask(call.shared.decider.as_ref(), kind, json, timeout_ms);
                match guarded(&call.shared, asked).await {
                    Some(answer) => answer,
                    None => return call.answer(&refused(&request, ErrorCode::UnknownServerError, BUG)),
                }
            }
            Err(error) => Err(error),
        };
        let answer = answer.and_then(|json| {
            serde_json::from_str(&json).map_err(|error| Undecided::Malformed(error.to_string()))
        });
        call.answer(&answer.unwrap_or_else(|why| {
            notice(&format!("no decision about {}: {why}", kind.name()));
            refused(&request, code(&why), &why.to_string())
        }))
    })
}

fn code(why: &Undecided) -> ErrorCode {
    match why {
        // Retriable: the client asks for the controller again, and finds it after the restart.
        Undecided::Refused => ErrorCode::NotController,
        Undecided::TimedOut(_) => ErrorCode::RequestTimedOut,
        Undecided::Malformed(_) => ErrorCode::UnknownServerError,
    }
}
