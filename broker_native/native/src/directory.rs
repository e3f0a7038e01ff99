//! `LogDirectory` of `_native.pyi`: a data directory read without its broker.
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use serde_json::Value;

use super::client::{RawLimitedRange, RawPosition, RawTopic, isolation, limited_range, raw_topic, to_python};
use super::ffi::enter;
use pylog_client::error::ClientError;
use pylog_client::read::advance::{LimitedRange, advance_fed};
use pylog_client::read::directory::{Directory, DirectoryFeed};
use pylog_storage::TopicPartition;

/// See `_native.pyi`.
#[pyclass(module = "pylog_spark._native", frozen)]
#[derive(Debug)]
pub struct LogDirectory {
    /// For readers.
    pub directory: Arc<Directory>,
}

#[pymethods]
impl LogDirectory {
    #[new]
    #[pyo3(signature = (path, isolation_level="read_uncommitted", skip_damaged=false))]
    fn new(py: Python<'_>, path: PathBuf, isolation_level: &str, skip_damaged: bool) -> PyResult<Self> {
        let isolation = isolation(isolation_level)?;
        let directory = enter(py, || Directory::open(&path, isolation, skip_damaged))?;
        Ok(Self { directory: Arc::new(directory) })
    }

    #[pyo3(signature = (names))]
    fn describe_topics<'py>(
        &self,
        py: Python<'py>,
        names: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let topics = enter(py, || self.directory.describe_topics(names.as_deref()))?;
        to_python(py, &Value::Array(topics))
    }

    #[pyo3(signature = (names))]
    fn list_partitions(&self, py: Python<'_>, names: Option<Vec<String>>) -> PyResult<Vec<RawTopic>> {
        let topics = enter(py, || self.directory.list_partitions(names.as_deref()))?;
        Ok(topics.into_iter().map(raw_topic).collect())
    }

    #[pyo3(signature = (wanted, isolation_level="read_uncommitted"))]
    fn list_offsets(
        &self,
        py: Python<'_>,
        wanted: Vec<RawPosition>,
        isolation_level: &str,
    ) -> PyResult<Vec<(String, i32, i64, i64)>> {
        let isolation = isolation(isolation_level)?;
        enter(py, || {
            let row = |(topic, partition, time): RawPosition| {
                let at = TopicPartition::new(&topic, partition);
                let (offset, timestamp) = self.directory.offset(&at, time, isolation)?;
                Ok::<_, ClientError>((topic, partition, offset, timestamp))
            };
            wanted.into_iter().map(row).collect()
        })
    }

    fn advance(&self, py: Python<'_>, ranges: Vec<RawLimitedRange>) -> PyResult<Vec<(i64, i64, i64)>> {
        enter(py, || {
            let ranges: Vec<LimitedRange> = ranges.into_iter().map(limited_range).collect();
            let mut feed = DirectoryFeed::new(self.directory.clone());
            let mut taken = |range: &LimitedRange| advance_fed(&mut feed, range);
            let row = |range| taken(range).map(|reached| (reached.offset, reached.records, reached.bytes));
            ranges.iter().map(row).collect::<Result<_, ClientError>>()
        })
    }

    fn segments(&self, py: Python<'_>, topic: &str, partition: i32) -> PyResult<Vec<(i64, u64)>> {
        let at = TopicPartition::new(topic, partition);
        enter(py, || self.directory.segments(&at))
    }

    fn inspect<'py>(&self, py: Python<'py>, topic: &str, partition: i32) -> PyResult<Bound<'py, PyAny>> {
        let at = TopicPartition::new(topic, partition);
        let found = enter(py, || self.directory.inspect(&at))?;
        to_python(py, &found)
    }

    fn verify<'py>(&self, py: Python<'py>, topic: &str, partition: i32) -> PyResult<Bound<'py, PyAny>> {
        let at = TopicPartition::new(topic, partition);
        let found = enter(py, || self.directory.verify(&at))?;
        to_python(py, &found)
    }

    fn take_notices(&self) -> Vec<String> {
        self.directory.take_notices()
    }

    /// Nothing is held open; as the client has it.
    fn close(&self) {}
}
