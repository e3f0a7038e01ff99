//! What the broker says it speaks, and what it does with what it does not. Each trap of the ecosystem is a test.
use std::io::Write;

use pylog_server::call::SERVED;
use pylog_wire::messages::{
    ApiVersionsRequest, ApiVersionsResponse, FindCoordinatorRequest, InitProducerIdRequest, MetadataRequest,
    MetadataResponse,
};
use pylog_wire::{ApiKey, ErrorCode, message};

use crate::server::support::{Broker, NODE_ID, frame, topic};

/// Key, version, correlation id 5, no client id.
fn bare(key: i16, version: i16, rest: &[u8]) -> Vec<u8> {
    let mut body = [key.to_be_bytes(), version.to_be_bytes(), [0, 0], [0, 5], [255, 255]].concat();
    body.extend_from_slice(rest);
    [(body.len() as i32).to_be_bytes().as_slice(), &body].concat()
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_in_version_0_with_the_range() {
    let broker = Broker::start();
    let mut client = broker.client();
    for version in [6, 99, i16::MAX] {
        client.stream.write_all(&bare(18, version, &[0, 1, 1, 0])).unwrap();
        let (header, answer) =
            message::decode_response::<ApiVersionsResponse>(client.frame().unwrap(), 0).unwrap();
        assert_eq!(header.correlation_id, 5);
        assert_eq!(answer.error_code, ErrorCode::UnsupportedVersion.code());
        let own = answer.api_keys.iter().find(|api| api.api_key == 18).unwrap();
        assert_eq!((own.min_version, own.max_version), (0, 5));
    }
    assert_eq!(client.call(&ApiVersionsRequest::default(), 4).error_code, 0, "the connection goes on");
}

#[test]
fn api_versions_tells_what_is_served_and_nothing_else() {
    let broker = Broker::start();
    for version in 0..=5 {
        let answer = broker.client().call(&ApiVersionsRequest::default(), version);
        let api_keys: Vec<_> = answer.api_keys.iter().map(|api| api.api_key).collect();
        assert_eq!(api_keys, SERVED.iter().map(|key| key.code()).collect::<Vec<_>>());
    }
}

#[test]
fn produce_is_advertised_from_version_0_so_that_librdkafka_compresses() {
    let answer = Broker::start().client().call(&ApiVersionsRequest::default(), 3);
    let produce = answer.api_keys.iter().find(|api| api.api_key == 0).unwrap();
    assert_eq!((produce.min_version, produce.max_version), (0, 13));
}

#[test]
fn an_unknown_version_of_another_api_closes_the_connection() {
    let broker = Broker::start();
    for (key, version) in [(0, 2), (0, 14), (1, 3), (3, 14), (3, -1), (38, 0), (999, 0), (-1, 0)] {
        let mut client = broker.client();
        client.stream.write_all(&bare(key, version, &[0; 16])).unwrap();
        assert_eq!(client.frame(), None, "API {key} version {version}");
    }
    assert_eq!(broker.count("refused"), 8);
    assert_eq!(broker.count("panics"), 0);
}

#[test]
fn bytes_behind_a_request_are_ignored_since_librdkafka_sends_some() {
    let broker = Broker::start();
    let mut client = broker.client();
    let mut bytes = frame(&MetadataRequest { topics: None, ..Default::default() }, 12, 9);
    bytes.extend_from_slice(&[1, 0, 0]);
    let size = (bytes.len() - 4) as i32;
    bytes[..4].copy_from_slice(&size.to_be_bytes());
    client.stream.write_all(&bytes).unwrap();
    let (correlation_id, answer) = client.receive::<MetadataResponse>(12);
    assert_eq!((correlation_id, answer.brokers.len()), (9, 1));
}

#[test]
fn old_clients_without_flexible_versions_get_metadata_and_versions() {
    // aiokafka speaks Metadata up to 5 and ApiVersions up to 2.
    let (broker, _) = Broker::serving(topic("numbers", 3));
    let mut client = broker.client();
    assert_eq!(client.call(&ApiVersionsRequest::default(), 0).error_code, 0);
    for version in 0..=5 {
        let all = if version == 0 { Some(Vec::new()) } else { None };
        let answer = client.call(&MetadataRequest { topics: all, ..Default::default() }, version);
        assert_eq!(answer.topics[0].partitions.len(), 3, "version {version}");
    }
}

#[test]
fn the_advertised_address_is_the_one_that_the_client_dialled() {
    let broker = Broker::start();
    let answer = broker.client().call(&MetadataRequest::default(), 12);
    assert_eq!(answer.brokers[0].host, "127.0.0.1");
    assert_eq!(answer.brokers[0].port, i32::from(broker.port));
}

#[test]
fn producer_ids_are_unique_and_a_transactional_id_is_sent_to_its_coordinator() {
    let broker = Broker::start();
    let mut client = broker.client();
    let plain = InitProducerIdRequest::default();
    let first = client.call(&plain, 4);
    let second = client.call(&plain, 0);
    assert_eq!((first.error_code, first.producer_epoch), (0, 0));
    assert_ne!(first.producer_id, second.producer_id);
    let transactional = InitProducerIdRequest { transactional_id: Some("mine".into()), ..plain };
    assert_eq!(
        client.call(&transactional, 4).error_code,
        ErrorCode::NotCoordinator.code(),
        "kept nowhere yet"
    );
}

#[test]
fn find_coordinator_names_this_broker_for_groups_in_every_version_and_refuses_what_is_no_share_partition() {
    let broker = Broker::start();
    let versions = broker.client().call(&ApiVersionsRequest::default(), 3);
    assert!(versions.api_keys.iter().any(|api| api.api_key == ApiKey::FindCoordinator.code()));
    for version in 0..=6 {
        let request = FindCoordinatorRequest {
            key: "g".into(),
            coordinator_keys: vec!["g".into()],
            ..Default::default()
        };
        let answer = broker.client().call(&request, version);
        let old = (answer.error_code, answer.node_id, answer.port);
        let found =
            answer.coordinators.first().map_or(old, |found| (found.error_code, found.node_id, found.port));
        assert_eq!(found, (0, NODE_ID, i32::from(broker.port)), "version {version}");
        let request = FindCoordinatorRequest { key_type: 2, ..request };
        if version >= 1 {
            let answer = broker.client().call(&request, version);
            let code = answer.coordinators.first().map_or(answer.error_code, |found| found.error_code);
            assert_eq!(code, ErrorCode::InvalidRequest.code(), "version {version}");
        }
    }
}
