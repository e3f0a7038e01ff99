//! Records for a compacted topic must have keys: compaction would throw the others away. The batch is refused as a whole,
//! and the answer names records without a key, as Kafka does.
use pylog_record::opened::Opened;
use pylog_record::validate::ProduceInfo;
use pylog_record::{BatchError, BatchHeader, Codec, layout};
use pylog_storage::PartitionLog;
use pylog_wire::ErrorCode;
use pylog_wire::messages::produce::BatchIndexAndErrorMessage;

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
    let topic_partition = log.topic_partition();
    let sentence =
        format!("{topic_partition} is compacted: the batch is refused because it has records without a key");
    Err((ErrorCode::InvalidRecord, sentence))
}

/// How the answer about a batch that was refused with `INVALID_RECORD` names its records without a key.
pub fn record_errors(topic: &str, number: i32, indexes: &[i32]) -> Vec<BatchIndexAndErrorMessage> {
    let message =
        format!("Compacted topic cannot accept message without key in topic partition {topic}-{number}.");
    let named = |&batch_index: &i32| BatchIndexAndErrorMessage {
        batch_index,
        batch_index_error_message: Some(message.clone()),
    };
    indexes.iter().map(named).collect()
}

/// Which records of the batch have no key, from 0; the first [`NAMED_MAX`].
///
/// # Errors
/// [`BatchError::Decompressed`] when they open to more than `opened_max` bytes; what else is wrong with the batch.
pub fn unkeyed(batch: &[u8], opened_max: usize) -> Result<Vec<i32>, BatchError> {
    let header = BatchHeader::parse(batch)?.ok_or(BatchError::Malformed("not one whole batch"))?;
    let body = batch.get(layout::RECORDS..).unwrap_or_default();
    let mut opened = Opened::new(Codec::from_attributes(header.attributes)?, body, opened_max)?;
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
    use pylog_record::BatchBuilder;

    const ALL: usize = /* 1 MiB */ 1 << 20;

    #[test]
    fn records_without_a_key_are_found_in_every_codec_and_nonsense_is_an_error() {
        for codec in Codec::ALL {
            let mut builder = BatchBuilder::new();
            for i in 0..5 {
                builder.append(0, (i % 2 == 0).then_some(&b"k"[..]), Some(b"v"), &[]).unwrap();
            }
            let batch = builder.finish(codec).unwrap();
            assert_eq!(unkeyed(&batch, ALL), Ok(vec![1, 3]), "{codec:?}");
            assert!(unkeyed(&batch[..70], ALL).is_err(), "{codec:?}");
            let named = record_errors("t", 0, &[1, 3]);
            assert_eq!(named.iter().map(|error| error.batch_index).collect::<Vec<_>>(), [1, 3]);
        }
    }

    #[test]
    fn of_many_records_without_a_key_the_first_are_named() {
        let mut builder = BatchBuilder::new();
        for _ in 0..NAMED_MAX + 500 {
            builder.append(0, None, Some(b"v"), &[]).unwrap();
        }
        let batch = builder.finish(Codec::Zstd).unwrap();
        assert_eq!(unkeyed(&batch, ALL), Ok((0..NAMED_MAX as i32).collect()));
        assert_eq!(unkeyed(&batch, 100), Err(BatchError::Decompressed(100)));
    }
}
