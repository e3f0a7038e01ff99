//! DescribeLogDirs, DescribeTopicPartitions, DescribeCluster, the features and what a client may do.
use pylog_storage::LogConfig;
use pylog_wire::ErrorCode;
use pylog_wire::messages::delete_records::{DeleteRecordsPartition, DeleteRecordsTopic};
use pylog_wire::messages::describe_log_dirs::DescribableLogDirTopic;
use pylog_wire::messages::describe_topic_partitions::{Cursor, TopicRequest};
use pylog_wire::messages::metadata::{MetadataRequestTopic, OPERATIONS_NOT_ASKED};
use pylog_wire::messages::{
    ApiVersionsRequest, DeleteRecordsRequest, DescribeClusterRequest, DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, MetadataRequest,
};

use crate::server::support::{Broker, topic};

/// A broker with topics a (2 partitions), b (3) and c (1).
fn three_topics() -> Broker {
    let broker = Broker::start();
    let specs = [("b", 3), ("a", 2), ("c", 1)].map(|(name, partitions)| topic(name, partitions));
    broker.server.apply_topics(specs.into()).unwrap();
    broker
}

#[test]
fn log_dirs_show_sizes_and_the_room_on_the_volume_in_every_version() {
    let broker = three_topics();
    let mut client = broker.client();
    client.produce("a", &["some", "records"]);
    for version in 1..=4 {
        let answer = client.call(&DescribeLogDirsRequest { topics: None }, version);
        assert_eq!((answer.error_code, answer.results.len()), (0, 1));
        let dir = &answer.results[0];
        assert!(dir.log_dir.starts_with('/'), "{}", dir.log_dir);
        let names: Vec<_> =
            dir.topics.iter().map(|topic| (topic.name.as_str(), topic.partitions.len())).collect();
        assert_eq!(names, [("a", 2), ("b", 3), ("c", 1)]);
        let sizes: Vec<_> =
            dir.topics[0].partitions.iter().map(|partition| partition.partition_size).collect();
        assert!(sizes[0] > 60 && sizes[1] == 0, "{sizes:?}");
        assert!(
            dir.topics[0]
                .partitions
                .iter()
                .all(|partition| partition.offset_lag == 0 && !partition.is_future_key)
        );
        let known = version >= 4;
        assert_eq!(dir.total_bytes > dir.usable_bytes && dir.usable_bytes >= 0, known);
        assert_eq!(dir.total_bytes == -1, !known);
    }
}

#[test]
fn log_dirs_of_named_partitions_leave_out_what_is_not_here() {
    let broker = three_topics();
    let asked = [("b", vec![1, 9]), ("nobody", vec![0]), ("c", vec![])];
    let asked = asked.map(|(name, partitions)| DescribableLogDirTopic { topic: name.into(), partitions });
    let answer = broker.client().call(&DescribeLogDirsRequest { topics: Some(asked.into()) }, 4);
    let topics = &answer.results[0].topics;
    assert_eq!((topics.len(), topics[0].name.as_str()), (1, "b"));
    assert_eq!(
        topics[0].partitions.iter().map(|partition| partition.partition_index).collect::<Vec<_>>(),
        [1]
    );
}

/// (topic, error, partitions), and the cursor.
type Page = (Vec<(String, i16, Vec<i32>)>, Option<(String, i32)>);

fn page(answer: DescribeTopicPartitionsResponse) -> Page {
    let topics = answer.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| partition.partition_index).collect();
        (topic.name.unwrap(), topic.error_code, partitions)
    });
    (topics.collect(), answer.next_cursor.map(|next| (next.topic_name, next.partition_index)))
}

fn ask(broker: &Broker, names: &[&str], limit: i32, cursor: Option<(&str, i32)>) -> Page {
    let request = DescribeTopicPartitionsRequest {
        topics: names.iter().map(|name| TopicRequest { name: (*name).into() }).collect(),
        response_partition_limit: limit,
        cursor: cursor.map(|(name, partition_index)| Cursor { topic_name: name.into(), partition_index }),
    };
    page(broker.client().call(&request, 0))
}

#[test]
fn topic_partitions_come_in_pages_that_lose_and_repeat_nothing() {
    let broker = three_topics();
    for limit in 1..=7 {
        let (mut seen, mut cursor) = (Vec::new(), None::<(String, i32)>);
        loop {
            let from = cursor.as_ref().map(|(name, number)| (name.as_str(), *number));
            let (topics, next) = ask(&broker, &[], limit, from);
            let count: usize = topics.iter().map(|topic| topic.2.len()).sum();
            assert!(count <= usize::try_from(limit).unwrap());
            for (name, error, partitions) in topics {
                assert_eq!(error, 0);
                seen.extend(partitions.into_iter().map(|number| (name.clone(), number)));
            }
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        let all = [("a", 2), ("b", 3), ("c", 1)].into_iter();
        let all: Vec<_> =
            all.flat_map(|(name, count)| (0..count).map(move |number| (name.to_owned(), number))).collect();
        assert_eq!(seen, all, "limit {limit}");
    }
}

#[test]
fn a_limit_of_nothing_gives_one_partition() {
    let broker = three_topics();
    assert_eq!(ask(&broker, &[], 0, None), (vec![("a".into(), 0, vec![0])], Some(("a".into(), 1))));
}

#[test]
fn named_topics_are_sorted_and_unknown_ones_are_errors() {
    let broker = three_topics();
    let (unknown, invalid) = (ErrorCode::UnknownTopicOrPartition, ErrorCode::InvalidTopicException);
    let expected = vec![
        ("..".into(), invalid.code(), vec![]),
        ("b".into(), 0, vec![0, 1, 2]),
        ("nobody".into(), unknown.code(), vec![]),
    ];
    assert_eq!(ask(&broker, &["nobody", "b", ".."], 2000, None), (expected, None));
}

#[test]
fn a_cursor_must_be_among_the_named_topics_and_not_negative() {
    let broker = three_topics();
    let refused = ErrorCode::InvalidRequest.code();
    assert_eq!(ask(&broker, &["a"], 10, Some(("b", 0))), (vec![("a".into(), refused, vec![])], None));
    assert_eq!(ask(&broker, &["a"], 10, Some(("a", -1))), (vec![("a".into(), refused, vec![])], None));
    let gone = ask(&broker, &[], 10, Some(("bb", 0)));
    assert_eq!(gone, (vec![("c".into(), 0, vec![0])], None), "a deleted topic does not end the list");
    let behind = ask(&broker, &["a"], 10, Some(("a", 9)));
    assert_eq!(behind, (vec![("a".into(), 0, vec![])], None));
}

#[test]
fn operations_are_told_when_asked_for() {
    let broker = three_topics();
    let topics = Some(vec![MetadataRequestTopic { name: Some("a".into()), ..Default::default() }]);
    for asked in [false, true] {
        let request = MetadataRequest {
            topics: topics.clone(),
            include_topic_authorized_operations: asked,
            include_cluster_authorized_operations: asked,
            ..Default::default()
        };
        let answer = broker.client().call(&request, 10);
        let (of_topic, of_cluster) =
            if asked { (3576, 8096) } else { (OPERATIONS_NOT_ASKED, OPERATIONS_NOT_ASKED) };
        assert_eq!(answer.topics[0].topic_authorized_operations, of_topic);
        assert_eq!(answer.cluster_authorized_operations, of_cluster);
        let request =
            DescribeClusterRequest { include_cluster_authorized_operations: asked, ..Default::default() };
        assert_eq!(broker.client().call(&request, 1).cluster_authorized_operations, of_cluster);
    }
}

#[test]
fn an_endpoint_type_that_is_not_a_brokers_is_refused_as_kafka_does() {
    let broker = Broker::start();
    let ask = |endpoint_type| {
        let request = DescribeClusterRequest { endpoint_type, ..Default::default() };
        let answer = broker.client().call(&request, 2);
        (ErrorCode::from_code(answer.error_code).unwrap(), answer.brokers.len())
    };
    assert_eq!(ask(1), (ErrorCode::None, 1));
    assert_eq!(ask(2), (ErrorCode::MismatchedEndpointType, 0));
    assert_eq!(ask(3), (ErrorCode::UnsupportedEndpointType, 0));
}

#[test]
fn the_feature_metadata_version_is_finalized_so_that_kafbat_lets_configs_be_edited() {
    let broker = Broker::start();
    let answer = broker.client().call(&ApiVersionsRequest::default(), 3);
    let found: Vec<_> =
        answer.finalized_features.iter().filter(|feature| feature.name == "metadata.version").collect();
    assert_eq!(found.len(), 1);
    let supported =
        answer.supported_features.iter().find(|feature| feature.name == "metadata.version").unwrap();
    assert!((supported.min_version..=supported.max_version).contains(&found[0].max_version_level));
    assert!(answer.finalized_features_epoch >= 0);
}

#[test]
fn a_topic_id_before_version_12_is_an_invalid_request() {
    let broker = three_topics();
    let id = broker.server.shared().topics.now().named("a").unwrap().id;
    let ask = |version| {
        let topics = vec![MetadataRequestTopic { topic_id: id, name: (version < 12).then(String::new) }];
        let answer =
            broker.client().call(&MetadataRequest { topics: Some(topics), ..Default::default() }, version);
        (ErrorCode::from_code(answer.topics[0].error_code).unwrap(), answer.topics[0].partitions.len())
    };
    assert_eq!(ask(10), (ErrorCode::InvalidRequest, 0));
    assert_eq!(ask(11), (ErrorCode::InvalidRequest, 0));
    assert_eq!(ask(12), (ErrorCode::None, 2));
}

#[test]
fn records_of_internal_and_of_compacted_topics_are_not_deleted() {
    let broker = Broker::start();
    let mut internal = topic("__consumer_offsets", 1);
    internal.internal = true;
    let mut compacted = topic("table", 1);
    compacted.config =
        LogConfig { cleanup_policy: serde_json::from_str("\"compact\"").unwrap(), ..LogConfig::default() };
    broker.server.apply_topics(vec![internal, compacted]).unwrap();
    let ask = |name: &str| {
        let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset: 0 }];
        let topics = vec![DeleteRecordsTopic { name: name.into(), partitions }];
        let answer = broker.client().call(&DeleteRecordsRequest { topics, timeout_ms: 1000 }, 2);
        let partition = &answer.topics[0].partitions[0];
        (ErrorCode::from_code(partition.error_code).unwrap(), partition.low_watermark)
    };
    assert_eq!(ask("__consumer_offsets"), (ErrorCode::InvalidTopicException, -1));
    assert_eq!(ask("table"), (ErrorCode::PolicyViolation, -1));
}
