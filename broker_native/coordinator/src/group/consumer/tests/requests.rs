//! What a heartbeat must look like; ConsumerGroupDescribe.
use super::scene::{GROUP, Scene, join, stay};
use crate::group::requests::{GroupReply, GroupRequest};
use pylog_wire::ErrorCode;
use pylog_wire::messages::ConsumerGroupHeartbeatRequest;

type Alter = fn(&mut ConsumerGroupHeartbeatRequest);

#[test]
fn a_heartbeat_that_makes_no_sense_is_refused_in_kafkas_words() {
    let wrong: &[(Alter, &str)] = &[
        (|r| r.member_id.clear(), "MemberId can't be empty."),
        (|r| r.group_id = " ".into(), "GroupId can't be empty."),
        (|r| r.instance_id = Some(String::new()), "InstanceId can't be empty."),
        (|r| r.rack_id = Some(String::new()), "RackId can't be empty."),
        (|r| r.rebalance_timeout_ms = -1, "RebalanceTimeoutMs must be provided in first request."),
        (|r| r.topic_partitions = None, "TopicPartitions must be empty when (re-)joining."),
        (
            |r| r.topic_partitions = Some(vec![Default::default()]),
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            |r| r.subscribed_topic_names = None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (|r| r.member_epoch = -3, "MemberEpoch is invalid."),
        (|r| r.member_epoch = -2, "InstanceId can't be null."),
        (
            |r| r.instance_id = Some("x".repeat(32_768)),
            "A text is longer than 32767 bytes, which is all that a group's records have room for.",
        ),
        (
            |r| r.subscribed_topic_names = Some(vec!["x".repeat(30_000); 20]),
            "The subscribed topics' names are longer than 500000 bytes together: use a regular expression.",
        ),
    ];
    for (alter, sentence) in wrong {
        let mut scene = Scene::with_topic(1);
        let mut request = join("a", &["foo"]);
        alter(&mut request);
        let (answer, changes) = scene.beat_writing(request, 1);
        assert_eq!((answer.error_code, answer.error_message.as_deref()), (42, Some(*sentence)));
        assert_eq!(changes, []);
    }
}

#[test]
fn an_assignor_that_there_is_not_is_refused_with_those_that_there_are() {
    let mut scene = Scene::with_topic(1);
    let mut request = join("a", &["foo"]);
    request.server_assignor = Some("sticky".into());
    let (answer, _) = scene.beat_writing(request, 1);
    assert_eq!(answer.error_code, ErrorCode::UnsupportedAssignor.code());
    assert_eq!(
        answer.error_message.as_deref(),
        Some("ServerAssignor sticky is not supported. Supported assignors: uniform, range.")
    );
}

#[test]
fn a_description_shows_members_with_what_they_own_and_shall_own() {
    let mut scene = Scene::with_topic(2);
    scene.beat(join("a", &["foo"]));
    scene.beat(join("b", &["foo"]));
    let (reply, _) = scene.ask(GroupRequest::ConsumerDescribe(GROUP.into()), 1);
    let GroupReply::ConsumerDescribe(group) = reply else { panic!("{reply:?}") };
    assert_eq!((group.error_code, group.group_state.as_str()), (0, "Reconciling"));
    assert_eq!((group.group_epoch, group.assignment_epoch, group.assignor_name.as_str()), (3, 3, "uniform"));
    let [a, b] = group.members.as_slice() else { panic!("{group:?}") };
    let partitions = |assignment: &pylog_wire::messages::consumer_group_describe::Assignment| {
        let topics = assignment.topic_partitions.iter();
        topics.map(|topic| (topic.topic_name.clone(), topic.partitions.clone())).collect::<Vec<_>>()
    };
    assert_eq!(partitions(&a.assignment), [("foo".to_owned(), vec![0, 1])]);
    assert_eq!(partitions(&a.target_assignment), [("foo".to_owned(), vec![0])]);
    assert_eq!(partitions(&b.assignment), []);
    assert_eq!((b.client_id.as_str(), b.client_host.as_str(), b.member_type), ("client", "/127.0.0.1", 1));
}

#[test]
fn a_group_that_there_is_not_is_described_as_not_found() {
    let mut scene = Scene::with_topic(2);
    let (reply, _) = scene.ask(GroupRequest::ConsumerDescribe(GROUP.into()), 1);
    let GroupReply::ConsumerDescribe(group) = reply else { panic!("{reply:?}") };
    assert_eq!(group.error_code, ErrorCode::GroupIdNotFound.code());
    assert_eq!(group.error_message.as_deref(), Some("Group group not found."));
    assert_eq!(scene.refused(stay("a", 5)), ErrorCode::GroupIdNotFound);
}
