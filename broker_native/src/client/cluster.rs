//! What the client knows of one cluster: its brokers, and the connections to them.
//!
//! One attempt per call here; who retries and how long is said by [`super::retry`]. A connection that failed is dropped
//! and opened again by the next call. Connections are shared by address, so that a single broker needs only one.
use std::collections::{BTreeMap, HashMap};

use super::config::Settings;
use super::connection::Connection;
use super::error::{ClientError, Result, code, kind};
use super::retry::Retry;
use super::stop::Stop;
use crate::wire::messages::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic,
};
use crate::wire::{ErrorCode, Request};

/// Host and port.
pub type Address = (String, u16);

/// Brokers and connections of one cluster, for one thread at a time.
#[derive(Debug)]
pub struct Cluster {
    settings: Settings,
    stop: Stop,
    bootstrap: Vec<Address>,
    brokers: BTreeMap<i32, Address>,
    connections: HashMap<Address, Connection>,
    controller: i32,
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

    /// Closes all connections.
    pub fn close(&mut self) {
        self.connections.clear();
    }

    /// Sends `request` to any broker: one already connected to, else the first of the list that answers.
    ///
    /// # Errors
    /// `UNREACHABLE` naming every address tried; those of the connection.
    pub fn call_any<Q: Request>(&mut self, request: &Q) -> Result<Q::Response> {
        let address = self.any()?;
        self.call_at(&address, request)
    }

    /// Sends `request` to broker `node`.
    ///
    /// # Errors
    /// `UNREACHABLE` when the cluster does not show such a broker or it cannot be reached.
    pub fn call<Q: Request>(&mut self, node: i32, request: &Q) -> Result<Q::Response> {
        let address = self.address(node)?;
        self.call_at(&address, request)
    }

    /// Sends `request` to the controller, or to any broker where the cluster shows none.
    ///
    /// # Errors
    /// As for [`Cluster::call_any`].
    pub fn call_controller<Q: Request>(&mut self, request: &Q) -> Result<Q::Response> {
        if self.brokers.is_empty() {
            self.metadata(Some(&[]), false)?;
        }
        match self.address(self.controller) {
            Ok(address) => self.call_at(&address, request),
            Err(_) => self.call_any(request),
        }
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
    /// As for [`Cluster::call_any`]; the errors of single topics stay in the answer.
    pub fn metadata(&mut self, topics: Option<&[&str]>, create: bool) -> Result<MetadataResponse> {
        let wanted = |name: &&str| MetadataRequestTopic { name: Some((*name).into()), ..Default::default() };
        let request = MetadataRequest {
            topics: topics.map(|names| names.iter().map(wanted).collect()),
            allow_auto_topic_creation: create,
            ..Default::default()
        };
        let answer = self.call_any(&request)?;
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

    /// The connection to `address`, opened if needed.
    ///
    /// # Errors
    /// `UNREACHABLE`, retriable.
    pub fn connection(&mut self, address: &Address) -> Result<&mut Connection> {
        if !self.connections.contains_key(address) {
            let opened = Connection::open(&address.0, address.1, &self.settings, &self.stop)?;
            self.connections.insert(address.clone(), opened);
        }
        let connection = self.connections.get_mut(address);
        connection.ok_or_else(|| ClientError::retriable(kind::UNREACHABLE, "no connection"))
    }

    /// Forgets the connection to `address` after an error.
    pub fn drop_connection(&mut self, address: &Address) {
        self.connections.remove(address);
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

    fn call_at<Q: Request>(&mut self, address: &Address, request: &Q) -> Result<Q::Response> {
        let answer = self.connection(address)?.call(request);
        if answer.is_err() {
            self.drop_connection(address);
        }
        answer
    }

    fn any(&mut self) -> Result<Address> {
        if let Some(address) = self.connections.keys().next() {
            return Ok(address.clone());
        }
        let started = std::time::Instant::now();
        let known: Vec<Address> = self.brokers.values().chain(&self.bootstrap).cloned().collect();
        let mut failures: Vec<String> = Vec::new();
        for address in known {
            match self.connection(&address) {
                Ok(_) => return Ok(address),
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
}

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
