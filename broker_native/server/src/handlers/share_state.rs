//! InitializeShareGroupState, ReadShareGroupState, WriteShareGroupState, DeleteShareGroupState and ReadShareGroupStateSummary: leaders
//! of partitions, and coordinators of groups, ask the broker that keeps the states of share partitions.
//!
//! KIP-932. Version 1 of writes and of summaries has how many records behind the start are done with (KIP-1226).
use uuid::Uuid;

use super::common::share_admin::{NAMED_MAX, check_kept};
use crate::authorization::table::{
    DELETE_SHARE_GROUP_STATE_CLUSTER, INITIALIZE_SHARE_GROUP_STATE_CLUSTER, READ_SHARE_GROUP_STATE_CLUSTER,
    READ_SHARE_GROUP_STATE_SUMMARY_CLUSTER, WRITE_SHARE_GROUP_STATE_CLUSTER,
};
use crate::call::{Call, Outcome};
use crate::coordinators::Waiting;
use crate::coordinators::share::remote::NOT_THERE;
use pylog_coordinator::share::ShareKey;
use pylog_coordinator::share::state_requests::{
    StateEvent, StateReply, StateRequest, StoredState, UNKNOWN, Written,
};
use pylog_wire::messages::{
    delete_share_group_state, initialize_share_group_state, read_share_group_state,
    read_share_group_state_summary, write_share_group_state,
};
use pylog_wire::{ErrorCode, messages};

/// Asks the machine of this broker that keeps the state.
fn begin(
    call: &Call,
    group_id: &str,
    topic_id: Uuid,
    partition: i32,
    request: StateRequest,
) -> Waiting<StateReply> {
    let makes = matches!(request, StateRequest::Initialize { .. });
    let is_senseless = group_id.is_empty() || topic_id.is_nil() || partition < 0;
    if is_senseless {
        return Waiting::now(Err(ErrorCode::InvalidRequest));
    }
    // The broker that asks knew the cluster's new level before this one does.
    if check_kept(call).is_err() {
        return Waiting::now(Err(ErrorCode::CoordinatorNotAvailable));
    }
    let image = call.shared.topics.now();
    // This broker may hear of a topic later than the one that leads it.
    if makes && image.with_id(&topic_id).and_then(|topic| topic.partition(partition)).is_none() {
        return Waiting::now(Err(ErrorCode::UnknownTopicOrPartition));
    }
    let key = ShareKey { group_id: group_id.to_owned(), topic_id, partition };
    let sets = makes || request == StateRequest::Delete;
    let event = |ticket| StateEvent { ticket, key: key.clone(), request };
    let waiting = call.shared.coordinators.shares.call(&key.text(), event);
    if sets {
        // What is led here of it is read anew.
        call.shared.coordinators.share_partitions.forget(&key);
    }
    waiting
}

/// The error of an answer, or none.
fn error_of(answer: &Result<StateReply, ErrorCode>) -> ErrorCode {
    match answer {
        Ok(StateReply::Done(code)) | Ok(StateReply::Read(Err(code))) | Err(code) => *code,
        Ok(StateReply::Read(Ok(_)) | StateReply::Summary(_)) => ErrorCode::None,
    }
}

/// Declares the handler of one of the requests: what a partition of it asks, and what the answer has besides its error.
macro_rules! keeper_of {
    ($(#[$doc:meta])* $name:ident, $right:ident, $request:ident -> $response:ident, $module:ident :: $topic:ident,
        |$one:ident| $asks:expr, $fill:ident) => {
        $(#[$doc])*
        pub fn $name(call: Call, request: messages::$request) -> Outcome {
            let group_id = request.group_id;
            if request.topics.iter().map(|topic| topic.partitions.len()).sum::<usize>() > NAMED_MAX {
                // Brokers ask for fewer.
                return Outcome::Now(call.answer(&messages::$response::default()));
            }
            let refused = call.check_cluster(&$right).err();
            let mut asked = Vec::new();
            for topic in request.topics {
                let of_partition = |$one: $module::PartitionData| {
                    let partition = $one.partition;
                    let asks = $asks;
                    match refused {
                        Some(error) => (partition, Waiting::now(Err(error))),
                        None => (partition, begin(&call, &group_id, topic.topic_id, partition, asks)),
                    }
                };
                asked.push((topic.topic_id, topic.partitions.into_iter().map(of_partition).collect::<Vec<_>>()));
            }
            Outcome::later(async move {
                let mut results = Vec::with_capacity(asked.len());
                for (topic_id, waiting) in asked {
                    let mut partitions = Vec::with_capacity(waiting.len());
                    for (partition, waiting) in waiting {
                        let answer = waiting.await;
                        let error = error_of(&answer);
                        let mut result = $module::PartitionResult::default();
                        result.partition = partition;
                        result.error_code = error.code();
                        result.error_message = (error != ErrorCode::None).then(|| error.sentence().to_owned());
                        $fill(answer, &mut result);
                        partitions.push(result);
                    }
                    results.push($module::$topic { topic_id, partitions });
                }
                call.answer(&messages::$response { results })
            })
        }
    };
}

keeper_of!(
    /// Answers when the states are initialized.
    initialize, INITIALIZE_SHARE_GROUP_STATE_CLUSTER, InitializeShareGroupStateRequest -> InitializeShareGroupStateResponse,
    initialize_share_group_state::InitializeStateResult,
    |one| StateRequest::Initialize { state_epoch: one.state_epoch, start_offset: one.start_offset },
    nothing_more
);
keeper_of!(
    /// Answers when leaders of earlier epochs are fenced.
    read, READ_SHARE_GROUP_STATE_CLUSTER, ReadShareGroupStateRequest -> ReadShareGroupStateResponse,
    read_share_group_state::ReadStateResult,
    |one| StateRequest::Read { leader_epoch: one.leader_epoch },
    fill_state
);
keeper_of!(
    /// Answers when the change is written to the log.
    write, WRITE_SHARE_GROUP_STATE_CLUSTER, WriteShareGroupStateRequest -> WriteShareGroupStateResponse,
    write_share_group_state::WriteStateResult,
    |one| StateRequest::Write(Written {
        state_epoch: one.state_epoch,
        leader_epoch: one.leader_epoch,
        start_offset: one.start_offset,
        batches: one.state_batches,
    }),
    nothing_more
);
keeper_of!(
    /// Answers when they are forgotten.
    delete, DELETE_SHARE_GROUP_STATE_CLUSTER, DeleteShareGroupStateRequest -> DeleteShareGroupStateResponse,
    delete_share_group_state::DeleteStateResult,
    |one| StateRequest::Delete,
    nothing_more
);
keeper_of!(
    /// Answers how far the group is.
    summary, READ_SHARE_GROUP_STATE_SUMMARY_CLUSTER, ReadShareGroupStateSummaryRequest -> ReadShareGroupStateSummaryResponse,
    read_share_group_state_summary::ReadStateSummaryResult,
    |one| StateRequest::Summary,
    fill_summary
);

fn nothing_more<T>(_answer: Result<StateReply, ErrorCode>, _result: &mut T) {}

fn fill_state(answer: Result<StateReply, ErrorCode>, result: &mut read_share_group_state::PartitionResult) {
    if let Ok(StateReply::Read(Ok(StoredState { state_epoch, start_offset, batches }))) = answer {
        (result.state_epoch, result.start_offset, result.state_batches) =
            (state_epoch, start_offset, batches);
    }
}

fn fill_summary(
    answer: Result<StateReply, ErrorCode>,
    result: &mut read_share_group_state_summary::PartitionResult,
) {
    if answer == Err(READ_SHARE_GROUP_STATE_SUMMARY_CLUSTER.error()) {
        // Who is refused is told nothing of a state, not even that there is none.
        return;
    }
    (result.state_epoch, result.start_offset) = (NOT_THERE, UNKNOWN);
    if let Ok(StateReply::Summary(Some(kept))) = answer {
        (result.state_epoch, result.leader_epoch) = (kept.state_epoch, kept.leader_epoch);
        (result.start_offset, result.delivery_complete_count) = (kept.start_offset, kept.complete_count);
    }
}
