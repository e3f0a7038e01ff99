//! Bytes written by the own classes of Apache Kafka 4.3, for share groups 4.4, above all for versions that the oracle crate does not know.
use bytes::Bytes;
use uuid::Uuid;

use crate::messages::*;
use crate::{ApiKey, Message, Reader, RequestHeader, ResponseHeader, Writer};

fn bytes(hex: &str) -> Bytes {
    let digit = |c: u8| char::from(c).to_digit(16).expect("hex") as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// `hex` decodes to `value`, and `value` encodes to `hex`.
fn is_kafkas<T: Message + PartialEq + std::fmt::Debug>(value: &T, version: i16, hex: &str) {
    let mut writer = Writer::new();
    value.encode(&mut writer, version).expect("encodes");
    assert_eq!(writer.into_bytes(), bytes(hex), "{} v{version} encoded", T::NAME);
    let mut reader = Reader::new(bytes(hex));
    assert_eq!(&T::decode(&mut reader, version).expect("decodes"), value, "{} v{version} decoded", T::NAME);
    reader.finish().expect("nothing is left over");
}

#[test]
fn init_producer_id_6_is_what_kafka_writes() {
    let request = InitProducerIdRequest {
        transactional_id: Some("tx-1".into()),
        transaction_timeout_ms: 60_000,
        producer_id: 4096,
        producer_epoch: 7,
        enable_2_pc: true,
        keep_prepared_txn: true,
    };
    is_kafkas(&request, 6, "0574782d310000ea6000000000000010000007010100");
    let idempotent = InitProducerIdRequest { transaction_timeout_ms: i32::MAX, ..Default::default() };
    is_kafkas(&idempotent, 6, "007fffffffffffffffffffffffffff000000");
    let response = InitProducerIdResponse {
        throttle_time_ms: 3,
        error_code: 0,
        producer_id: 4096,
        producer_epoch: 8,
        ongoing_txn_producer_id: 4095,
        ongoing_txn_producer_epoch: 6,
    };
    is_kafkas(&response, 6, "000000030000000000000000100000080000000000000fff000600");
}

#[test]
fn list_offsets_11_is_what_kafka_writes() {
    let partition = list_offsets::ListOffsetsPartition {
        partition_index: 5,
        current_leader_epoch: 2,
        timestamp: list_offsets::EARLIEST_PENDING_UPLOAD,
    };
    let request = ListOffsetsRequest {
        replica_id: -1,
        isolation_level: 1,
        topics: vec![list_offsets::ListOffsetsTopic { name: "flights".into(), partitions: vec![partition] }],
        timeout_ms: 30_000,
    };
    is_kafkas(&request, 11, "ffffffff010208666c6967687473020000000500000002fffffffffffffffa00000000753000");
    let partition = list_offsets::ListOffsetsPartitionResponse {
        partition_index: 5,
        error_code: 0,
        timestamp: 1_357_034_400_000,
        offset: 336_776,
        leader_epoch: 2,
    };
    let topic =
        list_offsets::ListOffsetsTopicResponse { name: "flights".into(), partitions: vec![partition] };
    let response = ListOffsetsResponse { throttle_time_ms: 1, topics: vec![topic] };
    let hex = "000000010208666c6967687473020000000500000000013bf58da900000000000005238800000002000000";
    is_kafkas(&response, 11, hex);
}

/// A topic's id.
const TOPIC_ID: Uuid = Uuid::from_u128(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);

fn said(acknowledge_types: &[i8]) -> Vec<share_fetch::AcknowledgementBatch> {
    let acknowledge_types = acknowledge_types.to_vec();
    vec![share_fetch::AcknowledgementBatch { first_offset: 5, last_offset: 7, acknowledge_types }]
}

#[test]
fn share_fetch_is_what_kafka_writes() {
    let partition =
        share_fetch::FetchPartition { partition_index: 2, acknowledgement_batches: said(&[1, 2, 3]) };
    let mut request = ShareFetchRequest {
        group_id: Some("work".into()),
        member_id: Some("AAAAAAAAAAAAAAAAAAAAAQ".into()),
        share_session_epoch: 3,
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 1 << 20,
        max_records: 500,
        batch_size: 100,
        topics: vec![share_fetch::FetchTopic { topic_id: TOPIC_ID, partitions: vec![partition] }],
        forgotten_topics_data: vec![share_fetch::ForgottenTopic {
            topic_id: TOPIC_ID,
            partitions: vec![0, 9],
        }],
        ..Default::default()
    };
    let hex = "05776f726b174141414141414141414141414141414141414141415100000003000001f400000001001000000000\
              01f400000064020123456789abcdeffedcba98765432100200000002020000000000000005000000000000000704\
              010203000000020123456789abcdeffedcba98765432100300000000000000090000";
    is_kafkas(&request, 1, hex);
    (request.share_acquire_mode, request.is_renew_ack) = (share_fetch::RECORD_LIMIT, true);
    let hex = "05776f726b174141414141414141414141414141414141414141415100000003000001f400000001001000000000\
              01f4000000640101020123456789abcdeffedcba9876543210020000000202000000000000000500000000000000\
              0704010203000000020123456789abcdeffedcba98765432100300000000000000090000";
    is_kafkas(&request, 2, hex);
    let run = share_fetch::AcquiredRecords { first_offset: 8, last_offset: 9, delivery_count: 2 };
    let partition = share_fetch::PartitionData {
        partition_index: 2,
        acknowledge_error_code: 121,
        acknowledge_error_message: Some("no".into()),
        current_leader: share_fetch::LeaderIdAndEpoch { leader_id: 1, leader_epoch: 4 },
        acquired_records: vec![run],
        ..Default::default()
    };
    let topic = share_fetch::ShareFetchableTopicResponse { topic_id: TOPIC_ID, partitions: vec![partition] };
    let endpoint = share_fetch::NodeEndpoint { node_id: 1, host: "h".into(), port: 9092, rack: None };
    let response = ShareFetchResponse {
        throttle_time_ms: 7,
        acquisition_lock_timeout_ms: 30_000,
        responses: vec![topic],
        node_endpoints: vec![endpoint],
        ..Default::default()
    };
    let hex = "0000000700000000007530020123456789abcdeffedcba987654321002000000020000000079036e6f0000000100\
              0000040001020000000000000008000000000000000900020000000200000001026800002384000000";
    is_kafkas(&response, 1, hex);
    is_kafkas(&response, 2, hex);
}

#[test]
fn share_acknowledge_is_what_kafka_writes() {
    let partition =
        share_acknowledge::AcknowledgePartition { partition_index: 2, acknowledgement_batches: said(&[4]) };
    let topic = share_acknowledge::AcknowledgeTopic { topic_id: TOPIC_ID, partitions: vec![partition] };
    let mut request = ShareAcknowledgeRequest {
        group_id: Some("work".into()),
        member_id: Some("AAAAAAAAAAAAAAAAAAAAAQ".into()),
        share_session_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    let hex = "05776f726b1741414141414141414141414141414141414141414151ffffffff020123456789abcdeffedcba9876\
              54321002000000020200000000000000050000000000000007020400000000";
    is_kafkas(&request, 1, hex);
    request.is_renew_ack = true;
    let hex = "05776f726b1741414141414141414141414141414141414141414151ffffffff01020123456789abcdeffedcba98\
              7654321002000000020200000000000000050000000000000007020400000000";
    is_kafkas(&request, 2, hex);
    let partition = share_acknowledge::PartitionData {
        partition_index: 2,
        error_code: 121,
        current_leader: share_fetch::LeaderIdAndEpoch { leader_id: 1, leader_epoch: 4 },
        ..Default::default()
    };
    let topic =
        share_acknowledge::ShareAcknowledgeTopicResponse { topic_id: TOPIC_ID, partitions: vec![partition] };
    let mut response = ShareAcknowledgeResponse {
        throttle_time_ms: 7,
        error_code: 122,
        error_message: Some("gone".into()),
        responses: vec![topic],
        ..Default::default()
    };
    let hex = "00000007007a05676f6e65020123456789abcdeffedcba9876543210020000000200790000000001000000040000\
              000100";
    is_kafkas(&response, 1, hex);
    response.acquisition_lock_timeout_ms = 30_000;
    let hex = "00000007007a05676f6e6500007530020123456789abcdeffedcba98765432100200000002007900000000010000\
              00040000000100";
    is_kafkas(&response, 2, hex);
}

#[test]
fn null_topics_ask_for_all_topics() {
    let all = MetadataRequest { topics: None, allow_auto_topic_creation: false, ..Default::default() };
    is_kafkas(&all, 13, "00000000");
}

#[test]
fn the_refusal_of_an_unknown_api_versions_version_is_a_version_0_body() {
    let refusal = ApiVersionsResponse {
        error_code: 35,
        api_keys: vec![ApiKey::ApiVersions.info().advertisement()],
        ..Default::default()
    };
    is_kafkas(&refusal, 0, "002300000001001200000005");
}

#[test]
fn headers_are_what_kafka_writes() {
    let request = |key: ApiKey, version, correlation_id, client_id| {
        let mut writer = Writer::new();
        RequestHeader::encode(&mut writer, key, version, correlation_id, client_id).expect("encodes");
        writer.into_bytes()
    };
    let response = |key: ApiKey, version| {
        let mut writer = Writer::new();
        ResponseHeader { correlation_id: 77 }.encode(&mut writer, key, version).expect("encodes");
        writer.into_bytes()
    };
    assert_eq!(request(ApiKey::ApiVersions, 4, 1, Some("spark")), bytes("00120004000000010005737061726b00"));
    assert_eq!(request(ApiKey::Fetch, 4, -2, None), bytes("00010004fffffffeffff"));
    assert_eq!(response(ApiKey::Fetch, 12), bytes("0000004d00"));
    assert_eq!(response(ApiKey::Fetch, 11), bytes("0000004d"));
    assert_eq!(response(ApiKey::ApiVersions, 4), bytes("0000004d"), "ApiVersions: always header 0");
}
