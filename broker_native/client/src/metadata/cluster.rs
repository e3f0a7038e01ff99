//! What the client knows of one cluster: its brokers, and the connections to them.
//!
//! A call here makes one attempt; [`crate::net::retry`] decides whether and how long calls are tried again. A connection that failed is dropped
//! and opened again by the next call. Connections are shared by address, so that a single broker needs only one.
//!
//! What any broker can answer is asked from one that answered so far; one that failed, or that showed an older leader than
//! is known already, is asked last for a while ([`super::brokers`]).
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use super::address::Address;
use super::brokers::{FailedBrokers, Leaders};
use super::topic_partition::{PartitionById, TopicPartition};
use crate::config::Settings;
use crate::error::{ClientError, Result, code, kind};
use crate::net::connection::Connection;
use crate::net::retry::Retry;
use crate::net::stop::Stop;
use pylog_wire::messages::CreateTopicsRequest;
use pylog_wire::messages::create_topics::CreatableTopic;
use pylog_wire::messages::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic,
};
use pylog_wire::{ErrorCode, Request};

/// How long news of a topic may take to all of several brokers.
const NEWS_TAKE: Duration = Duration::from_millis(1000);

/// Brokers and connections of one cluster, for one thread at a time.
#[derive(Debug)]
pub struct Cluster {
    settings: Settings,
    stop: Stop,
    bootstrap: Vec<Address>,
    brokers: BTreeMap<i32, Address>,
    connections: HashMap<Address, Connection>,
    controller: i32,
    failed: FailedBrokers,
    leaders: Leaders,
    /// The broker that gave metadata last.
    metadata_from: Option<Address>,
}

impl Cluster {
    /// Opens nothing yet.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when `bootstrap.servers` is missing or malformed.
    pub fn new(settings: Settings, stop: Stop) -> Result<Self> {
        let bootstrap = settings.bootstrap()?;
        Ok(Self {
            settings,
            stop,
            bootstrap,
            brokers: BTreeMap::new(),
            connections: HashMap::new(),
            controller: -1,
            failed: FailedBrokers::default(),
            leaders: Leaders::default(),
            metadata_from: None,
        })
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What ends its waits.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Whether a broker ever answered.
    pub fn is_known(&self) -> bool {
        !self.brokers.is_empty()
    }

    /// Whether the cluster has more than one broker: then another one may know better.
    pub fn has_several(&self) -> bool {
        self.brokers.len() > 1
    }

    /// How long a topic that was just made may be unknown to the broker that is asked.
    pub fn news_take(&self) -> Duration {
        if self.has_several() { NEWS_TAKE } else { Duration::ZERO }
    }

    /// Closes all connections, or leaves them to the next client where the settings say so.
    pub fn close(&mut self) {
        self.connections.drain().for_each(|(_, connection)| connection.leave());
    }

    /// Sends `request` to any broker: one already connected to, else the first of the list that answers. One that falls
    /// silent or hangs up is followed by the next, each tried once.
    ///
    /// # Errors
    /// `UNREACHABLE` naming every address tried; those of the connection.
    pub fn call_any<Q: Request>(&mut self, request: &Q) -> Result<Q::Response> {
        self.call_one(request).map(|(_, answer)| answer)
    }

    /// As [`Cluster::call_any`]; also returns the broker that answered.
    fn call_one<Q: Request>(&mut self, request: &Q) -> Result<(Address, Q::Response)> {
        let until = Instant::now() + self.settings.api_timeout();
        let mut tried: Vec<Address> = Vec::new();
        loop {
            let address = self.any()?;
            let error = match self.call_at(&address, request) {
                Ok(answer) => return Ok((address, answer)),
                Err(error) => error,
            };
            let over = self.stop.is_stopped() || Instant::now() >= until;
            if over || !error.is_lost() || tried.contains(&address) {
                return Err(error);
            }
            tried.push(address);
            if self.candidates().iter().all(|address| tried.contains(address)) {
                return Err(error);
            }
        }
    }

    /// Sends `request` to broker `node`.
    ///
    /// # Errors
    /// `UNREACHABLE` when the cluster does not show such a broker or it cannot be reached.
    pub fn call<Q: Request>(&mut self, node: i32, request: &Q) -> Result<Q::Response> {
        let address = self.address(node)?;
        self.call_at(&address, request)
    }

    /// Sends every request to its broker before it waits for the first answer; answers in the order of the requests.
    ///
    /// # Errors
    /// As for [`Cluster::call`]; what other brokers answered is lost.
    pub fn call_each<Q: Request>(&mut self, requests: &[(i32, Q)]) -> Result<Vec<Q::Response>> {
        self.call_each_up_to(requests, i16::MAX)
    }

    /// As [`Cluster::call_each`], in version `newest` at the latest.
    ///
    /// # Errors
    /// As for [`Cluster::call`].
    pub fn call_each_up_to<Q: Request>(
        &mut self,
        requests: &[(i32, Q)],
        newest: i16,
    ) -> Result<Vec<Q::Response>> {
        let mut addresses = Vec::with_capacity(requests.len());
        let answers = self.send_and_receive(requests, newest, &mut addresses);
        if answers.is_err() {
            // Answers may still be on their way.
            addresses.iter().for_each(|address| self.drop_connection(address));
        }
        answers
    }

    fn send_and_receive<Q: Request>(
        &mut self,
        requests: &[(i32, Q)],
        newest: i16,
        addresses: &mut Vec<Address>,
    ) -> Result<Vec<Q::Response>> {
        let mut sent = Vec::with_capacity(requests.len());
        for (node, request) in requests {
            let address = self.address(*node)?;
            addresses.push(address.clone());
            let outcome = self.connection(&address)?.send_up_to(request, newest);
            sent.push(outcome.inspect_err(|error| self.mark_failed(&address, error))?);
        }
        let mut answers = Vec::with_capacity(requests.len());
        for (address, sent) in addresses.iter().zip(sent) {
            let answer = self.connection(address)?.receive::<Q>(sent);
            answers.push(answer.inspect_err(|error| self.mark_failed(address, error))?);
        }
        Ok(answers)
    }

    /// The leader of a partition as metadata showed it last; `None` when it did not, or after [`Cluster::forget_leaders`].
    pub fn leader(&self, partition: &TopicPartition) -> Option<i32> {
        self.leaders.of(partition)
    }

    /// Lets the next question ask for metadata first, after an error that a leader which moved may have caused.
    pub fn forget_leaders(&mut self) {
        self.leaders.forget();
        self.distrust_metadata();
    }

    /// A leader that metadata named says that it is none: the next metadata is asked from another broker.
    pub fn distrust_metadata(&mut self) {
        if let Some(address) = self.metadata_from.take().filter(|_| self.has_several()) {
            self.failed.add(&address);
        }
    }

    /// Takes what a broker said who does not lead a partition any more (KIP-951): the leader's number, its epoch and where
    /// it is. True when that is news: a newer epoch than any seen, and a broker that can be reached.
    pub fn learn(&mut self, partition: PartitionById, leader: (i32, i32), address: Option<Address>) -> bool {
        if let Some(address) = address {
            self.brokers.entry(leader.0).or_insert(address);
        }
        self.brokers.contains_key(&leader.0) && self.leaders.saw(partition, leader.1)
    }

    /// Sends `request`, once, to the controller; to any broker where the cluster shows none or it cannot be connected to
    /// (brokers pass on or decide themselves what is the controller's).
    ///
    /// # Errors
    /// As for [`Cluster::call_at`].
    pub fn call_controller<Q: Request>(&mut self, request: &Q) -> Result<Q::Response> {
        if self.brokers.is_empty() {
            self.metadata(Some(&[]), false)?;
        }
        let address = self.address(self.controller);
        let address = match address.and_then(|address| self.connection(&address).map(|_| address)) {
            Ok(address) => address,
            Err(error) if error.holds_everywhere() => return Err(error),
            Err(_) => self.any()?,
        };
        self.call_at(&address, request)
    }

    /// Where broker `node` is.
    ///
    /// # Errors
    /// `UNREACHABLE`, retriable: the next metadata may show it.
    pub fn address(&self, node: i32) -> Result<Address> {
        self.brokers.get(&node).cloned().ok_or_else(|| {
            ClientError::retriable(
                kind::UNREACHABLE,
                format!("broker {node} is not among the cluster's live brokers"),
            )
        })
    }

    /// Asks for topics (all when `None`) and remembers the brokers of the answer.
    ///
    /// # Errors
    /// As for [`Cluster::call_any`]; the errors of single topics stay in the answer. `LEADER_NOT_AVAILABLE`, retriable, for
    /// a broker that is behind what others said.
    pub fn metadata(&mut self, topics: Option<&[&str]>, create: bool) -> Result<MetadataResponse> {
        let wanted = |name: &&str| MetadataRequestTopic { name: Some((*name).into()), ..Default::default() };
        let request = MetadataRequest {
            topics: topics.map(|names| names.iter().map(wanted).collect()),
            allow_auto_topic_creation: create,
            ..Default::default()
        };
        let (address, answer) = self.call_one(&request)?;
        self.metadata_from = Some(address.clone());
        if answer.error_code != 0 {
            let error = code(answer.error_code);
            return Err(ClientError {
                kind: error.name(),
                message: error.sentence().to_owned(),
                retriable: error.is_retriable(),
            });
        }
        self.controller = answer.controller_id;
        self.brokers = answer
            .brokers
            .iter()
            .filter_map(|broker| {
                Some((broker.node_id, (broker.host.clone(), u16::try_from(broker.port).ok()?)))
            })
            .collect();
        let stale = self.leaders.remember(&answer);
        if let Some(partition) = stale.filter(|_| self.has_several()) {
            self.distrust_metadata();
            return Err(ClientError::retriable(
                ErrorCode::LeaderNotAvailable.name(),
                format!("broker {}:{} shows an old leader of partition {partition}", address.0, address.1),
            ));
        }
        Ok(answer)
    }

    /// Asks for one topic.
    ///
    /// # Errors
    /// Those of [`Cluster::metadata`]; the topic's own error as an error.
    pub fn topic(&mut self, name: &str, create: bool) -> Result<MetadataResponseTopic> {
        let answer = self.metadata(Some(&[name]), create)?;
        let found = answer.topics.into_iter().find(|topic| topic.name.as_deref() == Some(name));
        let topic =
            found.ok_or_else(|| ClientError::protocol("any", format!("no answer about topic {name}")))?;
        match code(topic.error_code) {
            ErrorCode::None => Ok(topic),
            error => Err(topic_error(name, error, create)),
        }
    }

    /// Why the brokers did not create a topic that metadata was asked for: what they say to whoever asks for it by CreateTopics,
    /// without creating it. When they would, they do not create topics by themselves.
    pub fn not_created(&mut self, name: &str) -> ClientError {
        let topic = CreatableTopic {
            name: name.into(),
            num_partitions: -1,
            replication_factor: -1,
            ..Default::default()
        };
        let timeout_ms = i32::try_from(self.settings.request_timeout_ms).unwrap_or(i32::MAX);
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms, validate_only: true };
        let refused = self.call_controller(&request).ok().and_then(|answer| answer.topics.into_iter().next());
        match refused {
            Some(refused) if !TELL_NOTHING.contains(&code(refused.error_code)) => {
                let error = code(refused.error_code);
                let said = refused.error_message.unwrap_or_else(|| error.sentence().to_owned());
                let message = format!("topic {name} does not exist and cannot be created: {said}");
                ClientError { kind: error.name(), message, retriable: false }
            }
            _ => topic_error(name, ErrorCode::UnknownTopicOrPartition, true),
        }
    }

    /// The connection to `address`, opened if needed.
    ///
    /// # Errors
    /// `UNREACHABLE`, retriable; those of [`Connection::open`].
    pub fn connection(&mut self, address: &Address) -> Result<&mut Connection> {
        if !self.connections.contains_key(address) {
            let opened = Connection::open(&address.0, address.1, &self.settings, &self.stop);
            let opened = opened.inspect_err(|error| self.mark_failed(address, error))?;
            self.connections.insert(address.clone(), opened);
        }
        let connection = self.connections.get_mut(address);
        connection.ok_or_else(|| ClientError::retriable(kind::UNREACHABLE, "no connection"))
    }

    /// Forgets the connection to `address`, on which answers to abandoned requests may still arrive.
    pub fn drop_connection(&mut self, address: &Address) {
        self.connections.remove(address);
    }

    /// Forgets the connection to `address` after `error`, and asks other brokers first for a while if it is the broker's.
    pub fn mark_failed(&mut self, address: &Address, error: &ClientError) {
        self.drop_connection(address);
        if !error.is_of_token() {
            self.failed.add(address);
        }
    }

    /// Repeats `attempt` at `what` while it fails retriably, for `default.api.timeout.ms`. A client that never reached a
    /// broker gives up after one round: a wrong address should be said at once.
    ///
    /// # Errors
    /// The last error of `attempt`.
    pub fn retrying<T>(&mut self, what: &str, mut attempt: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        let mut retry = Retry::new(what, self.settings.api_timeout(), &self.stop);
        loop {
            let error = match attempt(self) {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            if !self.is_known() {
                return Err(ClientError { retriable: false, ..error });
            }
            retry.after(error, &self.settings)?;
        }
    }

    /// As [`Cluster::call_at`], in version `newest` at the latest.
    ///
    /// # Errors
    /// As for [`Cluster::call_at`].
    pub fn call_up_to<Q: Request>(
        &mut self,
        address: &Address,
        newest: i16,
        request: &Q,
    ) -> Result<Q::Response> {
        let connection = self.connection(address)?;
        let sent = connection.send_up_to(request, newest);
        let answer = sent.and_then(|sent| connection.receive::<Q>(sent));
        answer.inspect_err(|error| self.mark_failed(address, error))
    }

    /// Sends `request` to the broker at `address`.
    ///
    /// # Errors
    /// Those of the connection, which is then forgotten.
    pub fn call_at<Q: Request>(&mut self, address: &Address, request: &Q) -> Result<Q::Response> {
        self.call_up_to(address, i16::MAX, request)
    }

    /// A broker to ask: one that is connected to, else the first of the known ones and of the list that answers; those that
    /// failed lately last.
    ///
    /// # Errors
    /// `UNREACHABLE` naming every address tried; a failed login or TLS handshake, and a token that is missing, at once.
    pub fn any(&mut self) -> Result<Address> {
        let started = Instant::now();
        let mut failures: Vec<String> = Vec::new();
        for address in self.candidates() {
            match self.connection(&address) {
                Ok(_) => return Ok(address),
                Err(error) if error.holds_everywhere() => return Err(error),
                Err(error) if !failures.contains(&error.message) => failures.push(error.message),
                Err(_) => {}
            }
        }
        Err(ClientError::retriable(
            kind::UNREACHABLE,
            format!(
                "no broker answered ({}; tried for {:.1} s); check bootstrap.servers and that a broker runs there",
                failures.join("; "),
                started.elapsed().as_secs_f64()
            ),
        ))
    }

    /// Every address that may answer, each once, in the order in which they are to be tried.
    fn candidates(&self) -> Vec<Address> {
        let all = self.connections.keys().chain(self.brokers.values()).chain(&self.bootstrap);
        self.failed.order(all)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.close();
    }
}

/// Answers to CreateTopics that do not say why metadata created nothing.
const TELL_NOTHING: [ErrorCode; 5] = [
    ErrorCode::None,
    ErrorCode::TopicAlreadyExists,
    ErrorCode::TopicAuthorizationFailed,
    ErrorCode::ClusterAuthorizationFailed,
    ErrorCode::NotController,
];

/// The sentence for a topic that metadata shows with an error.
pub fn topic_error(name: &str, error: ErrorCode, create: bool) -> ClientError {
    let message = match error {
        ErrorCode::UnknownTopicOrPartition if create => format!(
            "topic {name} does not exist and the broker does not create topics by itself (auto.create.topics.enable=false); create it with: pylog topic create {name}"
        ),
        ErrorCode::UnknownTopicOrPartition => {
            format!("topic {name} does not exist; create it with: pylog topic create {name}")
        }
        error => format!("topic {name}: {}", error.sentence()),
    };
    ClientError { kind: error.name(), message, retriable: error.is_retriable() }
}
