//! [`TxnMetadata`] as a record of `__transaction_state`, in Kafka's layout.
use super::metadata::{NO_ID, NONE, ProducerIdentity, TxnMetadata};
use super::requests::TransactionVersion;
use super::state::TxnState;
use crate::Record;
use pylog_wire::WireError;
use pylog_wire::stored::Stored;
use pylog_wire::stored::transactions::{PartitionsSchema, TransactionLogKey, TransactionLogValue};

/// The key version that is written.
const KEY_VERSION: i16 = 0;
/// The value version that is written: the one with tagged fields, as Kafka does from `transaction.version` 1 on.
const VALUE_VERSION: i16 = 1;

/// What the log is to hold for `transactional_id`; `None` forgets it.
///
/// # Errors
/// [`WireError::TooLong`].
pub fn record(transactional_id: &str, metadata: Option<&TxnMetadata>) -> Result<Record, WireError> {
    let key = TransactionLogKey { transactional_id: transactional_id.to_owned() }.to_bytes(KEY_VERSION)?;
    let value = metadata.map(|metadata| value(metadata).to_bytes(VALUE_VERSION)).transpose()?;
    Ok(Record { key, value })
}

/// Reads a record; no metadata when the id is forgotten.
///
/// # Errors
/// A sentence: it is not what Kafka writes.
pub fn read(record: &Record) -> Result<(String, Option<TxnMetadata>), String> {
    let key = TransactionLogKey::from_bytes(&record.key).map_err(|error| error.to_string())?;
    let metadata = match &record.value {
        None => None,
        Some(value) => {
            Some(metadata(TransactionLogValue::from_bytes(value).map_err(|error| error.to_string())?)?)
        }
    };
    Ok((key.transactional_id, metadata))
}

fn value(metadata: &TxnMetadata) -> TransactionLogValue {
    let partitions = metadata.partitions.iter().map(|(topic, numbers)| PartitionsSchema {
        topic: topic.clone(),
        partition_ids: numbers.iter().copied().collect(),
    });
    TransactionLogValue {
        producer_id: metadata.producer.id,
        previous_producer_id: metadata.previous_id,
        next_producer_id: metadata.next.map_or(NO_ID, |next| next.id),
        producer_epoch: metadata.producer.epoch,
        transaction_timeout_ms: metadata.timeout_ms,
        transaction_status: metadata.state.id(),
        transaction_partitions: (metadata.state != TxnState::Empty).then(|| partitions.collect()),
        transaction_last_update_timestamp_ms: metadata.last_update_ms,
        transaction_start_timestamp_ms: metadata.start_ms,
        client_transaction_version: metadata.version.level(),
        next_producer_epoch: metadata.next.map_or(NONE, |next| next.epoch),
    }
}

fn metadata(value: TransactionLogValue) -> Result<TxnMetadata, String> {
    let state = TxnState::from_id(value.transaction_status)
        .filter(|state| !matches!(state, TxnState::Dead | TxnState::PrepareEpochFence))
        .ok_or_else(|| format!("{} is not the number of a state that is stored", value.transaction_status))?;
    let partitions = value.transaction_partitions.unwrap_or_default();
    Ok(TxnMetadata {
        producer: ProducerIdentity { id: value.producer_id, epoch: value.producer_epoch },
        next: (value.next_producer_id >= 0).then(|| ProducerIdentity {
            id: value.next_producer_id,
            epoch: value.next_producer_epoch.max(0),
        }),
        last_epoch: NONE,
        previous_id: value.previous_producer_id,
        timeout_ms: value.transaction_timeout_ms,
        state,
        partitions: partitions
            .into_iter()
            .map(|partitions| (partitions.topic, partitions.partition_ids.into_iter().collect()))
            .collect(),
        start_ms: value.transaction_start_timestamp_ms,
        last_update_ms: value.transaction_last_update_timestamp_ms,
        version: TransactionVersion::from_level(value.client_transaction_version),
        bytes: 0,
    })
}
