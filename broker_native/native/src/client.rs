//! `Client` of `_native.pyi`: metadata, offsets, admin.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use serde_json::Value;

use super::arrow::NativeBatch;
use super::conditions::KeyTest;
use super::error::Failure;
use super::ffi::enter;
use super::plan::{RawRange, offset_range, row_filter, wanted_columns};
use super::tokens::PythonTokens;
use super::typed::TypedRead;
use pylog_client::admin::topics::NewTopic;
use pylog_client::admin::{by_name, configs, topics as admin};
use pylog_client::config::{Isolation, Settings};
use pylog_client::error::{ClientError, Owner, kind};
use pylog_client::metadata::cluster::Cluster;
use pylog_client::metadata::listed_topic::ListedTopic;
use pylog_client::metadata::offsets::{self, OffsetQuery};
use pylog_client::metadata::topic_partition::TopicPartition;
use pylog_client::mirror::{batches, promote};
use pylog_client::net::stop::Stop;
use pylog_client::read::advance::{self, LimitedRange};
use pylog_client::read::at_once;
use pylog_client::read::plan::ReadPlan;
use pylog_client::write::transaction::end::{self, Ending};
use pylog_settings::Typed;

/// What an administrator's request does when a topic names no number of partitions or replicas.
const BROKER_DEFAULT: i32 = -1;

/// The settings of a Python mapping.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown name or a bad value.
pub fn settings(config: &HashMap<String, String>) -> PyResult<Settings> {
    let given = config.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let settings = Settings::new(given).map_err(Failure::from)?;
    Ok(settings.with_tokens(|wanted| Arc::new(PythonTokens::new(wanted))))
}

/// Kafka's hash of a key.
#[pyfunction]
pub fn murmur2(data: &[u8]) -> i32 {
    pylog_record::partitioner::murmur2(data)
}

/// See `_native.pyi`.
#[pyclass(module = "pylog_spark._native", frozen)]
#[derive(Debug)]
pub struct Client {
    cluster: Mutex<Option<Cluster>>,
    stop: Stop,
    owner: Owner,
}

impl Client {
    /// Runs `work` on the cluster, without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Cluster) -> Result<T, ClientError> + Send,
    ) -> PyResult<T> {
        enter(py, || {
            self.owner.check("client")?;
            let mut cluster = self.cluster.lock();
            let closed = || ClientError::fatal(kind::CLOSED, "this client is closed; make a new one");
            work(cluster.as_mut().ok_or_else(closed)?)
        })
    }

    /// As [`Client::with`], for answers that are JSON.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        work: impl FnOnce(&mut Cluster) -> Result<Vec<Value>, ClientError> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let answer = self.with(py, work)?;
        to_python(py, &Value::Array(answer))
    }
}

#[pymethods]
impl Client {
    #[new]
    fn new(config: HashMap<String, String>) -> PyResult<Self> {
        let stop = Stop::default();
        let cluster = Cluster::new(settings(&config)?, stop.clone()).map_err(Failure::from)?;
        Ok(Self { cluster: Mutex::new(Some(cluster)), stop, owner: Owner::current() })
    }

    #[pyo3(signature = (names))]
    fn describe_topics<'py>(
        &self,
        py: Python<'py>,
        names: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, |cluster| {
            let names: Option<Vec<&str>> =
                names.as_ref().map(|names| names.iter().map(String::as_str).collect());
            admin::describe_topics(cluster, names.as_deref())
        })
    }

    #[pyo3(signature = (names))]
    fn list_partitions(&self, py: Python<'_>, names: Option<Vec<String>>) -> PyResult<Vec<RawTopic>> {
        let names: Option<Vec<&str>> = names.as_ref().map(|names| names.iter().map(String::as_str).collect());
        let topics = self.with(py, |cluster| admin::list_partitions(cluster, names.as_deref()))?;
        Ok(topics.into_iter().map(raw_topic).collect())
    }

    fn describe_cluster<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let answer = self.with(py, admin::describe_cluster)?;
        to_python(py, &answer)
    }

    #[pyo3(signature = (wanted, isolation_level="read_uncommitted"))]
    fn list_offsets<'py>(
        &self,
        py: Python<'py>,
        wanted: Vec<NamedPosition<'py>>,
        isolation_level: &str,
    ) -> PyResult<Vec<NamedOffset<'py>>> {
        let isolation = isolation(isolation_level)?;
        let queries = offset_queries(&wanted)?;
        let found = self.with(py, |cluster| offsets::list_offsets(cluster, &queries, isolation))?;
        let row = |((topic, partition, _), found): (NamedPosition<'py>, offsets::Found)| {
            (topic, partition, found.offset, found.timestamp)
        };
        Ok(wanted.into_iter().zip(found).map(row).collect())
    }

    fn advance(&self, py: Python<'_>, ranges: Vec<RawLimitedRange>) -> PyResult<Vec<(i64, i64, i64)>> {
        enter(py, || {
            self.owner.check("client")?;
            let mut cluster = self.cluster.lock();
            let closed = || ClientError::fatal(kind::CLOSED, "this client is closed; make a new one");
            let ranges: Vec<LimitedRange> = ranges.into_iter().map(limited_range).collect();
            let (kept, taken) = advance::advance(cluster.take().ok_or_else(closed)?, &ranges);
            *cluster = Some(kept);
            Ok::<_, ClientError>(
                taken?.iter().map(|advanced| (advanced.offset, advanced.records, advanced.bytes)).collect(),
            )
        })
    }

    #[pyo3(signature = (ranges, columns, most_bytes, *, batch_bytes=1_500_000, max_rows=10_000, timestamps=None, keys=Vec::new(),
        typed=None))]
    #[allow(clippy::too_many_arguments)]
    fn read_at_once(
        &self,
        py: Python<'_>,
        ranges: Vec<RawRange>,
        columns: Vec<String>,
        most_bytes: usize,
        batch_bytes: usize,
        max_rows: usize,
        timestamps: Option<Vec<(i64, i64)>>,
        keys: Vec<KeyTest>,
        typed: Option<&Bound<'_, TypedRead>>,
    ) -> PyResult<(Option<Vec<NativeBatch>>, usize, usize)> {
        let ranges = ranges.into_iter().map(offset_range).collect::<Result<_, _>>()?;
        let (columns, typed) = wanted_columns(&columns, typed.map(Bound::get))?;
        let filter = row_filter(timestamps, keys)?;
        let plan = ReadPlan { ranges, columns, typed, filter, batch_bytes, max_rows, ..ReadPlan::default() };
        let read = self.with(py, |cluster| at_once::read(cluster, &plan, most_bytes))?;
        let batches = read.batches.map(|batches| batches.into_iter().map(NativeBatch).collect());
        Ok((batches, read.rows, read.bytes))
    }

    #[pyo3(signature = (topics, validate_only=false))]
    fn create_topics<'py>(
        &self,
        py: Python<'py>,
        topics: Vec<Bound<'py, PyAny>>,
        validate_only: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let topics: Vec<NewTopic> = topics.iter().map(new_topic).collect::<PyResult<_>>()?;
        self.ask(py, |cluster| admin::create_topics(cluster, &topics, validate_only))
    }

    fn delete_topics<'py>(&self, py: Python<'py>, names: Vec<String>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, |cluster| admin::delete_topics(cluster, &names))
    }

    fn create_partitions<'py>(
        &self,
        py: Python<'py>,
        counts: BTreeMap<String, i32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, |cluster| admin::create_partitions(cluster, &counts))
    }

    fn delete_records<'py>(&self, py: Python<'py>, before: Vec<RawPosition>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, |cluster| admin::delete_records(cluster, &before))
    }

    #[pyo3(signature = (resource_type, names, keys=None))]
    fn describe_configs<'py>(
        &self,
        py: Python<'py>,
        resource_type: &str,
        names: Vec<String>,
        keys: Option<Vec<String>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, |cluster| configs::describe_configs(cluster, resource_type, &names, keys.as_deref()))
    }

    #[pyo3(signature = (resource_type, name, changes, validate_only=false))]
    fn alter_configs<'py>(
        &self,
        py: Python<'py>,
        resource_type: &str,
        name: &str,
        changes: BTreeMap<String, Option<String>>,
        validate_only: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, |cluster| configs::alter_configs(cluster, resource_type, name, &changes, validate_only))
    }

    fn request<'py>(&self, py: Python<'py>, name: &str, arguments_json: &str) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, |cluster| by_name::call(cluster, name, arguments_json))
    }

    fn end_transactions<'py>(
        &self,
        py: Python<'py>,
        transactions: Vec<(String, i64, i16)>,
        commit: bool,
        timeout_ms: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ending = |(transactional_id, producer_id, producer_epoch)| Ending {
            transactional_id,
            producer_id,
            producer_epoch,
        };
        let endings: Vec<Ending> = transactions.into_iter().map(ending).collect();
        let limit = Duration::from_millis(timeout_ms);
        self.ask(py, |cluster| Ok(end::report(&endings, end::all(cluster, &endings, commit, limit))))
    }

    fn end_mirror(&self, py: Python<'_>, topic: &str, partitions: Vec<i32>) -> PyResult<()> {
        let named = |partition: i32| TopicPartition::by_name(topic, partition);
        let partitions: Vec<TopicPartition> = partitions.into_iter().map(named).collect();
        self.with(py, |cluster| promote::end(cluster, &partitions))
    }

    fn fetch_batches<'py>(
        &self,
        py: Python<'py>,
        topic: &str,
        partition: i32,
        offset: i64,
        until: i64,
        max_bytes: i32,
    ) -> PyResult<(Bound<'py, PyBytes>, i64)> {
        let partition = TopicPartition::by_name(topic, partition);
        let found = self.with(py, |cluster| batches::fetch(cluster, &partition, offset, until, max_bytes))?;
        Ok((PyBytes::new(py, &found.batches), found.next))
    }

    #[pyo3(signature = (source_id, topic, partition, start, batches=None))]
    fn append_batches(
        &self,
        py: Python<'_>,
        source_id: &str,
        topic: &str,
        partition: i32,
        start: i64,
        batches: Option<&[u8]>,
    ) -> PyResult<i64> {
        let partition = TopicPartition::by_name(topic, partition);
        let given = batches.map(Bytes::copy_from_slice);
        self.with(py, |cluster| batches::append(cluster, source_id, &partition, start, given))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        enter(py, || -> Result<(), ClientError> {
            // In a forked child the sockets are still the parent's: nothing to shut down here.
            if self.owner.check("client").is_ok() {
                self.stop.stop();
                *self.cluster.lock() = None;
            }
            Ok(())
        })
    }
}

/// The isolation level of this name.
///
/// # Errors
/// `INVALID_ARGUMENT` for another name.
pub fn isolation(level: &str) -> PyResult<Isolation> {
    let known = Isolation::of(&level.to_ascii_lowercase().into());
    let wrong = || ClientError::invalid("isolation_level must be one of read_uncommitted, read_committed");
    Ok(known.ok_or_else(wrong).map_err(Failure::from)?)
}

/// Topic, partition, and a timestamp or an offset.
pub type RawPosition = (String, i32, i64);
/// As [`RawPosition`], with Python's own text of the topic: that of thousands of partitions is not copied, and goes back in
/// the answers.
type NamedPosition<'py> = (Bound<'py, PyString>, i32, i64);
/// An answer: topic, partition, offset, timestamp.
type NamedOffset<'py> = (Bound<'py, PyString>, i32, i64, i64);
/// Name, id, whether it is internal, error, numbers of partitions.
pub type RawTopic = (String, String, bool, Option<&'static str>, Vec<i32>);
/// Topic, partition, start, end, most records, most bytes, whether one batch is taken at least.
pub type RawLimitedRange = (String, i32, i64, i64, Option<i64>, Option<i64>, bool);

/// A topic as Python takes it.
pub fn raw_topic(topic: ListedTopic) -> RawTopic {
    (topic.name, topic.topic_id, topic.is_internal, topic.error, topic.partitions)
}

/// Neighbours of one topic share its name.
fn offset_queries(wanted: &[NamedPosition<'_>]) -> PyResult<Vec<OffsetQuery>> {
    let mut shared: Arc<str> = "".into();
    let query = |(topic, partition, timestamp): &NamedPosition<'_>| {
        let name = topic.to_str()?;
        if *shared != *name {
            shared = name.into();
        }
        let topic_partition = TopicPartition::by_name(shared.clone(), *partition);
        Ok(OffsetQuery { topic_partition, timestamp: *timestamp })
    };
    wanted.iter().map(query).collect()
}

/// A range as Python gives it.
pub fn limited_range(raw: RawLimitedRange) -> LimitedRange {
    let (topic, partition, start, end, max_records, max_bytes, at_least_one) = raw;
    let topic_partition = TopicPartition::by_name(topic, partition);
    LimitedRange { topic_partition, start, end, max_records, max_bytes, at_least_one }
}

fn new_topic(topic: &Bound<'_, PyAny>) -> PyResult<NewTopic> {
    let field = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
        let value = topic.call_method1("get", (name,))?;
        Ok((!value.is_none()).then_some(value))
    };
    let name = field("name")?
        .ok_or_else(|| Failure::from(ClientError::invalid("a topic to create needs a name")))?;
    let replicas = match field("replication_factor")? {
        Some(value) => value.extract()?,
        None => BROKER_DEFAULT as i16,
    };
    Ok(NewTopic {
        name: name.extract()?,
        num_partitions: field("num_partitions")?.map_or(Ok(BROKER_DEFAULT), |value| value.extract())?,
        replication_factor: replicas,
        configs: field("configs")?.map_or(Ok(BTreeMap::new()), |value| value.extract())?,
    })
}

/// JSON as Python's own values.
pub fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match number.as_i64() {
            Some(value) => value.into_pyobject(py)?.into_any(),
            None => number.as_f64().into_pyobject(py)?.into_any(),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(items) => {
            let items = items.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (name, field) in fields {
                dict.set_item(name, to_python(py, field)?)?;
            }
            dict.into_any()
        }
    })
}
