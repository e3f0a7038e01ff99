//! What a reader is to read, from Python's values.
use std::sync::Arc;

use super::conditions::{KeyTest, condition};
use super::error::{Failure, kind};
use super::typed::TypedRead;
use pylog_client::metadata::topic_id;
use pylog_client::metadata::topic_partition::TopicPartition;
use pylog_client::read::plan::OffsetRange;
use pylog_columnar::{Column, RowFilter, UnknownColumn};
use pylog_typed::TypedPlan;

/// Topic, partition, start, end, topic id of a range.
pub type RawRange = (String, i32, i64, i64, String);

/// The columns to build, and those to make of them.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown one.
pub fn wanted_columns(
    names: &[String],
    typed: Option<&TypedRead>,
) -> Result<(Vec<Column>, Option<Arc<TypedPlan>>), Failure> {
    match typed {
        None => Ok((known_columns(names)?, None)),
        Some(typed) => Ok((typed.0.raw().to_vec(), Some(typed.0.clone()))),
    }
}

fn known_columns(names: &[String]) -> Result<Vec<Column>, Failure> {
    let columns = names.iter().map(|name| Column::from_name(name)).collect::<Result<_, _>>();
    columns.map_err(|error: UnknownColumn| Failure::new(kind::INVALID_ARGUMENT, error.to_string()))
}

/// The rows that are wanted.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown condition.
pub fn row_filter(timestamps: Option<Vec<(i64, i64)>>, keys: Vec<KeyTest>) -> Result<RowFilter, Failure> {
    let keys = keys.into_iter().map(condition).collect::<Result<_, _>>()?;
    Ok(RowFilter { timestamps, keys })
}

/// One range of a plan.
///
/// # Errors
/// `INVALID_ARGUMENT` for what is no topic id.
pub fn offset_range((topic, partition, start, end, topic_id): RawRange) -> Result<OffsetRange, Failure> {
    let topic_id = topic_id::parse(&topic_id).map_err(Failure::from)?;
    Ok(OffsetRange {
        topic_partition: TopicPartition { topic: topic.into(), partition, topic_id },
        start,
        end: Some(end),
    })
}
