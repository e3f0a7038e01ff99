//! `Mirror` of `_native.pyi`: copies partitions of one cluster into another until it is stopped.
use std::collections::HashMap;

use parking_lot::Mutex;
use pyo3::prelude::*;
use serde_json::json;

use super::client::{settings, to_python};
use super::error::Failure;
use super::ffi::enter;
use pylog_client::error::ClientError;
use pylog_client::metadata::topic_partition::TopicPartition;
use pylog_client::mirror::running;

/// See `_native.pyi`.
#[pyclass(module = "pylog_spark._native", frozen)]
#[derive(Debug)]
pub struct Mirror(Mutex<running::Mirror>);

#[pymethods]
impl Mirror {
    #[new]
    #[pyo3(signature = (source, target, source_id, bytes_per_second=None))]
    fn new(
        source: HashMap<String, String>,
        target: HashMap<String, String>,
        source_id: String,
        bytes_per_second: Option<u64>,
    ) -> PyResult<Self> {
        let (from, to) = (settings(&source)?, settings(&target)?);
        if bytes_per_second == Some(0) {
            let refused = ClientError::invalid("bytes_per_second must be at least 1");
            return Err(Failure::from(refused).into());
        }
        Ok(Self(Mutex::new(running::Mirror::new(from, to, source_id, bytes_per_second))))
    }

    fn assign(&self, py: Python<'_>, wanted: Vec<(String, i32, i32)>) -> PyResult<()> {
        let named = |(topic, partition, leader): (String, i32, i32)| {
            (TopicPartition::by_name(topic, partition), leader)
        };
        let wanted = wanted.into_iter().map(named).collect();
        enter(py, || self.0.lock().assign(wanted))
    }

    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = enter(py, || Ok::<_, ClientError>(self.0.lock().progress()))?;
        let document = |(partition, progress): (TopicPartition, pylog_client::mirror::progress::Progress)| {
            let error = progress.error.as_ref();
            json!({
                "topic": &*partition.topic,
                "partition": partition.partition,
                "end_offset": progress.end,
                "source_start_offset": progress.source_start,
                "source_end_offset": progress.source_end,
                "bytes": progress.bytes,
                "error": error.map(|error| error.kind),
                "message": error.map(|error| error.message.as_str()),
            })
        };
        to_python(py, &all.into_iter().map(document).collect())
    }

    fn failures(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, String)>> {
        let failures = enter(py, || Ok::<_, ClientError>(self.0.lock().failures()))?;
        Ok(failures.into_iter().map(|error| (error.kind, error.message)).collect())
    }

    fn take_stale(&self, py: Python<'_>) -> PyResult<bool> {
        enter(py, || Ok::<_, ClientError>(self.0.lock().take_stale()))
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        enter(py, || {
            self.0.lock().stop();
            Ok::<_, ClientError>(())
        })
    }
}
