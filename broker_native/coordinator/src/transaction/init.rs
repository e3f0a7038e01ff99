//! InitProducerId with a transactional id: who comes last is the producer, and whoever was it before is fenced.
use super::machine::{TransactionMachine, TxnEffects};
use super::metadata::{Metadata, NEVER_MS, NO_ID, NONE, Partitions, Producer, cost};
use super::state::State;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{InitProducerIdRequest, InitProducerIdResponse};

/// What a producer that kept its transaction is told: who it is, and whose transaction is open.
struct Initialised {
    producer: Producer,
    ongoing: Option<Producer>,
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
            None if !self.room.has(cost(transactional_id, &Partitions::new())) => {
                return Err(ErrorCode::PolicyViolation);
            }
            None => {
                let metadata = Metadata::new(self.ids.next()?, now_ms);
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
        if metadata.state == State::Ongoing {
            if !request.keep_prepared_txn {
                // The producer comes again when the abort is over, and only then gets an epoch.
                self.fence(transactional_id, now_ms, effects);
                return Err(ErrorCode::ConcurrentTransactions);
            }
            let speaker = metadata.speaker();
            let next = match speaker.is_exhausted() {
                true => Producer { id: self.ids.next()?, epoch: 0 },
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
fn expected(request: &InitProducerIdRequest) -> Result<Option<Producer>, ErrorCode> {
    match (request.producer_id, request.producer_epoch) {
        (NO_ID, NONE) => Ok(None),
        (NO_ID, _) | (_, NONE) => Err(ErrorCode::InvalidRequest),
        (id, epoch) => Ok(Some(Producer { id, epoch })),
    }
}
