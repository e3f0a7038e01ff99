//! Fetch sessions (KIP-227) over a socket: begin, go on, forget, errors, the bound.
use pylog_server::settings::Settings;
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::{FetchPartition, FetchTopic, ForgottenTopic};
use pylog_wire::messages::{FetchRequest, FetchResponse};
use uuid::Uuid;

use crate::server::support::{Broker, Client, batch, produce_request, topic, values};

/// The newest version by names, and one by ids.
const VERSIONS: [i16; 2] = [12, 17];

/// A consumer that keeps a session of topic `numbers`.
struct Consumer<'a> {
    client: &'a mut Client,
    version: i16,
    id: Uuid,
    session_id: i32,
    epoch: i32,
}

impl<'a> Consumer<'a> {
    fn new(client: &'a mut Client, version: i16, id: Uuid) -> Self {
        Self { client, version, id, session_id: 0, epoch: 0 }
    }

    /// Fetches with `positions` named: (partition, offset).
    fn fetch(&mut self, positions: &[(i32, i64)], forgotten: &[i32]) -> FetchResponse {
        let partition = |(partition, fetch_offset): &(i32, i64)| FetchPartition {
            partition: *partition,
            fetch_offset: *fetch_offset,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        };
        let named = FetchTopic {
            topic: "numbers".into(),
            topic_id: self.id,
            partitions: positions.iter().map(partition).collect(),
        };
        let gone =
            ForgottenTopic { topic: "numbers".into(), topic_id: self.id, partitions: forgotten.to_vec() };
        let request = FetchRequest {
            session_id: self.session_id,
            session_epoch: self.epoch,
            topics: if positions.is_empty() { Vec::new() } else { vec![named] },
            forgotten_topics_data: if forgotten.is_empty() { Vec::new() } else { vec![gone] },
            ..Default::default()
        };
        let answer = self.client.call(&request, self.version);
        self.session_id = answer.session_id;
        self.epoch += 1;
        answer
    }
}

/// (partition, error, records) of an answer.
fn answered(answer: &FetchResponse) -> Vec<(i32, i16, usize)> {
    let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
    partitions
        .map(|partition| (partition.partition_index, partition.error_code, values(partition).len()))
        .collect()
}

fn produce(client: &mut Client, partition: i32, values: &[&str]) {
    let answer = client.call(&produce_request("numbers", partition, batch(values), 1), 9);
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
}

#[test]
fn an_incremental_answer_names_only_partitions_with_news() {
    let (broker, id) = Broker::serving(topic("numbers", 3));
    let (mut client, mut other) = (broker.client(), broker.client());
    for version in VERSIONS {
        let mut consumer = Consumer::new(&mut client, version, id);
        let first = consumer.fetch(&[(0, 0), (1, 0), (2, 0)], &[]);
        assert!(first.session_id > 0, "version {version}");
        assert_eq!(answered(&first).len(), 3, "the first answer names all");
        let second = consumer.fetch(&[], &[]);
        assert_eq!((second.error_code, second.session_id), (0, first.session_id));
        let known = first.responses[0].partitions[1].high_watermark;
        produce(&mut other, 1, &["a", "b"]);
        let third = consumer.fetch(&[(1, known)], &[]);
        assert_eq!(answered(&third), [(1, 0, 2)]);
        assert_eq!(answered(&consumer.fetch(&[(1, known + 2)], &[])), []);
    }
}

#[test]
fn partitions_join_and_leave_a_session() {
    let (broker, id) = Broker::serving(topic("numbers", 3));
    let (mut client, mut other) = (broker.client(), broker.client());
    let mut consumer = Consumer::new(&mut client, 12, id);
    assert_eq!(answered(&consumer.fetch(&[(0, 0)], &[])), [(0, 0, 0)]);
    assert_eq!(answered(&consumer.fetch(&[(2, 0)], &[])), [(2, 0, 0)], "a new one is sent once");
    produce(&mut other, 0, &["a"]);
    produce(&mut other, 2, &["b"]);
    assert_eq!(answered(&consumer.fetch(&[], &[0])), [(2, 0, 1)], "a forgotten partition is not read");
    let last = consumer.fetch(&[], &[2]);
    assert_eq!((last.error_code, last.session_id, last.responses.len()), (0, 0, 0), "an empty session ends");
}

#[test]
fn an_error_stays_in_the_answers_until_it_is_gone() {
    let (broker, id) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    let mut consumer = Consumer::new(&mut client, 12, id);
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    let out = ErrorCode::OffsetOutOfRange.code();
    assert_eq!(answered(&consumer.fetch(&[(0, 9), (7, 0)], &[])), [(0, out, 0), (7, unknown, 0)]);
    assert_eq!(answered(&consumer.fetch(&[], &[])), [(0, out, 0), (7, unknown, 0)]);
    assert_eq!(answered(&consumer.fetch(&[(0, 0)], &[7])), [(0, 0, 0)]);
    assert_eq!(answered(&consumer.fetch(&[], &[])), []);
}

#[test]
fn a_wrong_epoch_an_unknown_session_and_another_naming_of_topics_are_refused() {
    let (broker, id) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    let mut consumer = Consumer::new(&mut client, 12, id);
    let session = consumer.fetch(&[(0, 0)], &[]).session_id;
    let mut ask = |session_id, epoch, version| {
        let mut wrong = Consumer { client: consumer.client, version, id, session_id, epoch };
        let answer = wrong.fetch(&[], &[]);
        assert_eq!((answer.session_id, answer.responses.len()), (0, 0));
        ErrorCode::from_code(answer.error_code).unwrap()
    };
    assert_eq!(ask(session, 2, 12), ErrorCode::InvalidFetchSessionEpoch);
    assert_eq!(ask(session, 1, 13), ErrorCode::FetchSessionTopicIdError);
    assert_eq!(ask(session ^ 1, 1, 12), ErrorCode::FetchSessionIdNotFound);
}

#[test]
fn a_partition_full_of_records_does_not_keep_the_others_waiting() {
    let (broker, id) = Broker::serving(topic("numbers", 3));
    let (mut client, mut other) = (broker.client(), broker.client());
    for partition in 0..3 {
        for value in ["x", "y", "z"] {
            produce(&mut other, partition, &[value]);
        }
    }
    let mut consumer = Consumer::new(&mut client, 12, id);
    let mut next = |positions: &[(i32, i64)]| {
        let mut request = FetchRequest {
            session_id: consumer.session_id,
            session_epoch: consumer.epoch,
            ..Default::default()
        };
        // Room for one batch.
        request.max_bytes = 1;
        let partition = |(partition, fetch_offset): &(i32, i64)| FetchPartition {
            partition: *partition,
            fetch_offset: *fetch_offset,
            partition_max_bytes: 1,
            ..Default::default()
        };
        let partitions = positions.iter().map(partition).collect();
        request.topics = vec![FetchTopic { topic: "numbers".into(), partitions, ..Default::default() }];
        let answer = consumer.client.call(&request, 12);
        consumer.session_id = answer.session_id;
        consumer.epoch += 1;
        answered(&answer)
            .into_iter()
            .filter(|partition| partition.2 > 0)
            .map(|partition| partition.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(next(&[(0, 0), (1, 0), (2, 0)]), [0]);
    assert_eq!(next(&[(0, 1)]), [1]);
    assert_eq!(next(&[(1, 1)]), [2]);
    assert_eq!(next(&[(2, 1)]), [0]);
}

#[test]
fn who_finds_no_room_is_served_without_a_session() {
    let settings = Settings { max_incremental_fetch_session_cache_slots: 1, ..Settings::default() };
    let broker = Broker::with(settings);
    let spec = topic("numbers", 1);
    let id = spec.topic_id;
    broker.server.apply_topics(vec![spec]).unwrap();
    let (mut first, mut second) = (broker.client(), broker.client());
    produce(&mut first, 0, &["only"]);
    assert!(Consumer::new(&mut first, 12, id).fetch(&[(0, 0)], &[]).session_id > 0);
    let turned_away = Consumer::new(&mut second, 12, id).fetch(&[(0, 0)], &[]);
    assert_eq!((turned_away.session_id, answered(&turned_away)), (0, vec![(0, 0, 1)]));
    assert_eq!(broker.server.shared().fetch_sessions.counts(), (1, 1, 0));
}

#[test]
fn a_deleted_topic_is_an_error_of_its_partitions_and_not_of_the_session() {
    let (broker, id) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    let mut consumer = Consumer::new(&mut client, 17, id);
    consumer.fetch(&[(0, 0)], &[]);
    broker.server.remove_topic("numbers").unwrap();
    let answer = consumer.fetch(&[], &[]);
    assert_eq!(answer.error_code, 0);
    assert_eq!(answered(&answer), [(0, ErrorCode::UnknownTopicId.code(), 0)]);
}

#[test]
fn a_client_with_an_old_leader_epoch_is_told_the_leader_and_where_it_is() {
    let (broker, id) = Broker::serving(topic("numbers", 1));
    let mut request = FetchRequest {
        topics: vec![FetchTopic { topic_id: id, ..Default::default() }],
        ..Default::default()
    };
    request.topics[0].partitions =
        vec![FetchPartition { current_leader_epoch: 1, partition_max_bytes: 1, ..Default::default() }];
    let answer = broker.client().call(&request, 16);
    let data = &answer.responses[0].partitions[0];
    assert_eq!(data.error_code, ErrorCode::FencedLeaderEpoch.code());
    assert_eq!((data.current_leader.leader_id, data.current_leader.leader_epoch), (1, 3));
    assert_eq!(answer.node_endpoints[0].port, i32::from(broker.port));
}

#[test]
fn a_log_that_departs_from_the_clients_is_told_where() {
    let (broker, _) = Broker::serving(topic("numbers", 1));
    let mut client = broker.client();
    client.produce("numbers", &["a", "b"]);
    let mut fetch = |epoch, offset| {
        let partition = FetchPartition {
            fetch_offset: offset,
            last_fetched_epoch: epoch,
            partition_max_bytes: 1000,
            ..Default::default()
        };
        let topics =
            vec![FetchTopic { topic: "numbers".into(), partitions: vec![partition], ..Default::default() }];
        let mut answer = client.call(&FetchRequest { topics, ..Default::default() }, 12);
        answer.responses.remove(0).partitions.remove(0)
    };
    assert_eq!(values(&fetch(3, 1)).len(), 2);
    let older = fetch(1, 1);
    assert_eq!((older.diverging_epoch.epoch, older.diverging_epoch.end_offset), (1, 0));
    assert_eq!(values(&older).len(), 0);
    // Of an epoch of the future nothing can be said, as in Kafka.
    assert_eq!(fetch(9, 1).error_code, ErrorCode::OffsetOutOfRange.code());
}
