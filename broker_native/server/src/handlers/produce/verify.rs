//! Before a batch begins a transaction in a partition, the transaction's coordinator is asked (KIP-890): producers of
//! version 2 have the partition added by that, older ones must have added it.
//!
//! Nobody is asked about a batch of a transaction that is open in the partition, and nothing at all happens for requests
//! without a transactional id.
use super::look::Batches;
use crate::call::Call;
use crate::coordinators::Waiting;
use crate::handlers::common::lookup::led;
use pylog_coordinator::transaction::TxnReply;
use pylog_record::header::BatchHeader;
use pylog_storage::Verification;
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::{AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction};

/// From this version on a batch adds its partition to the transaction.
const ADDS_FROM: i16 = 12;
/// From this version on a producer knows TRANSACTION_ABORTABLE.
const ABORTABLE_FROM: i16 = 11;

/// How often the coordinator is asked about one request. While it thinks, the transaction before may end or a partition may
/// come to this broker; then its answer is not about the transaction that begins. Each time takes such an event.
pub const MAX_QUESTIONS: usize = 5;

/// What the transaction's coordinator said about a batch that begins a transaction.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionCheck {
    /// Goes into the append.
    pub verified: Option<Verification>,
    /// The coordinator does not know the partition, or the producer.
    pub error: Option<ErrorCode>,
}

/// A batch that begins a transaction.
struct First {
    /// Which batch of the request.
    place: usize,
    topic: String,
    partition: i32,
    verification: Verification,
}

/// A question to the coordinator.
pub struct CoordinatorQuestion {
    version: i16,
    firsts: Vec<First>,
    waiting: Waiting<TxnReply>,
}

/// Asks about the batches that begin a transaction, except those whose check still holds; `None` when there
/// are none. `topics[i]` is the name of the i-th topic; the batches lie in `bytes`; `checks` has one entry
/// for each of them.
pub fn ask(
    call: &Call,
    batches: &Batches,
    topics: &[Option<String>],
    bytes: &[u8],
    checks: &[TransactionCheck],
) -> Option<CoordinatorQuestion> {
    let Batches { request, ranges, .. } = batches;
    let transactional_id = request.transactional_id.as_ref()?;
    let (mut firsts, mut producer, mut place) = (Vec::new(), None, 0);
    let image = call.shared.topics.now();
    for (asked, name) in request.topic_data.iter().zip(topics) {
        for data in &asked.partition_data {
            let (range, known) = (ranges.get(place).cloned().flatten(), checks.get(place));
            place += 1;
            let Some(header) = range.and_then(|range| bytes.get(range)).and_then(transactional) else {
                continue;
            };
            let (Some(name), id, epoch) = (name, header.producer_id, header.producer_epoch) else { continue };
            let Ok((_, log)) = led(&call.shared, image.named(name), data.index, -1) else { continue };
            let adds = call.version >= ADDS_FROM;
            // A batch that the log would refuse anyway is refused there.
            let Ok(Some(verification)) = log.begin_verification(id, epoch, header.base_sequence, adds) else {
                continue;
            };
            if known.is_some_and(|known| known.error.is_some() || known.verified == Some(verification)) {
                continue;
            }
            producer.get_or_insert((id, epoch));
            firsts.push(First { place: place - 1, topic: name.clone(), partition: data.index, verification });
        }
    }
    let (producer_id, producer_epoch) = producer?;
    let transaction = AddPartitionsToTxnTransaction {
        transactional_id: transactional_id.clone(),
        producer_id,
        producer_epoch,
        verify_only: call.version < ADDS_FROM,
        topics: by_topic(&firsts),
    };
    let waiting = call.shared.coordinators.ask_for_log(call.caller(), transaction);
    Some(CoordinatorQuestion { version: call.version, firsts, waiting })
}

impl CoordinatorQuestion {
    /// Notes the coordinator's answer, when it has come already; or gives the question back.
    pub fn take(mut self, checks: &mut [TransactionCheck]) -> Option<Self> {
        let Some(answer) = self.waiting.take() else { return Some(self) };
        note(checks, self.version, &self.firsts, answer);
        None
    }

    /// Notes the coordinator's answer.
    pub async fn answer(self, checks: &mut [TransactionCheck]) {
        let answer = self.waiting.await;
        note(checks, self.version, &self.firsts, answer);
    }
}

/// The header of a batch that is part of a transaction.
pub fn transactional(batch: &[u8]) -> Option<BatchHeader> {
    BatchHeader::parse(batch).ok().flatten().filter(BatchHeader::is_transactional)
}

fn by_topic(firsts: &[First]) -> Vec<AddPartitionsToTxnTopic> {
    let mut topics: Vec<AddPartitionsToTxnTopic> = Vec::new();
    for first in firsts {
        match topics.last_mut() {
            Some(topic) if topic.name == first.topic => topic.partitions.push(first.partition),
            _ => topics.push(AddPartitionsToTxnTopic {
                name: first.topic.clone(),
                partitions: vec![first.partition],
            }),
        }
    }
    topics
}

fn note(
    checks: &mut [TransactionCheck],
    version: i16,
    firsts: &[First],
    answer: Result<TxnReply, ErrorCode>,
) {
    let error_of = |index: usize| match &answer {
        // Answers stand in the order of the question.
        Ok(TxnReply::AddPartitions(answers)) => {
            answers.get(index).map_or(ErrorCode::UnknownServerError, |(_, error)| *error)
        }
        Ok(_) => ErrorCode::UnknownServerError,
        Err(error) => *error,
    };
    for (index, first) in firsts.iter().enumerate() {
        let Some(check) = checks.get_mut(first.place) else { continue };
        *check = match error_of(index) {
            ErrorCode::None => TransactionCheck { verified: Some(first.verification), error: None },
            error => {
                let error = in_words(error, version >= ABORTABLE_FROM, version >= ADDS_FROM);
                TransactionCheck { verified: None, error: Some(error) }
            }
        };
    }
}

/// The error that makes a producer send its batch again, because the transaction that it begins was not verified.
pub fn unverified(version: i16) -> ErrorCode {
    in_words(ErrorCode::ConcurrentTransactions, version >= ABORTABLE_FROM, version >= ADDS_FROM)
}

/// The coordinator's error, translated for a producer: by whether it knows TRANSACTION_ABORTABLE, and whether it has partitions added
/// (`adds`).
pub fn in_words(error: ErrorCode, knows_abortable: bool, adds: bool) -> ErrorCode {
    match error {
        ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
        ErrorCode::TransactionAbortable if !knows_abortable => ErrorCode::InvalidTxnState,
        ErrorCode::ConcurrentTransactions if adds => error,
        // Retriable, and no reason to refresh the metadata.
        ErrorCode::ConcurrentTransactions
        | ErrorCode::CoordinatorLoadInProgress
        | ErrorCode::CoordinatorNotAvailable
        | ErrorCode::NotCoordinator => ErrorCode::NotEnoughReplicas,
        error => error,
    }
}
