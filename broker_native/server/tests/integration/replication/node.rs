//! One broker of the simulation: a real log on a simulated disk, and what the server does around [`Progress`] and
//! [`Following`], without sockets and threads.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pylog_record::{
    BatchBuilder, Codec,
    batches::{batches, body},
    records,
};
use pylog_replica::following::Position;
use pylog_replica::following::machine::{Following, Need, Step};
use pylog_replica::progress::{
    Ends, EpochStart, Moved, Progress, Proposal, ProposalOutcome, StoredPartition,
};
use pylog_storage::clock::ManualClock;
use pylog_storage::{
    AppendOptions, Durability, LogConfig, LogManager, ManagerConfig, PartitionLog, ReadUpTo, Role,
    StorageError,
};
use pylog_testkit::sim::SimDisk;
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::{EpochEndOffset, PartitionData};
use uuid::Uuid;

use crate::replication::store::Doc;

const RETRY_MAX_MS: u64 = 100;
const FETCH_BYTES: usize = 600;
const TOPIC_ID: Uuid = Uuid::from_u128(42);

/// What a broker is to the partition.
pub enum Acting {
    Nobody,
    Leader(Box<Progress>),
    Follower(Following),
}

/// A running process.
pub struct Up {
    pub logs: LogManager,
    pub log: Arc<PartitionLog>,
    /// As it knows it.
    pub doc: Doc,
    pub alive: BTreeMap<usize, i64>,
    pub broker_epoch: i64,
    pub acting: Acting,
    pub paused: bool,
    /// When it last heard of its session, and until when it may lead.
    pub renewed_ms: i64,
    /// A question without an answer, and when it was asked.
    pub asked_ms: Option<i64>,
}

pub struct Node {
    pub id: usize,
    pub disk: SimDisk,
    pub clock: Arc<ManualClock>,
    pub durability: Durability,
    pub min_isr: usize,
    /// `replica.lag.time.max.ms`.
    pub lag_max_ms: i64,
    pub up: Option<Up>,
    /// Grows with each start.
    pub boots: u64,
    /// Whether the last stop was clean.
    pub clean: bool,
}

impl Node {
    pub fn new(id: usize, clock: &Arc<ManualClock>, durability: Durability, min_isr: usize) -> Self {
        Self {
            id,
            disk: SimDisk::new(),
            clock: Arc::clone(clock),
            durability,
            min_isr,
            lag_max_ms: 400,
            up: None,
            boots: 0,
            clean: true,
        }
    }

    /// Starts the process; it knows `doc`, and is registered as `broker_epoch`.
    pub fn start(&mut self, doc: Doc, alive: BTreeMap<usize, i64>, now_ms: i64) -> Result<(), StorageError> {
        let config = ManagerConfig { node_id: self.id as i32, flush_threads: 0, ..ManagerConfig::default() };
        let disk = Arc::new(self.disk.clone());
        let logs = LogManager::open(disk, Arc::clone(&self.clock) as _, Path::new("/data"), config)?;
        let config = LogConfig {
            segment_bytes: 3_000,
            index_interval_bytes: 200,
            durability: self.durability,
            message_timestamp_after_max_ms: i64::MAX,
            ..LogConfig::default()
        };
        let log = logs.open_partition("t", 0, TOPIC_ID, config, Role::Follower, doc.leader_epoch)?;
        self.boots += 1;
        self.clean = false;
        let broker_epoch = alive[&self.id];
        let before = Doc { leader: None, leader_epoch: -1, partition_epoch: -1, ..doc.clone() };
        self.up = Some(Up {
            logs,
            log,
            doc: before,
            alive: BTreeMap::new(),
            broker_epoch,
            acting: Acting::Nobody,
            paused: false,
            renewed_ms: now_ms,
            asked_ms: None,
        });
        self.learn(&doc, &alive, now_ms)
    }

    pub fn log(&self) -> &PartitionLog {
        &self.up.as_ref().expect("the node is up").log
    }

    pub fn up(&mut self) -> &mut Up {
        self.up.as_mut().expect("the node is up")
    }

    /// Takes over the document and who is alive.
    pub fn learn(
        &mut self,
        doc: &Doc,
        alive: &BTreeMap<usize, i64>,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let (id, min_isr, lag_max_ms) = (self.id, self.min_isr, self.lag_max_ms);
        let up = self.up();
        if doc.partition_epoch < up.doc.partition_epoch {
            return Ok(());
        }
        let new_epoch = doc.leader_epoch > up.doc.leader_epoch;
        let (isr, replicas) = (numbers(&doc.isr), [0, 1, 2]);
        let stored =
            StoredPartition { partition_epoch: doc.partition_epoch, replicas: &replicas, isr: &isr, min_isr };
        let mut moved = Moved::default();
        if new_epoch {
            let role = if doc.leader == Some(id) { Role::Leader } else { Role::Follower };
            up.log.set_role(role, doc.leader_epoch)?;
            up.asked_ms = None;
            up.acting = match doc.leader {
                Some(leader) if leader == id => {
                    let start = EpochStart {
                        node_id: id as i32,
                        lag_max_ms,
                        ends: ends(&up.log),
                        high_watermark: up.log.offsets().high_watermark,
                        now_ms,
                    };
                    Acting::Leader(Box::new(Progress::new(start, stored)))
                }
                Some(_) => Acting::Follower(Following::new(doc.leader_epoch, RETRY_MAX_MS)),
                None => Acting::Nobody,
            };
        } else if let Acting::Leader(progress) = &mut up.acting {
            moved = progress.stored(stored, up.log.offsets().log_end_offset, now_ms);
        }
        up.doc = doc.clone();
        up.alive = alive.clone();
        self.moved(moved);
        let up = self.up();
        if let Acting::Leader(progress) = &mut up.acting {
            let epoch_of = |id: i32| alive.get(&usize::try_from(id).unwrap()).copied();
            let moved = progress.registered(epoch_of, up.log.offsets().log_end_offset, now_ms);
            self.moved(moved);
        }
        Ok(())
    }

    fn moved(&mut self, moved: Moved) {
        if let Some(offset) = moved.high_watermark {
            self.log().move_high_watermark(offset);
        }
    }

    /// Appends a batch of `values` as a leader; the offset of its last record.
    pub fn produce(&mut self, values: &[u64], now_ms: i64) -> Result<i64, StorageError> {
        let mut builder = BatchBuilder::new();
        for value in values {
            builder.append(now_ms, None, Some(value.to_string().as_bytes()), &[]).unwrap();
        }
        let up = self.up();
        let options = AppendOptions::client(up.doc.leader_epoch);
        let appended = up.log.append(&mut builder.finish(Codec::None).unwrap(), options)?;
        let done = up.log.replicated_end();
        if let Acting::Leader(progress) = &mut up.acting {
            let moved = progress.appended(done, now_ms);
            self.moved(moved);
        }
        Ok(appended.last_offset)
    }

    /// What the threads of group commit do.
    pub fn flush(&mut self, now_ms: i64) -> Result<(), StorageError> {
        let up = self.up();
        up.log.sync()?;
        let end = up.log.replicated_end();
        if let Acting::Leader(progress) = &mut up.acting {
            let moved = progress.appended(end, now_ms);
            self.moved(moved);
        }
        Ok(())
    }

    /// What it asks its leader now.
    pub fn need(&mut self, now_ms: i64) -> Need {
        let up = self.up();
        match &mut up.acting {
            Acting::Follower(following) => following.need(&*up.log, now_ms as u64),
            _ => Need::Nothing,
        }
    }

    /// Who leads as far as it knows.
    pub fn leader(&self) -> Option<usize> {
        self.up.as_ref()?.doc.leader
    }

    fn refusal(&self, leader_epoch: i32) -> Option<ErrorCode> {
        let up = self.up.as_ref()?;
        match leader_epoch.cmp(&up.doc.leader_epoch) {
            std::cmp::Ordering::Less => Some(ErrorCode::FencedLeaderEpoch),
            std::cmp::Ordering::Greater => Some(ErrorCode::UnknownLeaderEpoch),
            std::cmp::Ordering::Equal if matches!(up.acting, Acting::Leader(_)) => None,
            std::cmp::Ordering::Equal => Some(ErrorCode::NotLeaderOrFollower),
        }
    }

    /// Answers a follower's fetch, and counts it.
    pub fn serve(&mut self, from: usize, broker_epoch: i64, at: &Position, now_ms: i64) -> PartitionData {
        let failed =
            |error: ErrorCode| PartitionData { error_code: error.code(), ..PartitionData::default() };
        if let Some(error) = self.refusal(at.leader_epoch) {
            return failed(error);
        }
        let up = self.up();
        if up.alive.get(&from) != Some(&broker_epoch) {
            return failed(ErrorCode::ClusterAuthorizationFailed);
        }
        let offsets = up.log.offsets();
        let offsets_only = PartitionData {
            high_watermark: offsets.high_watermark,
            log_start_offset: offsets.log_start_offset,
            ..PartitionData::default()
        };
        if at.last_fetched_epoch >= 0 {
            match up.log.epoch_end_offset(at.last_fetched_epoch) {
                None => return failed(ErrorCode::OffsetOutOfRange),
                Some((epoch, end_offset)) if epoch < at.last_fetched_epoch || end_offset < at.offset => {
                    return PartitionData {
                        diverging_epoch: EpochEndOffset { epoch, end_offset },
                        ..offsets_only
                    };
                }
                Some(_) => {}
            }
        }
        let Ok(slice) = up.log.read(at.offset, FETCH_BYTES, true, ReadUpTo::LogEnd) else {
            return failed(ErrorCode::OffsetOutOfRange);
        };
        let counted = (at.offset, at.log_start_offset);
        let ends = ends(&up.log);
        if let Acting::Leader(progress) = &mut up.acting {
            let moved = progress.fetched(from as i32, broker_epoch, counted, ends, now_ms);
            self.moved(moved);
        }
        let high_watermark = self.log().offsets().high_watermark;
        PartitionData { high_watermark, records: Some(slice.read().unwrap().into()), ..offsets_only }
    }

    /// Answers where its log begins and ends.
    pub fn serve_ends(&mut self, leader_epoch: i32) -> Result<(i64, i64), ErrorCode> {
        match self.refusal(leader_epoch) {
            Some(error) => Err(error),
            None => {
                let offsets = self.log().offsets();
                Ok((offsets.log_start_offset, offsets.log_end_offset))
            }
        }
    }

    /// Takes the answer to a fetch; a flushed log is synced before anything else is asked.
    pub fn fetched(
        &mut self,
        at: &Position,
        data: &PartitionData,
        now_ms: i64,
    ) -> Result<Step, StorageError> {
        let up = self.up();
        let Acting::Follower(following) = &mut up.acting else { return Ok(Step::default()) };
        let step = following.fetched(at, data, &*up.log, now_ms as u64);
        if step.appended > 0 && up.log.is_flushed() {
            up.log.sync()?;
        }
        Ok(step)
    }

    /// Takes the answer to a question about the ends of the leader's log.
    pub fn found(&mut self, leader_epoch: i32, ends: Result<(i64, i64), ErrorCode>, now_ms: i64) -> Step {
        let up = self.up();
        let Acting::Follower(following) = &mut up.acting else { return Step::default() };
        following.found(leader_epoch, ends, &*up.log, now_ms as u64)
    }

    /// The ISR that it wants to be stored, with its epoch; looks for members that lag behind.
    pub fn proposal(&mut self, now_ms: i64) -> Option<(i32, Proposal)> {
        let up = self.up();
        let Acting::Leader(progress) = &mut up.acting else { return None };
        let moved = progress.lagging(up.log.offsets().log_end_offset, now_ms);
        let proposal = progress.proposal().cloned();
        let epoch = up.doc.leader_epoch;
        self.moved(moved);
        proposal.map(|proposal| (epoch, proposal))
    }

    pub fn proposed(
        &mut self,
        leader_epoch: i32,
        partition_epoch: i32,
        answer: ProposalOutcome,
        now_ms: i64,
    ) {
        let up = self.up();
        if let (Acting::Leader(progress), true) = (&mut up.acting, up.doc.leader_epoch == leader_epoch) {
            progress.answered(partition_epoch, answer, now_ms);
        }
    }

    /// The process dies; with `power_cut` its machine, too.
    pub fn crash(&mut self, power_cut: Option<u64>) {
        self.up = None;
        match power_cut {
            Some(seed) => self.disk.power_cut(seed),
            None => self.disk.crash_processes(),
        }
    }

    /// Stops as it should.
    pub fn stop(&mut self) {
        let up = self.up.take().expect("the node is up");
        self.clean = up.logs.close().is_ok();
        drop(up);
        self.disk.crash_processes();
    }
}

fn ends(log: &PartitionLog) -> Ends {
    Ends { log_end: log.offsets().log_end_offset, replicated_end: log.replicated_end() }
}

fn numbers<'a>(ids: impl IntoIterator<Item = &'a usize>) -> Vec<i32> {
    ids.into_iter().map(|id| *id as i32).collect()
}

/// Epoch and value of each record of `[from, to)`.
pub fn records_of(log: &PartitionLog, from: i64, to: i64) -> Vec<(i32, u64)> {
    let mut found = Vec::new();
    let mut at = from;
    while at < to {
        let slice = log.read(at, 64 << 10, true, ReadUpTo::LogEnd).unwrap_or_else(|error| panic!("{error}"));
        assert!(slice.len > 0, "nothing at {at}, wanted up to {to}");
        for batch in batches(&slice.read().unwrap()) {
            let (header, batch) = batch.unwrap();
            header.verify_crc(batch).unwrap();
            for record in records(body(batch), &header) {
                let record = record.unwrap();
                if (at..to).contains(&record.offset) {
                    assert_eq!(record.offset, from + found.len() as i64, "a hole");
                    let value = String::from_utf8(record.value.unwrap().to_vec()).unwrap();
                    found.push((header.partition_leader_epoch, value.parse().unwrap()));
                }
            }
        }
        at = slice.next_offset;
    }
    found
}
