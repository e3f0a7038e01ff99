//! Arrow batches into a [`Producer`]: the loop over rows.
use std::time::{SystemTime, UNIX_EPOCH};

use super::accumulator::Row;
use super::counts::Counts;
use super::producer::Producer;
use crate::error::{ClientError, Result};
use pylog_columnar::{RecordBatch, RowError, RowSource};
use pylog_record::HeaderRef;

/// Appends every row of `batch`, and counts it in `counts`; `topic` wins over the column. Rows before a bad one are appended.
///
/// # Errors
/// `INVALID_ARGUMENT` for columns or rows that cannot be written; those of [`Producer::append`] and [`Counts::add`].
pub fn write(
    producer: &mut Producer,
    batch: &RecordBatch,
    topic: Option<&str>,
    mut counts: Option<&mut Counts>,
) -> Result<()> {
    let rows = RowSource::new(batch, topic).map_err(invalid_rows)?;
    let now_ms = now_ms();
    let mut headers: Vec<HeaderRef<'_>> = Vec::new();
    let mut last: Option<(&str, usize)> = None;
    for index in 0..rows.len() {
        let row = rows.row(index, &mut headers).map_err(invalid_rows)?;
        let handle = match last {
            Some((name, handle)) if name == row.topic => handle,
            _ => producer.topic(row.topic)?,
        };
        last = Some((row.topic, handle));
        let timestamp_ms = row.timestamp_ms.unwrap_or(now_ms);
        let name = row.topic;
        let row =
            Row { partition: row.partition, timestamp_ms, key: row.key, value: row.value, headers: &headers };
        producer.append(handle, &row)?;
        if let Some(counts) = counts.as_deref_mut() {
            counts.add(handle, name, timestamp_ms)?;
        }
    }
    producer.linger()
}

#[cold]
fn invalid_rows(error: RowError) -> ClientError {
    ClientError::invalid(error.to_string())
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
