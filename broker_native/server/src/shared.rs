//! What all connections share.
use std::sync::Arc;

use crate::authorization::Authorizer;
use crate::cluster::peers::Peers;
use crate::cluster::view::Cluster;
use crate::coordinators::Coordinators;
use crate::decide::Decider;
use crate::fetch_sessions::FetchSessions;
use crate::io::budget::Budget;
use crate::io::buffers::Buffers;
use crate::io::room::Room;
use crate::io::shares::Shares;
use crate::io::slow::Slow;
use crate::local_reads::LocalReads;
use crate::metrics::Metrics;
use crate::quotas::Quotas;
use crate::request_times::RequestTimes;
use crate::security_state::Security;
use crate::settings::Settings;
use crate::share_groups::ShareGroups;
use crate::shutdown::Shutdown;
use crate::state::archives::Archives;
use crate::state::dead_letters::DeadLetters;
use crate::state::producer_ids::ProducerIds;
use crate::state::replication::Replication;
use crate::state::schema_ids::SchemaIds;
use crate::state::topics::Topics;
use pylog_storage::{Clock, LogManager};

/// The server's state. Every field may be used from any thread.
pub struct Shared {
    /// As the broker was started.
    pub settings: Settings,
    /// What is served.
    pub topics: Arc<Topics>,
    /// Who decides who may do what; without, everybody may do everything.
    pub authorizer: Option<Authorizer>,
    /// The other brokers.
    pub cluster: Arc<Cluster>,
    /// The way to them.
    pub peers: Arc<Peers>,
    /// What is led here and copied elsewhere.
    pub replication: Arc<Replication>,
    /// Groups, share partitions and transactions.
    pub coordinators: Coordinators,
    /// Sessions and settings of share groups.
    pub share_groups: ShareGroups,
    /// The data directory.
    pub logs: Arc<LogManager>,
    /// What answers say of it to readers that may see it; `None` where they say nothing.
    pub local_reads: Option<LocalReads>,
    /// Time of day, and the steady clock for deadlines.
    pub clock: Arc<dyn Clock>,
    /// Who decides about topics and settings.
    pub decider: Arc<dyn Decider>,
    /// Who may log in.
    pub security: Security,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// How long requests take.
    pub request_times: RequestTimes,
    /// Ids for idempotent producers.
    pub producer_ids: Arc<ProducerIds>,
    /// Schemas that records may name, where topics ask for that.
    pub schema_ids: SchemaIds,
    /// What the archive has, and questions to it.
    pub archives: Archives,
    /// Records on their way to a dead letter topic.
    pub dead_letters: DeadLetters,
    /// What consumers read.
    pub fetch_sessions: FetchSessions,
    /// What followers read; consumers cannot push them out.
    pub replica_sessions: FetchSessions,
    /// Bytes of requests in memory.
    pub budget: Budget,
    /// Bytes of large requests that are being answered, and of answers.
    pub room: Arc<Room>,
    /// Threads for requests that take long.
    pub slow: Slow,
    /// Threads for passwords that are checked.
    pub passwords: Slow,
    /// Partitions of fetches that wait for records.
    pub waiting_partitions: Shares,
    /// Buffers to borrow.
    pub buffers: Buffers,
    /// How much each user and client id may use.
    pub quotas: Quotas,
    /// Given once, when the server stops.
    pub shutdown: Arc<Shutdown>,
}
