//! Brokers with several listeners: what each listener's clients are told, and where brokers reach each other.
use std::collections::BTreeMap;

use pylog_server::cluster::view::{Broker as Live, ClusterView, Endpoint};
use pylog_server::listeners::ListenerSpec;
use pylog_wire::ErrorCode;
use pylog_wire::messages::{DescribeClusterRequest, FindCoordinatorRequest, MetadataRequest};

use crate::server::cluster_bed::{Bed, led_by};

/// Broker `id` with these listeners.
fn live(id: i32, endpoints: &[(&str, u16)]) -> Live {
    let endpoints = endpoints.iter();
    let endpoints = endpoints.map(|(name, port)| ((*name).to_owned(), Endpoint("127.0.0.1".into(), *port)));
    Live { id, endpoints: endpoints.collect::<BTreeMap<_, _>>(), rack: None, epoch: i64::from(id) + 100 }
}

#[test]
fn a_broker_without_the_listener_of_the_client_is_hidden_and_what_it_leads_has_no_leader() {
    let bed = Bed::start(&[1], &[1, 2, 3]);
    bed.serve(led_by("t", &[1, 2, 3]));
    bed.serve(led_by("__consumer_offsets", &[2]));
    let brokers = vec![
        live(1, &[("PLAINTEXT", 9001), ("INSIDE", 9101)]),
        live(2, &[("INSIDE", 9102)]),
        live(3, &[("PLAINTEXT", 9003)]),
    ];
    let view = ClusterView { controller_id: 1, brokers, ..Default::default() };
    bed.broker(1).server.apply_cluster(view);
    let mut client = bed.broker(1).client();
    for (version, error) in [(5, ErrorCode::LeaderNotAvailable), (12, ErrorCode::ListenerNotFound)] {
        let asked = MetadataRequest { topics: None, ..Default::default() };
        let answer = client.call(&asked, version);
        let shown: Vec<_> = answer.brokers.iter().map(|broker| broker.node_id).collect();
        assert_eq!(shown, [1, 3]);
        let topic = answer.topics.iter().find(|topic| topic.name.as_deref() == Some("t")).unwrap();
        let led: Vec<_> =
            topic.partitions.iter().map(|partition| (partition.error_code, partition.leader_id)).collect();
        assert_eq!(led, [(0, 1), (error.code(), -1), (0, 3)]);
        assert_eq!(topic.partitions[1].offline_replicas, [2]);
    }
    let described = client.call(&DescribeClusterRequest { endpoint_type: 1, ..Default::default() }, 1);
    assert_eq!(described.brokers.iter().map(|broker| broker.broker_id).collect::<Vec<_>>(), [1, 3]);
    let asked = FindCoordinatorRequest { coordinator_keys: vec!["g".into()], ..Default::default() };
    let found = client.call(&asked, 4).coordinators.remove(0);
    assert_eq!((found.error_code, found.node_id), (ErrorCode::CoordinatorNotAvailable.code(), -1));
}

#[test]
fn a_listener_spec_is_read_from_json_and_an_unknown_protocol_is_refused() {
    let json = |protocol: &str| {
        let settings: serde_json::Map<_, _> = pylog_settings::tables::broker()
            .into_iter()
            .filter(|row| row.setting.per_listener && row.setting.field.is_some())
            .map(|row| (row.setting.name.to_owned(), row.default))
            .collect();
        serde_json::json!({
            "name": "OUTSIDE", "protocol": protocol, "host": "::1", "port": 9093,
            "advertised_host": "log.example", "advertised_port": null, "settings": settings,
        })
    };
    let read: ListenerSpec = serde_json::from_value(json("SSL")).unwrap();
    assert_eq!((read.protocol.name(), read.port, read.advertised_port), ("SSL", 9093, None));
    assert!(
        serde_json::from_value::<ListenerSpec>(json("TLS")).unwrap_err().to_string().contains("SASL_SSL")
    );
}
