//! What the handlers of group requests share: ask the machine that keeps the group, answer with what it says.
use super::answered::answered;
use crate::call::{Call, Outcome, Reply};
use crate::coordinators::Waiting;
use pylog_coordinator::group::{GroupEvent, GroupReply, GroupRequest};
use pylog_wire::{ErrorCode, Message};

/// Asks. The machine has taken the request when this returns.
pub fn ask(call: &Call, request: GroupRequest) -> Waiting<GroupReply> {
    let caller = call.caller();
    let group_id = request.group_id().to_owned();
    call.shared.coordinators.groups.call(&group_id, |ticket| GroupEvent { ticket, caller, request })
}

/// Asks, and answers with what `read` makes of the reply: at once when it is there, which is usual.
pub fn answer<R: Message + 'static>(
    call: Call,
    request: GroupRequest,
    read: impl FnOnce(Result<GroupReply, ErrorCode>) -> R + Send + 'static,
) -> Outcome {
    let waiting = ask(&call, request);
    answered(call, waiting, |call, reply| call.answer(&read(reply)))
}

/// The error of a reply that is none, or that belongs to another request (which would be a bug of the broker).
pub fn error_of(reply: Result<GroupReply, ErrorCode>) -> i16 {
    reply.err().unwrap_or(ErrorCode::UnknownServerError).code()
}

/// Answers with what `answer` makes of many replies, in the order of the questions.
pub fn answer_all(
    call: Call,
    waiting: Vec<Waiting<GroupReply>>,
    answer: impl FnOnce(&Call, Vec<Result<GroupReply, ErrorCode>>) -> Reply + Send + 'static,
) -> Outcome {
    if waiting.iter().all(Waiting::is_there) {
        let there = waiting.into_iter().filter_map(|mut reply| reply.take());
        return Outcome::Now(answer(&call, there.collect()));
    }
    Outcome::later(async move {
        let mut outcomes = Vec::with_capacity(waiting.len());
        for reply in waiting {
            outcomes.push(reply.await);
        }
        answer(&call, outcomes)
    })
}
