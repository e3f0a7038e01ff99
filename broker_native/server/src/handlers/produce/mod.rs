//! Produce: checks each partition's batch and appends it where it lies, in the request's own bytes.
//!
//! Appending happens at once, in the order of the connection's requests; only the wait for the disk (`durability=flushed`) or for
//! the replicas in sync (acks=all) is put off, so that requests behind it share it. A batch that begins a transaction may have to wait for the
//! transaction's coordinator; the requests behind it wait with it.
//!
//! Batches of a mirror ([`mirrored`]) go the same way, but keep their offsets.
//!
//! KIP-98. Version 5 has the log's start; 7 allows zstd (KIP-110); 8 names the records at fault (KIP-467); 10 names
//! the current leader to a client that asked another broker (KIP-951); 11 knows TRANSACTION_ABORTABLE, and from 12 on the coordinator adds
//! partitions to a transaction (KIP-890); 13 names topics by id (KIP-516).
mod dead_letters;
mod find;
mod keys;
mod leaders;
mod look;
mod mirrored;
mod rights;
mod schemas;
pub(super) mod verify;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use self::find::find;
use self::keys::{record_errors, refuse_unkeyed};
use self::leaders::{add_current_leaders, next_leader};
use self::look::{AT_ONCE_BYTES, Batches, Looked, MANY, max_bytes, refusal};
use self::verify::{CoordinatorQuestion, MAX_QUESTIONS, TransactionCheck, ask, unverified};
use super::common::lookup::led;
use crate::authorization::table::PRODUCE_TRANSACTION;
use crate::call::{Call, Outcome, Reply, guarded_now};
use crate::errors::{of_batch, of_storage_logged};
use crate::io::frames::Frame;
use crate::state::replication::leader_state::LeaderState;
use crate::state::topics::{Partition, Topic};
use pylog_log::BUG;
use pylog_record::Codec;
use pylog_record::validate::validate_produce;
use pylog_storage::{AppendOptions, Appended, PartitionLog, StorageError};
use pylog_wire::ErrorCode;
use pylog_wire::messages::produce::{PartitionProduceData, PartitionProduceResponse, TopicProduceResponse};
use pylog_wire::messages::{ProduceRequest, ProduceResponse};

/// From this version on batches may be compressed with zstd.
const ZSTD_FROM: i16 = 7;
/// What `acks` says when the replicas in sync must have the record.
const ALL: i16 = -1;
/// Stands for "no offset".
const NO_OFFSET: i64 = -1;

/// Why a batch is not appended: the code, and the sentence for the client.
type Refusal = (ErrorCode, String);

/// An append that is not acknowledged yet.
struct Pending {
    topic: usize,
    partition: usize,
    done: oneshot::Receiver<Result<(), StorageError>>,
    /// Knows whether enough replicas are in sync, when the append waits for them.
    leader_state: Option<Arc<LeaderState>>,
}

/// What was appended, and what is not acknowledged yet.
struct Done {
    response: ProduceResponse,
    pending: Vec<Pending>,
}

/// Appends; answers as `acks` asks.
pub fn handle(call: Call, mut request: ProduceRequest, frame: &mut Frame) -> Outcome {
    let ranges = release_records(&mut request, frame);
    let refusals = rights::refusals(&call, &request);
    let mut batches = Batches { request, ranges, refusals, looked: Vec::new(), is_sure: false };
    let (mut slow, mut is_denied) = (None, false);
    frame.edit(|bytes| {
        is_denied = rights::is_transaction_denied(&call, &batches, bytes);
        if !is_denied
            && (batches.is_of_many()
                || !batches.look(&call, bytes, AT_ONCE_BYTES)
                || batches.must_ask_registry()
                || batches.have_dead_letters())
        {
            slow = Some(bytes.to_vec());
        }
    });
    if is_denied {
        let response = all_denied(&batches.request);
        return finish(call, &batches, Some(Done { response, pending: Vec::new() }));
    }
    match slow {
        Some(bytes) => Outcome::in_order(slowly(call, batches, bytes)),
        None if batches.request.transactional_id.is_some() => in_transaction(call, batches, frame),
        None => {
            let mut done = None;
            frame.edit(|bytes| done = Some(append_all(&call, &mut batches, bytes, &[])));
            finish(call, &batches, done)
        }
    }
}

/// The answer about a transaction that the client may not write in.
fn all_denied(request: &ProduceRequest) -> ProduceResponse {
    let error = PRODUCE_TRANSACTION.error();
    let refusal = || Err((error, error.sentence().to_owned()));
    let responses = request.topic_data.iter().map(|topic| TopicProduceResponse {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partition_responses: topic
            .partition_data
            .iter()
            .map(|data| answered(data.index, refusal()))
            .collect(),
    });
    ProduceResponse { responses: responses.collect(), ..Default::default() }
}

/// As [`handle`] for batches that take long to look at, or that name schemas which are not known here, and for very many of them.
async fn slowly(call: Call, mut batches: Batches, mut bytes: Vec<u8>) -> Reply {
    let mut was_asked = false;
    loop {
        if batches.must_ask_registry() {
            was_asked = true;
            batches.is_sure = call.shared.schema_ids.caught_up(schemas::WAIT).await;
        }
        let caller = call.clone();
        let look = move || {
            batches.look(&caller, &bytes, usize::MAX);
            (batches, bytes)
        };
        match call.shared.slow.run(call.peer.ip(), look).await {
            Ok(looked) => (batches, bytes) = looked,
            Err(not_done) => return not_done.into(),
        }
        if was_asked || !batches.must_ask_registry() {
            break;
        }
    }
    if batches.have_dead_letters() {
        match dead_letters::divert(&call, batches, bytes).await {
            Ok(left) => (batches, bytes) = left,
            Err(not_done) => return not_done.into(),
        }
    }
    let mut checks = Vec::new();
    if batches.request.transactional_id.is_some() {
        checks = vec![TransactionCheck::default(); batches.ranges.len()];
        let names = names(&call, &batches);
        let question = ask(&call, &batches, &names, &bytes, &checks);
        answer_questions(&call, &batches, &names, &bytes, question, &mut checks).await;
    }
    let (caller, is_of_many) = (call.clone(), batches.is_of_many());
    let append = move || {
        let done = append_all(&caller, &mut batches, &mut bytes, &checks);
        (batches, done)
    };
    let appended = if is_of_many { call.shared.slow.run(call.peer.ip(), append).await } else { Ok(append()) };
    match appended {
        Ok((batches, done)) => finish(call, &batches, Some(done)).reply().await,
        Err(not_done) => not_done.into(),
    }
}

/// Asks the transaction's coordinator first, if it has to be asked.
fn in_transaction(call: Call, mut batches: Batches, frame: &mut Frame) -> Outcome {
    let names = names(&call, &batches);
    let mut checks = vec![TransactionCheck::default(); batches.ranges.len()];
    let (mut done, mut later) = (None, None);
    frame.edit(|bytes| {
        let question = ask(&call, &batches, &names, bytes, &checks);
        match question.and_then(|question| question.take(&mut checks)) {
            None => done = Some(append_all(&call, &mut batches, bytes, &checks)),
            // Rare: the transaction before is just ending, or the coordinator is another broker.
            Some(question) => later = Some((question, bytes.to_vec())),
        }
    });
    let Some((question, mut bytes)) = later else { return finish(call, &batches, done) };
    Outcome::in_order(async move {
        answer_questions(&call, &batches, &names, &bytes, Some(question), &mut checks).await;
        let done = append_all(&call, &mut batches, &mut bytes, &checks);
        finish(call, &batches, Some(done)).reply().await
    })
}

/// The names of the request's topics that the client may write to: no other enters its transaction.
fn names(call: &Call, batches: &Batches) -> Vec<Option<String>> {
    let image = call.shared.topics.now();
    let name = |(at, asked)| {
        let found = find(call, &image, asked, refusal(&batches.refusals, at)).ok();
        let found = found.filter(|topic| rights::may_enter_transaction(call, topic));
        found.map(|topic| topic.name.clone())
    };
    batches.request.topic_data.iter().enumerate().map(name).collect()
}

/// Asks the transaction's coordinator until it has answered for all batches that need it.
async fn answer_questions(
    call: &Call,
    batches: &Batches,
    names: &[Option<String>],
    bytes: &[u8],
    mut question: Option<CoordinatorQuestion>,
    checks: &mut [TransactionCheck],
) {
    for _ in 0..MAX_QUESTIONS {
        let Some(asked) = question else { break };
        asked.answer(checks).await;
        // The marker of the transaction before may have come meanwhile, or a partition from another broker.
        question = ask(call, batches, names, bytes, checks);
    }
}

/// Appends every batch of the request; `checks` are in their order, and empty outside of transactions.
fn append_all(call: &Call, batches: &mut Batches, bytes: &mut [u8], checks: &[TransactionCheck]) -> Done {
    let Batches { request, ranges, refusals, looked, .. } = batches;
    let topics = call.shared.topics.now();
    let (mut ranges, mut checks, mut looked) = (ranges.iter(), checks.iter().copied(), looked.drain(..));
    let mut pending = Vec::new();
    let mut sentences = 0;
    let mut responses = Vec::with_capacity(request.topic_data.len());
    for (at, asked) in request.topic_data.iter().enumerate() {
        let topic = find(call, &topics, asked, refusal(refusals, at));
        let mut partition_responses = Vec::with_capacity(asked.partition_data.len());
        for (place, data) in asked.partition_data.iter().enumerate() {
            let batch = ranges.next().cloned().flatten().and_then(|range| bytes.get_mut(range));
            let (check, mut looked) = (checks.next().unwrap_or_default(), looked.next().unwrap_or_default());
            let appending = || append(call, request, topic, data, batch, &mut looked, check);
            // The log of this partition is poisoned by the panic; the other partitions are not affected.
            let outcome = guarded_now(&call.shared, appending)
                .unwrap_or_else(|| Err((ErrorCode::UnknownServerError, BUG.to_owned())));
            if let Ok((partition, log, appended)) = &outcome
                && let Some((done, leader_state)) = wait(request.acks, partition, log, appended)
            {
                pending.push(Pending { topic: at, partition: place, done, leader_state });
            }
            let mut answer = answered(data.index, outcome.map(|(_, _, appended)| appended));
            if mirrored::is_mirror(request) {
                answer.log_end_offset = mirrored::log_end_offset(call, topic, data.index);
            }
            if has_log_start(answer.error_code) {
                answer.log_start_offset = log_start_offset(call, topic, data.index);
            }
            if let (Ok(topic), true) = (topic, answer.error_code == ErrorCode::InvalidRecord.code()) {
                answer.record_errors = record_errors(&topic.name, data.index, &looked.unkeyed);
                if let (Some(faults), true) = (&looked.faults, looked.unkeyed.is_empty()) {
                    answer.record_errors = faults.record_errors(&topic.name);
                }
            }
            sentences += usize::from(answer.error_message.is_some());
            answer.error_message = answer.error_message.filter(|_| sentences <= MANY);
            partition_responses.push(answer);
        }
        let (name, topic_id) = (asked.name.clone(), asked.topic_id);
        responses.push(TopicProduceResponse { name, topic_id, partition_responses });
    }
    Done { response: ProduceResponse { responses, ..Default::default() }, pending }
}

fn finish(call: Call, batches: &Batches, done: Option<Done>) -> Outcome {
    let request = &batches.request;
    let Some(Done { mut response, pending }) = done else {
        return Outcome::Now(Reply::Close("a bug of the broker: nothing was appended".into()));
    };
    match (request.acks, pending.is_empty()) {
        (0, _) => Outcome::Now(without_answer(&call, &response)),
        (_, true) => {
            add_current_leaders(&call, &mut response);
            Outcome::Now(call.answer(&response))
        }
        (_, false) => {
            let waits = Box::pin(when_acknowledged(call, response, pending, request.timeout_ms));
            // The records are in the log; the answer to many partitions may be as large as they were.
            if batches.is_of_many() { Outcome::Later(waits) } else { Outcome::Freed(waits) }
        }
    }
}

/// Where the batches lie in the frame, in the order of the request. Lets go of the slices, so that the frame is nobody
/// else's and can be changed in place.
fn release_records(request: &mut ProduceRequest, frame: &Frame) -> Vec<Option<Range<usize>>> {
    let partitions = request.topic_data.iter_mut().flat_map(|topic| &mut topic.partition_data);
    partitions.map(|data| data.records.take().and_then(|records| frame.range_of(&records))).collect()
}

/// Checks and appends one batch.
fn append<'a>(
    call: &Call,
    request: &ProduceRequest,
    topic: Result<&'a Arc<Topic>, ErrorCode>,
    data: &PartitionProduceData,
    batch: Option<&mut [u8]>,
    looked: &mut Looked,
    check: TransactionCheck,
) -> Result<(&'a Partition, &'a Arc<PartitionLog>, Appended), Refusal> {
    let plain = |code: ErrorCode| (code, code.sentence().to_owned());
    if !matches!(request.acks, -1..=1) && !mirrored::is_mirror(request) {
        return Err(plain(ErrorCode::InvalidRequiredAcks));
    }
    let topic = topic.map_err(plain)?;
    rights::check_internal(call, topic)?;
    let (partition, log) = led(&call.shared, Some(topic), data.index, -1).map_err(plain)?;
    if let Some(leader_state) = &partition.leader_state
        && waits_for_all(request.acks)
        && leader_state.is_under_min_isr()
    {
        return Err(plain(ErrorCode::NotEnoughReplicas));
    }
    if mirrored::is_mirror(request) {
        let appended = mirrored::append(request, partition, log, data.mirrored_from, batch)?;
        call.shared.metrics.batches_in.increment();
        return Ok((partition, log, appended));
    }
    let batch = batch
        .ok_or_else(|| (ErrorCode::InvalidRecord, "the request has no batch for the partition".into()))?;
    // A log that came to this broker since is looked at here.
    let info = looked.info.take().unwrap_or_else(|| validate_produce(batch, max_bytes(log)));
    let mut info = info.map_err(|error| (of_batch(&error), error.to_string()))?;
    if info.codec == Codec::Zstd && call.version < ZSTD_FROM {
        return Err(plain(ErrorCode::UnsupportedCompressionType));
    }
    if info.header.is_transactional() && request.transactional_id.is_none() {
        // Nobody could be asked whether it belongs to a transaction.
        return Err(plain(ErrorCode::TransactionalIdAuthorizationFailed));
    }
    refuse_unkeyed(log, &info)?;
    schemas::refuse(log, looked.faults.as_ref(), looked.is_sure, looked.not_diverted.as_ref())?;
    if info.max_timestamp != info.header.max_timestamp {
        info.header.set_max_timestamp(batch, info.max_timestamp);
    }
    if let Some(code) = check.error {
        return Err(plain(code));
    }
    let how = AppendOptions {
        verified: check.verified,
        min_timestamp: Some(info.min_timestamp),
        ..AppendOptions::client(partition.spec.leader_epoch)
    };
    let appended = log.append(batch, how).map_err(|error| match error {
        StorageError::Unverified { .. } => (unverified(call.version), error.to_string()),
        error => refusal_of(&error),
    })?;
    let metrics = &call.shared.metrics;
    metrics.batches_in.increment();
    metrics.records_in.add(u64::try_from(info.records_count).unwrap_or(0));
    Ok((partition, log, appended))
}

/// Whether the answer waits for the replicas in sync.
fn waits_for_all(acks: i16) -> bool {
    matches!(acks, ALL | mirrored::ACKS)
}

fn refusal_of(error: &StorageError) -> Refusal {
    (of_storage_logged(error), error.to_string())
}

fn answered(index: i32, outcome: Result<Appended, Refusal>) -> PartitionProduceResponse {
    match outcome {
        Ok(appended) => PartitionProduceResponse {
            index,
            base_offset: appended.base_offset,
            log_append_time_ms: appended.log_append_time_ms,
            log_start_offset: appended.log_start_offset,
            ..Default::default()
        },
        Err((error, sentence)) => PartitionProduceResponse {
            index,
            error_code: error.code(),
            base_offset: NO_OFFSET,
            error_message: Some(sentence),
            ..Default::default()
        },
    }
}

/// Whether an error's answer has the log's start; Kafka sends it with errors that it finds when it looks at the log.
fn has_log_start(error_code: i16) -> bool {
    use ErrorCode::{
        InvalidProducerEpoch, InvalidRecord, InvalidTimestamp, InvalidTxnState, OutOfOrderSequenceNumber,
        UnknownProducerId, UnsupportedCompressionType,
    };
    let after_a_look_at_the_log = [
        InvalidProducerEpoch,
        InvalidRecord,
        InvalidTimestamp,
        InvalidTxnState,
        OutOfOrderSequenceNumber,
        UnknownProducerId,
        UnsupportedCompressionType,
    ];
    after_a_look_at_the_log.iter().any(|error| error.code() == error_code)
}

fn log_start_offset(call: &Call, topic: Result<&Arc<Topic>, ErrorCode>, number: i32) -> i64 {
    let found = topic.and_then(|topic| led(&call.shared, Some(topic), number, -1));
    found.map_or(NO_OFFSET, |(_, log)| log.offsets().log_start_offset)
}

/// With acks=0 the connection is closed after an error, as in Kafka: there is no answer that could report it.
fn without_answer(call: &Call, response: &ProduceResponse) -> Reply {
    let mut partitions = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    match partitions.find(|partition| partition.error_code != ErrorCode::None.code()) {
        None => call.no_answer(),
        Some(partition) => Reply::Close(format!(
            "a batch sent with acks=0 for partition {} was refused: {}",
            partition.index,
            partition.error_message.as_deref().unwrap_or("no reason")
        )),
    }
}

/// What the answer has to wait for, if anything: the disk of `durability=flushed`, the replicas in sync of acks=all.
#[allow(clippy::type_complexity)]
fn wait(
    acks: i16,
    partition: &Partition,
    log: &PartitionLog,
    appended: &Appended,
) -> Option<(oneshot::Receiver<Result<(), StorageError>>, Option<Arc<LeaderState>>)> {
    let leader_state = partition.leader_state.as_ref().filter(|_| waits_for_all(acks));
    if acks == 0 || (leader_state.is_none() && !log.is_flushed()) {
        return None;
    }
    let (done, acknowledged) = oneshot::channel();
    let notify = Box::new(move |result| {
        // Nobody waits any more when the connection is gone.
        let _ = done.send(result);
    });
    match leader_state {
        // Not led all the time since: another record may stand there.
        Some(_) => log.wait_committed(partition.spec.leader_epoch, appended.last_offset, notify),
        None => log.wait_durable(appended.last_offset, notify),
    }
    Some((acknowledged, leader_state.cloned()))
}

/// Waits until one append is acknowledged. It fails when the log fails, when it takes too long, or when this broker may no longer
/// lead: the followers then copy what another leader writes, so nothing more is acknowledged here.
async fn acknowledged(call: &Call, pending: Pending, deadline: tokio::time::Instant) -> Result<(), Refusal> {
    let plain = |error: ErrorCode| (error, error.sentence().into());
    let outcome = tokio::select! {
        biased;
        outcome = tokio::time::timeout_at(deadline, pending.done) => outcome,
        () = call.shared.cluster.lease_over(), if pending.leader_state.is_some() => {
            return Err(plain(ErrorCode::NotLeaderOrFollower));
        }
    };
    if let (Some(leader_state), Ok(Ok(Err(StorageError::NotLeader { .. })))) =
        (&pending.leader_state, &outcome)
    {
        next_leader(call, leader_state).await;
    }
    match outcome {
        Ok(Ok(Ok(())))
            if pending.leader_state.is_some_and(|leader_state| leader_state.is_under_min_isr()) =>
        {
            Err(plain(ErrorCode::NotEnoughReplicasAfterAppend))
        }
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(error))) => Err(refusal_of(&error)),
        Ok(Err(_dropped)) => Err((ErrorCode::KafkaStorageError, "the log was closed before the sync".into())),
        Err(_elapsed) => Err(plain(ErrorCode::RequestTimedOut)),
    }
}

/// Answers when every append is acknowledged or has failed, or when the request's timeout is over.
async fn when_acknowledged(
    call: Call,
    mut response: ProduceResponse,
    pending: Vec<Pending>,
    timeout_ms: i32,
) -> Reply {
    let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
    let deadline = tokio::time::Instant::now() + timeout;
    for append in pending {
        let (topic, partition) = (append.topic, append.partition);
        let Err(failure) = acknowledged(&call, append, deadline).await else { continue };
        let slot = response.responses.get_mut(topic).and_then(|t| t.partition_responses.get_mut(partition));
        if let Some(slot) = slot {
            *slot = answered(slot.index, Err(failure));
        }
    }
    add_current_leaders(&call, &mut response);
    call.answer(&response)
}
