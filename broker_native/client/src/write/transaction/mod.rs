//! A writer's transaction: one, under a transactional id of its own.
//!
//! `begin -> (add) -> prepare or end`. A transaction that is prepared (KIP-939) never times out, and only the epoch that
//! preparing gave can end it; where the brokers do not offer that it stays as it is. Whoever has (id, producer id, epoch)
//! can end it from anywhere: [`end`].
//!
//! Version 2 of transactions (KIP-890) has the produced batch add its partition and the end raise the epoch; before that
//! the writer adds partitions itself. Which it is stands in the coordinator's features when the transaction begins.
pub mod end;
mod errors;

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::identity::ProducerId;
use crate::config::{Settings, millis};
use crate::error::{ClientError, Result, code, kind};
use crate::metadata::address::Address;
use crate::metadata::cluster::Cluster;
use crate::metadata::coordinator::{CoordinatorType, locate};
use crate::metadata::topic_partition::TopicPartition;
use crate::net::retry::Retry;
use crate::net::stop::Stop;
use end::Ending;
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic};
use pylog_wire::messages::{InitProducerIdRequest, InitProducerIdResponse};

pub use errors::refusal;

/// From this version of InitProducerId on a transaction can be prepared.
const PREPARES_FROM: i16 = 6;
/// The last version of AddPartitionsToTxn that is for producers; later ones are for brokers.
const ADDS_UP_TO: i16 = 3;
/// First pause before a retry: what these requests wait for (markers, a coordinator that loads) takes milliseconds.
const SOON_MS: i64 = 4;

/// Where a transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Open(ProducerId),
    Prepared(ProducerId),
    Ended,
}

/// What ends a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    /// Which, and as whom.
    pub ending: Ending,
    /// Whether it is prepared.
    pub prepared: bool,
}

/// One transaction. Shares the writer's connections.
#[derive(Debug)]
pub struct Transaction {
    id: String,
    settings: Settings,
    stop: Stop,
    cluster: Arc<Mutex<Cluster>>,
    coordinator: Option<Address>,
    stage: Stage,
    batches_add: bool,
    written: bool,
    added: BTreeSet<TopicPartition>,
}

impl Transaction {
    /// Sends nothing yet.
    pub fn new(id: String, settings: &Settings, cluster: Arc<Mutex<Cluster>>, stop: Stop) -> Self {
        let mut settings = settings.clone();
        settings.retry_backoff_ms = settings.retry_backoff_ms.min(SOON_MS);
        Self {
            id,
            settings,
            stop,
            cluster,
            coordinator: None,
            stage: Stage::New,
            batches_add: false,
            written: false,
            added: BTreeSet::new(),
        }
    }

    /// The transactional id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether a produced batch adds its partition.
    pub fn batches_add(&self) -> bool {
        self.batches_add
    }

    /// Becomes the producer of the id, the first time: the producer before is fenced, and its transaction aborted.
    ///
    /// # Errors
    /// Those of [`refusal`]; the last cause after `max.block.ms`; `INVALID_ARGUMENT` when it was ended.
    pub fn begin(&mut self) -> Result<ProducerId> {
        match self.stage {
            Stage::New => {}
            Stage::Open(producer) => return Ok(producer),
            Stage::Prepared(_) | Stage::Ended => return Err(self.over()),
        }
        let (answer, batches_add) = self.ask("begin", |cluster, coordinator, request| {
            let answer = accepted(cluster.call_at(coordinator, &request)?, &request)?;
            Ok((answer, cluster.connection(coordinator)?.versions().batches_add_partitions()))
        })?;
        let producer = (answer.producer_id, answer.producer_epoch);
        (self.stage, self.batches_add) = (Stage::Open(producer), batches_add);
        Ok(producer)
    }

    /// Batches go to `partitions`: adds those that it has not yet, where the batches do not do that themselves.
    ///
    /// # Errors
    /// As [`Transaction::begin`].
    pub fn add<'a>(&mut self, partitions: impl Iterator<Item = &'a TopicPartition>) -> Result<()> {
        let (producer_id, producer_epoch) = self.begin()?;
        self.written = true;
        if self.batches_add {
            return Ok(());
        }
        let new: BTreeSet<_> =
            partitions.filter(|partition| !self.added.contains(*partition)).cloned().collect();
        if new.is_empty() {
            return Ok(());
        }
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: self.id.clone(),
            v3_and_below_producer_id: producer_id,
            v3_and_below_producer_epoch: producer_epoch,
            v3_and_below_topics: by_topic(&new),
            ..Default::default()
        };
        self.ask("add partitions to", |cluster, coordinator, _| {
            let answer = cluster.call_up_to(coordinator, ADDS_UP_TO, &request)?;
            let topics = answer.results_by_topic_v3_and_below;
            let all = topics.into_iter().flat_map(|topic| topic.results_by_partition);
            let errors = all
                .map(|partition| code(partition.partition_error_code))
                .filter(|error| *error != ErrorCode::None);
            // Partitions that were not looked at because another one is refused have an error that says no more.
            match errors.min_by_key(|error| *error == ErrorCode::OperationNotAttempted) {
                Some(error) => Err(refusal(&request.v3_and_below_transactional_id, error)),
                None => Ok(()),
            }
        })?;
        self.added.extend(new);
        Ok(())
    }

    /// Prepares it, if the brokers offer that: from then on it never times out, takes nothing more, and only the epoch in
    /// the answer ends it. To be called when all is acknowledged.
    ///
    /// # Errors
    /// As [`Transaction::begin`]; `INVALID_TXN_STATE` when it is not open any more.
    pub fn prepare(&mut self) -> Result<Handle> {
        let open = match self.stage {
            Stage::Open(producer) => producer,
            Stage::Prepared(producer) => return Ok(self.handle(producer, true)),
            Stage::New | Stage::Ended => return Err(self.over()),
        };
        let prepared = self.ask("prepare", |cluster, coordinator, request| {
            let connection = cluster.connection(coordinator)?;
            let version = connection.versions().pick::<InitProducerIdRequest>(connection.broker())?;
            if version < PREPARES_FROM {
                return Ok(None);
            }
            let (producer_id, producer_epoch) = open;
            let request = InitProducerIdRequest {
                producer_id,
                producer_epoch,
                enable_2_pc: true,
                keep_prepared_txn: true,
                ..request
            };
            let answer = cluster.call_at(coordinator, &request)?;
            if is_not_offered(code(answer.error_code)) {
                return Ok(None);
            }
            accepted(answer, &request).map(Some)
        })?;
        let Some(answer) = prepared else { return Ok(self.handle(open, false)) };
        // The broker hands out an epoch also when there is nothing left to keep.
        if (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) != open {
            return Err(refusal(&self.id, ErrorCode::InvalidTxnState));
        }
        let producer = (answer.producer_id, answer.producer_epoch);
        self.stage = Stage::Prepared(producer);
        Ok(self.handle(producer, true))
    }

    /// Ends it and waits until every partition knows; nothing is to be done when nothing was written.
    ///
    /// # Errors
    /// Those of [`end::all`]; `INVALID_ARGUMENT` when it was ended.
    pub fn end(&mut self, commit: bool) -> Result<()> {
        let producer = match self.stage {
            Stage::Open(producer) | Stage::Prepared(producer) if self.written => producer,
            Stage::Ended => return Err(self.over()),
            _ => {
                self.stage = Stage::Ended;
                return Ok(());
            }
        };
        let ending = self.handle(producer, false).ending;
        let limit = millis(self.settings.max_block_ms);
        let outcomes = end::all(&mut self.cluster.lock(), std::slice::from_ref(&ending), commit, limit);
        outcomes.into_iter().collect::<Result<()>>()?;
        self.stage = Stage::Ended;
        Ok(())
    }

    fn handle(&self, (producer_id, producer_epoch): ProducerId, prepared: bool) -> Handle {
        let transactional_id = self.id.clone();
        Handle { ending: Ending { transactional_id, producer_id, producer_epoch }, prepared }
    }

    fn over(&self) -> ClientError {
        let said = match self.stage {
            Stage::New => "has not begun",
            Stage::Prepared(_) => "is prepared, and takes nothing more",
            _ => "was ended; make a new writer",
        };
        ClientError::invalid(format!("transaction {} {said}", self.id))
    }

    /// Calls the coordinator by `attempt`, again for `max.block.ms` while that fails retriably. `attempt` gets the
    /// InitProducerId that begins a transaction.
    fn ask<T>(
        &mut self,
        what: &str,
        mut attempt: impl FnMut(&mut Cluster, &Address, InitProducerIdRequest) -> Result<T>,
    ) -> Result<T> {
        let limit = millis(self.settings.max_block_ms);
        let mut retry = Retry::new(format!("{what} transaction {}", self.id), limit, &self.stop);
        loop {
            let outcome = self.coordinator().and_then(|coordinator| {
                attempt(&mut self.cluster.lock(), &coordinator, self.request())
                    .inspect(|_| self.coordinator = Some(coordinator))
            });
            let error = match outcome {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if error.kind != ErrorCode::ConcurrentTransactions.name() {
                self.coordinator = None;
            }
            retry.after(error, &self.settings)?;
        }
    }

    fn coordinator(&self) -> Result<Address> {
        if let Some(known) = &self.coordinator {
            return Ok(known.clone());
        }
        let found =
            locate(&mut self.cluster.lock(), CoordinatorType::Transaction, std::slice::from_ref(&self.id))?;
        let nobody =
            || Err(ClientError::retriable(kind::PROTOCOL, "no broker says who coordinates the transaction"));
        found.into_iter().next().unwrap_or_else(nobody).map(|found| found.address)
    }

    fn request(&self) -> InitProducerIdRequest {
        InitProducerIdRequest {
            transactional_id: Some(self.id.clone()),
            transaction_timeout_ms: i32::try_from(self.settings.transaction_timeout_ms).unwrap_or(i32::MAX),
            ..Default::default()
        }
    }
}

/// What a broker says that knows how to prepare, but may not or will not.
fn is_not_offered(error: ErrorCode) -> bool {
    matches!(error, ErrorCode::TransactionalIdAuthorizationFailed | ErrorCode::UnsupportedVersion)
}

fn accepted(
    answer: InitProducerIdResponse,
    request: &InitProducerIdRequest,
) -> Result<InitProducerIdResponse> {
    match code(answer.error_code) {
        ErrorCode::None => Ok(answer),
        error => Err(refusal(request.transactional_id.as_deref().unwrap_or_default(), error)),
    }
}

fn by_topic(partitions: &BTreeSet<TopicPartition>) -> Vec<AddPartitionsToTxnTopic> {
    let mut topics: Vec<AddPartitionsToTxnTopic> = Vec::new();
    for TopicPartition { topic: name, partition, .. } in partitions {
        match topics.last_mut().filter(|topic| topic.name == **name) {
            Some(topic) => topic.partitions.push(*partition),
            None => {
                topics.push(AddPartitionsToTxnTopic { name: name.to_string(), partitions: vec![*partition] });
            }
        }
    }
    topics
}
