//! `RecordWriter` of `_native.pyi`: Arrow batches into topics.
use std::collections::HashMap;

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::arrow::import_batch;
use super::client::settings;
use super::error::Failure;
use super::ffi::enter;
use super::reader::SIGNAL_SLICE;
use pylog_client::error::ClientError;
use pylog_client::write::counts::Counts;
use pylog_client::write::delivery::Delivered;
use pylog_client::write::ingest;
use pylog_client::write::producer::Producer;

/// See `_native.pyi`.
#[pyclass(module = "pylog_spark._native", frozen)]
#[derive(Debug)]
pub struct RecordWriter {
    producer: Mutex<Producer>,
    topic: Option<String>,
    counts: Option<Mutex<Counts>>,
}

#[pymethods]
impl RecordWriter {
    #[new]
    #[pyo3(signature = (config, topic=None, *, transactional_id=None, keep_connections=false, count_windows_ms=None))]
    fn new(
        config: HashMap<String, String>,
        topic: Option<String>,
        transactional_id: Option<String>,
        keep_connections: bool,
        count_windows_ms: Option<i64>,
    ) -> PyResult<Self> {
        let settings = settings(&config)?.keeping_connections(keep_connections);
        let producer = match transactional_id {
            Some(id) => Producer::transactional(settings, id),
            None => Producer::new(settings),
        };
        let producer = producer.map_err(Failure::from)?;
        let counts = count_windows_ms.map(Counts::new).transpose().map_err(Failure::from)?.map(Mutex::new);
        Ok(Self { producer: Mutex::new(producer), topic, counts })
    }

    #[pyo3(signature = (batch, topic=None))]
    fn write(&self, py: Python<'_>, batch: &Bound<'_, PyAny>, topic: Option<&str>) -> PyResult<()> {
        let batch = import_batch(batch)?;
        enter(py, || match topic {
            Some(topic) => ingest::write(&mut self.producer.lock(), &batch, Some(topic), None),
            None => {
                let mut counts = self.counts.as_ref().map(Mutex::lock);
                let counts = counts.as_deref_mut();
                ingest::write(&mut self.producer.lock(), &batch, self.topic.as_deref(), counts)
            }
        })
    }

    fn take_counts(&self, py: Python<'_>) -> PyResult<Vec<(String, i64, u64)>> {
        enter(py, || -> Result<_, ClientError> {
            let Some(counts) = &self.counts else { return Ok(Vec::new()) };
            let counted = counts.lock().take()?.into_iter();
            Ok(counted.map(|each| (each.topic, each.start_ms, each.records)).collect())
        })
    }

    fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        enter(py, || self.producer.lock().begin_flush())?;
        loop {
            if let Some(delivered) = enter(py, || self.producer.lock().wait_flushed(SIGNAL_SLICE))? {
                return report(py, &delivered);
            }
            py.check_signals()?;
        }
    }

    fn begin<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (producer_id, producer_epoch) = enter(py, || self.producer.lock().begin())?;
        let begun = PyDict::new(py);
        begun.set_item("producer_id", producer_id)?;
        begun.set_item("producer_epoch", producer_epoch)?;
        Ok(begun)
    }

    fn prepare<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(handle) = enter(py, || self.producer.lock().prepare())? else { return Ok(None) };
        let prepared = PyDict::new(py);
        prepared.set_item("transactional_id", handle.ending.transactional_id)?;
        prepared.set_item("producer_id", handle.ending.producer_id)?;
        prepared.set_item("producer_epoch", handle.ending.producer_epoch)?;
        prepared.set_item("prepared", handle.prepared)?;
        Ok(Some(prepared))
    }

    fn end(&self, py: Python<'_>, commit: bool) -> PyResult<()> {
        enter(py, || self.producer.lock().end(commit))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        enter(py, || -> Result<(), ClientError> {
            self.producer.lock().close();
            Ok(())
        })
    }
}

fn report<'py>(py: Python<'py>, delivered: &Delivered) -> PyResult<Bound<'py, PyDict>> {
    let offsets = PyDict::new(py);
    for (partition, (first, last)) in &delivered.offsets {
        offsets.set_item((&*partition.topic, partition.partition), PyList::new(py, [first, last])?)?;
    }
    let report = PyDict::new(py);
    report.set_item("records", delivered.records)?;
    report.set_item("bytes", delivered.bytes)?;
    report.set_item("offsets", offsets)?;
    Ok(report)
}
