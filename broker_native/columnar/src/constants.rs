//! Columns with one value for all rows, built once and sliced for each batch.
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int32Array, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

/// Cached columns of one topic partition.
#[derive(Debug)]
pub(crate) struct Constants {
    topic: String,
    partition: i32,
    topics: Option<ArrayRef>,
    partitions: Option<ArrayRef>,
    /// By timestamp type.
    timestamp_types: [Option<ArrayRef>; 2],
}

impl Constants {
    pub(crate) fn new(topic: String, partition: i32) -> Self {
        Self { topic, partition, topics: None, partitions: None, timestamp_types: [None, None] }
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    pub(crate) fn partition(&self) -> i32 {
        self.partition
    }

    pub(crate) fn topics(&mut self, rows: usize) -> Result<ArrayRef, ArrowError> {
        cached(&mut self.topics, rows, |rows| repeat_topic(&self.topic, rows))
    }

    pub(crate) fn partitions(&mut self, rows: usize) -> Result<ArrayRef, ArrowError> {
        cached(&mut self.partitions, rows, |rows| Ok(repeat(self.partition, rows)))
    }

    /// 0 create time, 1 log append time.
    pub(crate) fn timestamp_types(&mut self, append_time: bool, rows: usize) -> Result<ArrayRef, ArrowError> {
        let [create, append] = &mut self.timestamp_types;
        let slot = if append_time { append } else { create };
        cached(slot, rows, |rows| Ok(repeat(append_time.into(), rows)))
    }
}

/// The first `rows` of the cached column, which is built anew when it is too short.
fn cached(
    slot: &mut Option<ArrayRef>,
    rows: usize,
    build: impl FnOnce(usize) -> Result<ArrayRef, ArrowError>,
) -> Result<ArrayRef, ArrowError> {
    match slot {
        Some(array) if array.len() >= rows => Ok(array.slice(0, rows)),
        _ => {
            // A little longer than asked, so that batches that grow slowly do not build it each time.
            let array = build(rows + rows / 8)?;
            Ok(slot.insert(array).slice(0, rows))
        }
    }
}

fn repeat(value: i32, rows: usize) -> ArrayRef {
    Arc::new(Int32Array::from(vec![value; rows]))
}

fn repeat_topic(topic: &str, rows: usize) -> Result<ArrayRef, ArrowError> {
    let offsets: Vec<i32> = (0..=rows).map(|row| (row * topic.len()) as i32).collect();
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    let data = Buffer::from_vec(topic.as_bytes().repeat(rows));
    Ok(Arc::new(StringArray::try_new(offsets, data, None)?))
}
