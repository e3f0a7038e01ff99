//! `BrokerArchives`: what a broker and Python say to each other about the archive, see `_native.pyi`.
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use super::error::Failure;
use super::ffi::enter;
use pylog_client::error::Owner;
use pylog_client::metadata::topic_id as ids;
use pylog_server::archiving;
use pylog_server::shared::Shared;
use pylog_server::state::archives::{AbortedBatches, Answered, Archived, Wanted};

/// Topic, its id, partition, leader epoch, first offset, how far it may be copied (`None`: it is not any more), bytes here that the archive does not have, `retention.ms`
/// and `retention.bytes`, what groups need of it, whether it is known what the archive has.
type Led = (String, String, i32, i32, i64, Option<i64>, u64, i64, i64, Option<(i64, i64, i64)>, bool);
/// Number, kind, topic, its id, partition, an offset or a time, most bytes.
type Asked = (u64, &'static str, String, String, i32, i64, usize);

/// See `_native.pyi`.
#[pyclass(module = "pylog_spark._native", frozen)]
pub struct BrokerArchives {
    shared: Arc<Shared>,
    owner: Owner,
}

impl BrokerArchives {
    /// Of a broker.
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), owner: Owner::current() }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        what: impl FnOnce(&Shared) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        enter(py, || {
            self.owner.check("broker")?;
            what(&self.shared)
        })
    }
}

#[pymethods]
impl BrokerArchives {
    fn partitions(&self, py: Python<'_>) -> PyResult<Vec<Led>> {
        self.with(py, |shared| {
            let each = archiving::archived_partitions(shared).into_iter();
            let led = each.map(|at| {
                let id = ids::text(at.topic_id);
                let (here, bytes) = (at.log_start_offset, at.bytes_here);
                let (epoch, until, known) =
                    (at.leader_epoch, at.is_copied.then_some(at.closed_until), at.is_known);
                let (keep_ms, keep_bytes) = at.retention;
                (at.topic, id, at.partition, epoch, here, until, bytes, keep_ms, keep_bytes, at.needed, known)
            });
            Ok(led.collect())
        })
    }

    fn read(
        &self,
        py: Python<'_>,
        topic_id: &str,
        partition: i32,
        leader_epoch: i32,
        offset: i64,
        max_bytes: usize,
    ) -> PyResult<Option<(Py<PyBytes>, i64)>> {
        let found = self.with(py, |shared| {
            let at = (ids::parse(topic_id)?, partition, leader_epoch);
            Ok(archiving::read(shared, at, offset, max_bytes)?)
        })?;
        Ok(found.map(|(bytes, next)| (PyBytes::new(py, &bytes).unbind(), next)))
    }

    fn epoch_end(
        &self,
        py: Python<'_>,
        topic_id: &str,
        partition: i32,
        epoch: i32,
    ) -> PyResult<Option<(i32, i64)>> {
        self.with(py, |shared| Ok(archiving::epoch_end(shared, ids::parse(topic_id)?, partition, epoch)))
    }

    fn set_archived(
        &self,
        py: Python<'_>,
        topic_id: &str,
        partition: i32,
        leader_epoch: i32,
        archived: (i64, i64),
        epochs: Vec<(i32, i64)>,
    ) -> PyResult<bool> {
        self.with(py, |shared| {
            let (start, end) = archived;
            let archived = Archived { leader_epoch, start, end, epochs };
            Ok(archiving::set_archived(shared, ids::parse(topic_id)?, partition, archived))
        })
    }

    fn next_question(&self, py: Python<'_>, timeout_ms: u64) -> PyResult<Option<Asked>> {
        self.with(py, |shared| {
            let next = shared.archives.next(Duration::from_millis(timeout_ms));
            Ok(next.map(|(number, (at, wanted))| {
                let (kind, value, most) = match wanted {
                    Wanted::Batches { offset, max_bytes } => ("batches", offset, max_bytes),
                    Wanted::Time(timestamp_ms) => ("time", timestamp_ms, 0),
                    Wanted::Delete(before) => ("delete", before, 0),
                };
                (number, kind, at.topic, ids::text(at.topic_id), at.partition, value, most)
            }))
        })
    }

    fn answer_batches(
        &self,
        py: Python<'_>,
        number: u64,
        pieces: Vec<PyBackedBytes>,
        aborted: Vec<AbortedBatches>,
        end: i64,
    ) -> PyResult<()> {
        self.with(py, |shared| {
            let mut batches = BytesMut::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
            pieces.iter().for_each(|piece| batches.extend_from_slice(piece));
            let batches = archiving::before(&batches.freeze(), end);
            shared.archives.answer(number, Answered::Batches(batches, aborted));
            Ok(())
        })
    }

    #[pyo3(signature = (number, found=None))]
    fn answer_offset(&self, py: Python<'_>, number: u64, found: Option<(i64, i64)>) -> PyResult<()> {
        self.with(py, |shared| {
            shared.archives.answer(number, Answered::Offset(found));
            Ok(())
        })
    }

    fn refuse(&self, py: Python<'_>, number: u64, kind: &str) -> PyResult<()> {
        self.with(py, |shared| {
            shared.archives.refuse(number, kind);
            Ok(())
        })
    }

    fn wait(&self, py: Python<'_>, timeout_ms: u64) -> PyResult<bool> {
        self.with(py, |shared| Ok(shared.archives.wait_for_miss(Duration::from_millis(timeout_ms))))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |shared| {
            shared.archives.close();
            Ok(())
        })
    }
}
