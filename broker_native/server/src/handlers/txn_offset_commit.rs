//! TxnOffsetCommit: offsets that count when the producer's transaction commits. The transaction's coordinator is asked first
//! (KIP-890): newer producers have the group's partition added by that, older ones must have added it.
//!
//! KIP-98. Version 2 has the leader's epoch (KIP-320); 3 the member and its generation (KIP-447); 4 knows
//! TRANSACTION_ABORTABLE, and from 5 on the group's partition is added by the coordinator (KIP-890); 6 names topics by id
//! (KIP-1319).
use super::common::group_call::{answer, error_of};
use super::common::lookup::check_topic;
use super::produce::verify::{MAX_QUESTIONS, in_words};
use crate::authorization::table::{
    TXN_OFFSET_COMMIT_GROUP, TXN_OFFSET_COMMIT_TOPIC, TXN_OFFSET_COMMIT_TRANSACTION,
};
use crate::call::{Call, Outcome, Reply};
use crate::coordinators::{GROUPS_TOPIC, Waiting};
use pylog_coordinator::group::{GroupReply, GroupRequest};
use pylog_coordinator::transaction::TxnReply;
use pylog_storage::Verification;
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::{AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction};
use pylog_wire::messages::txn_offset_commit::{
    TxnOffsetCommitRequestTopic, TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use pylog_wire::messages::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};

/// From this version on clients cope with COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296).
const LOADING_IS_KNOWN_FROM: i16 = 2;

/// From this version on the group's partition is added to the transaction.
const ADDS_FROM: i16 = 5;
/// From this version on topics are named by their ids.
const IDS_FROM: i16 = 6;
/// From this version on a producer knows TRANSACTION_ABORTABLE.
const ABORTABLE_FROM: i16 = 4;

/// A question to the transaction's coordinator.
struct CoordinatorQuestion {
    verification: Verification,
    waiting: Waiting<TxnReply>,
}

/// Answers when the offsets are written.
pub fn handle(call: Call, mut request: TxnOffsetCommitRequest) -> Outcome {
    let allowed = call.check(&TXN_OFFSET_COMMIT_TRANSACTION, &request.transactional_id);
    let allowed = allowed.and_then(|()| call.check(&TXN_OFFSET_COMMIT_GROUP, &request.group_id));
    if let Err(error) = allowed {
        let response = error_response(blank_response(&request), error.code());
        return Outcome::Now(call.answer(&response));
    }
    let refused = remove_denied(&call, &mut request);
    if request.topics.is_empty() && !refused.is_empty() {
        return Outcome::Now(call.answer(&TxnOffsetCommitResponse { topics: refused, ..Default::default() }));
    }
    let asked = Asked { request, refused };
    write(call, asked)
}

/// A request without the topics that the client may not read, and the answers about those.
struct Asked {
    request: TxnOffsetCommitRequest,
    refused: Vec<TxnOffsetCommitResponseTopic>,
}

/// Takes out the topics that the client may not read, and answers them.
fn remove_denied(call: &Call, request: &mut TxnOffsetCommitRequest) -> Vec<TxnOffsetCommitResponseTopic> {
    let check = |topic: &TxnOffsetCommitRequestTopic| {
        check_topic(call, &TXN_OFFSET_COMMIT_TOPIC, &topic.name, &topic.topic_id)
    };
    let refused = call.set_aside_with(&mut request.topics, check).into_iter().flat_map(|(topic, error)| {
        let blank = blank_response(&TxnOffsetCommitRequest { topics: vec![topic], ..Default::default() });
        error_response(blank, error.code()).topics
    });
    refused.collect()
}

/// Asks the transaction's coordinator where it has to be asked, and then the group.
fn write(call: Call, asked: Asked) -> Outcome {
    let request = &asked.request;
    if request.group_id.is_empty() {
        return Outcome::Now(reply_error(&call, &asked, ErrorCode::InvalidGroupId));
    }
    let Some(mut question) = ask(&call, request, None) else { return commit(call, asked) };
    if let Some(check) = question.waiting.take() {
        return match refusal_of(call.version, check) {
            None => commit(call, asked),
            Some(error) => Outcome::Now(reply_error(&call, &asked, error)),
        };
    }
    Outcome::in_order(async move {
        for _ in 0..MAX_QUESTIONS {
            let CoordinatorQuestion { verification, waiting } = question;
            if let Some(error) = refusal_of(call.version, waiting.await) {
                return reply_error(&call, &asked, error);
            }
            // The marker of the transaction before may have come meanwhile: then the answer was not about this one.
            match ask(&call, &asked.request, Some(verification)) {
                None => return commit(call, asked).reply().await,
                Some(again) => question = again,
            }
        }
        let again = in_client_words(call.version, ErrorCode::ConcurrentTransactions);
        reply_error(&call, &asked, again)
    })
}

/// Asks the transaction's coordinator; `None` when the transaction is open in the group's partition already, there is no such
/// partition, or the answer about `known` still holds.
fn ask(
    call: &Call,
    request: &TxnOffsetCommitRequest,
    known: Option<Verification>,
) -> Option<CoordinatorQuestion> {
    let groups = &call.shared.coordinators.groups;
    let partition = groups.partition_of(&request.group_id)?;
    let (id, epoch, adds) = (request.producer_id, request.producer_epoch, call.version >= ADDS_FROM);
    let log = groups.shard(partition).map(|shard| std::sync::Arc::clone(&shard.log))?;
    // An epoch that is too old is refused by the append.
    let verification = log.begin_verification(id, epoch, /* none */ -1, adds).ok().flatten()?;
    if known == Some(verification) {
        return None;
    }
    let transaction = AddPartitionsToTxnTransaction {
        transactional_id: request.transactional_id.clone(),
        producer_id: id,
        producer_epoch: epoch,
        verify_only: !adds,
        topics: vec![AddPartitionsToTxnTopic { name: GROUPS_TOPIC.to_owned(), partitions: vec![partition] }],
    };
    Some(CoordinatorQuestion {
        verification,
        waiting: call.shared.coordinators.ask_for_log(call.caller(), transaction),
    })
}

/// Why the offsets are not taken; `None`: they are.
fn refusal_of(version: i16, check: Result<TxnReply, ErrorCode>) -> Option<ErrorCode> {
    let error = match check {
        Ok(TxnReply::AddPartitions(answers)) => answers.first().map_or(ErrorCode::None, |(_, error)| *error),
        Ok(_) => ErrorCode::UnknownServerError,
        Err(error) => error,
    };
    (error != ErrorCode::None).then(|| in_client_words(version, error))
}

fn in_client_words(version: i16, error: ErrorCode) -> ErrorCode {
    match in_words(error, version >= ABORTABLE_FROM, version >= ADDS_FROM) {
        ErrorCode::NotEnoughReplicas => ErrorCode::CoordinatorNotAvailable,
        error => error,
    }
}

fn reply_error(call: &Call, asked: &Asked, error: ErrorCode) -> Reply {
    let mut response = error_where_there(call, blank_response(&asked.request), error.code());
    response.topics.extend_from_slice(&asked.refused);
    call.answer(&response)
}

/// Hands the offsets to the group.
fn commit(call: Call, Asked { request, refused }: Asked) -> Outcome {
    let blank_response = blank_response(&request);
    let (caller, version) = (call.clone(), call.version);
    answer(call, GroupRequest::TxnOffsetCommit(request), move |reply| {
        let mut response = match reply {
            Ok(GroupReply::TxnOffsetCommit(response)) => response,
            Err(ErrorCode::CoordinatorLoadInProgress) if version < LOADING_IS_KNOWN_FROM => {
                error_where_there(&caller, blank_response, ErrorCode::CoordinatorNotAvailable.code())
            }
            other => error_where_there(&caller, blank_response, error_of(other)),
        };
        response.topics.extend(refused);
        response
    })
}

/// The answer to all partitions of the request, still without an error.
fn blank_response(request: &TxnOffsetCommitRequest) -> TxnOffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| TxnOffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| TxnOffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                ..Default::default()
            })
            .collect(),
    });
    TxnOffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}

/// Sets the error of all partitions that exist. The others keep their own, as Kafka looks for them before it asks anybody.
fn error_where_there(
    call: &Call,
    mut response: TxnOffsetCommitResponse,
    error_code: i16,
) -> TxnOffsetCommitResponse {
    let image = call.shared.topics.now();
    let by_id = call.version >= IDS_FROM;
    for topic in &mut response.topics {
        let found = if by_id { image.with_id(&topic.topic_id) } else { image.named(&topic.name) };
        for partition in &mut topic.partitions {
            partition.error_code = match found {
                None if by_id => ErrorCode::UnknownTopicId.code(),
                Some(topic) if topic.partition(partition.partition_index).is_some() => error_code,
                _ => ErrorCode::UnknownTopicOrPartition.code(),
            };
        }
    }
    response
}

fn error_response(mut response: TxnOffsetCommitResponse, error_code: i16) -> TxnOffsetCommitResponse {
    for partition in response.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        partition.error_code = error_code;
    }
    response
}
