//! What the client makes of several brokers: leaders that move, brokers that are behind or silent, replicas to read from.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::json;
use uuid::Uuid;

use super::fake::{Answer, Asked, FakeBroker, metadata};
use crate::admin::groups;
use crate::admin::topics::describe_topics;
use crate::admin::transactions::{self, TransactionFilter};
use crate::config::Isolation;
use crate::error::Result;
use crate::metadata::cluster::Cluster;
use crate::metadata::offsets::{OffsetQuery, list_offsets};
use crate::metadata::topic_partition::TopicPartition;
use crate::net::stop::Stop;
use crate::read::plan::{OffsetRange, ReadPlan};
use crate::read::range::RangeReader;
use crate::write::accumulator::Row;
use crate::write::producer::Producer;
use pylog_columnar::Column;
use pylog_record::{BatchBuilder, Codec};
use pylog_wire::AnyRequest;
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::{FetchRequest, FetchableTopicResponse, NodeEndpoint, PartitionData};
use pylog_wire::messages::list_groups::ListedGroup;
use pylog_wire::messages::list_offsets::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use pylog_wire::messages::list_transactions::TransactionState as Listed;
use pylog_wire::messages::metadata::{MetadataResponseBroker, MetadataResponsePartition};
use pylog_wire::messages::offset_for_leader_epoch::{EpochEndOffset, OffsetForLeaderTopicResult};
use pylog_wire::messages::produce::{
    NodeEndpoint as ProduceEndpoint, PartitionProduceResponse, TopicProduceResponse,
};
use pylog_wire::messages::{
    FetchResponse, InitProducerIdResponse, ListGroupsResponse, ListOffsetsResponse, ListTransactionsResponse,
    MetadataResponse, OffsetForLeaderEpochResponse, ProduceResponse,
};

/// Two brokers, 1 and 2, and what is asked of them.
struct Pair {
    brokers: Vec<FakeBroker>,
    seen: Arc<Mutex<Vec<(i32, AnyRequest)>>>,
}

type Ports = Arc<Mutex<Vec<u16>>>;

impl Pair {
    /// Both answer by `handler`, which is told which of them is asked and where both are.
    fn start(handler: impl Fn(i32, &[u16], &Asked) -> Answer + Send + Sync + 'static) -> Self {
        let (ports, seen) = (Ports::default(), Arc::new(Mutex::new(Vec::new())));
        let handler = Arc::new(handler);
        let start = |node: i32| {
            let (ports, seen, handler) = (ports.clone(), seen.clone(), handler.clone());
            FakeBroker::start(move |asked| {
                let known = ports.lock().clone();
                seen.lock().push((node, asked.request.clone()));
                handler(node, &known, asked)
            })
        };
        let brokers: Vec<_> = [1, 2].into_iter().map(start).collect();
        *ports.lock() = brokers.iter().map(|broker| broker.port).collect();
        Self { brokers, seen }
    }

    fn settings(&self, given: &[(&str, &str)]) -> crate::config::Settings {
        let both = format!("127.0.0.1:{},127.0.0.1:{}", self.brokers[0].port, self.brokers[1].port);
        let mut all = vec![("bootstrap.servers", both.as_str()), ("default.api.timeout.ms", "20000")];
        all.extend(given);
        self.brokers[0].settings(&all)
    }

    /// How often broker `node` was asked something.
    fn count(&self, node: i32, is: impl Fn(&AnyRequest) -> bool) -> usize {
        self.seen.lock().iter().filter(|(at, request)| *at == node && is(request)).count()
    }

    fn fetches(&self, node: i32) -> Vec<FetchRequest> {
        let seen = self.seen.lock();
        let fetch = |(at, request): &(i32, AnyRequest)| match request {
            AnyRequest::Fetch(fetch) if *at == node => Some(fetch.clone()),
            _ => None,
        };
        seen.iter().filter_map(fetch).collect()
    }
}

/// Both brokers; the partition is led by `leader` in `epoch`.
fn shown(ports: &[u16], leader: i32, epoch: i32) -> MetadataResponse {
    let mut answer = metadata(ports[0]);
    let (node_id, port) = (2, ports[1].into());
    answer.brokers.push(MetadataResponseBroker {
        node_id,
        host: "127.0.0.1".into(),
        port,
        ..Default::default()
    });
    answer.topics[0].partitions[0].leader_id = leader;
    answer.topics[0].partitions[0].leader_epoch = epoch;
    answer
}

/// A batch of `count` records of `epoch`.
fn batch(base_offset: i64, count: usize, epoch: i32) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.set_base_offset(base_offset);
    (0..count).for_each(|_| builder.append(1, None, Some(b"v"), &[]).unwrap());
    let mut bytes = builder.finish(Codec::None).unwrap();
    // The CRC does not cover the epoch.
    bytes[12..16].copy_from_slice(&epoch.to_be_bytes());
    bytes
}

fn fetched(partition: PartitionData, endpoints: Vec<NodeEndpoint>) -> FetchResponse {
    let topic = FetchableTopicResponse {
        topic: "t".into(),
        topic_id: Uuid::from_u128(7),
        partitions: vec![partition],
    };
    FetchResponse { responses: vec![topic], node_endpoints: endpoints, ..Default::default() }
}

fn records(bytes: Vec<u8>, high_watermark: i64) -> FetchResponse {
    let partition = PartitionData { high_watermark, records: Some(Bytes::from(bytes)), ..Default::default() };
    fetched(partition, vec![])
}

fn refused(error: ErrorCode) -> FetchResponse {
    fetched(PartitionData { error_code: error.code(), ..Default::default() }, vec![])
}

fn epoch_ended_at(end_offset: i64) -> OffsetForLeaderEpochResponse {
    let partitions = vec![EpochEndOffset { end_offset, leader_epoch: 1, ..Default::default() }];
    let topic = OffsetForLeaderTopicResult { topic: "t".into(), partitions };
    OffsetForLeaderEpochResponse { topics: vec![topic], ..Default::default() }
}

fn offset(request: &FetchRequest) -> i64 {
    request.topics[0].partitions[0].fetch_offset
}

fn read(pair: &Pair, end: i64, given: &[(&str, &str)]) -> Result<usize> {
    let topic_partition = TopicPartition::by_name("t", 0);
    let ranges = vec![OffsetRange { topic_partition, start: 0, end: Some(end) }];
    let columns = vec![Column::Value];
    let plan = ReadPlan { ranges, columns, batch_bytes: 1_000_000, max_rows: 1_000, ..ReadPlan::default() };
    let mut reader = RangeReader::new(pair.settings(given), plan)?;
    let mut rows = 0;
    while let Some(batch) = reader.next(Duration::from_secs(20))? {
        rows += batch.num_rows();
    }
    Ok(rows)
}

#[test]
fn a_leader_that_moved_is_followed_by_what_the_old_one_says() {
    let pair = Pair::start(|node, ports, asked| match &asked.request {
        AnyRequest::Metadata(_) => asked.answer(&shown(ports, 1, 1)),
        AnyRequest::OffsetForLeaderEpoch(_) => asked.answer(&epoch_ended_at(5)),
        AnyRequest::Fetch(request) if node == 1 && offset(request) == 0 => {
            asked.answer(&records(batch(0, 5, 1), 10))
        }
        AnyRequest::Fetch(_) if node == 1 => {
            let mut partition = PartitionData {
                error_code: ErrorCode::NotLeaderOrFollower.code(),
                ..PartitionData::default()
            };
            partition.current_leader.leader_id = 2;
            partition.current_leader.leader_epoch = 2;
            let (node_id, port) = (2, ports[1].into());
            let endpoint = NodeEndpoint { node_id, host: "127.0.0.1".into(), port, ..Default::default() };
            asked.answer(&fetched(partition, vec![endpoint]))
        }
        AnyRequest::Fetch(request) => asked.answer(&records(batch(offset(request), 5, 2), 10)),
        _ => None,
    });
    assert_eq!(read(&pair, 10, &[]).unwrap(), 10);
    let metadata = |request: &AnyRequest| matches!(request, AnyRequest::Metadata(_));
    assert_eq!(pair.count(1, metadata) + pair.count(2, metadata), 1);
    // The new leader was asked whether it has what was read, and each fetch named its leader's epoch.
    assert_eq!(pair.count(2, |request| matches!(request, AnyRequest::OffsetForLeaderEpoch(_))), 1);
    assert_eq!(pair.fetches(2)[0].topics[0].partitions[0].current_leader_epoch, 2);
}

/// Broker 1 leads until it was asked for offset 5; then broker 2, where the first epoch ended at `end_offset`.
fn moved(end_offset: i64) -> Pair {
    let moved = Arc::new(Mutex::new(false));
    Pair::start(move |node, ports, asked| match &asked.request {
        AnyRequest::Metadata(_) if *moved.lock() => asked.answer(&shown(ports, 2, 2)),
        AnyRequest::Metadata(_) => asked.answer(&shown(ports, 1, 1)),
        AnyRequest::OffsetForLeaderEpoch(_) => asked.answer(&epoch_ended_at(end_offset)),
        AnyRequest::Fetch(request) if offset(request) == 0 => asked.answer(&records(batch(0, 5, 1), 10)),
        AnyRequest::Fetch(_) if node == 1 => {
            *moved.lock() = true;
            None
        }
        AnyRequest::Fetch(request) => asked.answer(&records(batch(offset(request), 5, 2), 10)),
        _ => None,
    })
}

#[test]
fn a_leader_that_dies_is_followed_by_metadata() {
    assert_eq!(read(&moved(5), 10, &[]).unwrap(), 10);
}

#[test]
fn a_new_leader_without_what_was_read_is_a_truncated_log_and_nothing_of_it_is_read() {
    let pair = moved(3);
    let error = read(&pair, 10, &[]).unwrap_err();
    assert_eq!(error.kind, "LOG_TRUNCATED", "{}", error.message);
    assert!(error.message.contains("only up to offset 3"), "{}", error.message);
    assert!(pair.fetches(2).is_empty());
}

#[test]
fn a_broker_that_is_behind_is_not_believed_when_another_knows_better() {
    // Whoever leads, broker 1 shows itself in epoch 1 for ever; it gave the leadership up after offset 5.
    let pair = Pair::start(|node, ports, asked| match &asked.request {
        AnyRequest::Metadata(_) if node == 1 => asked.answer(&shown(ports, 1, 1)),
        AnyRequest::Metadata(_) => asked.answer(&shown(ports, 2, 2)),
        AnyRequest::OffsetForLeaderEpoch(_) => asked.answer(&epoch_ended_at(100)),
        AnyRequest::Fetch(request) if node == 1 && offset(request) < 5 => {
            asked.answer(&records(batch(0, 5, 1), 20))
        }
        AnyRequest::Fetch(_) if node == 1 => asked.answer(&refused(ErrorCode::NotLeaderOrFollower)),
        AnyRequest::Fetch(request) => asked.answer(&records(batch(offset(request), 5, 2), 20)),
        _ => None,
    });
    assert_eq!(read(&pair, 20, &[]).unwrap(), 20);
}

/// A topic that got a second partition, of which broker `behind` does not learn.
fn grown(behind: impl Fn(i32) -> bool + Send + Sync + 'static) -> Pair {
    Pair::start(move |node, ports, asked| match &asked.request {
        AnyRequest::Metadata(_) => {
            let mut known = shown(ports, 2, 1);
            let first = known.topics[0].partitions[0].clone();
            let second = MetadataResponsePartition { partition_index: 1, ..first };
            known.topics[0].partitions.extend((!behind(node)).then_some(second));
            asked.answer(&known)
        }
        AnyRequest::InitProducerId(_) => {
            asked.answer(&InitProducerIdResponse { producer_id: 9, producer_epoch: 0, ..Default::default() })
        }
        AnyRequest::Produce(request) => {
            let topic = &request.topic_data[0];
            let one = PartitionProduceResponse { index: topic.partition_data[0].index, ..Default::default() };
            let response = TopicProduceResponse {
                name: topic.name.clone(),
                topic_id: topic.topic_id,
                partition_responses: vec![one],
            };
            asked.answer(&ProduceResponse { responses: vec![response], ..Default::default() })
        }
        AnyRequest::ListOffsets(_) => {
            let partition =
                ListOffsetsPartitionResponse { partition_index: 1, offset: 7, ..Default::default() };
            let topic = ListOffsetsTopicResponse { name: "t".into(), partitions: vec![partition] };
            asked.answer(&ListOffsetsResponse { topics: vec![topic], ..Default::default() })
        }
        _ => None,
    })
}

/// Writes one record to partition 1.
fn write_to_the_second(pair: &Pair) -> Result<u64> {
    let mut producer = Producer::new(pair.settings(&[]))?;
    let topic = producer.topic("t")?;
    let row = Row { partition: Some(1), timestamp_ms: 1, key: None, value: Some(b"v"), headers: &[] };
    producer.append(topic, &row)?;
    producer.begin_flush()?;
    Ok(producer.wait_flushed(Duration::from_secs(20))?.expect("nothing was answered within 20 s").records)
}

#[test]
fn a_new_partition_is_written_to_although_the_first_broker_does_not_know_it_yet() {
    assert_eq!(write_to_the_second(&grown(|node| node == 1)).unwrap(), 1);
}

#[test]
fn a_partition_that_no_broker_knows_is_refused_by_its_number() {
    let error = write_to_the_second(&grown(|_| true)).unwrap_err();
    assert_eq!(error.kind, "INVALID_ARGUMENT");
    assert!(error.message.contains("has partitions 0 to 0, not 1"), "{}", error.message);
}

#[test]
fn the_end_of_a_new_partition_is_found_although_the_first_broker_does_not_know_it_yet() {
    let pair = grown(|node| node == 1);
    let mut cluster = Cluster::new(pair.settings(&[]), Stop::default()).unwrap();
    let latest = OffsetQuery { topic_partition: TopicPartition::by_name("t", 1), timestamp: -1 };
    let found = list_offsets(&mut cluster, &[latest], Isolation::ReadUncommitted).unwrap();
    assert_eq!(found[0].offset, 7);
}

#[test]
fn a_silent_broker_at_the_head_of_the_list_costs_its_connection_time_and_no_more() {
    let pair = Pair::start(|node, ports, asked| match &asked.request {
        _ if node == 1 => Some(Vec::new()),
        AnyRequest::Metadata(_) => asked.answer(&shown(ports, 2, 1)),
        AnyRequest::Fetch(request) => asked.answer(&records(batch(offset(request), 5, 1), 10)),
        _ => None,
    });
    let started = Instant::now();
    assert_eq!(read(&pair, 10, &[("request.timeout.ms", "1000")]).unwrap(), 10);
    assert!(started.elapsed() < Duration::from_secs(10));
}

/// Broker 1 leads and recommends broker 2 to whoever says a rack; `follower` answers there.
fn with_replica(follower: impl Fn(&Asked, &FetchRequest) -> Answer + Send + Sync + 'static) -> Pair {
    Pair::start(move |node, ports, asked| match &asked.request {
        AnyRequest::Metadata(_) => asked.answer(&shown(ports, 1, 1)),
        AnyRequest::ListOffsets(_) => asked.answer(&ListOffsetsResponse::default()),
        AnyRequest::Fetch(request) if node == 2 => follower(asked, request),
        AnyRequest::Fetch(request) if request.rack_id == "b" => {
            let partition =
                PartitionData { high_watermark: 20, preferred_read_replica: 2, ..Default::default() };
            asked.answer(&fetched(partition, vec![]))
        }
        AnyRequest::Fetch(request) => asked.answer(&records(batch(offset(request), 5, 1), 20)),
        _ => None,
    })
}

#[test]
fn a_reader_with_a_rack_reads_from_the_replica_that_the_leader_recommends() {
    let pair = with_replica(|asked, request| asked.answer(&records(batch(offset(request), 5, 1), 20)));
    assert_eq!(read(&pair, 20, &[("client.rack", "b")]).unwrap(), 20);
    assert_eq!((pair.fetches(1).len(), pair.fetches(2).len()), (1, 4));
    assert_eq!(read(&pair, 20, &[]).unwrap(), 20);
    assert_eq!((pair.fetches(1).len(), pair.fetches(2).len()), (5, 4));
}

#[test]
fn a_replica_that_fails_is_left_for_the_leader_without_an_error() {
    for error in [ErrorCode::OffsetOutOfRange, ErrorCode::NotLeaderOrFollower, ErrorCode::UnknownServerError]
    {
        let pair = with_replica(move |asked, request| {
            let whole = offset(request) < 10;
            let bytes = || records(batch(offset(request), 5, 1), 20);
            asked.answer(&if whole { bytes() } else { refused(error) })
        });
        assert_eq!(read(&pair, 20, &[("client.rack", "b")]).unwrap(), 20, "{error}");
        assert_eq!((pair.fetches(1).len(), pair.fetches(2).len()), (3, 3), "{error}");
    }
}

#[test]
fn the_leader_is_asked_again_whom_to_read_from_when_metadata_is_old() {
    let pair = with_replica(|asked, request| asked.answer(&records(batch(offset(request), 5, 1), 20)));
    read(&pair, 20, &[("client.rack", "b"), ("metadata.max.age.ms", "1")]).unwrap();
    assert!(pair.fetches(1).len() + pair.fetches(2).len() >= 5);
}

#[test]
fn a_replica_that_is_behind_is_no_proof_that_nothing_is_stored() {
    // The replica shows nothing from 5 on until it was asked often.
    let asked_for = Mutex::new(0);
    let pair = with_replica(move |asked, request| {
        if offset(request) < 5 {
            return asked.answer(&records(batch(0, 5, 1), 5));
        }
        *asked_for.lock() += 1;
        let more = *asked_for.lock() > 6;
        asked.answer(&if more { records(batch(offset(request), 5, 1), 20) } else { records(vec![], 5) })
    });
    assert_eq!(read(&pair, 20, &[("client.rack", "b")]).unwrap(), 20);
}

#[test]
fn a_writer_follows_the_leader_that_the_old_one_names_and_keeps_its_sequences() {
    let pair = Pair::start(|node, ports, asked| match &asked.request {
        AnyRequest::Metadata(_) => asked.answer(&shown(ports, 1, 1)),
        AnyRequest::InitProducerId(_) => {
            asked.answer(&InitProducerIdResponse { producer_id: 9, producer_epoch: 0, ..Default::default() })
        }
        AnyRequest::Produce(request) => {
            let mut partition = PartitionProduceResponse { base_offset: 0, ..Default::default() };
            let mut node_endpoints = vec![];
            if node == 1 {
                partition.error_code = ErrorCode::NotLeaderOrFollower.code();
                partition.current_leader.leader_id = 2;
                partition.current_leader.leader_epoch = 2;
                let (node_id, port) = (2, ports[1].into());
                node_endpoints.push(ProduceEndpoint {
                    node_id,
                    host: "127.0.0.1".into(),
                    port,
                    ..Default::default()
                });
            }
            let topic = &request.topic_data[0];
            let responses = vec![TopicProduceResponse {
                name: topic.name.clone(),
                topic_id: topic.topic_id,
                partition_responses: vec![partition],
            }];
            asked.answer(&ProduceResponse { responses, node_endpoints, ..Default::default() })
        }
        _ => None,
    });
    let mut producer = Producer::new(pair.settings(&[])).unwrap();
    let topic = producer.topic("t").unwrap();
    let row = Row { partition: Some(0), timestamp_ms: 1, key: None, value: Some(b"v"), headers: &[] };
    producer.append(topic, &row).unwrap();
    producer.begin_flush().unwrap();
    let delivered = producer.wait_flushed(Duration::from_secs(10)).unwrap().unwrap();
    assert_eq!(delivered.records, 1);
    let metadata = |request: &AnyRequest| matches!(request, AnyRequest::Metadata(_));
    assert_eq!(pair.count(1, metadata) + pair.count(2, metadata), 1);
}

#[test]
fn a_topic_that_one_broker_does_not_know_yet_is_described_by_another() {
    let pair = Pair::start(|node, ports, asked| {
        let mut answer = shown(ports, 1, 1);
        if node == 1 {
            answer.topics[0].error_code = ErrorCode::UnknownTopicOrPartition.code();
            answer.topics[0].partitions.clear();
        }
        asked.answer(&answer)
    });
    let mut cluster = Cluster::new(pair.settings(&[]), Stop::default()).unwrap();
    let described = describe_topics(&mut cluster, Some(&["t"])).unwrap();
    assert_eq!(described[0]["error"], serde_json::Value::Null);
}

#[test]
fn a_topic_that_no_broker_knows_is_said_to_be_unknown_soon() {
    let pair = Pair::start(|_, ports, asked| {
        let mut answer = shown(ports, 1, 1);
        answer.topics[0].error_code = ErrorCode::UnknownTopicOrPartition.code();
        asked.answer(&answer)
    });
    let mut cluster = Cluster::new(pair.settings(&[]), Stop::default()).unwrap();
    let started = Instant::now();
    let described = describe_topics(&mut cluster, Some(&["t"])).unwrap();
    assert_eq!(described[0]["error"], "UNKNOWN_TOPIC_OR_PARTITION");
    assert!(started.elapsed() < Duration::from_secs(10));
    assert!(pair.count(1, |_| true) > 0 && pair.count(2, |_| true) > 0);
}

#[test]
fn what_all_brokers_list_is_asked_anew_when_one_has_died_and_its_work_is_anothers() {
    // Broker 2 is dead, and metadata shows it until it was asked in vain; then broker 1 knows what it knew.
    let tried = Arc::new(AtomicBool::new(false));
    let pair = Pair::start(move |node, ports, asked| {
        let died = tried.load(Ordering::SeqCst);
        match &asked.request {
            AnyRequest::ListTransactions(_) | AnyRequest::ListGroups(_) if node == 2 => {
                tried.store(true, Ordering::SeqCst);
                None
            }
            AnyRequest::ListTransactions(_) => asked.answer(&ListTransactionsResponse {
                transaction_states: vec![
                    Listed { transactional_id: "moved".into(), ..Default::default() };
                    died.into()
                ],
                ..Default::default()
            }),
            AnyRequest::ListGroups(_) => asked.answer(&ListGroupsResponse {
                groups: vec![ListedGroup { group_id: "moved".into(), ..Default::default() }; died.into()],
                ..Default::default()
            }),
            _ if died => asked.answer(&metadata(ports[0])),
            _ => asked.answer(&shown(ports, 1, 1)),
        }
    });
    let all = TransactionFilter { states: vec![], producer_ids: vec![], duration_ms: -1, pattern: None };
    let mut cluster = Cluster::new(pair.settings(&[]), Stop::default()).unwrap();
    let listed = transactions::list(&mut cluster, &all).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["transactional_id"], &listed[0]["coordinator"]), (&json!("moved"), &json!(1)));
    let list_groups = |request: &AnyRequest| matches!(request, AnyRequest::ListGroups(_));
    assert_eq!(groups::list(&mut cluster, &[], &[]).unwrap().len(), 1);
    assert_eq!(pair.count(2, list_groups), 0);
}
