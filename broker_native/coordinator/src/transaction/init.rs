//! InitProducerId with a transactional id: the last one to ask is the producer, and the one before is fenced.
use super::machine::{TransactionMachine, TxnEffects};
use super::metadata::{NEVER_MS, NO_ID, NONE, ProducerIdentity, TxnMetadata, TxnPartitions, cost};
use super::state::TxnState;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{InitProducerIdRequest, InitProducerIdResponse};

/// What InitProducerId answers: who the producer is, and whose transaction is open when it keeps one.
struct Initialised {
    producer: ProducerIdentity,
    ongoing: Option<ProducerIdentity>,
}

impl TransactionMachine {
    pub(super) fn init_producer_id(
        &mut self,
        request: &InitProducerIdRequest,
        now_ms: i64,
        effects: &mut TxnEffects,
    ) -> InitProducerIdResponse {
        match self.try_init(request, now_ms, effects) {
            Ok(Initialised { producer, ongoing }) => InitProducerIdResponse {
                producer_id: producer.id,
                producer_epoch: producer.epoch,
                ongoing_txn_producer_id: ongoing.map_or(NO_ID, |ongoing| ongoing.id),
                ongoing_txn_producer_epoch: ongoing.map_or(NONE, |ongoing| ongoing.epoch),
                ..Default::default()
            },
            Err(error) => InitProducerIdResponse {
                error_code: error.code(),
                producer_epoch: NONE,
                ..Default::default()
            },
        }
    }

    fn try_init(
        &mut self,
        request: &InitProducerIdRequest,
        now_ms: i64,
        effects: &mut TxnEffects,
    ) -> Result<Initialised, ErrorCode> {
        let timeout_ms = self.allowed_timeout_ms(request)?;
        let expected = expected(request)?;
        let transactional_id = request.transactional_id.as_deref().unwrap_or_default();
        let metadata = match self.transactions.get_mut(transactional_id) {
            Some(metadata) => metadata,
            None if !self.room.has(cost(transactional_id, &TxnPartitions::new())) => {
                return Err(ErrorCode::PolicyViolation);
            }
            None => {
                let metadata = TxnMetadata::new(self.ids.next()?, now_ms);
                self.transactions.entry(transactional_id.to_owned()).or_insert(metadata)
            }
        };
        if metadata.state.is_ending() {
            return Err(ErrorCode::ConcurrentTransactions);
        }
        if expected.is_some_and(|expected| !metadata.is_or_was(expected)) {
            return Err(ErrorCode::ProducerFenced);
        }
        let mut ongoing = None;
        if metadata.state == TxnState::Ongoing {
            if !request.keep_prepared_txn {
                // The producer comes again when the abort is over, and only then gets an epoch.
                self.fence(transactional_id, now_ms, effects);
                return Err(ErrorCode::ConcurrentTransactions);
            }
            let speaker = metadata.speaker();
            let next = match speaker.is_exhausted() {
                true => ProducerIdentity { id: self.ids.next()?, epoch: 0 },
                false => speaker.raised(),
            };
            ongoing = Some(metadata.producer);
            metadata.keep(next, timeout_ms, now_ms);
        } else if metadata.must_rotate(expected) {
            metadata.rotate(self.ids.next()?, expected.is_some(), timeout_ms, now_ms);
        } else {
            metadata.raise_epoch(expected.map(|expected| expected.epoch), timeout_ms, now_ms)?;
        }
        let producer = metadata.speaker();
        self.changed(transactional_id, effects);
        Ok(Initialised { producer, ongoing })
    }

    fn allowed_timeout_ms(&self, request: &InitProducerIdRequest) -> Result<i32, ErrorCode> {
        if request.transactional_id.as_deref().is_none_or(str::is_empty) {
            return Err(ErrorCode::InvalidRequest);
        }
        if !self.settings.transaction_two_phase_commit_enable {
            if request.enable_2_pc {
                return Err(ErrorCode::TransactionalIdAuthorizationFailed);
            }
            if request.keep_prepared_txn {
                return Err(ErrorCode::UnsupportedVersion);
            }
        }
        match request.transaction_timeout_ms {
            _ if request.enable_2_pc => Ok(NEVER_MS),
            timeout_ms if (1..=self.settings.transaction_max_timeout_ms).contains(&timeout_ms) => {
                Ok(timeout_ms)
            }
            _ => Err(ErrorCode::InvalidTransactionTimeout),
        }
    }
}

/// The id and epoch that the producer says it has (KIP-360).
fn expected(request: &InitProducerIdRequest) -> Result<Option<ProducerIdentity>, ErrorCode> {
    match (request.producer_id, request.producer_epoch) {
        (NO_ID, NONE) => Ok(None),
        (NO_ID, _) | (_, NONE) => Err(ErrorCode::InvalidRequest),
        (id, epoch) => Ok(Some(ProducerIdentity { id, epoch })),
    }
}
