//! `RangeReader` of `_native.pyi`: the records of ranges as an Arrow stream or batch by batch.
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::arrow::{NativeBatch, export_stream};
use super::client::settings;
use super::conditions::KeyTest;
use super::directory::LogDirectory;
use super::error::{Failure, kind};
use super::ffi::enter;
use super::plan::{RawRange, offset_range, row_filter, wanted_columns};
use super::stored::PythonFeed;
use super::typed::TypedRead;
use pylog_client::error::{ClientError, Owner};
use pylog_client::net::stop::Stop;
use pylog_client::read::directory::DirectoryFeed;
use pylog_client::read::feed::Feed;
use pylog_client::read::plan::ReadPlan;
use pylog_client::read::range::RangeReader;

/// How long Python's signal handlers may have to wait.
pub const SIGNAL_SLICE: Duration = Duration::from_millis(100);
/// One wait of a stream's consumer, which waits again.
const STREAM_SLICE: Duration = Duration::from_secs(60);

/// See `_native.pyi`.
#[pyclass(module = "pylog_spark._native", name = "RangeReader", frozen)]
#[derive(Debug)]
pub struct PyRangeReader {
    shared: Arc<Shared>,
    streamed: AtomicBool,
}

/// What the Python object and its stream hold together.
#[derive(Debug)]
struct Shared {
    reader: Mutex<RangeReader>,
    error: Mutex<Option<ClientError>>,
    stop: Stop,
    owner: Owner,
}

impl Shared {
    fn next(&self, time: Duration) -> Result<Option<RecordBatch>, ClientError> {
        self.owner.check("reader")?;
        let got = self.reader.lock().next(time);
        got.inspect_err(|error| *self.error.lock() = Some(error.clone()))
    }

    /// As [`Shared::stop`], for a caller that may hold the GIL: the thread may wait for it, to ask Python for a token or for batches.
    fn stop_without_gil(&self) {
        // At the interpreter's end nobody waits for it any more.
        if Python::try_attach(|py| py.detach(|| self.stop())).is_none() {
            self.stop();
        }
    }

    /// Ends the thread, and a `next` that waits.
    fn stop(&self) {
        if self.owner.check("reader").is_ok() {
            // Whoever pulls holds the lock, and is to end its wait.
            if !self.reader.try_lock().is_some_and(|reader| reader.at_end()) {
                self.stop.stop();
            }
            self.reader.lock().stop();
        }
    }
}

#[pymethods]
impl PyRangeReader {
    #[new]
    #[pyo3(signature = (config, topic, partition, start, end, columns, *, topic_id="", batch_bytes=1_500_000,
        max_rows=10_000, follow=false, then=Vec::new(), timestamps=None, keys=Vec::new(), limit=None, local_reads=false,
        keep_connections=false, typed=None, directory=None, feed=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        config: HashMap<String, String>,
        topic: String,
        partition: i32,
        start: i64,
        end: i64,
        columns: Vec<String>,
        topic_id: &str,
        batch_bytes: usize,
        max_rows: usize,
        follow: bool,
        then: Vec<RawRange>,
        timestamps: Option<Vec<(i64, i64)>>,
        keys: Vec<KeyTest>,
        limit: Option<usize>,
        local_reads: bool,
        keep_connections: bool,
        typed: Option<&Bound<'_, TypedRead>>,
        directory: Option<&Bound<'_, LogDirectory>>,
        feed: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let (columns, typed) = wanted_columns(&columns, typed.map(Bound::get))?;
        let mut ranges = vec![offset_range((topic, partition, start, end, topic_id.to_owned()))?];
        ranges.extend(then.into_iter().map(offset_range).collect::<Result<Vec<_>, _>>()?);
        if let Some(last) = ranges.last_mut().filter(|_| follow) {
            last.end = None;
        }
        let filter = row_filter(timestamps, keys)?;
        let plan = ReadPlan { ranges, columns, typed, filter, limit, batch_bytes, max_rows, local_reads };
        let directory = directory.map(|found| DirectoryFeed::new(found.get().directory.clone()));
        let feed = match (directory, feed) {
            (Some(directory), _) => Some(Box::new(directory) as Box<dyn Feed>),
            (None, feed) => feed.map(|object| Box::new(PythonFeed::new(object)) as Box<dyn Feed>),
        };
        let reader = match feed {
            Some(feed) => RangeReader::fed(feed, plan),
            None => RangeReader::new(settings(&config)?.keeping_connections(keep_connections), plan),
        };
        let reader = reader.map_err(Failure::from)?;
        let stop = reader.stopper();
        let owner = Owner::current();
        let shared = Shared { reader: Mutex::new(reader), error: Mutex::new(None), stop, owner };
        Ok(Self { shared: Arc::new(shared), streamed: AtomicBool::new(false) })
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore the request; its consumer then casts.
        drop(requested_schema);
        self.shared.owner.check("reader").map_err(Failure::from)?;
        if self.streamed.swap(true, Ordering::AcqRel) {
            let message = "the stream of this reader was taken before; make a new reader";
            return Err(Failure::new(kind::INVALID_ARGUMENT, message).into());
        }
        let schema = self.shared.reader.lock().schema();
        export_stream(py, Box::new(BatchStream { shared: self.shared.clone(), schema, ended: false }))
    }

    fn next_batch(&self, py: Python<'_>, timeout_ms: u64) -> PyResult<Option<NativeBatch>> {
        let until = Instant::now() + Duration::from_millis(timeout_ms);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let batch = enter(py, || self.shared.next(left.min(SIGNAL_SLICE)))?;
            if batch.is_some() || left.is_zero() || self.at_end() {
                return Ok(batch.map(NativeBatch));
            }
            py.check_signals()?;
        }
    }

    #[getter]
    fn at_end(&self) -> bool {
        self.shared.reader.lock().at_end()
    }

    #[getter]
    fn next_offset(&self) -> i64 {
        self.shared.reader.lock().next_offset()
    }

    #[getter]
    fn range_index(&self) -> usize {
        self.shared.reader.lock().range_index()
    }

    #[getter]
    fn bytes_fetched(&self) -> u64 {
        self.shared.reader.lock().bytes_fetched()
    }

    #[getter]
    fn bytes_local(&self) -> u64 {
        self.shared.reader.lock().local().bytes()
    }

    #[getter]
    fn fallbacks(&self) -> u64 {
        self.shared.reader.lock().local().fallbacks()
    }

    #[getter]
    fn why_not_local(&self) -> Option<String> {
        self.shared.reader.lock().local().reason()
    }

    #[getter]
    fn error(&self) -> Option<(&'static str, String)> {
        self.shared.error.lock().as_ref().map(|error| (error.kind, error.message.clone()))
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        enter(py, || -> Result<(), Failure> {
            self.shared.stop();
            Ok(())
        })
    }
}

/// The consumer's side of the C stream; may be pulled from any thread, one at a time.
struct BatchStream {
    shared: Arc<Shared>,
    schema: SchemaRef,
    ended: bool,
}

impl Iterator for BatchStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.shared.next(STREAM_SLICE) {
                Ok(Some(batch)) => return Some(Ok(batch)),
                Ok(None) => self.ended = self.shared.reader.lock().at_end(),
                Err(error) => {
                    self.ended = true;
                    return Some(Err(ArrowError::ExternalError(
                        format!("{}: {}", error.kind, error.message).into(),
                    )));
                }
            }
        }
        None
    }
}

impl RecordBatchReader for BatchStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Drop for BatchStream {
    fn drop(&mut self) {
        self.shared.stop_without_gil();
    }
}

impl Drop for PyRangeReader {
    fn drop(&mut self) {
        // A stream of it reads on.
        if Arc::strong_count(&self.shared) == 1 {
            self.shared.stop_without_gil();
        }
    }
}
