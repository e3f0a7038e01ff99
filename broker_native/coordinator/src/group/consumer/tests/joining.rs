//! Joining and leaving.
use super::scene::{Client, Scene, assigned, join, of, reconcile_all, stay};
use crate::group::consumer::ConsumerChange;
use pylog_wire::ErrorCode;

#[test]
fn the_first_member_gets_all_partitions_and_its_records_are_in_kafkas_order() {
    let mut scene = Scene::with_topic(3);
    let (answer, changes) = scene.beat_writing(join("a", &["foo"]), 1);
    assert_eq!(answer.member_id.as_deref(), Some("a"));
    assert_eq!((answer.member_epoch, answer.heartbeat_interval_ms), (2, 5_000));
    assert_eq!(assigned(&answer), Some(of(scene.id("foo"), &[0, 1, 2])));
    assert!(matches!(
        changes.as_slice(),
        [
            ConsumerChange::Member(..),
            ConsumerChange::Epoch { epoch: 2, .. },
            ConsumerChange::Target(..),
            ConsumerChange::Assignment(Some((2, 1_000_000))),
            ConsumerChange::Current(..)
        ]
    ));
    assert_eq!(scene.state(), "Stable");
}

#[test]
fn a_member_that_has_nothing_new_writes_nothing_and_is_told_nothing_new() {
    let mut scene = Scene::with_topic(3);
    scene.beat(join("a", &["foo"]));
    let (answer, changes) = scene.beat_writing(stay("a", 2), 1);
    assert_eq!((answer.error_code, answer.member_epoch), (0, 2));
    assert_eq!(assigned(&answer), None);
    assert_eq!(changes, []);
}

#[test]
fn a_full_request_is_answered_in_full() {
    let mut scene = Scene::with_topic(2);
    scene.beat(join("a", &["foo"]));
    let mut full = join("a", &["foo"]);
    full.member_epoch = 2;
    let (answer, changes) = scene.beat_writing(full, 1);
    assert_eq!(assigned(&answer), Some(of(scene.id("foo"), &[0, 1])));
    assert_eq!(changes, []);
}

#[test]
fn a_member_without_an_id_is_given_one_in_version_0_only() {
    let mut scene = Scene::with_topic(1);
    let (answer, _) = scene.beat_writing(join("", &["foo"]), 0);
    assert_eq!(answer.member_id.as_deref(), Some("fresh-1"));
    assert_eq!(scene.refused(join("", &["foo"])), ErrorCode::InvalidRequest);
}

#[test]
fn a_member_may_join_without_topics() {
    let mut scene = Scene::with_topic(1);
    let answer = scene.beat(join("a", &[]));
    assert_eq!((answer.error_code, answer.member_epoch), (0, 1));
    assert_eq!(assigned(&answer), Some(of(scene.id("foo"), &[])));
}

#[test]
fn strangers_are_told_that_they_are() {
    let mut scene = Scene::with_topic(1);
    assert_eq!(scene.refused(stay("a", 2)), ErrorCode::GroupIdNotFound);
    assert_eq!(scene.refused(stay("a", -1)), ErrorCode::GroupIdNotFound);
    scene.beat(join("a", &["foo"]));
    assert_eq!(scene.refused(stay("b", 2)), ErrorCode::UnknownMemberId);
    assert_eq!(scene.refused(stay("b", -1)), ErrorCode::UnknownMemberId);
}

#[test]
fn a_member_that_leaves_frees_its_partitions_at_once() {
    let mut scene = Scene::with_topic(4);
    let mut clients = [Client::new(join("a", &["foo"])), Client::new(join("b", &["foo"]))];
    reconcile_all(&mut scene, &mut clients);
    let answer = scene.beat(stay("a", -1));
    assert_eq!((answer.error_code, answer.member_epoch), (0, -1));
    assert_eq!(scene.state(), "Assigning");
    let [_, b] = &mut clients;
    b.beat(&mut scene);
    assert_eq!(b.owned, of(scene.id("foo"), &[0, 1, 2, 3]));
    assert_eq!(scene.state(), "Stable");
}

#[test]
fn the_last_member_leaves_an_empty_group_that_keeps_its_epoch() {
    let mut scene = Scene::with_topic(1);
    scene.beat(join("a", &["foo"]));
    scene.beat(stay("a", -1));
    assert_eq!(scene.state(), "Empty");
    assert_eq!(scene.members().group_epoch, 3);
    assert_eq!(scene.beat(join("b", &["foo"])).member_epoch, 4);
}

#[test]
fn a_full_group_takes_no_more_but_keeps_whom_it_has() {
    let mut scene = Scene::with_topic(1);
    scene.settings.group_consumer_max_size = 1;
    scene.beat(join("a", &["foo"]));
    assert_eq!(scene.refused(join("b", &["foo"])), ErrorCode::GroupMaxSizeReached);
    assert_eq!(scene.beat(join("a", &["foo"])).error_code, 0);
}

#[test]
fn a_target_too_large_for_the_log_is_refused_until_it_is_smaller() {
    let mut scene = Scene::with_topic(250_000);
    let (answer, changes) = scene.beat_writing(join("a", &["foo"]), 1);
    assert_eq!(answer.error_code, ErrorCode::UnknownServerError.code());
    assert!(answer.error_message.is_some_and(|why| why.contains("more groups.")));
    assert!(matches!(
        changes.as_slice(),
        [ConsumerChange::Member(..), ConsumerChange::Epoch { epoch: 2, .. }]
    ));
    assert_eq!(scene.state(), "Assigning");
    scene.topics.delete("foo");
    let foo = scene.topics.set("foo", 1);
    assert_eq!(assigned(&scene.beat(join("a", &["foo"]))), Some(of(foo, &[0])));
}

#[test]
fn a_member_that_is_silent_for_its_session_is_out() {
    let mut scene = Scene::with_topic(2);
    scene.beat(join("a", &["foo"]));
    scene.pass(44_999);
    assert_eq!(scene.beat(stay("a", 2)).error_code, 0);
    scene.pass(44_999);
    assert_eq!(scene.state(), "Stable");
    scene.pass(1);
    assert_eq!(scene.state(), "Empty");
    assert_eq!(scene.refused(stay("a", 2)), ErrorCode::UnknownMemberId);
}

#[test]
fn the_assignor_that_most_members_want_is_taken_and_uniform_without_wishes() {
    let mut scene = Scene::with_topic(3);
    scene.topics.set("bar", 3);
    let topics = ["bar", "foo"];
    let wants = |id: &str, assignor: Option<&str>| {
        let mut request = join(id, &topics);
        request.server_assignor = assignor.map(str::to_owned);
        Client::new(request)
    };
    let mut clients = [wants("a", Some("range")), wants("b", None)];
    reconcile_all(&mut scene, &mut clients);
    assert_eq!(clients.each_ref().map(Client::count), [4, 2], "range: two of each topic to the first");
    let mut clients =
        [clients[0].clone(), clients[1].clone(), wants("c", Some("uniform")), wants("d", Some("uniform"))];
    reconcile_all(&mut scene, &mut clients);
    let mut counts = clients.each_ref().map(Client::count);
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 2, 2]);
}
