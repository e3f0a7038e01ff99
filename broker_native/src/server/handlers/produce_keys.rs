//! Records for a compacted topic must have keys: compaction would throw the others away. The batch is refused as a whole,
//! and the answer names each record without a key, as Kafka does. To see the keys, compressed batches are opened here.
use crate::record::compression::decompress;
use crate::record::validate::ProduceInfo;
use crate::record::{BatchError, BatchHeader, Codec, layout, records};
use crate::server::errors::of_batch;
use crate::storage::PartitionLog;
use crate::wire::ErrorCode;
use crate::wire::messages::produce::BatchIndexAndErrorMessage;

/// A batch that becomes larger when it is opened is refused: its keys cannot be seen in bounded memory.
const OPENED_BYTES_MAX: usize = /* 64 MiB */ 64 << 20;

/// Refuses a batch for a compacted topic that has a record without a key.
///
/// # Errors
/// `INVALID_RECORD`; what is wrong with a batch that cannot be opened.
pub fn refuse_unkeyed(
    log: &PartitionLog,
    info: &ProduceInfo,
    batch: &[u8],
) -> Result<(), (ErrorCode, String)> {
    if !log.config().cleanup_policy.compact || info.all_keyed == Some(true) {
        return Ok(());
    }
    let unkeyed = unkeyed(&info.header, batch).map_err(|error| (of_batch(&error), error.to_string()))?;
    if unkeyed.is_empty() {
        return Ok(());
    }
    let at = log.topic_partition();
    let count = unkeyed.len();
    let sentence =
        format!("{at} is compacted and takes no record without a key; {count} of the batch have none");
    Err((ErrorCode::InvalidRecord, sentence))
}

/// The records without a key of a batch that was refused with `INVALID_RECORD`, as the answer names them.
pub fn record_errors(
    error_code: i16,
    topic: &str,
    number: i32,
    batch: Option<&[u8]>,
) -> Vec<BatchIndexAndErrorMessage> {
    let refused = batch.filter(|_| error_code == ErrorCode::InvalidRecord.code());
    let header = refused.and_then(|batch| Some((BatchHeader::parse(batch).ok()??, batch)));
    let indexes = header.and_then(|(header, batch)| unkeyed(&header, batch).ok()).unwrap_or_default();
    let message =
        format!("Compacted topic cannot accept message without key in topic partition {topic}-{number}.");
    let named = |batch_index| BatchIndexAndErrorMessage {
        batch_index,
        batch_index_error_message: Some(message.clone()),
    };
    indexes.into_iter().map(named).collect()
}

/// Which records of the batch have no key, from 0.
fn unkeyed(header: &BatchHeader, batch: &[u8]) -> Result<Vec<i32>, BatchError> {
    let body = batch.get(layout::RECORDS..).unwrap_or_default();
    let opened = decompress(Codec::from_attributes(header.attributes)?, body, OPENED_BYTES_MAX)?;
    let mut indexes = Vec::new();
    for (i, record) in (0..).zip(records(&opened, header)) {
        if record?.key.is_none() {
            indexes.push(i);
        }
    }
    Ok(indexes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::BatchBuilder;

    #[test]
    fn records_without_a_key_are_found_in_every_codec_and_nonsense_is_an_error() {
        for codec in Codec::ALL {
            let mut builder = BatchBuilder::new();
            for i in 0..5 {
                builder.append(0, (i % 2 == 0).then_some(&b"k"[..]), Some(b"v"), &[]).unwrap();
            }
            let batch = builder.finish(codec).unwrap();
            let header = BatchHeader::parse(&batch).unwrap().unwrap();
            assert_eq!(unkeyed(&header, &batch), Ok(vec![1, 3]), "{codec:?}");
            assert!(unkeyed(&header, &batch[..70]).is_err(), "{codec:?}");
            let named = record_errors(ErrorCode::InvalidRecord.code(), "t", 0, Some(&batch));
            assert_eq!(named.iter().map(|one| one.batch_index).collect::<Vec<_>>(), [1, 3]);
            assert!(record_errors(0, "t", 0, Some(&batch)).is_empty());
        }
    }
}
