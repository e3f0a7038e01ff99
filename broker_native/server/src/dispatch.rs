//! The table of contents: which request is handled where. One line each.
//!
//! A request that cannot be read, or whose version has no layout, closes the connection, as in Kafka: there is no answer
//! that its sender could read. The exception is ApiVersions, which is how a client finds out what to speak.
use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::handlers;
use crate::io::budget;
use crate::io::frames::Frame;
use crate::io::outbox::{Answer, Part};
use crate::notice::{BUG, notice};
use crate::shared::Shared;
use pylog_coordinator::Caller;
use pylog_wire::{ApiKey, Chunk, Message, Reader, RequestHeader, WireError, message};

/// The APIs that are served, in the order of their numbers; ApiVersions tells clients exactly these.
pub const SERVED: &[ApiKey] = &[
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ListOffsets,
    ApiKey::Metadata,
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::ApiVersions,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::DeleteRecords,
    ApiKey::InitProducerId,
    ApiKey::OffsetForLeaderEpoch,
    ApiKey::TxnOffsetCommit,
    ApiKey::AddPartitionsToTxn,
    ApiKey::AddOffsetsToTxn,
    ApiKey::EndTxn,
    ApiKey::WriteTxnMarkers,
    ApiKey::DescribeAcls,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::AlterReplicaLogDirs,
    ApiKey::DescribeLogDirs,
    ApiKey::CreatePartitions,
    ApiKey::DeleteGroups,
    ApiKey::ElectLeaders,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::AlterPartitionReassignments,
    ApiKey::ListPartitionReassignments,
    ApiKey::DescribeQuorum,
    ApiKey::UpdateFeatures,
    ApiKey::OffsetDelete,
    ApiKey::DescribeCluster,
    ApiKey::DescribeProducers,
    ApiKey::UnregisterBroker,
    ApiKey::DescribeTransactions,
    ApiKey::ListTransactions,
    ApiKey::ListConfigResources,
    ApiKey::DescribeTopicPartitions,
    ApiKey::ConsumerGroupHeartbeat,
    ApiKey::ConsumerGroupDescribe,
    ApiKey::ShareGroupHeartbeat,
    ApiKey::ShareGroupDescribe,
    ApiKey::ShareFetch,
    ApiKey::ShareAcknowledge,
    ApiKey::InitializeShareGroupState,
    ApiKey::ReadShareGroupState,
    ApiKey::WriteShareGroupState,
    ApiKey::DeleteShareGroupState,
    ApiKey::ReadShareGroupStateSummary,
    ApiKey::DescribeShareGroupOffsets,
    ApiKey::AlterShareGroupOffsets,
    ApiKey::DeleteShareGroupOffsets,
];

/// What becomes of a request.
#[derive(Debug)]
pub enum Reply {
    /// This is sent.
    Answer(Answer),
    /// Nothing is sent (produce with acks=0).
    Nothing,
    /// The connection ends; the sentence is for the log.
    Close(String),
}

/// A reply that takes time.
pub type Later = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// Begins a reply that takes time, with what the request holds of the budget.
pub type Owning = Box<dyn FnOnce(budget::Share) -> Later + Send>;

/// When the reply is there.
pub enum Outcome {
    /// At once.
    Now(Reply),
    /// When this is done. The work that must happen in the order of the requests is done already. What it was read into may still be
    /// there, so the request keeps its share of the budget until then.
    Later(Later),
    /// As `Later`, of a request that leaves nothing in memory but what is waited for.
    Freed(Later),
    /// When this is done; the requests behind it on the same connection are not even looked at before, because its work is
    /// still to happen.
    InOrder(Later),
    /// As `InOrder`, because it takes much memory while it waits; the request's own bytes are needed no more.
    Alone(Later),
    /// As `InOrder`, of work that says itself when the request's bytes are needed no more: it gives their share back.
    Owning(Owning),
}

impl Outcome {
    /// A reply whose work is still to happen, before that of the requests behind it.
    pub fn in_order(work: impl Future<Output = Reply> + Send + 'static) -> Self {
        Self::InOrder(Box::pin(work))
    }

    /// A reply that takes time.
    pub fn later(work: impl Future<Output = Reply> + Send + 'static) -> Self {
        Self::Later(Box::pin(work))
    }

    /// The reply, for work that is itself part of another's.
    pub async fn reply(self) -> Reply {
        match self {
            Self::Now(reply) => reply,
            Self::Later(later) | Self::Freed(later) | Self::InOrder(later) | Self::Alone(later) => {
                later.await
            }
            Self::Owning(begin) => begin(budget::Share::default()).await,
        }
    }
}

/// The connection that a request comes over.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// The address that the client dialled.
    pub local: SocketAddr,
    /// The client's address.
    pub peer: SocketAddr,
    /// No two connections of a broker have the same.
    pub connection: u64,
}

/// What a handler has besides the request.
#[derive(Clone)]
pub struct Call {
    /// The server.
    pub shared: Arc<Shared>,
    /// Version of request and answer.
    pub version: i16,
    /// Comes back with the answer.
    pub correlation_id: i32,
    /// The address that the client dialled.
    pub local: SocketAddr,
    /// The client's address.
    pub peer: SocketAddr,
    /// Which connection; no two of a broker have the same.
    pub connection: u64,
    /// The client's name for itself.
    pub client_id: Option<String>,
}

impl Call {
    /// The client, as coordinators know it.
    pub fn caller(&self) -> Caller {
        Caller {
            client_id: self.client_id.clone().unwrap_or_default(),
            host: format!("/{}", self.peer.ip().to_canonical()),
            version: self.version,
        }
    }

    /// Sends `response`.
    pub fn answer<R: Message>(&self, response: &R) -> Reply {
        self.parts(message::response_frame(response, self.version, self.correlation_id))
    }

    /// Sends what was encoded; records that lie in files are the caller's.
    pub fn parts(&self, encoded: Result<Vec<Chunk>, WireError>) -> Reply {
        let chunks = match encoded {
            Ok(chunks) => chunks,
            Err(error) => return Reply::Close(format!("its answer could not be written: {error}")),
        };
        let bytes = |chunk| match chunk {
            Chunk::Bytes(bytes) => Some(Part::Bytes(bytes)),
            Chunk::Records { .. } => None,
        };
        Reply::Answer(Answer { parts: chunks.into_iter().filter_map(bytes).collect(), held: None })
    }
}

/// Polls a reply. Never panics: a panic inside closes the connection.
pub fn poll_reply(shared: &Shared, later: &mut Later, cx: &mut Context<'_>) -> Poll<Reply> {
    match catch_unwind(AssertUnwindSafe(|| later.as_mut().poll(cx))) {
        Ok(polled) => polled,
        Err(_panic) => {
            shared.metrics.panics.one();
            Poll::Ready(Reply::Close(BUG.into()))
        }
    }
}

/// What `work` gives; `None` when it panics, for whoever can tell the client UNKNOWN_SERVER_ERROR.
pub async fn guarded<T>(shared: &Shared, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    let guarded = std::future::poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
    });
    let done = guarded.await;
    if done.is_none() {
        met_a_bug(shared);
    }
    done
}

/// As [`guarded`] for work that takes no time.
pub fn guarded_now<T>(shared: &Shared, work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    if done.is_none() {
        met_a_bug(shared);
    }
    done
}

fn met_a_bug(shared: &Shared) {
    shared.metrics.panics.one();
    notice(&format!("a request is answered with UNKNOWN_SERVER_ERROR: {BUG}"));
}

/// Handles the request in `frame`. Never panics: a panic inside closes the connection.
pub fn dispatch(shared: &Arc<Shared>, from: &Origin, frame: &mut Frame) -> Outcome {
    shared.metrics.requests.one();
    match catch_unwind(AssertUnwindSafe(|| route(shared, from, frame))) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => Outcome::Now(Reply::Close(error.to_string())),
        Err(_panic) => {
            shared.metrics.panics.one();
            Outcome::Now(Reply::Close(BUG.into()))
        }
    }
}

fn route(shared: &Arc<Shared>, from: &Origin, frame: &mut Frame) -> Result<Outcome, WireError> {
    let mut reader = Reader::new(frame.body());
    let header = RequestHeader::decode(&mut reader)?;
    let (version, correlation_id) = (header.api_version, header.correlation_id);
    let (info, shared) = (header.info(), Arc::clone(shared));
    let Origin { local, peer, connection } = *from;
    let call = Call { shared, version, correlation_id, local, peer, connection, client_id: header.client_id };
    let Some(info) = info.filter(|info| SERVED.contains(&info.key)) else {
        return Ok(refuse(format!("API key {} is not served", header.api_key)));
    };
    if !info.supports(version) {
        return Ok(match info.key {
            ApiKey::ApiVersions => handlers::api_versions::unknown_version(call),
            key => refuse(format!(
                "{} version {version} is not served, use {} to {}",
                key.name(),
                info.min,
                info.max
            )),
        });
    }
    if info.key == ApiKey::Produce {
        return Ok(handlers::produce::handle(call, read(reader, version)?, frame));
    }
    if reader.left() > budget::FREE_BYTES && handlers::common::large::grows(info.key) {
        return Ok(handlers::common::large::handle(call, info.key, reader));
    }
    answered(call, info.key, reader)
}

/// Reads a request that is not Produce, and hands it to its handler.
///
/// # Errors
/// The request cannot be read.
pub fn answered(call: Call, key: ApiKey, reader: Reader) -> Result<Outcome, WireError> {
    use handlers as on;
    let version = call.version;
    Ok(match key {
        ApiKey::Fetch => on::fetch::handle(call, read(reader, version)?),
        ApiKey::ListOffsets => on::list_offsets::handle(call, read(reader, version)?),
        ApiKey::Metadata => on::metadata::handle(call, read(reader, version)?),
        ApiKey::JoinGroup => on::join_group::handle(call, read(reader, version)?),
        ApiKey::Heartbeat => on::heartbeat::handle(call, read(reader, version)?),
        ApiKey::LeaveGroup => on::leave_group::handle(call, read(reader, version)?),
        ApiKey::SyncGroup => on::sync_group::handle(call, read(reader, version)?),
        ApiKey::DescribeGroups => on::describe_groups::handle(call, read(reader, version)?),
        ApiKey::OffsetCommit => on::offset_commit::handle(call, read(reader, version)?),
        ApiKey::OffsetFetch => on::offset_fetch::handle(call, read(reader, version)?),
        ApiKey::FindCoordinator => on::find_coordinator::handle(call, read(reader, version)?),
        ApiKey::ListGroups => on::list_groups::handle(&call, &read(reader, version)?),
        ApiKey::ApiVersions => on::api_versions::handle(&call, &read(reader, version)?),
        ApiKey::CreateTopics => on::create_topics::handle(call, read(reader, version)?),
        ApiKey::DeleteTopics => on::delete_topics::handle(call, read(reader, version)?),
        ApiKey::DeleteRecords => on::delete_records::handle(call, read(reader, version)?),
        ApiKey::InitProducerId => on::init_producer_id::handle(call, read(reader, version)?),
        ApiKey::OffsetForLeaderEpoch => on::offset_for_leader_epoch::handle(&call, &read(reader, version)?),
        ApiKey::TxnOffsetCommit => on::txn_offset_commit::handle(call, read(reader, version)?),
        ApiKey::AddPartitionsToTxn => on::add_partitions_to_txn::handle(call, read(reader, version)?),
        ApiKey::AddOffsetsToTxn => on::add_offsets_to_txn::handle(call, read(reader, version)?),
        ApiKey::EndTxn => on::end_txn::handle(call, read(reader, version)?),
        ApiKey::WriteTxnMarkers => on::write_txn_markers::handle(call, read(reader, version)?),
        ApiKey::DescribeAcls => on::describe_acls::handle(&call, &read(reader, version)?),
        ApiKey::DescribeConfigs => on::describe_configs::handle(call, read(reader, version)?),
        ApiKey::AlterConfigs => on::alter_configs::handle(call, read(reader, version)?),
        ApiKey::AlterReplicaLogDirs => on::alter_replica_log_dirs::handle(&call, &read(reader, version)?),
        ApiKey::DescribeLogDirs => on::describe_log_dirs::handle(&call, &read(reader, version)?),
        ApiKey::CreatePartitions => on::create_partitions::handle(call, read(reader, version)?),
        ApiKey::IncrementalAlterConfigs => {
            on::incremental_alter_configs::handle(call, read(reader, version)?)
        }
        ApiKey::ElectLeaders => on::elect_leaders::handle(call, read(reader, version)?),
        ApiKey::AlterPartitionReassignments => {
            on::alter_partition_reassignments::handle(call, read(reader, version)?)
        }
        ApiKey::ListPartitionReassignments => {
            on::list_partition_reassignments::handle(call, read(reader, version)?)
        }
        ApiKey::DescribeQuorum => on::describe_quorum::handle(&call, &read(reader, version)?),
        ApiKey::UpdateFeatures => on::update_features::handle(call, read(reader, version)?),
        ApiKey::DeleteGroups => on::delete_groups::handle(call, read(reader, version)?),
        ApiKey::OffsetDelete => on::offset_delete::handle(call, read(reader, version)?),
        ApiKey::DescribeCluster => on::describe_cluster::handle(&call, &read(reader, version)?),
        ApiKey::DescribeProducers => on::describe_producers::handle(&call, &read(reader, version)?),
        ApiKey::UnregisterBroker => on::unregister_broker::handle(call, read(reader, version)?),
        ApiKey::DescribeTransactions => on::describe_transactions::handle(call, read(reader, version)?),
        ApiKey::ListTransactions => on::list_transactions::handle(&call, &read(reader, version)?),
        ApiKey::ListConfigResources => on::list_config_resources::handle(&call, &read(reader, version)?),
        ApiKey::DescribeTopicPartitions => {
            on::describe_topic_partitions::handle(&call, &read(reader, version)?)
        }
        ApiKey::ConsumerGroupHeartbeat => on::consumer_group_heartbeat::handle(call, read(reader, version)?),
        ApiKey::ConsumerGroupDescribe => on::consumer_group_describe::handle(call, read(reader, version)?),
        _ => return serve_share_groups(call, key, reader),
    })
}

/// As [`serve`], for share groups.
fn serve_share_groups(call: Call, key: ApiKey, reader: Reader) -> Result<Outcome, WireError> {
    use handlers as on;
    let version = call.version;
    Ok(match key {
        ApiKey::ShareGroupHeartbeat => on::share_group_heartbeat::handle(call, read(reader, version)?),
        ApiKey::ShareGroupDescribe => on::share_group_describe::handle(call, read(reader, version)?),
        ApiKey::ShareFetch => on::share_fetch::handle(call, read(reader, version)?),
        ApiKey::ShareAcknowledge => on::share_acknowledge::handle(call, read(reader, version)?),
        ApiKey::InitializeShareGroupState => on::share_state::initialize(call, read(reader, version)?),
        ApiKey::ReadShareGroupState => on::share_state::read(call, read(reader, version)?),
        ApiKey::WriteShareGroupState => on::share_state::write(call, read(reader, version)?),
        ApiKey::DeleteShareGroupState => on::share_state::delete(call, read(reader, version)?),
        ApiKey::ReadShareGroupStateSummary => on::share_state::summary(call, read(reader, version)?),
        ApiKey::DescribeShareGroupOffsets => {
            on::describe_share_group_offsets::handle(call, read(reader, version)?)
        }
        ApiKey::AlterShareGroupOffsets => on::alter_share_group_offsets::handle(call, read(reader, version)?),
        ApiKey::DeleteShareGroupOffsets => {
            on::delete_share_group_offsets::handle(call, read(reader, version)?)
        }
        // The codec may know more APIs than are served.
        _ => refuse(format!("{} has no handler", key.name())),
    })
}

fn refuse(why: String) -> Outcome {
    Outcome::Now(Reply::Close(why))
}

/// Reads the body. Bytes behind it are ignored, as in Kafka: librdkafka 2.16 sends three with Metadata.
pub fn read<R: Message>(mut reader: Reader, version: i16) -> Result<R, WireError> {
    R::decode(&mut reader, version)
}
