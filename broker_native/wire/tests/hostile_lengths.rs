//! A request that lies about a length costs an error, not memory.
//!
//! Each request in each version is encoded with something in every array, then each of its positions is overwritten
//! with each hostile length, as 16 bits, as 32 bits and as a compact length. This file has a process for itself
//! because it counts the allocations of one thread.
// The lint's exception for tests does not reach helpers of integration tests.
#![allow(clippy::expect_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::Bytes;
use pylog_wire::{AnyRequest, Chunk, Reader, Request, RequestHeader, WireError, message, messages};

/// Just below the largest claim, the largest, and one that is neither null nor a length.
const HOSTILE: [u32; 3] = [0x7fff_fff0, 0xffff_ffff, 0xffff_fffe];

/// What decoding one of these requests of less than 400 bytes may allocate in all, in bytes.
const ALLOWED_BYTES: usize = 64 * 1024;

thread_local! {
    static ALLOCATED_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting what the thread asks for.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED_BYTES.try_with(|bytes| bytes.set(bytes.get().saturating_add(layout.size())));
        // SAFETY: the caller's promises are those of `System`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `work` returns and the bytes that it allocated.
fn counted<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED_BYTES.get();
    let result = work();
    (result, ALLOCATED_BYTES.get() - before)
}

fn decode(frame: Bytes) -> Result<AnyRequest, WireError> {
    let mut reader = Reader::new(frame);
    let header = RequestHeader::decode(&mut reader)?;
    let key = header.key().ok_or(WireError::Trailing { at: 0, left: 0 })?;
    let request = AnyRequest::decode(key, &mut reader, header.api_version)?;
    reader.finish().map(|()| request)
}

/// A compact length is the length plus one, in LEB128.
fn compact(length: u32) -> Vec<u8> {
    let mut value = length.wrapping_add(1);
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// `frame` with a hostile length at `position`, in each width that fits.
fn lies(frame: &[u8], position: usize, length: u32) -> Vec<Vec<u8>> {
    let replace = |old: usize, new: &[u8]| {
        let tail = frame.get(position + old..)?;
        Some([&frame[..position], new, tail].concat())
    };
    let lies = [
        replace(2, &(length as u16).to_be_bytes()),
        replace(4, &length.to_be_bytes()),
        replace(1, &compact(length)),
    ];
    lies.into_iter().flatten().collect()
}

/// Bytes that `request` has on the wire, header included.
fn size(request: &AnyRequest, version: i16) -> usize {
    let chunks = request.frame(version, 7, Some("hostile")).expect("encodes");
    chunks.iter().map(Chunk::size_bytes).sum::<usize>() - /* the length prefix */ 4
}

/// The frame without its length prefix.
fn frame<R: Request>(request: &R, version: i16) -> Vec<u8> {
    let chunks = message::request_frame(request, version, 7, Some("hostile")).expect("encodes");
    let bytes = chunks.into_iter().flat_map(|chunk| match chunk {
        Chunk::Bytes(bytes) => bytes,
        Chunk::Records { .. } => unreachable!("no records apart"),
    });
    bytes.skip(4).collect()
}

/// Every lie at every position is refused or was no lie: what decodes holds no more than the frame did.
fn survives_lies<R: Request + serde::de::DeserializeOwned>(json: &str) {
    let request: R = serde_json::from_str(json).expect("a request");
    let mut refused = 0;
    for version in R::API.min..=R::API.max {
        let honest = frame(&request, version);
        decode(honest.clone().into()).expect("the honest frame decodes");
        for position in 0..honest.len() {
            for lie in HOSTILE.iter().flat_map(|length| lies(&honest, position, *length)) {
                let bytes = Bytes::from(lie.clone());
                let (result, allocated) = counted(|| decode(bytes));
                let what = || format!("{} v{version} at {position}: {lie:02x?}", R::NAME);
                assert!(allocated <= ALLOWED_BYTES, "{allocated} bytes allocated by {}", what());
                match result {
                    Err(_) => refused += 1,
                    Ok(request) => {
                        let version = i16::from_be_bytes([lie[2], lie[3]]);
                        assert!(size(&request, version) <= lie.len() + "hostile".len(), "{}", what());
                    }
                }
            }
        }
    }
    assert!(refused > 0, "{}: no lie was refused", R::NAME);
}

macro_rules! hostile_lengths {
    ($( $test:ident $request:ident $json:literal; )*) => {$(
        #[test]
        fn $test() {
            survives_lies::<messages::$request>($json);
        }
    )*};
}

hostile_lengths! {
    produce_survives_hostile_lengths ProduceRequest r#"{"transactional_id": "tx", "acks": -1, "timeout_ms": 1000,
        "topic_data": [{"name": "a", "partition_data": [{"index": 0, "records": "00112233445566778899"},
        {"index": 1, "records": null}]}, {"name": "b", "partition_data": []}]}"#;
    describe_producers_survives_hostile_lengths DescribeProducersRequest r#"{"topics": [{"name": "a",
        "partition_indexes": [0, 1, 2]}, {"name": "b", "partition_indexes": []}]}"#;
    fetch_survives_hostile_lengths FetchRequest r#"{"cluster_id": "c", "max_wait_ms": 5, "min_bytes": 1,
        "topics": [{"topic": "a", "partitions": [{"partition": 1, "fetch_offset": 7, "high_watermark": 9}]}],
        "forgotten_topics_data": [{"topic": "b", "partitions": [1, 2]}], "rack_id": "r"}"#;
    list_offsets_survives_hostile_lengths ListOffsetsRequest r#"{"topics": [{"name": "a", "partitions":
        [{"partition_index": 1, "timestamp": -1}, {"partition_index": 2, "timestamp": -2}]}]}"#;
    metadata_survives_hostile_lengths MetadataRequest r#"{"topics": [{"name": "a"}, {"name": "bb"}]}"#;
    find_coordinator_survives_hostile_lengths FindCoordinatorRequest r#"{"key": "group",
        "coordinator_keys": ["g", "h"]}"#;
    api_versions_survives_hostile_lengths ApiVersionsRequest r#"{"client_software_name": "pylog",
        "client_software_version": "0.1"}"#;
    create_topics_survives_hostile_lengths CreateTopicsRequest r#"{"topics": [{"name": "a", "num_partitions": 2,
        "assignments": [{"partition_index": 0, "broker_ids": [1, 2]}],
        "configs": [{"name": "k", "value": "v"}, {"name": "n", "value": null}]}]}"#;
    delete_topics_survives_hostile_lengths DeleteTopicsRequest r#"{"topics": [{"name": "a"}, {"name": null}],
        "topic_names": ["a", "b"]}"#;
    delete_records_survives_hostile_lengths DeleteRecordsRequest r#"{"topics": [{"name": "a",
        "partitions": [{"partition_index": 0, "offset": 5}]}]}"#;
    init_producer_id_survives_hostile_lengths InitProducerIdRequest r#"{"transactional_id": "tx"}"#;
    offset_for_leader_epoch_survives_hostile_lengths OffsetForLeaderEpochRequest r#"{"topics": [{"topic": "a",
        "partitions": [{"partition": 0, "leader_epoch": 3}]}]}"#;
    describe_configs_survives_hostile_lengths DescribeConfigsRequest r#"{"resources": [{"resource_type": 2,
        "resource_name": "a", "configuration_keys": ["k", "l"]}, {"resource_type": 4, "resource_name": "0"}]}"#;
    alter_configs_survives_hostile_lengths AlterConfigsRequest r#"{"resources": [{"resource_type": 2,
        "resource_name": "a", "configs": [{"name": "k", "value": "v"}, {"name": "l", "value": null}]}]}"#;
    describe_log_dirs_survives_hostile_lengths DescribeLogDirsRequest r#"{"topics": [{"topic": "a",
        "partitions": [0, 1]}, {"topic": "b", "partitions": []}]}"#;
    describe_topic_partitions_survives_hostile_lengths DescribeTopicPartitionsRequest r#"{"topics": [{"name": "a"}],
        "cursor": {"topic_name": "a", "partition_index": 1}}"#;
    create_partitions_survives_hostile_lengths CreatePartitionsRequest r#"{"topics": [{"name": "a", "count": 3,
        "assignments": [{"broker_ids": [0]}, {"broker_ids": [1]}]}, {"name": "b", "count": 2}]}"#;
    incremental_alter_configs_survives_hostile_lengths IncrementalAlterConfigsRequest r#"{"resources": [
        {"resource_type": 2, "resource_name": "a", "configs": [{"name": "k", "config_operation": 1}]}]}"#;
    elect_leaders_survives_hostile_lengths ElectLeadersRequest r#"{"topic_partitions": [{"topic": "a",
        "partitions": [0, 1]}]}"#;
    alter_partition_reassignments_survives_hostile_lengths AlterPartitionReassignmentsRequest r#"{"topics": [{"name": "a",
        "partitions": [{"partition_index": 0, "replicas": [1, 2]}, {"partition_index": 1, "replicas": null}]}]}"#;
    list_partition_reassignments_survives_hostile_lengths ListPartitionReassignmentsRequest r#"{"topics": [{"name": "a",
        "partition_indexes": [0, 1]}]}"#;
    update_features_survives_hostile_lengths UpdateFeaturesRequest r#"{"feature_updates": [{"feature": "a",
        "max_version_level": 2}]}"#;
    describe_cluster_survives_hostile_lengths DescribeClusterRequest r#"{"endpoint_type": 1}"#;
    unregister_broker_survives_hostile_lengths UnregisterBrokerRequest r#"{"broker_id": 3}"#;
    describe_acls_survives_hostile_lengths DescribeAclsRequest r#"{"resource_name_filter": "a", "principal_filter": "b",
        "host_filter": "c"}"#;
    alter_replica_log_dirs_survives_hostile_lengths AlterReplicaLogDirsRequest r#"{"dirs": [{"path": "/d", "topics": [{"name": "a",
        "partitions": [0, 1]}]}]}"#;
    describe_quorum_survives_hostile_lengths DescribeQuorumRequest r#"{"topics": [{"topic_name": "a",
        "partitions": [{"partition_index": 0}]}]}"#;
    list_config_resources_survives_hostile_lengths ListConfigResourcesRequest r#"{"resource_types": [2, 4]}"#;
    share_group_heartbeat_survives_hostile_lengths ShareGroupHeartbeatRequest r#"{"group_id": "g", "member_id": "m",
        "rack_id": "r", "subscribed_topic_names": ["a", "b"]}"#;
    share_group_describe_survives_hostile_lengths ShareGroupDescribeRequest r#"{"group_ids": ["g", "h"]}"#;
    share_fetch_survives_hostile_lengths ShareFetchRequest r#"{"group_id": "g", "member_id": "m", "topics": [{
        "topic_id": "00000000-0000-0000-0000-000000000007", "partitions": [{"partition_index": 1,
        "acknowledgement_batches": [{"first_offset": 1, "last_offset": 2, "acknowledge_types": [1, 2]}]}]}],
        "forgotten_topics_data": [{"topic_id": "00000000-0000-0000-0000-000000000008", "partitions": [1, 2]}]}"#;
    share_acknowledge_survives_hostile_lengths ShareAcknowledgeRequest r#"{"group_id": "g", "member_id": "m", "topics": [{
        "topic_id": "00000000-0000-0000-0000-000000000007", "partitions": [{"partition_index": 1,
        "acknowledgement_batches": [{"first_offset": 1, "last_offset": 2, "acknowledge_types": [1, 2]}]}]}]}"#;
    initialize_share_group_state_survives_hostile_lengths InitializeShareGroupStateRequest r#"{"group_id": "g", "topics": [{
        "topic_id": "00000000-0000-0000-0000-000000000007", "partitions": [{"partition": 1}, {"partition": 2}]}]}"#;
    read_share_group_state_survives_hostile_lengths ReadShareGroupStateRequest r#"{"group_id": "g", "topics": [{
        "topic_id": "00000000-0000-0000-0000-000000000007", "partitions": [{"partition": 1}, {"partition": 2}]}]}"#;
    write_share_group_state_survives_hostile_lengths WriteShareGroupStateRequest r#"{"group_id": "g", "topics": [{
        "topic_id": "00000000-0000-0000-0000-000000000007", "partitions": [{"partition": 1, "state_batches": [{"first_offset": 1, "last_offset": 2}]}]}]}"#;
    delete_share_group_state_survives_hostile_lengths DeleteShareGroupStateRequest r#"{"group_id": "g", "topics": [{
        "topic_id": "00000000-0000-0000-0000-000000000007", "partitions": [{"partition": 1}, {"partition": 2}]}]}"#;
    read_share_group_state_summary_survives_hostile_lengths ReadShareGroupStateSummaryRequest r#"{"group_id": "g", "topics": [{
        "topic_id": "00000000-0000-0000-0000-000000000007", "partitions": [{"partition": 1}, {"partition": 2}]}]}"#;
    describe_share_group_offsets_survives_hostile_lengths DescribeShareGroupOffsetsRequest r#"{"groups": [{"group_id": "g",
        "topics": [{"topic_name": "a", "partitions": [0, 1]}]}, {"group_id": "h", "topics": null}]}"#;
    alter_share_group_offsets_survives_hostile_lengths AlterShareGroupOffsetsRequest r#"{"group_id": "g", "topics": [{
        "topic_name": "a", "partitions": [{"partition_index": 0, "start_offset": 5}]}]}"#;
    delete_share_group_offsets_survives_hostile_lengths DeleteShareGroupOffsetsRequest r#"{"group_id": "g",
        "topics": [{"topic_name": "a"}, {"topic_name": "b"}]}"#;
}

/// The allocation limit above would notice a decoder that believes a count.
#[test]
fn the_counter_sees_a_large_allocation() {
    let (vec, allocated) = counted(|| Vec::<u64>::with_capacity(ALLOWED_BYTES));
    assert!(allocated >= ALLOWED_BYTES * size_of::<u64>(), "{allocated} bytes for {:?}", vec.capacity());
}
