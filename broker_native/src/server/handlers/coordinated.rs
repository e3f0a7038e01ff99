//! What the requests that a coordinator answers have in common.
use crate::coordinator::group::{GroupEvent, GroupReply, GroupRequest};
use crate::server::coordinators::Waiting;
use crate::server::dispatch::{Call, Outcome, Reply};
use crate::wire::ErrorCode;

/// Asks the group's machine; it has taken the request when this returns.
pub fn ask_group(call: &Call, request: GroupRequest) -> Waiting<GroupReply> {
    // The request moves into the event, which is made only when the machine is there.
    let group_id = request.group_id().to_owned();
    let groups = &call.shared.coordinators.groups;
    groups.call(&group_id, |ticket| GroupEvent { ticket, caller: call.caller(), request })
}

/// Answers with what `answer` makes of the machine's reply: now if it is there.
pub fn answered<R: Unpin + Send + 'static>(
    call: Call,
    mut waiting: Waiting<R>,
    answer: impl FnOnce(&Call, Result<R, ErrorCode>) -> Reply + Send + 'static,
) -> Outcome {
    match waiting.take() {
        Some(outcome) => Outcome::Now(answer(&call, outcome)),
        None => Outcome::later(async move {
            let outcome = waiting.await;
            answer(&call, outcome)
        }),
    }
}

/// As [`answered`] for many at once, in their order.
pub fn all_answered<R: Unpin + Send + 'static>(
    call: Call,
    waiting: Vec<Waiting<R>>,
    answer: impl FnOnce(&Call, Vec<Result<R, ErrorCode>>) -> Reply + Send + 'static,
) -> Outcome {
    if waiting.iter().all(Waiting::is_there) {
        let there = waiting.into_iter().filter_map(|mut one| one.take());
        return Outcome::Now(answer(&call, there.collect()));
    }
    Outcome::later(async move {
        let mut outcomes = Vec::with_capacity(waiting.len());
        for one in waiting {
            outcomes.push(one.await);
        }
        answer(&call, outcomes)
    })
}
