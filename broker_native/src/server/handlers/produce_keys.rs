//! Records for a compacted topic must have keys: compaction would throw the others away. The batch is refused as a whole,
//! and the answer names records without a key, as Kafka does.
use crate::record::opened::Opened;
use crate::record::validate::{OPENED_BYTES_MAX, ProduceInfo};
use crate::record::{BatchError, BatchHeader, Codec, layout};
use crate::storage::PartitionLog;
use crate::wire::ErrorCode;
use crate::wire::messages::produce::BatchIndexAndErrorMessage;

/// Most records that an answer names; a hostile batch has millions.
const NAMED_MAX: usize = 1_000;

/// Refuses a batch for a compacted topic that has a record without a key.
///
/// # Errors
/// `INVALID_RECORD`.
pub fn refuse_unkeyed(log: &PartitionLog, info: &ProduceInfo) -> Result<(), (ErrorCode, String)> {
    if info.all_keyed || !log.config().cleanup_policy.compact {
        return Ok(());
    }
    let at = log.topic_partition();
    let sentence =
        format!("{at} is compacted and takes no record without a key, of which the batch has some");
    Err((ErrorCode::InvalidRecord, sentence))
}

/// The first [`NAMED_MAX`] records without a key of a batch that was refused with `INVALID_RECORD`, as the answer names them.
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

/// Which records of the batch have no key, from 0; the first [`NAMED_MAX`].
fn unkeyed(header: &BatchHeader, batch: &[u8]) -> Result<Vec<i32>, BatchError> {
    let body = batch.get(layout::RECORDS..).unwrap_or_default();
    let mut opened = Opened::new(Codec::from_attributes(header.attributes)?, body, OPENED_BYTES_MAX)?;
    let mut indexes = Vec::new();
    let mut index = 0;
    while let Some(record) = opened.step()? {
        if !record.keyed {
            indexes.push(index);
        }
        if indexes.len() == NAMED_MAX {
            return Ok(indexes);
        }
        index += 1;
    }
    if index != header.records_count {
        return Err(BatchError::Malformed("fewer records than the header says"));
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

    #[test]
    fn of_many_records_without_a_key_the_first_are_named() {
        let mut builder = BatchBuilder::new();
        for _ in 0..NAMED_MAX + 500 {
            builder.append(0, None, Some(b"v"), &[]).unwrap();
        }
        let batch = builder.finish(Codec::Zstd).unwrap();
        let named = record_errors(ErrorCode::InvalidRecord.code(), "t", 0, Some(&batch));
        let expected: Vec<i32> = (0..NAMED_MAX as i32).collect();
        assert_eq!(named.iter().map(|one| one.batch_index).collect::<Vec<_>>(), expected);
    }
}
