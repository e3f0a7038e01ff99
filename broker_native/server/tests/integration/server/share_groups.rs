//! Share groups over sockets: sessions, who gets which records, what ends a wait, what is bounded.
use std::collections::HashMap;
use std::time::{Duration, Instant};

use pylog_server::quotas::table::EntityQuotas;
use pylog_server::share_groups::configs::OwnConfigs;
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequestGroup, DescribeShareGroupOffsetsRequestTopic,
};
use pylog_wire::messages::list_config_resources::ConfigResource;
use pylog_wire::messages::share_acknowledge::{AcknowledgePartition, AcknowledgeTopic};
use pylog_wire::messages::share_fetch::{
    AcknowledgementBatch, FetchPartition, FetchTopic, PartitionData, RECORD_LIMIT,
};
use pylog_wire::messages::{
    AlterShareGroupOffsetsRequest, ApiVersionsRequest, DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest, ListConfigResourcesRequest, ShareAcknowledgeRequest, ShareFetchRequest,
    ShareFetchResponse, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse,
};
use uuid::Uuid;

use crate::server::cluster_bed::Bed;
use crate::server::support::{Broker, Client, TIMEOUT, topic};

pub const GROUP: &str = "g";
/// Longer than any test may take; a wait that is not ended fails by the clients' timeout.
const FOREVER_MS: i32 = 60_000;
pub const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;
const RENEW: i8 = 4;
const CLOSES: i32 = -1;
/// Keys of the requests about share groups.
const OF_SHARE_GROUPS: [i16; 7] = [76, 77, 78, 79, 90, 91, 92];

/// A broker with a topic `t` and a group that begins where `reset` says.
fn serving(reset: &str) -> (Broker, Uuid) {
    let broker = Broker::start();
    let spec = topic("t", 1);
    let topic_id = spec.topic_id;
    broker.server.apply_topics(vec![spec, topic("__consumer_offsets", 1)]).unwrap();
    configure(&broker, &format!(r#"{{"share.auto.offset.reset": {reset}}}"#));
    (broker, topic_id)
}

fn configure(broker: &Broker, own: &str) {
    let own: OwnConfigs = serde_json::from_str(own).unwrap();
    broker.server.shared().share_groups.configs.apply(HashMap::from([(GROUP.to_owned(), own)])).unwrap();
}

/// A member with a connection of its own.
pub struct Member {
    pub client: Client,
    name: &'static str,
    topic_id: Uuid,
    /// The next request's.
    epoch: i32,
}

/// What is answered when the coordinator has read its log.
pub fn when_loaded<T>(mut ask: impl FnMut() -> (Option<ErrorCode>, T)) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match ask() {
            (Some(ErrorCode::CoordinatorLoadInProgress), _) if Instant::now() < deadline => {
                std::thread::yield_now()
            }
            (_, answer) => return answer,
        }
    }
}

/// First and last offset, delivery count.
pub type Run = (i64, i64, i16);

pub fn heartbeat(client: &mut Client, name: &str, member_epoch: i32) -> ShareGroupHeartbeatResponse {
    let request = ShareGroupHeartbeatRequest {
        group_id: GROUP.into(),
        member_id: name.into(),
        member_epoch,
        subscribed_topic_names: Some(vec!["t".into()]),
        ..Default::default()
    };
    client.call(&request, 1)
}

impl Member {
    pub fn of(client: Client, name: &'static str, topic_id: Uuid) -> Self {
        Self { client, name, topic_id, epoch: 0 }
    }

    fn join(broker: &Broker, name: &'static str, topic_id: Uuid) -> Self {
        let mut client = broker.client();
        let answer = when_loaded(|| {
            let answer = heartbeat(&mut client, name, 0);
            (ErrorCode::from_code(answer.error_code), answer)
        });
        assert_eq!(answer.error_code, 0, "{answer:?}");
        Self { client, name, topic_id, epoch: 0 }
    }

    pub fn request(&mut self, max_wait_ms: i32, said: &[(i64, i64, i8)]) -> ShareFetchRequest {
        let partition = FetchPartition { partition_index: 0, acknowledgement_batches: batches(said) };
        let topics = vec![FetchTopic { topic_id: self.topic_id, partitions: vec![partition] }];
        self.epoch += 1;
        ShareFetchRequest {
            group_id: Some(GROUP.into()),
            member_id: Some(self.name.into()),
            share_session_epoch: self.epoch - 1,
            max_wait_ms,
            min_bytes: 1,
            max_records: 500,
            batch_size: 500,
            topics,
            ..Default::default()
        }
    }

    /// What the member gets at once, when it has said what became of other records.
    fn fetch(&mut self, said: &[(i64, i64, i8)]) -> Vec<Run> {
        let request = self.request(0, said);
        let partition = only(self.client.call(&request, 2));
        assert_eq!((partition.error_code, partition.acknowledge_error_code), (0, 0));
        runs(&partition)
    }

    /// Begins to wait.
    fn wait(&mut self) {
        let request = self.request(FOREVER_MS, &[]);
        self.client.send(&request, 2, 1);
    }

    fn receive(&mut self) -> Vec<Run> {
        runs(&only(self.client.receive(2).1))
    }

    /// As the next request of the session.
    pub fn say(&mut self, said: &[(i64, i64, i8)]) -> (i16, i16) {
        self.epoch += 1;
        self.acknowledge(self.epoch - 1, said)
    }

    pub fn acknowledge(&mut self, epoch: i32, said: &[(i64, i64, i8)]) -> (i16, i16) {
        let partition = AcknowledgePartition { partition_index: 0, acknowledgement_batches: batches(said) };
        let request = ShareAcknowledgeRequest {
            group_id: Some(GROUP.into()),
            member_id: Some(self.name.into()),
            share_session_epoch: epoch,
            topics: vec![AcknowledgeTopic { topic_id: self.topic_id, partitions: vec![partition] }],
            ..Default::default()
        };
        let answer = self.client.call(&request, 2);
        let partition = answer.responses.first().map_or(0, |topic| topic.partitions[0].error_code);
        (answer.error_code, partition)
    }
}

fn batches(said: &[(i64, i64, i8)]) -> Vec<AcknowledgementBatch> {
    let batch = |&(first_offset, last_offset, fate): &(i64, i64, i8)| AcknowledgementBatch {
        first_offset,
        last_offset,
        acknowledge_types: vec![fate],
    };
    said.iter().map(batch).collect()
}

/// The one partition of an answer; an empty one when there is none.
pub fn only(mut answer: ShareFetchResponse) -> PartitionData {
    assert_eq!(answer.error_code, 0, "{answer:?}");
    answer.responses.pop().map_or_else(PartitionData::default, |mut topic| topic.partitions.remove(0))
}

pub fn runs(partition: &PartitionData) -> Vec<Run> {
    let run = partition.acquired_records.iter();
    run.map(|run| (run.first_offset, run.last_offset, run.delivery_count)).collect()
}

fn batches_in(partition: &PartitionData) -> usize {
    pylog_record::batches(&partition.records).inspect(|batch| assert!(batch.is_ok())).count()
}

/// Start offset and lag of each partition that the group has begun with.
fn group_offsets(broker: &Broker) -> Vec<(i64, i64)> {
    let group = DescribeShareGroupOffsetsRequestGroup { group_id: GROUP.into(), topics: None };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![group] };
    let mut client = broker.client();
    let answer = when_loaded(|| {
        let answer = client.call(&request, 1);
        (ErrorCode::from_code(answer.groups[0].error_code), answer)
    });
    assert_eq!(answer.groups[0].error_code, 0, "{answer:?}");
    let partitions = answer.groups[0].topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|partition| (partition.start_offset, partition.lag)).collect()
}

fn refusal(client: &mut Client, request: &ShareFetchRequest) -> ErrorCode {
    ErrorCode::from_code(client.call(request, 2).error_code).unwrap()
}

#[test]
fn records_are_acquired_acknowledged_and_not_delivered_again_after_a_restart() {
    let (mut broker, topic_id) = serving(r#""earliest""#);
    broker.client().produce("t", &["a", "b", "c"]);
    let mut member = Member::join(&broker, "m", topic_id);
    assert_eq!(member.fetch(&[]), [(0, 2, 1)]);
    assert_eq!(member.fetch(&[(0, 0, ACCEPT), (2, 2, RELEASE)]), [(2, 2, 2)]);
    assert_eq!(group_offsets(&broker), [(1, 2)]);
    let specs = vec![topic("t", 1), topic("__consumer_offsets", 1), topic("__share_group_state", 1)];
    let specs = specs.into_iter().map(|mut spec| {
        let known = broker.server.shared().topics.now().named(&spec.name).map(|topic| topic.id);
        spec.topic_id = known.unwrap();
        spec
    });
    let specs: Vec<_> = specs.collect();
    broker.restart();
    broker.server.apply_topics(specs).unwrap();
    configure(&broker, r#"{"share.auto.offset.reset": "earliest"}"#);
    assert_eq!(group_offsets(&broker), [(1, 2)]);
    let mut after = Member::join(&broker, "n", topic_id);
    assert_eq!(after.fetch(&[]), [(1, 1, 1), (2, 2, 2)], "what was held is delivered again");
    assert_eq!(after.acknowledge(1, &[(1, 2, ACCEPT)]), (0, 0));
    assert_eq!(group_offsets(&broker), [(3, 0)]);
}

/// Limits for the client id of all members here.
fn limit(broker: &Broker, limits: &str) {
    let stored = format!(r#"[{{"entity": {{"client-id": "test"}}, "values": {{{limits}}}}}]"#);
    broker.server.shared().quotas.apply(&serde_json::from_str::<Vec<EntityQuotas>>(&stored).unwrap());
}

#[test]
fn members_above_their_quota_of_bytes_get_no_more_at_once_than_it_allows_and_wait() {
    let (broker, topic_id) = serving(r#""earliest""#);
    for bytes in [9_800, 800, 1] {
        broker.client().produce("t", &["x".repeat(bytes).as_str()]);
    }
    let mut member = Member::join(&broker, "m", topic_id);
    let mut other = Member::join(&broker, "n", topic_id);
    // Ten seconds of it may be used at once.
    limit(&broker, r#""consumer_byte_rate": 1000"#);
    assert_eq!(member.fetch(&[]), [(0, 0, 1)]);
    let begun = Instant::now();
    let request = ShareFetchRequest { max_records: 1, ..member.request(0, &[(0, 0, ACCEPT)]) };
    let answer = member.client.call(&request, 2);
    let pause = Duration::from_millis(u64::try_from(answer.throttle_time_ms).unwrap());
    assert!(pause > Duration::from_millis(100), "{pause:?}");
    let request = other.request(FOREVER_MS, &[]);
    let nothing = other.client.call(&request, 2);
    assert!(nothing.throttle_time_ms > 0);
    assert_eq!(runs(&only(nothing)), [], "it would be locked for nobody");
    let said = only(answer);
    assert_eq!((runs(&said), said.acknowledge_error_code), (vec![(1, 1, 1)], 0));
    member.client.call(&ApiVersionsRequest::default(), 0);
    assert!(begun.elapsed() >= pause, "its next request was read after {:?} of {pause:?}", begun.elapsed());
}

#[test]
fn members_above_their_quota_of_time_wait() {
    let (broker, topic_id) = serving(r#""earliest""#);
    let mut member = Member::join(&broker, "m", topic_id);
    limit(&broker, r#""request_percentage": 0.0001"#);
    let waits = (0..20).map(|_| {
        let request = member.request(0, &[]);
        member.client.call(&request, 2).throttle_time_ms
    });
    assert!(waits.into_iter().any(|pause_ms| pause_ms > 0));
}

#[test]
fn a_wait_ends_when_records_come() {
    let (broker, topic_id) = serving(r#""latest""#);
    let mut member = Member::join(&broker, "m", topic_id);
    member.wait();
    broker.wait_for("long_polls", 1);
    broker.client().produce("t", &["news"]);
    assert_eq!(member.receive(), [(0, 0, 1)]);
}

#[test]
fn what_a_connection_that_is_gone_held_goes_to_who_waits() {
    let (broker, topic_id) = serving(r#""earliest""#);
    broker.client().produce("t", &["a", "b"]);
    let mut first = Member::join(&broker, "m", topic_id);
    assert_eq!(first.fetch(&[]), [(0, 1, 1)]);
    let mut second = Member::join(&broker, "n", topic_id);
    second.wait();
    broker.wait_for("long_polls", 1);
    drop(first);
    assert_eq!(second.receive(), [(0, 1, 2)]);
}

#[test]
fn a_wait_ends_with_its_session_and_takes_nothing_along() {
    let (broker, topic_id) = serving(r#""earliest""#);
    let mut member = Member::join(&broker, "m", topic_id);
    assert_eq!(member.fetch(&[]), []);
    member.wait();
    broker.wait_for("long_polls", 1);
    let mut closing = Member { client: broker.client(), name: "m", topic_id, epoch: 2 };
    assert_eq!(closing.acknowledge(CLOSES, &[]), (0, 0));
    assert_eq!(member.receive(), []);
    broker.client().produce("t", &["a"]);
    let mut other = Member::join(&broker, "n", topic_id);
    assert_eq!(other.fetch(&[]), [(0, 0, 1)]);
}

#[test]
fn a_session_is_opened_goes_on_and_is_closed_in_the_order_of_its_epochs() {
    let (broker, topic_id) = serving(r#""earliest""#);
    broker.client().produce("t", &["a", "b"]);
    let mut member = Member::join(&broker, "m", topic_id);
    let stranger = ShareFetchRequest { share_session_epoch: 1, ..member.request(0, &[]) };
    assert_eq!(refusal(&mut member.client, &stranger), ErrorCode::ShareSessionNotFound);
    let early = ShareFetchRequest { share_session_epoch: 0, ..member.request(0, &[(0, 0, ACCEPT)]) };
    assert_eq!(refusal(&mut member.client, &early), ErrorCode::InvalidRequest);
    let nobody = ShareFetchRequest { member_id: None, ..stranger.clone() };
    assert_eq!(refusal(&mut member.client, &nobody), ErrorCode::InvalidRequest);
    member.epoch = 0;
    assert_eq!(member.fetch(&[]), [(0, 1, 1)]);
    let late = ShareFetchRequest { share_session_epoch: 7, ..stranger };
    assert_eq!(refusal(&mut member.client, &late), ErrorCode::InvalidShareSessionEpoch);
    assert_eq!(member.acknowledge(0, &[]).0, ErrorCode::InvalidShareSessionEpoch.code());
    assert_eq!(member.acknowledge(1, &[(0, 0, ACCEPT)]), (0, 0));
    assert_eq!(member.acknowledge(CLOSES, &[]), (0, 0));
    assert_eq!(member.acknowledge(CLOSES, &[]).0, ErrorCode::ShareSessionNotFound.code());
    let mut other = Member::join(&broker, "n", topic_id);
    assert_eq!(other.fetch(&[]), [(1, 1, 2)], "the session gave back what it held");
}

#[test]
fn acknowledgements_that_make_no_sense_are_refused_where_they_are() {
    let (broker, topic_id) = serving(r#""earliest""#);
    broker.client().produce("t", &["a", "b"]);
    let mut member = Member::join(&broker, "m", topic_id);
    assert_eq!(member.fetch(&[]), [(0, 1, 1)]);
    let refused = |error: ErrorCode| (0, error.code());
    for (epoch, said, error) in [
        (1, (0, 9, ACCEPT), ErrorCode::InvalidRequest),
        (2, (1, 0, ACCEPT), ErrorCode::InvalidRequest),
        (3, (0, 0, 9), ErrorCode::InvalidRequest),
        // The request does not say that it renews.
        (4, (0, 0, RENEW), ErrorCode::InvalidRequest),
    ] {
        assert_eq!(member.acknowledge(epoch, &[said]), refused(error), "{said:?}");
    }
    let topic_id = std::mem::replace(&mut member.topic_id, Uuid::from_u128(7));
    assert_eq!(member.acknowledge(5, &[(0, 0, ACCEPT)]), refused(ErrorCode::UnknownTopicId));
    member.topic_id = topic_id;
    assert_eq!(member.acknowledge(6, &[(0, 1, ACCEPT)]), (0, 0));
}

#[test]
fn a_partition_that_is_not_there_is_told_and_others_are_read() {
    let (broker, topic_id) = serving(r#""earliest""#);
    broker.client().produce("t", &["a"]);
    let mut member = Member::join(&broker, "m", topic_id);
    let mut request = member.request(FOREVER_MS, &[]);
    request.topics[0].partitions.push(FetchPartition { partition_index: 9, ..Default::default() });
    request
        .topics
        .push(FetchTopic { topic_id: Uuid::from_u128(7), partitions: vec![FetchPartition::default()] });
    let answer = member.client.call(&request, 2);
    let mut answered: Vec<_> = answer
        .responses
        .iter()
        .flat_map(|topic| {
            topic.partitions.iter().map(|partition| (partition.error_code, partition.acquired_records.len()))
        })
        .collect();
    answered.sort_unstable();
    let (unknown, no_topic) = (ErrorCode::UnknownTopicOrPartition, ErrorCode::UnknownTopicId);
    assert_eq!(answered, [(0, 1), (unknown.code(), 0), (no_topic.code(), 0)]);
}

#[test]
fn a_member_that_counts_gets_no_record_more() {
    let (broker, topic_id) = serving(r#""earliest""#);
    broker.client().produce("t", &["a", "b", "c"]);
    let mut member = Member::join(&broker, "m", topic_id);
    let request =
        ShareFetchRequest { max_records: 2, share_acquire_mode: RECORD_LIMIT, ..member.request(0, &[]) };
    assert_eq!(runs(&only(member.client.call(&request, 2))), [(0, 1, 1)]);
    let request = ShareFetchRequest { max_records: 2, ..member.request(0, &[]) };
    assert_eq!(runs(&only(member.client.call(&request, 2))), [(2, 2, 1)]);
}

#[test]
fn more_batches_than_one_look_goes_over_come_with_the_next_request() {
    let (broker, topic_id) = serving(r#""earliest""#);
    let mut producer = broker.client();
    (0..1_100).for_each(|_| drop(producer.produce("t", &["a"])));
    let mut member = Member::join(&broker, "m", topic_id);
    for count in [1_000, 100] {
        let request = ShareFetchRequest { max_records: 5_000, ..member.request(0, &[]) };
        let partition = only(member.client.call(&request, 2));
        assert_eq!(runs(&partition).len(), count);
        assert_eq!(batches_in(&partition), count, "no batch comes that is not the member's");
    }
}

#[test]
fn a_group_may_begin_so_long_ago() {
    for (hours, expected) in [(1, vec![]), (3, vec![(0, 0, 1)])] {
        let (broker, topic_id) = serving(&format!(r#"{{"by_duration_ms": {}}}"#, hours * 3_600_000));
        broker.client().produce("t", &["a"]);
        broker.clock.set_by_ms(2 * 3_600_000);
        let mut member = Member::join(&broker, "m", topic_id);
        assert_eq!(member.fetch(&[]), expected, "{hours} hours");
        broker.client().produce("t", &["b"]);
        assert_eq!(member.fetch(&[]), [(1, 1, 1)]);
    }
}

#[test]
fn only_a_member_of_the_group_makes_it_begin_with_a_partition() {
    let (broker, topic_id) = serving(r#""earliest""#);
    broker.client().produce("t", &["a"]);
    let mut member = Member::join(&broker, "m", topic_id);
    let mut stranger = Member { client: broker.client(), name: "stranger", topic_id, epoch: 0 };
    let request = stranger.request(0, &[]);
    let refused = only(stranger.client.call(&request, 2));
    assert_eq!(refused.error_code, ErrorCode::UnknownTopicOrPartition.code());
    assert_eq!(group_offsets(&broker), []);
    assert_eq!(member.fetch(&[]), [(0, 0, 1)]);
}

#[test]
fn a_topic_that_is_deleted_and_made_anew_is_begun_with_anew() {
    let (broker, topic_id) = serving(r#""earliest""#);
    broker.client().produce("t", &["a", "b"]);
    let mut member = Member::join(&broker, "m", topic_id);
    assert_eq!(member.fetch(&[]), [(0, 1, 1)]);
    assert_eq!(member.acknowledge(1, &[(0, 1, ACCEPT)]), (0, 0));
    broker.server.remove_topic("t").unwrap();
    assert_eq!(group_offsets(&broker), []);
    let again = topic("t", 1);
    let topic_id = again.topic_id;
    broker.server.apply_topics(vec![again]).unwrap();
    broker.client().produce("t", &["c"]);
    let mut member = Member::join(&broker, "n", topic_id);
    assert_eq!(member.fetch(&[]), [(0, 0, 1)]);
}

#[test]
fn what_one_request_acknowledges_and_what_an_administrator_names_is_bounded() {
    let (broker, topic_id) = serving(r#""earliest""#);
    let mut member = Member::join(&broker, "m", topic_id);
    assert_eq!(member.fetch(&[]), []);
    let partition = |partition_index| FetchPartition {
        partition_index,
        acknowledgement_batches: batches(&[(0, 0, ACCEPT)]),
    };
    let topics = vec![FetchTopic { topic_id, partitions: (0..10_001).map(partition).collect() }];
    let request = ShareFetchRequest { topics, ..member.request(0, &[]) };
    assert_eq!(refusal(&mut member.client, &request), ErrorCode::InvalidRequest);
    let named = |partition_index| FetchPartition { partition_index, ..Default::default() };
    let topics = vec![FetchTopic { topic_id, partitions: (0..100_001).map(named).collect() }];
    let request = ShareFetchRequest { topics, ..member.request(0, &[]) };
    assert_eq!(refusal(&mut member.client, &request), ErrorCode::InvalidRequest);
    let topics =
        vec![DescribeShareGroupOffsetsRequestTopic { topic_name: "t".into(), partitions: vec![0; 100_001] }];
    let group = DescribeShareGroupOffsetsRequestGroup { group_id: GROUP.into(), topics: Some(topics) };
    let answer = member.client.call(&DescribeShareGroupOffsetsRequest { groups: vec![group] }, 1);
    assert_eq!(answer.groups[0].error_code, ErrorCode::InvalidRequest.code());
}

#[test]
fn groups_with_settings_of_their_own_are_listed_and_use_them() {
    let (broker, _) = serving(r#""earliest""#);
    configure(&broker, r#"{"share.heartbeat.interval.ms": 7000}"#);
    let mut client = broker.client();
    assert_eq!(heartbeat(&mut client, "m", 0).heartbeat_interval_ms, 7_000);
    let answer = client.call(&ListConfigResourcesRequest { resource_types: vec![32] }, 1);
    let group = ConfigResource { resource_name: GROUP.into(), resource_type: 32 };
    assert_eq!(answer.config_resources, [group]);
}

#[test]
fn a_broker_of_a_cluster_whose_level_is_too_low_says_that_it_keeps_no_share_groups() {
    let bed = Bed::all(2);
    bed.raise(1);
    bed.announce(&[1, 2]);
    let broker = bed.broker(1);
    let unsupported = ErrorCode::UnsupportedVersion;
    let mut client = broker.client();
    assert_eq!(heartbeat(&mut client, "m", 0).error_code, unsupported.code());
    let mut member = Member { client, name: "m", topic_id: Uuid::from_u128(7), epoch: 0 };
    let request = member.request(0, &[]);
    assert_eq!(refusal(&mut member.client, &request), unsupported);
    assert_eq!(member.acknowledge(1, &[]).0, unsupported.code());
    let offsets = AlterShareGroupOffsetsRequest { group_id: GROUP.into(), ..Default::default() };
    assert_eq!(member.client.call(&offsets, 0).error_code, unsupported.code());
    let coordinator_keys = vec![format!("{GROUP}:AAAAAAAAAAAAAAAAAAAAAQ:0")];
    let asked = FindCoordinatorRequest { key_type: 2, coordinator_keys, ..Default::default() };
    let found = member.client.call(&asked, 6).coordinators.remove(0);
    assert_eq!(found.error_code, unsupported.code());
    assert!(found.error_message.unwrap().contains("need level 2 of pylog.version"));
    let spoken = |client: &mut Client| -> Vec<i16> {
        let answer = client.call(&ApiVersionsRequest::default(), 4);
        assert!(answer.api_keys.len() > 40, "{answer:?}");
        answer.api_keys.iter().map(|api| api.api_key).filter(|key| OF_SHARE_GROUPS.contains(key)).collect()
    };
    // As Apache Kafka does it: a client that finds them missing would only wait, some in silence, and for as long as it is connected.
    assert_eq!(spoken(&mut member.client), OF_SHARE_GROUPS);
    assert_eq!(spoken(&mut Broker::start().client()), OF_SHARE_GROUPS);
    bed.raise(2);
    bed.announce(&[1, 2]);
    assert_ne!(heartbeat(&mut member.client, "m", 0).error_code, unsupported.code(), "the same connection");
}
