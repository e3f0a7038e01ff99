//! Records of a topic with `confluent.value.schema.validation` or `confluent.key.schema.validation` must begin with the id of a schema
//! that the schema registry has in the topic's subject. The batch is refused as a whole, and the answer names the records at fault.
//!
//! An id that is not known may be of a schema that another broker has just registered: the registry is asked first.
use std::collections::HashMap;
use std::time::Duration;

use crate::call::Call;
use crate::state::schema_ids::Ids;
use pylog_record::heads::Head;
use pylog_record::opened::Opened;
use pylog_record::{BatchError, BatchHeader, Codec, layout};
use pylog_storage::PartitionLog;
use pylog_wire::ErrorCode;
use pylog_wire::messages::produce::BatchIndexAndErrorMessage;

/// Most records that an answer names, and that go to a dead letter topic at once; a hostile batch has millions.
pub const NAMED_MAX: usize = 1_000;
/// How long a request waits until the registry has looked for new schemas.
pub const WAIT: Duration = Duration::from_secs(5);

/// What is wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fault {
    index: i32,
    of_key: bool,
    /// The schema that it names, if it names one.
    schema: Option<i32>,
}

/// What was found in one batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Faults {
    named: Vec<Fault>,
    /// There is no registry to ask.
    is_alone: bool,
}

/// Why the records at fault of a batch are not in the dead letter topic.
#[derive(Debug)]
pub struct NotDiverted {
    /// Whether it may be tried again.
    pub again: bool,
    /// What happened.
    pub sentence: String,
}

impl Faults {
    /// Whether one of them may be a schema that is not known here yet.
    pub fn are_unsure(&self) -> bool {
        self.named.iter().any(|fault| fault.schema.is_some())
    }

    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        self.named.is_empty()
    }

    /// What is wrong with each record at fault, by its place in the batch; `None` when there are more than are known.
    pub fn sentences(&self, topic: &str) -> Option<HashMap<i32, String>> {
        if self.named.len() >= NAMED_MAX {
            return None;
        }
        let mut sentences = HashMap::new();
        for fault in &self.named {
            sentences.entry(fault.index).or_insert_with(|| fault.sentence(topic));
        }
        Some(sentences)
    }

    /// How the answer names them.
    pub fn record_errors(&self, topic: &str) -> Vec<BatchIndexAndErrorMessage> {
        let named = |fault: &Fault| BatchIndexAndErrorMessage {
            batch_index: fault.index,
            batch_index_error_message: Some(fault.sentence(topic)),
        };
        self.named.iter().map(named).collect()
    }
}

impl Fault {
    fn sentence(&self, topic: &str) -> String {
        let what = if self.of_key { "key" } else { "value" };
        match self.schema {
            Some(id) => {
                format!("Its {what} is of the schema {id}, which subject {topic}-{what} does not have.")
            }
            None => format!("Its {what} does not begin with the id of a schema of subject {topic}-{what}."),
        }
    }
}

/// Whether a log's records must have schemas.
pub fn are_asked_for(log: &PartitionLog) -> bool {
    let config = log.config();
    config.key_schema_validation || config.value_schema_validation
}

/// What is wrong with the records of a whole batch for `log`.
///
/// # Errors
/// [`BatchError::Decompressed`] when they open to more than `opened_max` bytes; what else is wrong with the batch.
pub fn faults(
    call: &Call,
    log: &PartitionLog,
    batch: &[u8],
    opened_max: usize,
) -> Result<Faults, BatchError> {
    let topic = &log.topic_partition().topic;
    let config = log.config();
    let known =
        |is_on: bool, what: &str| is_on.then(|| call.shared.schema_ids.of(&format!("{topic}-{what}")));
    let (keys, values) =
        (known(config.key_schema_validation, "key"), known(config.value_schema_validation, "value"));
    match (keys, values) {
        (Some(None), _) | (_, Some(None)) => Ok(Faults { is_alone: true, ..Faults::default() }),
        (keys, values) => of_batch(batch, opened_max, keys.flatten().as_ref(), values.flatten().as_ref()),
    }
}

fn of_batch(
    batch: &[u8],
    opened_max: usize,
    keys: Option<&Ids>,
    values: Option<&Ids>,
) -> Result<Faults, BatchError> {
    let header = BatchHeader::parse(batch)?.ok_or(BatchError::Malformed("not one whole batch"))?;
    let body = batch.get(layout::RECORDS..).unwrap_or_default();
    let mut opened = Opened::new(Codec::from_attributes(header.attributes)?, body, opened_max)?;
    let mut faults = Faults::default();
    let mut index = 0;
    while let Some(heads) = opened.step_heads()? {
        for (of_key, ids, head) in [(true, keys, heads.key), (false, values, heads.value)] {
            let schema = match (ids, head) {
                (None, _) | (_, Head::Null) => continue,
                (Some(ids), Head::Schema(id)) if ids.contains(&id) => continue,
                (_, Head::Schema(id)) => Some(id),
                (_, Head::Other) => None,
            };
            faults.named.push(Fault { index, of_key, schema });
        }
        if faults.named.len() >= NAMED_MAX {
            return Ok(faults);
        }
        index += 1;
    }
    if index != header.records_count {
        return Err(BatchError::Malformed("fewer records than the header says"));
    }
    Ok(faults)
}

/// Refuses a batch with records at fault that are still in it; `is_sure` when the registry has looked for what is new.
///
/// # Errors
/// `INVALID_RECORD`; `POLICY_VIOLATION` on a broker without a registry; `REQUEST_TIMED_OUT`, which clients try again, while it is not sure.
pub fn refuse(
    log: &PartitionLog,
    faults: Option<&Faults>,
    is_sure: bool,
    not_diverted: Option<&NotDiverted>,
) -> Result<(), (ErrorCode, String)> {
    if !are_asked_for(log) {
        return Ok(());
    }
    let topic_partition = log.topic_partition();
    let Some(faults) = faults else {
        // The log came to this broker since the batch was looked at.
        return Err((ErrorCode::NotLeaderOrFollower, ErrorCode::NotLeaderOrFollower.sentence().to_owned()));
    };
    if faults.is_alone {
        let sentence = format!(
            "{topic_partition} takes records with schemas alone, and this broker cannot check them: every broker of the cluster needs \
             --schema-registry"
        );
        return Err((ErrorCode::PolicyViolation, sentence));
    }
    let Some(first) = faults.named.first() else { return Ok(()) };
    if !is_sure && faults.are_unsure() {
        let sentence =
            format!("{topic_partition}: the schema registry could not be read in time; send the batch again");
        return Err((ErrorCode::RequestTimedOut, sentence));
    }
    if let Some(NotDiverted { again: true, sentence }) = not_diverted {
        return Err((ErrorCode::RequestTimedOut, format!("{topic_partition}: {sentence}")));
    }
    let also = not_diverted.map_or_else(String::new, |why| format!(" Not diverted: {}.", why.sentence));
    let sentence = format!(
        "{topic_partition}: the batch is refused because of its records' schemas. Record {}: {}{also}",
        first.index,
        first.sentence(&topic_partition.topic)
    );
    Err((ErrorCode::InvalidRecord, sentence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pylog_record::BatchBuilder;
    use std::collections::HashSet;
    use std::sync::Arc;

    const ALL: usize = /* 1 MiB */ 1 << 20;

    fn ids(known: &[i32]) -> Ids {
        Arc::new(known.iter().copied().collect::<HashSet<_>>())
    }

    #[test]
    fn records_without_the_id_of_a_known_schema_are_found_in_every_codec() {
        let long = [&[0, 0, 0, 1, 2][..], &vec![7; 200_000]].concat();
        let of_other = [&[0, 0, 0, 0, 9][..], &vec![7; 200_000]].concat();
        for codec in Codec::ALL {
            let mut builder = BatchBuilder::new();
            let values: [Option<&[u8]>; 7] = [
                Some(&long),
                Some(&[0, 0, 0, 1, 2]),
                Some(b"\0\0\0\x01"),
                None,
                Some(b"text"),
                Some(&of_other),
                Some(b""),
            ];
            for value in values {
                builder.append(0, Some(b"key"), value, &[]).unwrap();
            }
            let batch = builder.finish(codec).unwrap();
            let found = of_batch(&batch, ALL, None, Some(&ids(&[258]))).unwrap();
            let at: Vec<_> = found.named.iter().map(|fault| (fault.index, fault.schema)).collect();
            assert_eq!(at, [(2, None), (4, None), (5, Some(9)), (6, None)], "{codec:?}");
            assert!(found.are_unsure());
            let keys = of_batch(&batch, ALL, Some(&ids(&[])), None).unwrap();
            assert_eq!(keys.named.len(), 7);
            assert!(!keys.are_unsure());
            assert!(of_batch(&batch[..70], ALL, Some(&ids(&[])), None).is_err());
        }
    }

    #[test]
    fn of_many_records_at_fault_the_first_are_named() {
        let mut builder = BatchBuilder::new();
        for _ in 0..NAMED_MAX + 500 {
            builder.append(0, None, Some(b"v"), &[]).unwrap();
        }
        let batch = builder.finish(Codec::Zstd).unwrap();
        let found = of_batch(&batch, ALL, None, Some(&ids(&[1]))).unwrap();
        assert_eq!(found.record_errors("t").len(), NAMED_MAX);
        assert_eq!(of_batch(&batch, 100, None, Some(&ids(&[1]))), Err(BatchError::Decompressed(100)));
    }
}
