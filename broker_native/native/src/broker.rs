//! `NativeBroker`: the server as Python sees it, and the queue of events through which the server asks Python.
//!
//! Python's control loop takes events with `next_event` and answers with `complete`, by id. The queue is bounded; what
//! does not fit, and what waits when the broker closes, is refused at once: the client gets a retriable error.
use std::collections::{HashMap, HashSet, VecDeque};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Serialize;
use tokio::sync::oneshot;

use super::archives::BrokerArchives;
use super::error::Failure;
use super::ffi::enter;
use pylog_client::error::Owner;
use pylog_server::Server;
use pylog_server::cluster::spec::TopicSpec;
use pylog_server::decide::{Decider, Question};
use pylog_server::group_numbers::group_numbers;
use pylog_server::partition_numbers::partition_numbers;
use pylog_server::settings::Settings;
use pylog_server::shared::Shared;
use pylog_server::state::dead_letters::{Letters, Written};
use pylog_server::state::topics::Topic;
use pylog_storage::{RealDisk, SystemClock};

/// Most events that wait for the control loop. Those of more than a few KiB have taken room before they come here
/// (`queued.max.response.bytes`).
const EVENTS_MAX: usize = 1024;

/// Key, value, timestamp (ms), headers.
type AskedLetter = (Option<Py<PyBytes>>, Option<Py<PyBytes>>, i64, Vec<(String, Option<Py<PyBytes>>)>);
/// Number, topic, records.
type AskedLetters = (u64, String, Vec<AskedLetter>);

/// (event id, kind, JSON).
type Event = (u64, &'static str, String);

#[derive(Default)]
struct Queue {
    next_id: u64,
    waiting: VecDeque<(u64, Question)>,
    /// Taken by Python, not completed.
    taken: HashMap<u64, oneshot::Sender<String>>,
    /// Python wants `next` to return, now or at its next call.
    woken: bool,
    closed: bool,
}

/// The decider that asks Python.
#[derive(Default)]
struct Events {
    queue: Mutex<Queue>,
    came: Condvar,
}

impl Decider for Events {
    fn ask(&self, question: Question) {
        let mut queue = self.queue.lock();
        if queue.closed || queue.waiting.len() >= EVENTS_MAX {
            // Dropping the question fails the request that asked it.
            return;
        }
        queue.next_id += 1;
        let id = queue.next_id;
        queue.waiting.push_back((id, question));
        self.came.notify_one();
    }
}

impl Events {
    fn next(&self, timeout: Duration) -> Option<Event> {
        let deadline = Instant::now().checked_add(timeout)?;
        let mut queue = self.queue.lock();
        while queue.waiting.is_empty() {
            if std::mem::take(&mut queue.woken)
                || queue.closed
                || self.came.wait_until(&mut queue, deadline).timed_out()
            {
                break;
            }
        }
        let (id, question) = queue.waiting.pop_front()?;
        queue.taken.insert(id, question.reply);
        Some((id, question.kind.name(), question.json))
    }

    fn wake(&self) {
        self.queue.lock().woken = true;
        self.came.notify_one();
    }

    fn complete(&self, id: u64, json: String) {
        if let Some(reply) = self.queue.lock().taken.remove(&id) {
            // The client may be gone.
            let _ = reply.send(json);
        }
    }

    /// Refuses what waits and all that comes; what was taken can still be completed.
    fn close(&self) {
        let mut queue = self.queue.lock();
        queue.closed = true;
        queue.waiting.clear();
        self.came.notify_all();
    }
}

/// See `pylog_spark/_native.pyi`.
#[pyclass(module = "pylog_spark._native", frozen)]
pub struct NativeBroker {
    server: ManuallyDrop<Server>,
    events: Arc<Events>,
    owner: Owner,
}

impl Drop for NativeBroker {
    fn drop(&mut self) {
        // A forked child has none of the server's threads and would wait for them for ever: it leaves all as it is.
        if self.check().is_ok() {
            // SAFETY: dropped nowhere else, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.server) };
        }
    }
}

impl NativeBroker {
    fn check(&self) -> Result<(), Failure> {
        Ok(self.owner.check("broker")?)
    }

    /// JSON of what `look` finds.
    fn shown<T: Serialize>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&Shared) -> T + Send,
    ) -> PyResult<String> {
        enter(py, || {
            self.check()?;
            Ok::<_, Failure>(serde_json::to_string(&look(self.server.shared()))?)
        })
    }
}

#[pymethods]
impl NativeBroker {
    #[new]
    fn new(py: Python<'_>, data_dir: PathBuf, settings_json: &str) -> PyResult<Self> {
        let events = Arc::new(Events::default());
        let decider = Arc::clone(&events);
        let server = enter(py, || {
            let settings = Settings::read(serde_json::from_str(settings_json)?)?;
            Server::open(Arc::new(RealDisk), Arc::new(SystemClock), &data_dir, settings, decider)
                .map_err(Failure::from)
        })?;
        Ok(Self { server: ManuallyDrop::new(server), events, owner: Owner::current() })
    }

    fn apply_topics(&self, py: Python<'_>, topics_json: &str) -> PyResult<()> {
        enter(py, || {
            self.check()?;
            Ok::<_, Failure>(self.server.apply_topics(serde_json::from_str(topics_json)?)?)
        })
    }

    fn expect_topics(&self, py: Python<'_>, topics_json: &str) -> PyResult<()> {
        enter(py, || {
            self.check()?;
            let specs: Vec<TopicSpec> = serde_json::from_str(topics_json)?;
            Ok::<_, Failure>(self.server.expect_topics(&specs)?)
        })
    }

    fn offline_partitions(&self) -> PyResult<Vec<(String, i32)>> {
        self.check()?;
        let image = self.server.shared().topics.now();
        let of = |topic: &Topic| {
            let offline = topic.partitions.iter().filter(|partition| partition.is_offline());
            offline.map(|partition| (topic.name.clone(), partition.spec.partition)).collect::<Vec<_>>()
        };
        Ok(image.all().flat_map(|topic| of(topic)).collect())
    }

    fn apply_cluster(&self, py: Python<'_>, view_json: &str) -> PyResult<()> {
        enter(py, || {
            self.check()?;
            self.server.apply_cluster(serde_json::from_str(view_json)?);
            Ok::<_, Failure>(())
        })
    }

    fn lease_clock_ms(&self) -> PyResult<u64> {
        self.check()?;
        Ok(u64::try_from(self.server.shared().cluster.lease_clock().as_millis()).unwrap_or(u64::MAX))
    }

    fn may_lead(&self) -> PyResult<bool> {
        self.check()?;
        Ok(self.server.shared().cluster.may_lead())
    }

    fn lease_until(&self, clock_ms: u64) -> PyResult<()> {
        self.check()?;
        self.server.lease_until(Duration::from_millis(clock_ms));
        Ok(())
    }

    fn set_throttles(&self, leader: i64, follower: i64) -> PyResult<()> {
        self.check()?;
        self.server.set_throttles(leader, follower);
        Ok(())
    }

    fn apply_group_configs(&self, py: Python<'_>, configs_json: &str) -> PyResult<()> {
        enter(py, || {
            self.check()?;
            let own = serde_json::from_str(configs_json)?;
            Ok::<_, Failure>(self.server.shared().share_groups.configs.apply(own)?)
        })
    }

    fn apply_security(&self, py: Python<'_>, security_json: &str) -> PyResult<()> {
        enter(py, || {
            self.check()?;
            Ok::<_, Failure>(self.server.apply_security(security_json)?)
        })
    }

    fn apply_jwks(&self, py: Python<'_>, jwks_json: &str) -> PyResult<()> {
        enter(py, || {
            self.check()?;
            Ok::<_, Failure>(self.server.shared().security.apply_jwks(jwks_json)?)
        })
    }

    fn begin_schema_ids(&self) -> PyResult<()> {
        self.check()?;
        self.server.shared().schema_ids.begin();
        Ok(())
    }

    fn set_schema_ids(&self, subject: String, ids: HashSet<i32>) -> PyResult<()> {
        self.check()?;
        self.server.shared().schema_ids.set(subject, ids);
        Ok(())
    }

    fn next_schema_question(&self, py: Python<'_>, timeout_ms: u64) -> PyResult<Option<u64>> {
        enter(py, || {
            self.check()?;
            Ok::<_, Failure>(self.server.shared().schema_ids.next_question(Duration::from_millis(timeout_ms)))
        })
    }

    fn answer_schema_question(&self, question: u64) -> PyResult<()> {
        self.check()?;
        self.server.shared().schema_ids.answer(question);
        Ok(())
    }

    fn next_dead_letters(&self, py: Python<'_>, timeout_ms: u64) -> PyResult<Option<AskedLetters>> {
        let next = enter(py, || {
            self.check()?;
            Ok::<_, Failure>(self.server.shared().dead_letters.next(Duration::from_millis(timeout_ms)))
        })?;
        Ok(next.map(|(number, Letters { to, letters })| {
            let letters = letters.into_iter().map(|letter| {
                let bytes = |bytes: Option<Vec<u8>>| bytes.map(|bytes| PyBytes::new(py, &bytes).unbind());
                let headers =
                    letter.headers.into_iter().map(|(name, value)| (name, bytes(value))).collect::<Vec<_>>();
                (bytes(letter.key), bytes(letter.value), letter.timestamp_ms, headers)
            });
            (number, to, letters.collect())
        }))
    }

    #[pyo3(signature = (number, error=None, again=false))]
    fn answer_dead_letters(&self, number: u64, error: Option<String>, again: bool) -> PyResult<()> {
        self.check()?;
        let written = match (error, again) {
            (None, _) => Written::All,
            (Some(sentence), true) => Written::NotNow(sentence),
            (Some(sentence), false) => Written::Never(sentence),
        };
        self.server.shared().dead_letters.answer(number, written);
        Ok(())
    }

    fn archives(&self) -> PyResult<BrokerArchives> {
        self.check()?;
        Ok(BrokerArchives::new(self.server.shared()))
    }

    fn set_cleaner_backoff(&self, backoff_ms: u64) -> PyResult<()> {
        self.check()?;
        self.server.set_cleaner_backoff(Duration::from_millis(backoff_ms));
        Ok(())
    }

    fn was_clean(&self) -> PyResult<bool> {
        self.check()?;
        Ok(self.server.was_clean())
    }

    fn wake(&self) -> PyResult<()> {
        self.check()?;
        self.events.wake();
        Ok(())
    }

    fn remove_topic(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        enter(py, || {
            self.check()?;
            Ok::<_, Failure>(self.server.remove_topic(name)?)
        })
    }

    fn listen(&self, py: Python<'_>, listeners_json: &str) -> PyResult<Vec<u16>> {
        enter(py, || {
            self.check()?;
            Ok::<_, Failure>(self.server.listen(serde_json::from_str(listeners_json)?)?)
        })
    }

    fn next_event(&self, py: Python<'_>, timeout_ms: u64) -> PyResult<Option<Event>> {
        enter(py, || {
            self.check()?;
            Ok::<_, Failure>(self.events.next(Duration::from_millis(timeout_ms)))
        })
    }

    fn complete(&self, py: Python<'_>, event_id: u64, answer_json: String) -> PyResult<()> {
        enter(py, || {
            self.check()?;
            self.events.complete(event_id, answer_json);
            Ok::<_, Failure>(())
        })
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check()?;
        let shared = self.server.shared();
        let numbers = PyDict::new(py);
        for (name, number) in shared.metrics.snapshot().into_iter().chain(self.server.replicas().snapshot()) {
            numbers.set_item(name, number)?;
        }
        let image = shared.topics.now();
        numbers.set_item("may_lead", u8::from(shared.cluster.may_lead()))?;
        numbers.set_item("topics", image.len())?;
        numbers.set_item("partitions", image.all().map(|topic| topic.partitions.len()).sum::<usize>())?;
        Ok(numbers)
    }

    fn partition_numbers(&self, py: Python<'_>) -> PyResult<String> {
        self.shown(py, partition_numbers)
    }

    fn group_numbers(&self, py: Python<'_>) -> PyResult<String> {
        self.shown(py, group_numbers)
    }

    fn request_times(&self, py: Python<'_>) -> PyResult<String> {
        self.shown(py, |shared| shared.request_times.snapshot())
    }

    fn close(&self, py: Python<'_>, timeout_ms: u64) -> PyResult<()> {
        enter(py, || {
            self.check()?;
            self.events.close();
            Ok::<_, Failure>(self.server.close(Duration::from_millis(timeout_ms))?)
        })
    }
}
