//! Every message in every version against the `kafka-protocol` crate, both directions.
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable, Message as TheirMessage};
use proptest::prelude::*;

use super::debug_tree::tree;
use super::for_each_api;
use crate::messages as ours;
use crate::sample::{Entropy, Sample};
use crate::{Message, Reader, Writer};

/// Fields that the crate adds to every struct, and one of a version that Kafka dropped.
fn theirs_alone(message: &str) -> &'static [&'static str] {
    match message {
        "ShareFetchRequest" => &["unknown_tagged_fields", "partition_max_bytes"],
        _ => &["unknown_tagged_fields"],
    }
}

/// Fields of versions that are newer than the crate, by the message: of KIP-1206, 1222, 1226, 1228, 1242, 1319 and of
/// Kafka 4.4's DeleteGroups; and what is pylog's own.
fn ours_alone(message: &str) -> &'static [&'static str] {
    match message {
        "WriteTxnMarkersRequest" => &["transaction_version"],
        "ShareFetchRequest" => &["share_acquire_mode", "is_renew_ack"],
        "ShareAcknowledgeRequest" => &["is_renew_ack"],
        "ShareAcknowledgeResponse" => &["acquisition_lock_timeout_ms"],
        "WriteShareGroupStateRequest" | "ReadShareGroupStateSummaryResponse" => &["delivery_complete_count"],
        "DescribeShareGroupOffsetsResponse" => &["lag"],
        "ApiVersionsRequest" => &["cluster_id", "node_id"],
        "TxnOffsetCommitRequest" | "TxnOffsetCommitResponse" => &["topic_id"],
        "DeleteGroupsResponse" => &["error_message"],
        "ProduceRequest" => &["mirror_source", "mirrored_from"],
        "ProduceResponse" => &["log_end_offset"],
        "FetchRequest" => &["local_reads"],
        "FetchResponse" => &["in_directory"],
        _ => &[],
    }
}

fn decode<T: Message>(bytes: Bytes, version: i16) -> T {
    let mut reader = Reader::new(bytes);
    let value = T::decode(&mut reader, version).expect("our bytes decode");
    reader.finish().expect("nothing is left over");
    value
}

/// Our bytes are theirs, their bytes are ours, and both mean the same fields.
fn check<Ours, Theirs>(value: &Ours, version: i16)
where
    Ours: Message + PartialEq + std::fmt::Debug,
    Theirs: TheirMessage + Encodable + Decodable + std::fmt::Debug,
{
    let mut writer = Writer::new();
    value.encode(&mut writer, version).expect("encodes");
    let bytes = writer.into_bytes();
    assert_eq!(
        &decode::<Ours>(bytes.clone(), version),
        value,
        "{} v{version} through our own bytes",
        Ours::NAME
    );
    if version < Theirs::VERSIONS.min || version > Theirs::VERSIONS.max {
        return;
    }
    let mut rest = bytes.clone();
    let other = Theirs::decode(&mut rest, version).expect("the oracle decodes our bytes");
    assert!(rest.is_empty(), "{} v{version}: the oracle leaves {} bytes", Ours::NAME, rest.len());
    let (ours, theirs) = (tree(value, ours_alone(Ours::NAME)), tree(&other, theirs_alone(Ours::NAME)));
    assert_eq!(ours, theirs, "{} v{version} by field", Ours::NAME);
    let mut theirs = BytesMut::new();
    other.encode(&mut theirs, version).expect("the oracle encodes");
    assert_eq!(theirs, bytes, "{} v{version} by byte", Ours::NAME);
    assert_eq!(&decode::<Ours>(theirs.freeze(), version), value, "{} v{version} from the oracle", Ours::NAME);
}

/// Makes a value of each version from `bytes` and checks it.
fn check_all_versions<Ours, Theirs>(bytes: &[u8])
where
    Ours: Message + Sample + PartialEq + std::fmt::Debug,
    Theirs: TheirMessage + Encodable + Decodable + std::fmt::Debug,
{
    for number in Ours::API.min..=Ours::API.max {
        let version = Ours::version(number).expect("in the table");
        check::<Ours, Theirs>(&Ours::sample(&mut Entropy::new(bytes), version), number);
    }
}

macro_rules! against_the_oracle {
    ($api:ident, $request:ident, $response:ident) => {
        #[allow(non_snake_case)]
        mod $api {
            use super::*;
            proptest! {
                #![proptest_config(ProptestConfig::with_cases(256))]
                #[test]
                fn requests_are_byte_equal_in_every_version(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
                    check_all_versions::<ours::$request, theirs::$request>(&bytes);
                }
                #[test]
                fn responses_are_byte_equal_in_every_version(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
                    check_all_versions::<ours::$response, theirs::$response>(&bytes);
                }
            }
        }
    };
}
for_each_api!(against_the_oracle);
