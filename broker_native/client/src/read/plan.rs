//! What a reader is to read, and what comes of it.
use std::sync::Arc;

use crate::error::Result;
use crate::metadata::topic_partition::TopicPartition;
use pylog_columnar::{BatchDecoder, Column, DecodeOptions, RecordBatch, RowFilter, SchemaRef, schema};
use pylog_typed::TypedPlan;

/// One range of one partition.
#[derive(Debug, Clone)]
pub struct OffsetRange {
    /// The partition.
    pub topic_partition: TopicPartition,
    /// First offset.
    pub start: i64,
    /// Offset to stop before; `None` follows the log.
    pub end: Option<i64>,
}

/// What to read, and how large batches become.
#[derive(Debug, Clone, Default)]
pub struct ReadPlan {
    /// Ranges, in the order in which they are read; one that follows the log is the last.
    pub ranges: Vec<OffsetRange>,
    /// Columns to build; with `typed` those that it needs ([`TypedPlan::raw`]).
    pub columns: Vec<Column>,
    /// The columns to give instead, made from those.
    pub typed: Option<Arc<TypedPlan>>,
    /// Rows that are wanted.
    pub filter: RowFilter,
    /// Most rows in all; > 0.
    pub limit: Option<usize>,
    /// An Arrow batch ends at about this many bytes.
    pub batch_bytes: usize,
    /// An Arrow batch has at most this many rows.
    pub max_rows: usize,
    /// Whether records may come from the broker's files, where this process sees them ([`super::local`]).
    pub local_reads: bool,
}

impl ReadPlan {
    /// The schema of every batch that is given.
    pub fn schema(&self) -> SchemaRef {
        self.typed.as_ref().map_or_else(|| schema(&self.columns), |typed| typed.schema())
    }

    /// What makes its rows of the batches of one range.
    pub(super) fn decoder(
        &self,
        wanted: &OffsetRange,
        options: DecodeOptions,
        rows_left: usize,
    ) -> BatchDecoder {
        let (partition, offsets) = (&wanted.topic_partition, wanted.start..wanted.end.unwrap_or(i64::MAX));
        BatchDecoder::new(&self.columns, &*partition.topic, partition.partition, offsets, options)
            .with_filter(self.filter.clone())
            .with_row_limit(rows_left)
    }
}

/// A batch and the offset that follows it.
#[derive(Debug)]
pub struct DecodedBatch {
    /// The rows; `None` when offsets passed without rows.
    pub batch: Option<RecordBatch>,
    /// Everything of its range before this offset was given to the consumer.
    pub next_offset: i64,
    /// Whether nothing follows.
    pub last: bool,
}

/// What the thread passes on: the number of the range it is at, and a batch of it or what went wrong there.
pub type RangeOutput = (usize, Result<DecodedBatch>);
