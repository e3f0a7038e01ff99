//! Whole frames: headers, length prefix, records apart from the bytes around them.
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::decode_request_header_from_buffer;
use proptest::prelude::*;

use super::for_each_api;
use crate::message::{decode_response, request_frame, response_frame, response_frame_around};
use crate::messages as ours;
use crate::messages::fetch::{FetchableTopicResponse, PartitionData};
use crate::messages::produce::{PartitionProduceData, TopicProduceData};
use crate::messages::{FetchResponse, ProduceRequest};
use crate::sample::{Entropy, Sample};
use crate::writer::SHARE_FROM_BYTES;
use crate::{ApiKey, Chunk, Message, Reader, Request, RequestHeader, WireError};

/// The chunks' bytes in order; records come from `records`.
fn joined(chunks: Vec<Chunk>, records: &[Option<Bytes>]) -> Bytes {
    let mut whole = BytesMut::new();
    for chunk in chunks {
        assert!(chunk.size_bytes() > 0, "no chunk is empty");
        match chunk {
            Chunk::Bytes(bytes) => whole.extend_from_slice(&bytes),
            Chunk::Records { index, len } => {
                let bytes = records[index].as_ref().expect("announced");
                assert_eq!(bytes.len(), len);
                whole.extend_from_slice(bytes);
            }
        }
    }
    whole.freeze()
}

/// What follows the length prefix, which must be true.
fn unframed(mut frame: Bytes) -> Bytes {
    let prefix = frame.split_to(4);
    assert_eq!(prefix.as_ref(), (frame.len() as u32).to_be_bytes(), "the prefix is the length of the rest");
    frame
}

/// A request's frame is read back by us and its header by the oracle.
fn request_reads_back<R: Request + Sample + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    for version in R::API.min..=R::API.max {
        let layout = R::version(version).expect("in the table");
        let request = R::sample(&mut Entropy::new(bytes), layout);
        let chunks = request_frame(&request, version, 9, Some("a client")).expect("encodes");
        let frame = unframed(joined(chunks, &[]));
        let theirs =
            decode_request_header_from_buffer(&mut frame.clone()).expect("the oracle reads the header");
        let mut reader = Reader::new(frame);
        let header = RequestHeader::decode(&mut reader).expect("the header decodes");
        assert_eq!(header.key(), Some(R::API.key));
        assert_eq!((header.api_version, header.correlation_id), (version, 9));
        assert_eq!(header.client_id.as_deref(), Some("a client"));
        assert_eq!(theirs.client_id.as_deref(), Some("a client"));
        assert_eq!(R::decode(&mut reader, version), Ok(request));
        assert_eq!(reader.finish(), Ok(()));
    }
}

/// A response's frame is read back, and its header has the version that the oracle expects.
fn response_reads_back<R: Message + Sample + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let key = theirs::ApiKey::try_from(R::API.key.code()).expect("the oracle has every API");
    for version in R::API.min..=R::API.max {
        let layout = R::version(version).expect("in the table");
        let response = R::sample(&mut Entropy::new(bytes), layout);
        let frame = unframed(joined(response_frame(&response, version, 9).expect("encodes"), &[]));
        let header_bytes = if key.response_header_version(version) == 0 { 4 } else { 5 };
        let mut body = Reader::new(frame.slice(header_bytes..));
        assert_eq!(R::decode(&mut body, version).as_ref(), Ok(&response), "after the oracle's header");
        let (header, value) = decode_response::<R>(frame, version).expect("decodes");
        assert_eq!((header.correlation_id, value), (9, response));
    }
}

macro_rules! frames_read_back {
    ($api:ident, $request:ident, $response:ident) => {
        #[allow(non_snake_case)]
        mod $api {
            use super::*;
            proptest! {
                #![proptest_config(ProptestConfig::with_cases(16))]
                #[test]
                fn frames_read_back_in_every_version(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
                    request_reads_back::<ours::$request>(&bytes);
                    response_reads_back::<ours::$response>(&bytes);
                }
            }
        }
    };
}
for_each_api!(frames_read_back);

fn records_of(response: &FetchResponse) -> Vec<Option<Bytes>> {
    response.responses.iter().flat_map(|t| &t.partitions).map(|p| p.records.clone()).collect()
}

proptest! {
    /// Which records come from files is invisible on the wire.
    #[test]
    fn a_fetch_answer_around_files_equals_the_answer_with_records_inside(
        bytes in prop::collection::vec(any::<u8>(), 0..2000), from_file in any::<u64>(), version in 4i16..=18,
    ) {
        let layout = FetchResponse::version(version).expect("in the table");
        let mut response = FetchResponse::sample(&mut Entropy::new(&bytes), layout);
        let inside = joined(response_frame(&response, version, 1).expect("encodes"), &[]);
        let records = records_of(&response);
        let is_apart = |i: usize| from_file >> (i % 64) & 1 == 1;
        let lengths: Vec<_> = records
            .iter()
            .enumerate()
            .map(|(i, bytes)| bytes.as_ref().filter(|_| is_apart(i)).map(Bytes::len))
            .collect();
        // What the caller sends is not in the message.
        let partitions = response.responses.iter_mut().flat_map(|t| &mut t.partitions);
        for (partition, _) in partitions.zip(&lengths).filter(|(_, len)| len.is_some()) {
            partition.records = None;
        }
        let chunks = response_frame_around(&response, version, 1, lengths).expect("encodes");
        prop_assert_eq!(joined(chunks, &records), inside);
    }
}

#[test]
fn two_partitions_in_files_are_two_chunks_between_three_runs_of_bytes() {
    let partition = |partition_index| PartitionData { partition_index, ..Default::default() };
    let topic = FetchableTopicResponse {
        topic: "t".into(),
        partitions: vec![partition(0), partition(1), partition(2)],
        ..Default::default()
    };
    let response = FetchResponse { responses: vec![topic], ..Default::default() };
    let lengths = [Some(1_000), Some(0), Some(70)];
    let chunks = response_frame_around(&response, 12, 5, lengths).expect("encodes");
    let apart: Vec<_> = chunks.iter().filter(|c| matches!(c, Chunk::Records { .. })).cloned().collect();
    assert_eq!(
        apart,
        [Chunk::Records { index: 0, len: 1_000 }, Chunk::Records { index: 2, len: 70 }],
        "the empty one is only a length"
    );
    let total: usize = chunks.iter().map(Chunk::size_bytes).sum();
    let Some(Chunk::Bytes(first)) = chunks.first() else { panic!("bytes first") };
    assert_eq!(first[..4], (total as u32 - 4).to_be_bytes(), "the prefix counts the records");
    assert_eq!(chunks.len(), 5);
}

fn produce(records: Bytes) -> ProduceRequest {
    let partition = PartitionProduceData { index: 0, records: Some(records), ..Default::default() };
    let topic = TopicProduceData { name: "t".into(), partition_data: vec![partition], ..Default::default() };
    ProduceRequest { acks: -1, timeout_ms: 1, topic_data: vec![topic], ..Default::default() }
}

#[test]
fn decoded_records_are_a_slice_of_the_frame() {
    for version in [3, 9, 12] {
        let chunks = request_frame(&produce(vec![7; 100].into()), version, 1, None).expect("encodes");
        let frame = unframed(joined(chunks, &[]));
        let mut reader = Reader::new(frame.clone());
        RequestHeader::decode(&mut reader).expect("header");
        let request = ProduceRequest::decode(&mut reader, version).expect("decodes");
        let records = request.topic_data[0].partition_data[0].records.clone().expect("records");
        assert!(frame.as_ptr_range().contains(&records.as_ptr()), "version {version} does not copy");
    }
}

#[test]
fn long_records_leave_without_a_copy_and_short_ones_inside_the_frame() {
    let long = Bytes::from(vec![7; SHARE_FROM_BYTES]);
    let chunks = request_frame(&produce(long.clone()), 9, 1, None).expect("encodes");
    let shared = chunks.iter().any(|c| matches!(c, Chunk::Bytes(b) if b.as_ptr() == long.as_ptr()));
    assert!(shared, "the batch itself is one of the parts");
    let short = long.slice(1..);
    assert_eq!(request_frame(&produce(short), 9, 1, None).expect("encodes").len(), 1);
}

#[test]
fn the_header_of_an_unknown_version_or_api_still_reads() {
    let header = |hex: &'static [u8]| RequestHeader::decode(&mut Reader::new(Bytes::from_static(hex)));
    // ApiVersions 99 as a young client sends it: header version 2.
    let young = header(b"\x00\x12\x00\x63\x00\x00\x00\x07\x00\x01c\x00").expect("reads");
    assert_eq!((young.key(), young.api_version), (Some(ApiKey::ApiVersions), 99));
    assert!(!young.info().expect("known").supports(99));
    let unknown = header(b"\x7f\x00\x00\x00\x00\x00\x00\x07\xff\xff").expect("reads");
    assert_eq!((unknown.key(), unknown.correlation_id, unknown.client_id), (None, 7, None));
}

#[test]
fn a_version_without_a_layout_is_refused_by_name() {
    let refusal = ProduceRequest::decode(&mut Reader::new(Bytes::new()), 2).expect_err("too old");
    assert_eq!(refusal, WireError::Version { message: "ProduceRequest", version: 2, min: 3, max: 13 });
    assert!(refusal.to_string().contains("use a version from 3 to 13"), "{refusal}");
}
