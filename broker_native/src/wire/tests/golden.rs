//! Bytes written by Apache Kafka 4.3's own classes, above all for versions that the oracle crate does not know.
use bytes::Bytes;

use crate::wire::messages::*;
use crate::wire::{ApiKey, Message, Reader, RequestHeader, ResponseHeader, Writer};

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
