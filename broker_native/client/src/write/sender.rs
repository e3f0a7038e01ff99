//! The sending thread of a producer: batches of each partition in order, several requests on their way to each leader.
//!
//! A partition whose batch failed is held back until nothing of it is on its way, then sent again in order, one batch at
//! a time until one succeeds: with idempotence a broker recognises what it has already, so nothing is doubled and
//! nothing changes places. An error that no retry mends, or `delivery.timeout.ms`, ends the writer as a whole.
use std::collections::{BTreeMap, HashMap};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::delivery::Delivery;
use super::identity::ProducerIdentity;
use super::partition_queue::{PartitionQueue, ProduceOutcome, ProducerBatch};
use super::produce::{self, Request};
use crate::config::{Acks, Settings, millis};
use crate::error::{ClientError, Result, kind};
use crate::metadata::address::Address;
use crate::metadata::cluster::Cluster;
use crate::metadata::topic_partition::TopicPartition;
use crate::net::connection::Connection;
use crate::net::poll::Wakeable;
use crate::net::stop::Stop;
use pylog_wire::messages::{ProduceRequest, ProduceResponse};

/// Longest wait without looking at the time limits again.
const IDLE: Duration = Duration::from_millis(1000);

/// Everything the thread owns.
#[derive(Debug)]
pub struct Sender {
    settings: Settings,
    stop: Stop,
    identity: ProducerIdentity,
    cluster: Arc<Mutex<Cluster>>,
    delivery: Delivery,
    wakeable: Wakeable,
    queues: BTreeMap<TopicPartition, PartitionQueue>,
    leaders: HashMap<Address, Leader>,
}

#[derive(Debug)]
struct Leader {
    connection: Connection,
    under_way: std::collections::VecDeque<Request>,
}

impl Sender {
    /// Runs until closed or failed; to be called in a thread of its own.
    pub fn run(
        settings: Settings,
        cluster: Arc<Mutex<Cluster>>,
        identity: ProducerIdentity,
        delivery: Delivery,
        wakeable: Wakeable,
    ) {
        let stop = cluster.lock().stop().clone();
        let mut sender = Self {
            settings,
            stop,
            identity,
            cluster,
            delivery,
            wakeable,
            queues: BTreeMap::new(),
            leaders: HashMap::new(),
        };
        // Threads that wait for deliveries must get an error after a panic, too.
        let served = catch_unwind(AssertUnwindSafe(|| sender.serve()));
        if let Err(error) = served.unwrap_or_else(|_| Err(ClientError::internal("writer"))) {
            sender.delivery.fail(error);
            return;
        }
        sender.leaders.drain().for_each(|(_, leader)| leader.connection.leave());
    }

    fn serve(&mut self) -> Result<()> {
        while let Some(ready) = self.delivery.take() {
            for batch in ready {
                let queue = self
                    .queues
                    .entry(batch.topic_partition.clone())
                    .or_insert_with(|| PartitionQueue::of(batch.leader));
                queue.push(ProducerBatch::new(batch.builder, batch.sequence, batch.size_bytes));
            }
            self.find_leaders()?;
            self.send_all()?;
            self.expire()?;
            self.wait()?;
        }
        Ok(())
    }

    /// Asks for the leaders of partitions that wait and have none.
    fn find_leaders(&mut self) -> Result<()> {
        let now = Instant::now();
        let wanted = self.queues.iter().filter(|(_, queue)| queue.leader.is_none() && queue.may_send(now));
        let mut topics: Vec<Arc<str>> =
            wanted.map(|(topic_partition, _)| topic_partition.topic.clone()).collect();
        topics.dedup();
        if topics.is_empty() {
            return Ok(());
        }
        let found = {
            let mut cluster = self.cluster.lock();
            let names: Vec<&str> = topics.iter().map(AsRef::as_ref).collect();
            let answer = cluster.metadata(Some(&names), false);
            answer.map(|answer| produce::leaders(&cluster, &answer))
        };
        for (topic_partition, queue) in &mut self.queues {
            if queue.leader.is_some() || !queue.may_send(now) {
                continue;
            }
            let found = match &found {
                Ok(leaders) => produce::leader_of(leaders, topic_partition),
                Err(error) => Err(error.clone()),
            };
            match found {
                Ok(address) => queue.leader = Some(address),
                Err(error) => queue.failed(error, &self.settings)?,
            }
        }
        Ok(())
    }

    /// Sends to every leader as long as it has batches and room for requests.
    fn send_all(&mut self) -> Result<()> {
        loop {
            let requests = self.gather()?;
            if requests.is_empty() {
                return Ok(());
            }
            for (address, batches) in requests {
                if let Err((error, batches)) = self.send(&address, batches) {
                    self.give_back(batches, &error)?;
                    self.lose(&address, &error)?;
                }
            }
        }
    }

    /// The next request for each leader: one batch of each of its partitions, up to `max.request.size`.
    fn gather(&mut self) -> Result<BTreeMap<Address, Vec<(TopicPartition, ProducerBatch)>>> {
        let now = Instant::now();
        let limit = usize::try_from(self.settings.max_request_size).unwrap_or(usize::MAX);
        let most = usize::try_from(self.settings.max_in_flight).unwrap_or(1);
        let mut requests: BTreeMap<Address, (usize, Vec<(TopicPartition, ProducerBatch)>)> = BTreeMap::new();
        for (topic_partition, queue) in &mut self.queues {
            let Some(address) = queue.leader.clone().filter(|_| queue.may_send(now)) else { continue };
            if self.leaders.get(&address).is_some_and(|leader| leader.under_way.len() >= most) {
                continue;
            }
            let request = requests.entry(address).or_default();
            let size = queue.next_size();
            if !request.1.is_empty() && request.0 + size > limit {
                continue;
            }
            if let Some(mut batch) = queue.take() {
                let spare = batch.seal(&self.identity, self.settings.codec());
                let spare = spare
                    .map_err(|error| ClientError::invalid(format!("{}: {error}", topic_partition.topic)))?;
                spare.into_iter().for_each(|builder| self.delivery.give_back(builder));
                request.0 += size;
                request.1.push((topic_partition.clone(), batch));
            }
        }
        Ok(requests.into_iter().map(|(address, (_, batches))| (address, batches)).collect())
    }

    fn send(
        &mut self,
        address: &Address,
        batches: Vec<(TopicPartition, ProducerBatch)>,
    ) -> std::result::Result<(), (ClientError, Vec<(TopicPartition, ProducerBatch)>)> {
        if !self.leaders.contains_key(address) {
            match Connection::open(&address.0, address.1, &self.settings, &self.stop) {
                Ok(connection) => {
                    let under_way = std::collections::VecDeque::new();
                    self.leaders.insert(address.clone(), Leader { connection, under_way });
                }
                Err(error) => return Err((error, batches)),
            }
        }
        let Some(leader) = self.leaders.get_mut(address) else { return Ok(()) };
        let sent = match produce::send(&mut leader.connection, &self.settings, &self.identity, &batches) {
            Ok(sent) => sent,
            Err(error) => return Err((error, batches)),
        };
        if self.settings.acks == Acks::None {
            for (topic_partition, batch) in batches {
                self.finish(&topic_partition, batch, -1);
            }
        } else {
            leader.under_way.push_back(Request { sent, at: Instant::now(), batches });
        }
        Ok(())
    }

    /// The connection to `address` is gone: its requests' batches go back, their leaders are asked for again.
    fn lose(&mut self, address: &Address, error: &ClientError) -> Result<()> {
        self.cluster.lock().mark_failed(address, error);
        let leader = self.leaders.remove(address);
        for request in leader.into_iter().flat_map(|leader| leader.under_way) {
            self.give_back(request.batches, error)?;
        }
        Ok(())
    }

    fn give_back(
        &mut self,
        batches: Vec<(TopicPartition, ProducerBatch)>,
        error: &ClientError,
    ) -> Result<()> {
        for (topic_partition, batch) in batches {
            let queue = self.queues.entry(topic_partition).or_default();
            queue.released();
            queue.back(batch);
            queue.failed(error.clone(), &self.settings)?;
        }
        Ok(())
    }

    /// # Errors
    /// `TIMED_OUT` or the last cause, when a batch waits longer than `delivery.timeout.ms`.
    fn expire(&mut self) -> Result<()> {
        let limit = millis(self.settings.delivery_timeout_ms);
        for (topic_partition, queue) in &self.queues {
            if let Some(error) = queue.overdue(limit) {
                return Err(produce::overdue(topic_partition, limit, error));
            }
        }
        let late = self.settings.request_timeout();
        let silent =
            |leader: &Leader| leader.under_way.front().is_some_and(|request| request.at.elapsed() > late);
        let silent: Vec<Address> = self
            .leaders
            .iter()
            .filter(|(_, leader)| silent(leader))
            .map(|(address, _)| address.clone())
            .collect();
        for address in silent {
            let message =
                format!("broker {}:{} did not answer within request.timeout.ms", address.0, address.1);
            self.lose(&address, &ClientError::retriable(kind::TIMED_OUT, message))?;
        }
        Ok(())
    }

    /// Waits for answers, new batches, or the time to try again; takes the answers that are there.
    fn wait(&mut self) -> Result<()> {
        let now = Instant::now();
        let pause = self.queues.values().filter_map(|queue| queue.retry_in(now)).min();
        let mut pause = pause.unwrap_or(IDLE).min(IDLE);
        // The addresses that an answer is due from, and whether some of it is here already.
        let mut waiting: Vec<(&Address, bool)> = Vec::new();
        let mut sockets = Vec::new();
        for (address, leader) in &mut self.leaders {
            if !leader.under_way.is_empty() {
                waiting.push((address, leader.connection.has_waiting()));
                sockets.push(leader.connection.socket().as_fd());
            }
        }
        if waiting.iter().any(|(_, has_waiting)| *has_waiting) {
            pause = Duration::ZERO;
        }
        let readable = self.wakeable.wait(&sockets, pause).map_err(|error| {
            ClientError::fatal(kind::PROTOCOL, format!("could not wait for brokers: {error}"))
        })?;
        let answered = waiting.into_iter().zip(readable);
        let answered = answered.filter(|((_, has_waiting), readable)| *has_waiting || *readable);
        let answered: Vec<Address> = answered.map(|((address, _), _)| address.clone()).collect();
        for address in answered {
            self.receive(&address)?;
        }
        Ok(())
    }

    fn receive(&mut self, address: &Address) -> Result<()> {
        let Some(leader) = self.leaders.get_mut(address) else { return Ok(()) };
        let Some(request) = leader.under_way.pop_front() else { return Ok(()) };
        let answer = match leader.connection.receive::<ProduceRequest>(request.sent) {
            Ok(answer) => answer,
            Err(error) => {
                self.give_back(request.batches, &error)?;
                return self.lose(address, &error);
            }
        };
        for (topic_partition, batch) in request.batches {
            let outcome = produce::outcome(&answer, &topic_partition);
            let again = matches!(outcome, ProduceOutcome::Again(_)).then(|| topic_partition.clone());
            self.apply(topic_partition, batch, outcome)?;
            if let Some(topic_partition) = again {
                self.follow_hint(&answer, &topic_partition);
            }
        }
        Ok(())
    }

    /// Sends what waits for `topic_partition` to the leader that the refusal names, if that is news; else metadata is asked for.
    fn follow_hint(&mut self, answer: &ProduceResponse, topic_partition: &TopicPartition) {
        let mut cluster = self.cluster.lock();
        cluster.distrust_metadata();
        let Some((leader, address)) = produce::hint(answer, topic_partition) else { return };
        let by_id = (topic_partition.topic_id, topic_partition.partition);
        let news = cluster.learn(by_id, leader, address);
        let found = cluster.address(leader.0).ok().filter(|_| news);
        if let (Some(address), Some(queue)) = (found, self.queues.get_mut(topic_partition)) {
            queue.leader = Some(address);
        }
    }

    fn apply(
        &mut self,
        topic_partition: TopicPartition,
        batch: ProducerBatch,
        outcome: ProduceOutcome,
    ) -> Result<()> {
        let queue = self.queues.entry(topic_partition.clone()).or_default();
        if !matches!(outcome, ProduceOutcome::Stored(_)) {
            queue.released();
        }
        match outcome {
            ProduceOutcome::Stored(base_offset) => {
                queue.succeeded();
                self.finish(&topic_partition, batch, base_offset);
                Ok(())
            }
            ProduceOutcome::Again(error) => {
                queue.back(batch);
                queue.failed(error, &self.settings)
            }
            ProduceOutcome::AfterEarlier(error) if queue.is_retrying() => {
                queue.back(batch);
                // By itself this error is final; behind a batch that goes again it only says so.
                queue.failed(ClientError { retriable: true, ..error }, &self.settings)
            }
            ProduceOutcome::TooLarge(error) => {
                let parts = batch.split(&error)?;
                self.delivery.split_into(parts.len());
                parts.into_iter().for_each(|part| queue.back(part));
                queue.hold(error);
                Ok(())
            }
            ProduceOutcome::AfterEarlier(error) | ProduceOutcome::Refused(error) => Err(error),
        }
    }

    fn finish(&mut self, topic_partition: &TopicPartition, batch: ProducerBatch, base_offset: i64) {
        if let Some(queue) = self.queues.get_mut(topic_partition) {
            queue.released();
        }
        self.delivery.done(
            topic_partition,
            base_offset,
            batch.records(),
            batch.sent_bytes(),
            batch.size_bytes(),
        );
        if let Some(builder) = batch.into_builder() {
            self.delivery.give_back(builder);
        }
    }
}
