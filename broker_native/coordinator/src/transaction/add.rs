//! Partitions become part of a transaction, or are asked about.
use super::machine::{Purpose, TransactionMachine, TxnEffects, WaitingRequest};
use super::metadata::{TxnMetadata, TxnPartitions, partitions_cost};
use super::requests::{TransactionVersion, TxnReply, TxnRequest};
use super::state::TxnState;
use crate::Ticket;
use pylog_record::TopicPartition;
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::AddPartitionsToTxnTransaction;

/// A topic, a partition and what became of it.
type Answers = Vec<(TopicPartition, ErrorCode)>;

impl TransactionMachine {
    /// Answers now, or when the transaction before is over.
    pub(super) fn add_or_wait(
        &mut self,
        ticket: Ticket,
        request: TxnRequest,
        now_ms: i64,
        effects: &mut TxnEffects,
    ) {
        let TxnRequest::AddPartitions { transaction, transaction_version, patient } = &request else {
            return;
        };
        let transactional_id = transaction.transactional_id.clone();
        let ends =
            self.transactions.get(&transactional_id).is_some_and(|metadata| metadata.state.is_ending());
        if *patient && !transaction.verify_only && ends {
            let patience_ms = self.settings.add_partitions_to_txn_retry_backoff_max_ms;
            let until_ms = self.now.steady_ms.saturating_add(patience_ms);
            let key = (transactional_id.clone(), Purpose::WaitOver);
            if self.timers.deadline_ms(&key).is_none() {
                self.timers.set(key, until_ms);
            }
            self.waiting.entry(transactional_id).or_default().push(WaitingRequest {
                ticket,
                request,
                until_ms,
            });
            return;
        }
        let answers = self.add(transaction, *transaction_version, now_ms, effects);
        effects.reply(ticket, TxnReply::AddPartitions(answers));
    }

    /// The transaction is over: requests that waited for that are answered.
    pub(super) fn end_waiting(&mut self, transactional_id: &str, now_ms: i64, effects: &mut TxnEffects) {
        self.timers.cancel(&(transactional_id.to_owned(), Purpose::WaitOver));
        for WaitingRequest { ticket, request, .. } in
            self.waiting.remove(transactional_id).unwrap_or_default()
        {
            self.add_or_wait(ticket, request, now_ms, effects);
        }
    }

    /// Answers requests whose time is over: they are to come again.
    pub(super) fn give_up_waiting(&mut self, transactional_id: &str, effects: &mut TxnEffects) {
        let now_ms = self.now.steady_ms;
        let all = self.waiting.remove(transactional_id).unwrap_or_default();
        let (over, still): (Vec<_>, Vec<_>) = all.into_iter().partition(|request| request.until_ms <= now_ms);
        for WaitingRequest { ticket, request, .. } in over {
            if let TxnRequest::AddPartitions { transaction, .. } = request {
                let answers = answer_all(&transaction, ErrorCode::ConcurrentTransactions);
                effects.reply(ticket, TxnReply::AddPartitions(answers));
            }
        }
        if let Some(until_ms) = still.iter().map(|request| request.until_ms).min() {
            self.timers.set((transactional_id.to_owned(), Purpose::WaitOver), until_ms);
            self.waiting.insert(transactional_id.to_owned(), still);
        }
    }

    fn add(
        &mut self,
        asked: &AddPartitionsToTxnTransaction,
        version: TransactionVersion,
        now_ms: i64,
        effects: &mut TxnEffects,
    ) -> Answers {
        let outcome = match asked.verify_only {
            true => self.verify(asked),
            false => {
                self.try_add(asked, version, now_ms, effects).map(|()| answer_all(asked, ErrorCode::None))
            }
        };
        outcome.unwrap_or_else(|error| answer_all(asked, error))
    }

    fn try_add(
        &mut self,
        asked: &AddPartitionsToTxnTransaction,
        version: TransactionVersion,
        now_ms: i64,
        effects: &mut TxnEffects,
    ) -> Result<(), ErrorCode> {
        if asked.transactional_id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        let metadata =
            self.transactions.get_mut(&asked.transactional_id).ok_or(ErrorCode::InvalidProducerIdMapping)?;
        // First of all: the producer may go on with an id that comes into force when the end is complete.
        if metadata.state.is_ending() {
            return Err(ErrorCode::ConcurrentTransactions);
        }
        check_speaker(metadata, asked)?;
        let partitions = partitions(asked);
        if metadata.state == TxnState::Ongoing && metadata.contains(&partitions) {
            return Ok(());
        }
        if !self.room.has_reserve(partitions_cost(&partitions)) {
            return Err(ErrorCode::PolicyViolation);
        }
        metadata.add(partitions, version, now_ms);
        self.changed(&asked.transactional_id, effects);
        Ok(())
    }

    /// Which of the partitions are part of the transaction. Says nothing about pending ends: the log looks at those when
    /// it appends.
    fn verify(&self, asked: &AddPartitionsToTxnTransaction) -> Result<Answers, ErrorCode> {
        if asked.transactional_id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        let metadata =
            self.transactions.get(&asked.transactional_id).ok_or(ErrorCode::InvalidProducerIdMapping)?;
        check_speaker(metadata, asked)?;
        if metadata.state.is_ending() {
            return Err(ErrorCode::ConcurrentTransactions);
        }
        let is_part = |topic: &str, partition: i32| {
            let known = metadata.partitions.get(topic).is_some_and(|known| known.contains(&partition));
            if known { ErrorCode::None } else { ErrorCode::TransactionAbortable }
        };
        Ok(answer_each(asked, is_part))
    }
}

fn check_speaker(metadata: &TxnMetadata, asked: &AddPartitionsToTxnTransaction) -> Result<(), ErrorCode> {
    let speaker = metadata.speaker();
    if speaker.id != asked.producer_id {
        return Err(ErrorCode::InvalidProducerIdMapping);
    }
    if speaker.epoch != asked.producer_epoch {
        return Err(ErrorCode::ProducerFenced);
    }
    if speaker != metadata.producer {
        // The transaction was prepared by the producer's former life: it can only be ended.
        return Err(ErrorCode::InvalidTxnState);
    }
    Ok(())
}

fn partitions(asked: &AddPartitionsToTxnTransaction) -> TxnPartitions {
    let mut partitions = TxnPartitions::new();
    for topic in &asked.topics {
        partitions.entry(topic.name.clone()).or_default().extend(&topic.partitions);
    }
    partitions
}

fn answer_all(asked: &AddPartitionsToTxnTransaction, error: ErrorCode) -> Answers {
    answer_each(asked, |_, _| error)
}

fn answer_each(asked: &AddPartitionsToTxnTransaction, error: impl Fn(&str, i32) -> ErrorCode) -> Answers {
    let of_topic = |name: &str, partitions: &[i32]| -> Answers {
        partitions.iter().map(|&number| (TopicPartition::new(name, number), error(name, number))).collect()
    };
    asked.topics.iter().flat_map(|topic| of_topic(&topic.name, &topic.partitions)).collect()
}
