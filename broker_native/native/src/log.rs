//! The broker's log in Python's `logging`: one thread takes the lines of all native brokers and delivers them to Python.
//!
//! A thread that logs never waits for Python: its line goes into a bounded queue (`pylog_log::queue`), and only the thread here takes the
//! GIL. It calls Python when lines wait, and at least once a second: Python then reports levels that were changed in `logging`, and windows
//! of the limiter that are over get their summaries.
use std::panic::PanicHookInfo;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::error::{Failure, kind, said};
use super::ffi::enter;
use pylog_log::levels::number;
use pylog_log::queue::Batch;
use pylog_log::record::Record;
use pylog_log::subscriber::dropped_lines;
use pylog_log::{Log, broker, loggers};

/// The longest time between two calls of Python.
const TICK: Duration = Duration::from_secs(1);

/// The log of one process. A forked process inherits the value, but not the thread.
struct ProcessLog {
    process: u32,
    log: &'static Log,
    thread: Option<JoinHandle<()>>,
}

static PROCESS_LOG: Mutex<Option<ProcessLog>> = Mutex::new(None);

/// The log that this process opened.
fn log_of_process() -> Option<&'static Log> {
    PROCESS_LOG.lock().as_ref().filter(|opened| opened.process == std::process::id()).map(|opened| opened.log)
}

/// See `_native.pyi`.
///
/// # Errors
/// `IO` when the operating system starts no thread.
#[pyfunction]
pub fn open_log(deliver: Py<PyAny>) -> PyResult<bool> {
    let mut opened = PROCESS_LOG.lock();
    let process = std::process::id();
    if opened.as_ref().is_some_and(|opened| opened.process == process) {
        return Ok(false);
    }
    let is_first = opened.is_none();
    let log = pylog_log::install();
    let name = "pylog-log".to_owned();
    let thread = std::thread::Builder::new().name(name).spawn(move || deliver_lines(log, &deliver));
    let thread = thread.map_err(|error| Failure::new(kind::IO, format!("no thread for the log: {error}")))?;
    *opened = Some(ProcessLog { process, log, thread: Some(thread) });
    if is_first {
        log_panics();
    }
    Ok(true)
}

/// See `_native.pyi`.
#[pyfunction]
pub fn set_log_levels(levels: Vec<(String, usize)>) {
    if let Some(log) = log_of_process() {
        log.set_levels(levels.iter().map(|(name, level)| (name.as_str(), *level)));
    }
}

/// See `_native.pyi`.
///
/// # Errors
/// None; `enter`, which releases the GIL, returns a result.
#[pyfunction]
pub fn flush_log(py: Python<'_>, timeout_ms: u64) -> PyResult<bool> {
    let Some(log) = log_of_process() else { return Ok(true) };
    enter(py, || Ok::<_, Failure>(log.flush(Duration::from_millis(timeout_ms))))
}

/// See `_native.pyi`.
///
/// # Errors
/// None; `enter`, which releases the GIL, returns a result.
#[pyfunction]
pub fn close_log(py: Python<'_>, timeout_ms: u64) -> PyResult<bool> {
    let Some(log) = log_of_process() else { return Ok(true) };
    let thread = PROCESS_LOG.lock().as_mut().and_then(|opened| opened.thread.take());
    enter(py, || {
        let is_written = log.close(Duration::from_millis(timeout_ms));
        // The thread of a handler that blocks would never end.
        if let Some(thread) = thread.filter(|_| is_written) {
            // The thread does not panic.
            let _ = thread.join();
        }
        Ok::<_, Failure>(is_written)
    })
}

/// See `_native.pyi`.
#[pyfunction]
pub fn log_loggers() -> Vec<(&'static str, &'static str)> {
    loggers::ALL.to_vec()
}

/// Delivers lines until the log is closed or the interpreter ends.
fn deliver_lines(log: &Log, deliver: &Py<PyAny>) {
    loop {
        let Batch { mut records, dropped, is_last } = log.next(TICK);
        let count = records.len();
        records.extend((dropped > 0).then(|| dropped_lines(dropped)));
        let called = Python::try_attach(|py| {
            if let Err(error) = call(py, deliver, &records) {
                error.write_unraisable(py, Some(deliver.bind(py)));
            }
        });
        log.done(count);
        if is_last || called.is_none() {
            return;
        }
    }
}

fn call(py: Python<'_>, deliver: &Py<PyAny>, records: &[Record]) -> PyResult<()> {
    let lines = PyList::empty(py);
    for record in records {
        lines.append(line(py, record)?)?;
    }
    deliver.call1(py, (lines,)).map(drop)
}

/// One line as `_native.pyi` describes it.
fn line<'py>(py: Python<'py>, record: &Record) -> PyResult<Bound<'py, PyDict>> {
    let line = PyDict::new(py);
    line.set_item("created", seconds(record.time))?;
    line.set_item("level", number(record.level))?;
    line.set_item("logger", record.logger)?;
    line.set_item("broker", record.broker)?;
    line.set_item("thread", record.thread.as_deref())?;
    line.set_item("file", record.file)?;
    line.set_item("line", record.line)?;
    line.set_item("message", &record.message)?;
    let fields = PyDict::new(py);
    for (name, value) in &record.fields {
        fields.set_item(name, value)?;
    }
    line.set_item("fields", fields)?;
    Ok(line)
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Panics of a broker's threads become lines of its log; those of other threads are printed as before.
fn log_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| match broker::current() {
        Some(_) => pylog_log::error!(target: loggers::BROKER, "{}", sentence(panic)),
        None => before(panic),
    }));
}

fn sentence(panic: &PanicHookInfo<'_>) -> String {
    let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    format!("panicked at {place}: {}", said(panic.payload()))
}
