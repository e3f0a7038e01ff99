//! Messages as JSON, for Python.
use bytes::Bytes;

use crate::wire::messages::produce::PartitionProduceData;
use crate::wire::messages::{CreateTopicsRequest, MetadataRequest, MetadataResponse};

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
    let data = PartitionProduceData { index: 1, records: Some(Bytes::from_static(&[0, 0x1f, 0xff])) };
    let json = serde_json::to_string(&data).expect("writes");
    assert_eq!(json, r#"{"index":1,"records":"001fff"}"#);
    assert_eq!(serde_json::from_str::<PartitionProduceData>(&json).expect("parses"), data);
    for wrong in [r#"{"records":"0"}"#, r#"{"records":"zz"}"#] {
        serde_json::from_str::<PartitionProduceData>(wrong).expect_err("not pairs of hex digits");
    }
    assert_eq!(serde_json::from_str::<MetadataRequest>("{}").expect("parses"), MetadataRequest::default());
}
