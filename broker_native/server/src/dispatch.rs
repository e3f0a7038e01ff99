//! The table of contents: which request is handled where. One line each.
//!
//! A request that cannot be read, or whose version has no layout, closes the connection, as in Kafka: there is no answer
//! that its sender could read. The exception is ApiVersions, which is how a client finds out what to speak.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::call::{Call, Origin, Outcome, Reply, SERVED};
use crate::handlers;
use crate::io::budget;
use crate::io::frames::Frame;
use crate::quotas::table::Quota;
use crate::shared::Shared;
use pylog_log::BUG;
use pylog_wire::{ApiKey, Message, Reader, RequestHeader, WireError};

/// What no quota of time counts: brokers ask these of each other.
const FREE: &[ApiKey] = &[
    ApiKey::WriteTxnMarkers,
    ApiKey::InitializeShareGroupState,
    ApiKey::ReadShareGroupState,
    ApiKey::WriteShareGroupState,
    ApiKey::DeleteShareGroupState,
    ApiKey::ReadShareGroupStateSummary,
];

/// Handles the request in `frame`. Never panics: a panic inside closes the connection.
pub fn dispatch(shared: &Arc<Shared>, from: &mut Origin, frame: &mut Frame) -> Outcome {
    shared.metrics.requests.increment();
    match catch_unwind(AssertUnwindSafe(|| route(shared, from, frame))) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => Outcome::Now(Reply::Close(error.to_string())),
        Err(_panic) => {
            shared.metrics.panics.increment();
            Outcome::Now(Reply::Close(BUG.into()))
        }
    }
}

/// What a handler has of a request with this header.
pub fn call_of(shared: &Arc<Shared>, from: &Origin, header: RequestHeader) -> Call {
    Call {
        shared: Arc::clone(shared),
        listener: Arc::clone(&from.listener),
        principal: Arc::clone(&from.principal),
        version: header.api_version,
        correlation_id: header.correlation_id,
        dialled: from.dialled.clone(),
        peer: from.peer,
        connection: from.connection,
        client_id: header.client_id,
        pause_ms: 0,
    }
}

fn route(shared: &Arc<Shared>, from: &mut Origin, frame: &mut Frame) -> Result<Outcome, WireError> {
    let mut reader = Reader::new(frame.body());
    let header = RequestHeader::decode(&mut reader)?;
    let (version, key, info) = (header.api_version, header.api_key, header.info());
    let busy = std::mem::take(&mut from.busy);
    let mut call = call_of(shared, from, header);
    let Some(info) = info.filter(|info| SERVED.contains(&info.key)) else {
        return Ok(refuse(format!("API key {key} is not served")));
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
    if from.is_counted {
        call.pause_ms = pause_ms(&call, info.key, busy, frame.body().len());
    }
    let begun = Instant::now();
    let outcome = if info.key == ApiKey::Produce {
        handlers::produce::handle(call, read(reader, version)?, frame)
    } else if reader.left() > budget::FREE_BYTES {
        handlers::common::large::handle(call, info.key, reader, answered)
    } else {
        answered(call, info.key, reader)?
    };
    let shared = Arc::clone(shared);
    Ok(outcome.when_ready(move || shared.request_times.observe(info.key, begun.elapsed())))
}

/// How long the client must wait because of quotas after this request. What only brokers ask is free, as in Kafka.
fn pause_ms(call: &Call, key: ApiKey, busy: Duration, bytes: usize) -> i32 {
    let quotas = &call.shared.quotas;
    let is_produce = key == ApiKey::Produce && quotas.is_limited(Quota::Produce);
    if !is_produce && (!quotas.is_limited(Quota::Request) || FREE.contains(&key)) {
        return 0;
    }
    let now_ms = call.shared.clock.steady_ms();
    let percent = busy.as_secs_f64() * 100.0;
    let of_time = quotas.record(Quota::Request, call.client(), percent, now_ms);
    let of_bytes =
        if is_produce { quotas.record(Quota::Produce, call.client(), bytes as f64, now_ms) } else { 0 };
    of_time.max(of_bytes)
}

/// Reads a request that is not Produce, and hands it to its handler.
///
/// # Errors
/// The request cannot be read.
fn answered(call: Call, key: ApiKey, reader: Reader) -> Result<Outcome, WireError> {
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
        ApiKey::CreateAcls => on::create_acls::handle(call, read(reader, version)?),
        ApiKey::DeleteAcls => on::delete_acls::handle(call, read(reader, version)?),
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
        _ => return serve_users(call, key, reader),
    })
}

/// As [`answered`], for users and their quotas.
fn serve_users(call: Call, key: ApiKey, reader: Reader) -> Result<Outcome, WireError> {
    use handlers as on;
    let version = call.version;
    Ok(match key {
        ApiKey::SaslHandshake => on::sasl_handshake::handle(&call, &read(reader, version)?),
        ApiKey::SaslAuthenticate => on::sasl_authenticate::handle(&call, &read(reader, version)?),
        ApiKey::DescribeClientQuotas => on::describe_client_quotas::handle(call, read(reader, version)?),
        ApiKey::AlterClientQuotas => on::alter_client_quotas::handle(call, read(reader, version)?),
        ApiKey::DescribeUserScramCredentials => {
            on::describe_user_scram_credentials::handle(call, read(reader, version)?)
        }
        ApiKey::AlterUserScramCredentials => {
            on::alter_user_scram_credentials::handle(call, read(reader, version)?)
        }
        _ => return serve_share_groups(call, key, reader),
    })
}

/// As [`answered`], for share groups.
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
fn read<R: Message>(mut reader: Reader, version: i16) -> Result<R, WireError> {
    R::decode(&mut reader, version)
}
