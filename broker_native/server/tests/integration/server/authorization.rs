//! A broker with an authorizer: what clients without a right see, and what they do not.
use pylog_record::{BatchBuilder, Codec};
use pylog_security::acl::{AclBinding, Entry, Operation, Pattern, PatternType, Permission, ResourceType};
use pylog_server::decide::{Kind, Question};
use pylog_server::settings::Settings;
use pylog_wire::messages::create_acls::AclCreation;
use pylog_wire::messages::create_topics::CreatableTopic;
use pylog_wire::messages::delete_acls::DeleteAclsFilter;
use pylog_wire::messages::metadata::MetadataRequestTopic;
use pylog_wire::messages::produce::TopicProduceData;
use pylog_wire::messages::*;
use pylog_wire::{ErrorCode, message};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::server::share_groups::{self, Member, heartbeat, when_loaded};
use crate::server::support::{Broker, Client, batch, fetch_request, produce_request, topic, values};

/// Who a client is that nobody asked.
const ANONYMOUS: &str = "User:ANONYMOUS";

pub fn guarded() -> Broker {
    with_authorizer(Settings::default())
}

fn with_authorizer(settings: Settings) -> Broker {
    let class = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
    Broker::with(Settings { authorizer_class_name: Some(class.into()), ..settings })
}

fn acl(
    permission: Permission,
    operation: Operation,
    (resource_type, name): (ResourceType, &str),
) -> AclBinding {
    AclBinding {
        pattern: Pattern { resource_type, name: name.into(), pattern_type: PatternType::Literal },
        entry: Entry { principal: ANONYMOUS.into(), host: "*".into(), operation, permission },
    }
}

fn allow(operation: Operation, resource: (ResourceType, &str)) -> AclBinding {
    acl(Permission::Allow, operation, resource)
}

/// Everything is allowed but these operations.
pub fn all_but(denied: &[(ResourceType, &str, Operation)]) -> Vec<AclBinding> {
    let all = ResourceType::ALL.iter().map(|resource_type| allow(Operation::All, (*resource_type, "*")));
    let denied = denied
        .iter()
        .map(|(resource_type, name, operation)| acl(Permission::Deny, *operation, (*resource_type, name)));
    all.chain(denied).collect()
}

use Operation::{Alter, ClusterAction, Create, Delete, Describe, DescribeConfigs, Read, Write};
use ResourceType::{Cluster, Group, Topic, TransactionalId};

/// The text of an answer.
fn text(answer: &impl serde::Serialize) -> String {
    serde_json::to_string(answer).unwrap()
}

fn named(names: &[&str]) -> MetadataRequest {
    let topics =
        names.iter().map(|name| MetadataRequestTopic { name: Some((*name).into()), ..Default::default() });
    MetadataRequest { topics: Some(topics.collect()), ..Default::default() }
}

/// The question to the control plane that the request leads to.
fn question(broker: &Broker) -> Question {
    broker.wait_for("events", 1);
    loop {
        if let Some(question) = broker.decisions.kept.lock().unwrap().pop() {
            break question;
        }
        std::thread::yield_now();
    }
}

fn asked(question: &Question) -> Value {
    serde_json::from_str(&question.json).unwrap()
}

#[test]
fn without_an_acl_nobody_may_do_anything_but_super_users_may_everything() {
    let broker = guarded();
    broker.server.apply_topics(vec![topic("t", 1)]).unwrap();
    let refused = ErrorCode::TopicAuthorizationFailed.code();
    assert_eq!(broker.client().produce("t", &["x"]).error_code, refused);
    let settings = Settings { super_users: format!("User:root;{ANONYMOUS}"), ..Default::default() };
    let broker = with_authorizer(settings);
    broker.server.apply_topics(vec![topic("t", 1)]).unwrap();
    broker.server.apply_acls([acl(Permission::Deny, Operation::All, (Topic, "*"))]);
    assert_eq!(broker.client().produce("t", &["x"]).error_code, 0);
    let settings = Settings { allow_everyone_if_no_acl_found: true, ..Default::default() };
    let broker = with_authorizer(settings);
    broker.server.apply_topics(vec![topic("t", 1), topic("u", 1)]).unwrap();
    broker.server.apply_acls([allow(Read, (Topic, "u"))]);
    assert_eq!(broker.client().produce("t", &["x"]).error_code, 0);
    assert_eq!(broker.client().produce("u", &["x"]).error_code, refused);
}

#[test]
fn a_refused_write_leaves_no_record_and_a_request_is_refused_by_topic() {
    let broker = guarded();
    broker.server.apply_topics(vec![topic("mine", 1), topic("secret", 1)]).unwrap();
    broker.server.apply_acls(all_but(&[(Topic, "secret", Write)]));
    let mut request = produce_request("mine", 0, batch(&["x"]), 1);
    request.topic_data.extend(produce_request("secret", 0, batch(&["y"]), 1).topic_data);
    let answer = broker.client().call(&request, 9);
    let errors: Vec<_> =
        answer.responses.iter().map(|topic| topic.partition_responses[0].error_code).collect();
    assert_eq!(errors, [0, ErrorCode::TopicAuthorizationFailed.code()]);
    assert_eq!(answer.responses[1].partition_responses[0].log_start_offset, -1);
    assert!(values(&broker.client().fetch("secret", 0)).is_empty());
    assert_eq!(values(&broker.client().fetch("mine", 0)).len(), 1);
}

#[test]
fn a_topic_that_is_applied_while_a_request_waits_is_not_written_to_without_a_right() {
    let broker = with_authorizer(Settings { num_io_threads: 1, ..Settings::default() });
    let (mine, secret) = (topic("mine", 1), topic("secret", 1));
    broker.server.apply_topics(vec![mine.clone()]).unwrap();
    broker.server.apply_acls(all_but(&[(Topic, "secret", Write)]));
    let of = |spec: &pylog_server::cluster::spec::TopicSpec, batch: Vec<u8>| TopicProduceData {
        topic_id: spec.topic_id,
        name: String::new(),
        ..produce_request("", 0, batch, 1).topic_data.remove(0)
    };
    // So much is opened by the only thread for slow requests, which is busy.
    let large = "x".repeat(8 << 20);
    let mut builder = BatchBuilder::new();
    builder.append(0, None, Some(large.as_bytes()), &[]).unwrap();
    let topic_data = vec![of(&mine, builder.finish(Codec::Zstd).unwrap()), of(&secret, batch(&["x"]))];
    let request = ProduceRequest { acks: 1, timeout_ms: 10_000, topic_data, ..Default::default() };
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    let mut client = broker.client();
    std::thread::scope(|scope| {
        let (began, has_begun) = std::sync::mpsc::channel();
        let shared = broker.server.shared();
        scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let busy = move || {
                began.send(()).unwrap();
                waits.recv().unwrap();
            };
            runtime.block_on(shared.slow.run([127, 0, 0, 2].into(), busy)).unwrap();
        });
        has_begun.recv().unwrap();
        client.send(&request, 13, 1);
        broker.wait_for("requests", 1);
        broker.server.apply_topics(vec![secret]).unwrap();
        go_on.send(()).unwrap();
    });
    let (_, answer) = client.receive::<ProduceResponse>(13);
    let errors: Vec<_> =
        answer.responses.iter().map(|topic| topic.partition_responses[0].error_code).collect();
    // The latter where the topic was quicker than the question for the right.
    let refused = [ErrorCode::UnknownTopicId.code(), ErrorCode::TopicAuthorizationFailed.code()];
    assert!(errors[0] == 0 && refused.contains(&errors[1]), "{errors:?}");
    assert!(values(&broker.client().fetch("secret", 0)).is_empty());
}

#[test]
fn a_topic_that_is_not_there_is_refused_like_one_that_is() {
    let broker = guarded();
    broker.server.apply_topics(vec![topic("secret", 1)]).unwrap();
    broker
        .server
        .apply_acls(all_but(&[(Topic, "secret", Operation::All), (Topic, "missing", Operation::All)]));
    let mut client = broker.client();
    let as_text = |answer: &PartitionText| answer.0.clone();
    let fetched =
        |client: &mut Client, name| PartitionText::of(client.call(&fetch_request(name, 0, 0, 1), 12), name);
    assert_eq!(as_text(&fetched(&mut client, "secret")), as_text(&fetched(&mut client, "missing")));
    let produced = |client: &mut Client, name| {
        PartitionText::of(client.call(&produce_request(name, 0, batch(&["x"]), 1), 9), name)
    };
    assert_eq!(as_text(&produced(&mut client, "secret")), as_text(&produced(&mut client, "missing")));
    let described = |client: &mut Client, name| PartitionText::of(client.call(&named(&[name]), 12), name);
    assert_eq!(as_text(&described(&mut client, "secret")), as_text(&described(&mut client, "missing")));
}

/// An answer without the name of the topic.
struct PartitionText(String);

impl PartitionText {
    fn of(answer: impl serde::Serialize, name: &str) -> Self {
        Self(text(&answer).replace(name, "NAME"))
    }
}

#[test]
fn a_session_loses_a_topic_at_the_fetch_after_the_right_is_gone() {
    let broker = guarded();
    broker.server.apply_topics(vec![topic("t", 1)]).unwrap();
    broker.server.apply_acls(all_but(&[]));
    let mut client = broker.client();
    let begun = client.call(&FetchRequest { session_epoch: 0, ..fetch_request("t", 0, 0, 1) }, 12);
    assert!(begun.session_id > 0);
    client.produce("t", &["x"]);
    broker.server.apply_acls(all_but(&[(Topic, "t", Read)]));
    let goes_on = FetchRequest {
        session_id: begun.session_id,
        session_epoch: 1,
        topics: Vec::new(),
        ..fetch_request("t", 0, 0, 1)
    };
    let answer = client.call(&goes_on, 12);
    let partition = &answer.responses[0].partitions[0];
    assert_eq!(partition.error_code, ErrorCode::TopicAuthorizationFailed.code());
    assert!(values(partition).is_empty());
}

/// What a consumer and a member of a share group get that wait for records when this is denied to them, and then there are some.
fn after_a_denial(denied: (ResourceType, &str, Operation)) -> (FetchResponse, ShareFetchResponse) {
    let broker = guarded();
    let spec = topic("t", 1);
    let mut member = Member::of(broker.client(), "m", spec.topic_id);
    broker.server.apply_topics(vec![spec, topic("__consumer_offsets", 1)]).unwrap();
    broker.server.apply_acls(all_but(&[]));
    when_loaded(|| {
        let answer = heartbeat(&mut broker.client(), "m", 0);
        (ErrorCode::from_code(answer.error_code), ())
    });
    let mut consumer = broker.client();
    consumer.send(&fetch_request("t", 0, 60_000, 1), 12, 1);
    let request = member.request(60_000, &[]);
    member.client.send(&request, 2, 2);
    broker.wait_for("long_polls", 2);
    broker.server.apply_acls(all_but(&[denied]));
    broker.client().produce("t", &["news"]);
    (consumer.receive(12).1, member.client.receive(2).1)
}

#[test]
fn who_waits_for_records_when_the_right_is_taken_away_gets_none() {
    let refused = ErrorCode::TopicAuthorizationFailed.code();
    let (fetched, shared) = after_a_denial((Topic, "t", Read));
    let fetched = &fetched.responses[0].partitions[0];
    assert_eq!((fetched.error_code, values(fetched).len()), (refused, 0));
    let shared = share_groups::only(shared);
    assert_eq!((shared.error_code, shared.records.len()), (refused, 0));
    let (fetched, shared) = after_a_denial((Group, share_groups::GROUP, Read));
    assert_eq!(values(&fetched.responses[0].partitions[0]).len(), 1);
    assert_eq!(shared.error_code, ErrorCode::GroupAuthorizationFailed.code());
    assert!(shared.responses.is_empty());
}

#[test]
fn metadata_of_all_topics_hides_those_that_may_not_be_described() {
    let broker = guarded();
    broker.server.apply_topics(vec![topic("mine", 1), topic("secret", 1)]).unwrap();
    broker.server.apply_acls([allow(Read, (Topic, "mine"))]);
    let mut client = broker.client();
    for (version, topics) in [(0, Some(Vec::new())), (1, None), (12, None)] {
        let answer = client.call(&MetadataRequest { topics, ..Default::default() }, version);
        let names: Vec<_> = answer.topics.iter().map(|topic| topic.name.as_deref().unwrap()).collect();
        assert_eq!(names, ["mine"], "version {version}");
    }
    let answer = client.call(&named(&["secret", "mine"]), 0);
    assert_eq!(answer.topics.len(), 2, "who is refused all that it names is not given everything");
    let answer = client.call(&named(&["secret"]), 0);
    assert_eq!((answer.topics.len(), answer.topics[0].partitions.len()), (1, 0));
    let answer = client.call(&DescribeTopicPartitionsRequest::default(), 0);
    assert_eq!(answer.topics.len(), 1);
    assert!(!text(&answer).contains("secret"));
}

#[test]
fn metadata_by_id_says_no_name_and_creates_nothing_for_who_may_not() {
    let broker = guarded();
    let spec = topic("secret", 1);
    let topic_id = spec.topic_id;
    broker.server.apply_topics(vec![spec]).unwrap();
    broker.server.apply_acls([allow(Describe, (Topic, "new"))]);
    let mut client = broker.client();
    let asked = MetadataRequestTopic { topic_id, name: None };
    let answer = client.call(&MetadataRequest { topics: Some(vec![asked]), ..Default::default() }, 12);
    assert_eq!(answer.topics[0].error_code, ErrorCode::TopicAuthorizationFailed.code());
    assert!(!text(&answer).contains("secret"));
    let answer = client.call(&named(&["new"]), 12);
    assert_eq!(answer.topics[0].error_code, ErrorCode::TopicAuthorizationFailed.code());
    assert!(broker.server.shared().topics.now().named("new").is_none());
    broker.server.apply_acls([allow(Describe, (Topic, "new")), allow(Create, (Cluster, "kafka-cluster"))]);
    assert_eq!(client.call(&named(&["new"]), 12).topics[0].error_code, 0);
}

#[test]
fn metadata_by_a_name_beside_an_id_creates_nothing_and_tells_nothing_of_the_name() {
    let broker = guarded();
    broker.server.apply_topics(vec![topic("secret", 1)]).unwrap();
    let mut client = broker.client();
    for version in 10..=13 {
        for name in ["new", "secret"] {
            let asked = MetadataRequestTopic { topic_id: Uuid::from_u128(7), name: Some(name.into()) };
            let request = MetadataRequest { topics: Some(vec![asked]), ..Default::default() };
            let answer = client.call(&request, version);
            let by_id = if version < 12 { ErrorCode::InvalidRequest } else { ErrorCode::UnknownTopicId };
            assert_eq!(answer.topics[0].error_code, by_id.code(), "{name} in version {version}");
            assert!(answer.topics[0].partitions.is_empty());
        }
    }
    assert!(broker.server.shared().topics.now().named("new").is_none());
    let everybody = Broker::with(Settings::default());
    let asked = MetadataRequestTopic { topic_id: Uuid::from_u128(7), name: Some("new".into()) };
    let request = MetadataRequest { topics: Some(vec![asked]), ..Default::default() };
    assert_eq!(everybody.client().call(&request, 12).topics.len(), 1);
    assert!(everybody.server.shared().topics.now().named("new").is_none(), "without an authorizer, too");
}

#[test]
fn what_may_be_done_is_told_as_far_as_it_may() {
    let broker = guarded();
    broker.server.apply_topics(vec![topic("t", 1)]).unwrap();
    broker.server.apply_acls([allow(Read, (Topic, "t")), allow(Operation::AlterConfigs, (Cluster, "*"))]);
    let mut client = broker.client();
    let request = MetadataRequest {
        include_topic_authorized_operations: true,
        include_cluster_authorized_operations: true,
        ..named(&["t"])
    };
    let answer = client.call(&request, 9);
    let bits = |operations: &[Operation]| operations.iter().fold(0, |bits, one| bits | 1 << one.code());
    assert_eq!(answer.topics[0].topic_authorized_operations, bits(&[Read, Describe]));
    assert_eq!(answer.cluster_authorized_operations, 0, "it may not even be described");
    let cluster =
        DescribeClusterRequest { include_cluster_authorized_operations: true, ..Default::default() };
    assert_eq!(client.call(&cluster, 0).cluster_authorized_operations, 0);
    let alter = allow(Alter, (Cluster, "kafka-cluster"));
    broker.server.apply_acls([alter, allow(Operation::AlterConfigs, (Cluster, "*"))]);
    let expected = bits(&[Alter, Describe, DescribeConfigs, Operation::AlterConfigs]);
    assert_eq!(client.call(&cluster, 0).cluster_authorized_operations, expected);
}

#[test]
fn an_internal_topic_is_written_by_who_may_act_as_a_broker_only() {
    let broker = guarded();
    let spec = pylog_server::cluster::spec::TopicSpec { internal: true, ..topic("__consumer_offsets", 1) };
    broker.server.apply_topics(vec![spec]).unwrap();
    let request = produce_request("__consumer_offsets", 0, batch(&["x"]), 1);
    let produce = |client_id: &str| -> i16 {
        let mut client = broker.client();
        let chunks = message::request_frame(&request, 9, 1, Some(client_id)).unwrap();
        let bytes: Vec<u8> = chunks
            .iter()
            .flat_map(|chunk| match chunk {
                pylog_wire::Chunk::Bytes(bytes) => bytes.to_vec(),
                pylog_wire::Chunk::Records { .. } => panic!("a request has no records apart"),
            })
            .collect();
        std::io::Write::write_all(&mut client.stream, &bytes).unwrap();
        let (_, answer) = client.receive::<ProduceResponse>(9);
        answer.responses[0].partition_responses[0].error_code
    };
    broker.server.apply_acls(all_but(&[(Cluster, "kafka-cluster", ClusterAction)]));
    assert_eq!(produce("test"), ErrorCode::InvalidTopicException.code());
    assert_eq!(produce("__admin_client"), ErrorCode::ClusterAuthorizationFailed.code());
}

#[test]
fn lists_show_what_may_be_described() {
    let broker = guarded();
    let internal = |name| pylog_server::cluster::spec::TopicSpec { internal: true, ..topic(name, 1) };
    broker
        .server
        .apply_topics(vec![internal("__consumer_offsets"), topic("t", 1), topic("secret", 1)])
        .unwrap();
    broker.server.apply_acls(all_but(&[]));
    let mut client = broker.client();
    for group in ["mine", "hidden"] {
        let commit = json!({"group_id": group, "topics": [
            {"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]},
            {"name": "secret", "partitions": [{"partition_index": 0, "committed_offset": 2}]}]});
        let commit: OffsetCommitRequest = serde_json::from_value(commit).unwrap();
        assert!(!text(&client.call(&commit, 8)).contains("\"error_code\":1"));
    }
    broker.server.apply_acls([allow(Describe, (Group, "mine")), allow(Describe, (Topic, "t"))]);
    let listed = client.call(&ListGroupsRequest::default(), 5);
    assert_eq!(listed.groups.iter().map(|group| &*group.group_id).collect::<Vec<_>>(), ["mine"]);
    let fetch =
        json!({"groups": [{"group_id": "mine", "topics": null}, {"group_id": "hidden", "topics": null}]});
    let fetch: OffsetFetchRequest = serde_json::from_value(fetch).unwrap();
    let fetched = client.call(&fetch, 8);
    assert_eq!(fetched.groups[0].topics.iter().map(|topic| &*topic.name).collect::<Vec<_>>(), ["t"]);
    assert_eq!(fetched.groups[1].error_code, ErrorCode::GroupAuthorizationFailed.code());
    assert!(!text(&fetched).contains("secret"));
    broker.server.apply_acls([allow(Describe, (Cluster, "kafka-cluster"))]);
    assert_eq!(client.call(&ListGroupsRequest::default(), 5).groups.len(), 2);
}

#[test]
fn of_topics_to_be_made_only_those_that_may_be_are_asked_for() {
    let broker = guarded();
    broker.server.apply_acls([allow(Create, (Topic, "mine"))]);
    let mut client = broker.client();
    let creatable = |name: &str| CreatableTopic { name: name.into(), ..Default::default() };
    let topics = vec![creatable("not-mine"), creatable("mine")];
    client.send(&CreateTopicsRequest { topics, ..Default::default() }, 7, 1);
    let question = question(&broker);
    assert_eq!(question.kind, Kind::CreateTopics);
    assert_eq!(asked(&question)["topics"].as_array().unwrap().len(), 1);
    let decided = json!({"topics": [{"name": "mine", "num_partitions": 3, "replication_factor": 1,
        "configs": [{"name": "retention.ms", "value": "1"}]}]});
    question.reply.send(decided.to_string()).unwrap();
    let (_, answer) = client.receive::<CreateTopicsResponse>(7);
    assert_eq!(answer.topics[0].error_code, 0);
    assert_eq!((answer.topics[0].num_partitions, answer.topics[0].configs.clone()), (-1, None));
    assert_eq!(answer.topics[0].topic_config_error_code, ErrorCode::TopicAuthorizationFailed.code());
    assert_eq!(answer.topics[1].error_code, ErrorCode::TopicAuthorizationFailed.code());
    assert_eq!(answer.topics[1].name, "not-mine");
}

#[test]
fn a_topic_that_may_not_be_deleted_is_named_to_who_may_describe_it() {
    let broker = guarded();
    let (known, hidden) = (topic("known", 1), topic("hidden", 1));
    let ids = [known.topic_id, hidden.topic_id];
    broker.server.apply_topics(vec![known, hidden]).unwrap();
    broker.server.apply_acls([allow(Describe, (Topic, "known"))]);
    let topics = ids.map(|topic_id| json!({"name": null, "topic_id": topic_id}));
    let request: DeleteTopicsRequest = serde_json::from_value(json!({"topics": topics})).unwrap();
    let answer = broker.client().call(&request, 6);
    let refused = ErrorCode::TopicAuthorizationFailed.code();
    assert!(answer.responses.iter().all(|topic| topic.error_code == refused));
    assert_eq!(
        answer.responses.iter().map(|topic| topic.name.as_deref()).collect::<Vec<_>>(),
        [Some("known"), None]
    );
    assert!(broker.decisions.kept.lock().unwrap().is_empty(), "nobody was asked");
}

#[test]
fn a_topic_that_is_not_there_yet_is_deleted_by_nobody_who_may_only_describe_it() {
    let broker = guarded();
    broker.server.apply_acls([allow(Describe, (Topic, "made-just-now")), allow(Delete, (Topic, "mine"))]);
    let mut client = broker.client();
    // Who decides may know of a topic already that this broker has not applied.
    let id = Uuid::new_v4();
    let topics = json!([{"name": "made-just-now"}, {"name": null, "topic_id": id}]);
    let request: DeleteTopicsRequest = serde_json::from_value(json!({"topics": topics})).unwrap();
    let answer = client.call(&request, 6);
    let (by_name, by_id) = (&answer.responses[0], &answer.responses[1]);
    assert_eq!(by_name.error_code, ErrorCode::UnknownTopicOrPartition.code());
    assert_eq!((by_id.error_code, by_id.topic_id), (ErrorCode::UnknownTopicId.code(), id));
    let topic_names = vec!["made-just-now".into(), "secret".into()];
    let answer = client.call(&DeleteTopicsRequest { topic_names, ..Default::default() }, 5);
    let unknown_and_denied = [ErrorCode::UnknownTopicOrPartition, ErrorCode::TopicAuthorizationFailed];
    let errors: Vec<_> = answer.responses.iter().map(|topic| topic.error_code).collect();
    assert_eq!(errors, unknown_and_denied.map(ErrorCode::code));
    assert!(broker.decisions.kept.lock().unwrap().is_empty(), "somebody was asked");
    // Who may delete it has it deleted by who knows of it.
    client.send(&DeleteTopicsRequest { topic_names: vec!["mine".into()], ..Default::default() }, 5, 1);
    assert_eq!(asked(&question(&broker))["topic_names"], json!(["mine"]));
}

#[test]
fn acls_are_described_by_resource() {
    let broker = guarded();
    let own = allow(Describe, (Cluster, "kafka-cluster"));
    broker.server.apply_acls([
        own,
        allow(Read, (Topic, "t")),
        allow(Write, (Topic, "t")),
        allow(Read, (Group, "g")),
    ]);
    let of = |resource_type_filter, operation| DescribeAclsRequest {
        resource_type_filter,
        pattern_type_filter: 1,
        operation,
        permission_type: 1,
        ..Default::default()
    };
    let answer = broker.client().call(&of(1, 1), 3);
    assert_eq!(answer.resources.len(), 3);
    let answer = broker.client().call(&of(Topic.code(), 1), 3);
    assert_eq!((answer.resources.len(), answer.resources[0].acls.len()), (1, 2));
    assert_eq!(answer.resources[0].acls[0].principal, ANONYMOUS);
    assert_eq!(broker.client().call(&of(Topic.code(), Delete.code()), 3).resources.len(), 0);
    assert_eq!(broker.client().call(&of(99, 1), 3).error_code, ErrorCode::InvalidRequest.code());
}

#[test]
fn without_an_authorizer_acls_are_refused_as_in_kafka() {
    let broker = Broker::start();
    let disabled = ErrorCode::SecurityDisabled.code();
    let mut client = broker.client();
    assert_eq!(client.call(&DescribeAclsRequest::default(), 3).error_code, disabled);
    let creations = vec![AclCreation::default(); 2];
    let created = client.call(&CreateAclsRequest { creations }, 3);
    assert_eq!(created.results.iter().map(|one| one.error_code).collect::<Vec<_>>(), [disabled; 2]);
    let deleted = client.call(&DeleteAclsRequest { filters: vec![DeleteAclsFilter::default()] }, 3);
    assert_eq!(deleted.filter_results[0].error_code, disabled);
}

#[test]
fn what_is_wrong_with_acls_is_answered_in_place_and_the_others_are_asked_for() {
    let broker = guarded();
    broker.server.apply_acls(all_but(&[]));
    let mut client = broker.client();
    let creation = |name: &str| AclCreation {
        resource_type: Topic.code(),
        resource_name: name.into(),
        resource_pattern_type: 3,
        principal: "User:alice".into(),
        host: "*".into(),
        operation: Read.code(),
        permission_type: 3,
    };
    let creations = vec![creation(""), creation("t"), creation("")];
    client.send(&CreateAclsRequest { creations }, 3, 1);
    let created = question(&broker);
    assert_eq!(created.kind, Kind::CreateAcls);
    assert_eq!(asked(&created)["creations"][0]["resource_name"], "t");
    assert_eq!(asked(&created)["principal"], ANONYMOUS, "the log says who did it");
    created.reply.send(json!({"results": [{"error_code": 0, "error_message": null}]}).to_string()).unwrap();
    let (_, answer) = client.receive::<CreateAclsResponse>(3);
    let invalid = ErrorCode::InvalidRequest.code();
    assert_eq!(answer.results.iter().map(|one| one.error_code).collect::<Vec<_>>(), [invalid, 0, invalid]);
    let filter = |resource_type_filter| DeleteAclsFilter {
        resource_type_filter,
        pattern_type_filter: 1,
        operation: 1,
        permission_type: 1,
        ..Default::default()
    };
    client.send(&DeleteAclsRequest { filters: vec![filter(1), filter(99)] }, 3, 2);
    let deleted = question(&broker);
    assert_eq!((deleted.kind, asked(&deleted)["filters"].as_array().unwrap().len()), (Kind::DeleteAcls, 1));
    deleted
        .reply
        .send(json!({"filter_results": [{"error_code": 0, "matching_acls": []}]}).to_string())
        .unwrap();
    let (_, answer) = client.receive::<DeleteAclsResponse>(3);
    assert_eq!(answer.filter_results.iter().map(|one| one.error_code).collect::<Vec<_>>(), [0, invalid]);
}

#[test]
fn a_transaction_that_may_not_be_used_is_not_begun() {
    let broker = guarded();
    let internal = |name| pylog_server::cluster::spec::TopicSpec { internal: true, ..topic(name, 1) };
    broker.server.apply_topics(vec![internal("__transaction_state"), topic("t", 1)]).unwrap();
    broker.server.apply_acls(all_but(&[(TransactionalId, "x", Write)]));
    let mut client = broker.client();
    let init = |id: &str| InitProducerIdRequest {
        transactional_id: Some(id.into()),
        transaction_timeout_ms: 60_000,
        ..Default::default()
    };
    assert_eq!(client.call(&init("x"), 4).error_code, ErrorCode::TransactionalIdAuthorizationFailed.code());
    assert_eq!(client.call(&init("y"), 4).error_code, 0);
    broker.server.apply_acls([allow(Describe, (TransactionalId, "x"))]);
    let listed = client.call(&ListTransactionsRequest::default(), 1);
    assert!(listed.transaction_states.is_empty(), "x was never begun, and y may not be described");
    broker.server.apply_acls([allow(Describe, (TransactionalId, "y"))]);
    assert_eq!(client.call(&ListTransactionsRequest::default(), 1).transaction_states.len(), 1);
}
