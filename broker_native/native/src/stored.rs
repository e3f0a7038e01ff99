//! Batches of an archive, see `_native.pyi`: what stands in them, and a reader's batches that Python brings.
use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::client::{RawLimitedRange, limited_range};
use super::ffi::enter;
use pylog_client::error::{ClientError, Result, kind};
use pylog_client::metadata::topic_id;
use pylog_client::read::advance::advance_fed;
use pylog_client::read::feed::{Aborted, Feed};
use pylog_client::read::plan::OffsetRange;
use pylog_client::read::stored::{Survey, first_at, survey};

/// Kinds of errors that a feed may raise; another one is of the storage.
const KINDS: [&str; 4] =
    ["OFFSET_OUT_OF_RANGE", "INCONSISTENT_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION", kind::CORRUPT_BATCH];
const STORAGE: &str = "KAFKA_STORAGE_ERROR";

/// End among the bytes, first offset, offset behind, batches, records, largest timestamp.
type Run = (usize, i64, i64, usize, i64, i64);
/// Runs, aborted transactions, open transactions, leader epochs, codecs.
type Surveyed = (Vec<Run>, Vec<Aborted>, BTreeMap<i64, i64>, Vec<(i32, i64)>, Vec<&'static str>);

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data, most, opened=BTreeMap::new()))]
pub fn survey_batches(
    py: Python<'_>,
    data: &[u8],
    most: usize,
    opened: BTreeMap<i64, i64>,
) -> PyResult<Surveyed> {
    let Survey { runs, aborted, open, epochs, codecs } = enter(py, || survey(data, most, opened))?;
    let row = |run: &pylog_client::read::stored::Run| {
        (run.end, run.first, run.next, run.batches, run.records, run.max_timestamp)
    };
    Ok((runs.iter().map(row).collect(), aborted, open, epochs, codecs.into_iter().collect()))
}

/// See `_native.pyi`.
#[pyfunction]
pub fn first_record_at(
    py: Python<'_>,
    data: &[u8],
    timestamp_ms: i64,
    offset: i64,
) -> PyResult<Option<(i64, i64)>> {
    enter(py, || first_at(data, timestamp_ms, offset))
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(name = "advance_fed")]
pub fn advance(
    py: Python<'_>,
    feed: Py<PyAny>,
    ranges: Vec<RawLimitedRange>,
) -> PyResult<Vec<(i64, i64, i64)>> {
    enter(py, || {
        let mut feed = PythonFeed::new(feed);
        let reached = ranges.into_iter().map(|range| advance_fed(&mut feed, &limited_range(range)));
        reached
            .map(|found| found.map(|found| (found.offset, found.records, found.bytes)))
            .collect::<Result<_>>()
    })
}

/// Batches that a Python object brings (`pylog_spark.archive.reading.Feed`).
#[derive(Debug)]
pub struct PythonFeed(Py<PyAny>);

impl PythonFeed {
    /// Of an object with the methods `turn_to` and `next_piece`.
    pub fn new(object: Py<PyAny>) -> Self {
        Self(object)
    }

    /// Enters the interpreter, which another thread may hold for as long as it runs Python.
    fn ask<T>(&self, question: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        // At the interpreter's end no thread may enter it any more.
        let asked =
            Python::try_attach(|py| question(py, self.0.bind(py)).map_err(|error| failed(py, &error)));
        asked.ok_or_else(|| ClientError::fatal(kind::CLOSED, "the reader ends: Python is ending"))?
    }
}

impl Feed for PythonFeed {
    fn turn_to(&mut self, range: &OffsetRange) -> Result<Vec<Aborted>> {
        let at = &range.topic_partition;
        let id = if at.topic_id.is_nil() { String::new() } else { topic_id::text(at.topic_id) };
        let end = range.end.unwrap_or(range.start);
        self.ask(|_, feed| {
            feed.call_method1("turn_to", (&*at.topic, at.partition, id, range.start, end))?.extract()
        })
    }

    fn next_piece(&mut self, piece: &mut Vec<u8>) -> Result<bool> {
        piece.clear();
        let found = self.ask(|_, feed| {
            let next = feed.call_method0("next_piece")?;
            if next.is_none() {
                return Ok(false);
            }
            piece.extend_from_slice(next.cast::<PyBytes>()?.as_bytes());
            Ok(true)
        })?;
        // Also what is wrong inside of a file whose own checksum is right.
        survey(piece, usize::MAX, BTreeMap::new())?;
        Ok(found)
    }
}

/// The error of a `LogError`, or what another exception says.
fn failed(py: Python<'_>, error: &PyErr) -> ClientError {
    let raised = error.value(py);
    let text = |name: &str| raised.getattr(name).and_then(|value| value.extract::<String>()).ok();
    let known = text("kind").and_then(|kind| KINDS.into_iter().find(|known| *known == kind));
    let sentence = text("sentence").unwrap_or_else(|| error.to_string());
    ClientError::fatal(known.unwrap_or(STORAGE), sentence)
}
