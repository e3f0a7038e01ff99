//! Messages as JSON, for Python.
use bytes::Bytes;

use crate::json::{request_frame_from_json, response_to_json};
use crate::message::{request_frame, response_frame};
use crate::messages::metadata::MetadataRequestTopic;
use crate::messages::produce::PartitionProduceData;
use crate::messages::{CreateTopicsRequest, MetadataRequest, MetadataResponse};
use crate::{ApiKey, Chunk};

#[test]
fn fields_left_out_of_the_json_have_their_defaults() {
    let request: CreateTopicsRequest =
        serde_json::from_str(r#"{"topics": [{"name": "t", "num_partitions": -1}]}"#).expect("parses");
    assert_eq!(request.timeout_ms, 60_000);
    assert_eq!((request.topics[0].name.as_str(), request.topics[0].num_partitions), ("t", -1));
}

#[test]
fn a_response_survives_json() {
    let response = MetadataResponse { cluster_id: Some("c".into()), ..Default::default() };
    let json = serde_json::to_string(&response).expect("writes");
    assert_eq!(serde_json::from_str::<MetadataResponse>(&json).expect("parses"), response);
    assert!(json.contains(r#""controller_id":-1"#), "{json}");
}

#[test]
fn bytes_are_hexadecimal_text_in_json() {
    let data = PartitionProduceData {
        index: 1,
        records: Some(Bytes::from_static(&[0, 0x1f, 0xff])),
        ..Default::default()
    };
    let json = serde_json::to_string(&data).expect("writes");
    assert_eq!(json, r#"{"index":1,"records":"001fff","mirrored_from":-1}"#);
    assert_eq!(serde_json::from_str::<PartitionProduceData>(&json).expect("parses"), data);
    for wrong in [r#"{"records":"0"}"#, r#"{"records":"zz"}"#] {
        serde_json::from_str::<PartitionProduceData>(wrong).expect_err("not pairs of hex digits");
    }
    assert_eq!(serde_json::from_str::<MetadataRequest>("{}").expect("parses"), MetadataRequest::default());
}

#[test]
fn a_request_by_name_in_json_makes_the_frame_of_the_message() {
    let json = r#"{"topics": [{"name": "t"}]}"#;
    let key = ApiKey::from_name("Metadata").expect("in the table");
    let frame = request_frame_from_json(key, 9, 7, Some("me"), json).expect("makes it");
    let message = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic { name: Some("t".into()), ..Default::default() }]),
        ..Default::default()
    };
    assert_eq!(frame, request_frame(&message, 9, 7, Some("me")).expect("makes it"));
    assert_eq!(ApiKey::from_name("metadata"), None);
}

#[test]
fn a_field_that_the_message_lacks_is_refused_and_named() {
    let json = r#"{"topics": [{"nmae": "t"}]}"#;
    let error = request_frame_from_json(ApiKey::Metadata, 9, 7, None, json).expect_err("a typing error");
    assert!(error.to_string().contains("unknown field `nmae`, expected `topic_id` or `name`"), "{error}");
}

#[test]
fn an_answer_becomes_json_with_its_correlation_id() {
    let answer = MetadataResponse { cluster_id: Some("c".into()), ..Default::default() };
    let chunks = response_frame(&answer, 9, 7).expect("writes");
    let Some(Chunk::Bytes(frame)) = chunks.first() else { panic!("one chunk") };
    let (correlation_id, json) = response_to_json(ApiKey::Metadata, 9, frame.slice(4..)).expect("reads");
    assert_eq!(correlation_id, 7);
    assert_eq!(serde_json::from_str::<MetadataResponse>(&json).expect("parses"), answer);
}
