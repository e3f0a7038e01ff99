//! Requests of a follower to one leader, over one connection that is opened when it is needed.
use pylog_client::config::Settings;
use pylog_client::error::{ClientError, Result, code, kind};
use pylog_client::net::connection::Connection;
use pylog_client::net::stop::Stop;
use pylog_settings::inter_broker::ClientTexts;
use pylog_storage::TopicPartition;
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::ReplicaState;
use pylog_wire::messages::list_offsets::{EARLIEST_LOCAL, ListOffsetsPartition, ListOffsetsTopic};
use pylog_wire::messages::offset_for_leader_epoch::{OffsetForLeaderPartition, OffsetForLeaderTopic};
use pylog_wire::messages::{FetchRequest, FetchResponse, ListOffsetsRequest, OffsetForLeaderEpochRequest};

/// Time until a host that does not answer at all is given up: nothing can end the attempt earlier.
const CONNECT_MS: u64 = 2_000;

/// Where a leader listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Name or number.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// The follower that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Its number.
    pub id: i32,
    /// Epoch of its registration.
    pub epoch: i64,
}

/// See the module.
pub struct Exchange {
    address: Address,
    client_id: String,
    timeout_ms: u64,
    client: ClientTexts,
    connection: Option<Connection>,
}

impl Exchange {
    /// With the leader at `address`, which is reached as `client` says; a request may take `timeout_ms`.
    ///
    /// # Errors
    /// The settings do not fit the client.
    pub fn new(address: Address, client_id: &str, timeout_ms: u64, client: &ClientTexts) -> Result<Self> {
        let (client_id, client) = (client_id.to_owned(), client.clone());
        let exchange = Self { address, client_id, timeout_ms, client, connection: None };
        exchange.settings()?;
        Ok(exchange)
    }

    /// Made anew for each connection: certificates may have been replaced since the last one.
    fn settings(&self) -> Result<Settings> {
        let bootstrap = format!("{}:{}", self.address.host, self.address.port);
        let given = [
            ("bootstrap.servers", bootstrap.as_str()),
            ("client.id", &self.client_id),
            ("request.timeout.ms", &self.timeout_ms.max(1).to_string()),
            ("socket.connection.setup.timeout.ms", &self.timeout_ms.clamp(1, CONNECT_MS).to_string()),
        ];
        Settings::new(given.into_iter().chain(self.client.iter()))
    }

    /// Opens the connection unless it is open; `stop` ends whatever waits on it.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub fn open(&mut self, stop: &Stop) -> Result<()> {
        if self.connection.is_none() {
            let settings = self.settings()?;
            self.connection = Some(Connection::open(&self.address.host, self.address.port, &settings, stop)?);
        }
        Ok(())
    }

    /// Whether the connection is open.
    pub fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    /// Gives the connection up.
    pub fn close(&mut self) {
        self.connection = None;
    }

    fn connection(&mut self) -> Result<&mut Connection> {
        let closed = || ClientError::retriable(kind::CLOSED, "the connection to the leader is closed");
        self.connection.as_mut().ok_or_else(closed)
    }

    /// Asks for records.
    ///
    /// # Errors
    /// Those of the connection, which is of no use afterwards.
    pub fn fetch(&mut self, mut request: FetchRequest, me: Identity) -> Result<FetchResponse> {
        request.replica_id = me.id;
        request.replica_state = ReplicaState { replica_id: me.id, replica_epoch: me.epoch };
        self.connection()?.call(&request)
    }

    /// Where the leader's log of `at` begins and ends, or what the leader says instead.
    ///
    /// # Errors
    /// Those of the connection, which is of no use afterwards.
    pub fn ends(
        &mut self,
        at: &TopicPartition,
        leader_epoch: i32,
        me: Identity,
    ) -> Result<std::result::Result<(i64, i64), ErrorCode>> {
        let end = self.end(at, leader_epoch, me)?;
        let start = self.start(at, leader_epoch)?;
        Ok(start.and_then(|start| Ok((start, end?))))
    }

    /// The end of the leader's own epoch is the end of its log.
    fn end(
        &mut self,
        at: &TopicPartition,
        leader_epoch: i32,
        me: Identity,
    ) -> Result<std::result::Result<i64, ErrorCode>> {
        let partition = OffsetForLeaderPartition {
            partition: at.partition,
            current_leader_epoch: leader_epoch,
            leader_epoch,
        };
        let topic = OffsetForLeaderTopic { topic: at.topic.to_string(), partitions: vec![partition] };
        let request = OffsetForLeaderEpochRequest { replica_id: me.id, topics: vec![topic] };
        let answer = self.connection()?.call(&request)?;
        let partition = answer.topics.into_iter().flat_map(|topic| topic.partitions).next();
        Ok(partition.map_or(Err(ErrorCode::UnknownServerError), |partition| {
            match code(partition.error_code) {
                ErrorCode::None if partition.end_offset >= 0 => Ok(partition.end_offset),
                ErrorCode::None => Err(ErrorCode::UnknownLeaderEpoch),
                error => Err(error),
            }
        }))
    }

    fn start(
        &mut self,
        at: &TopicPartition,
        leader_epoch: i32,
    ) -> Result<std::result::Result<i64, ErrorCode>> {
        let partition = ListOffsetsPartition {
            partition_index: at.partition,
            current_leader_epoch: leader_epoch,
            timestamp: EARLIEST_LOCAL,
        };
        let topic = ListOffsetsTopic { name: at.topic.to_string(), partitions: vec![partition] };
        // Anybody may know where a log begins. What only the archive has is not copied.
        let request = ListOffsetsRequest { topics: vec![topic], ..ListOffsetsRequest::default() };
        let answer = self.connection()?.call(&request)?;
        let partition = answer.topics.into_iter().flat_map(|topic| topic.partitions).next();
        Ok(partition.map_or(Err(ErrorCode::UnknownServerError), |partition| {
            match code(partition.error_code) {
                ErrorCode::None => Ok(partition.offset),
                error => Err(error),
            }
        }))
    }
}
