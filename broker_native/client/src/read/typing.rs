//! The columns of a batch as the plan wants them: as `columnar` built them, or keys and values by their formats.
use super::plan::ReadPlan;
use crate::error::{ClientError, Result, kind};
use crate::metadata::topic_partition::TopicPartition;
use pylog_columnar::RecordBatch;
use pylog_typed::{BadRecord, TypedDecoder};

/// What a plan makes of batches.
#[derive(Debug)]
pub(super) struct Typing(Option<TypedDecoder>);

impl Typing {
    /// # Errors
    /// `INVALID_ARGUMENT` for a plan that contradicts itself.
    pub(super) fn new(plan: &ReadPlan) -> Result<Self> {
        let decoder = plan.typed.clone().map(TypedDecoder::new).transpose();
        Ok(Self(decoder.map_err(|error| ClientError::invalid(error.to_string()))?))
    }

    /// The rows of a batch of `partition`; `None` when all were damaged, and are to be left out. Where damaged records are kept a batch
    /// without rows is given, so that the reader takes them.
    ///
    /// # Errors
    /// `BAD_RECORD` where a damaged record is to be one; `UNKNOWN_WRITERS` where the plan's table of writers lacks some.
    pub(super) fn apply(
        &mut self,
        batch: RecordBatch,
        partition: &TopicPartition,
    ) -> Result<Option<RecordBatch>> {
        let Some(decoder) = &mut self.0 else { return Ok(Some(batch)) };
        let typed = decoder.decode(&batch).map_err(|error| {
            let message = format!("topic {}, partition {}: {error}", partition.topic, partition.partition);
            match error {
                BadRecord::Damaged { .. } => ClientError::fatal(kind::BAD_RECORD, message),
                BadRecord::UnknownWriters => ClientError::fatal(kind::UNKNOWN_WRITERS, message),
                BadRecord::Arrow(_) => ClientError::fatal(kind::INTERNAL, message),
            }
        })?;
        Ok((typed.num_rows() > 0 || decoder.keeps_bad()).then_some(typed))
    }
}
