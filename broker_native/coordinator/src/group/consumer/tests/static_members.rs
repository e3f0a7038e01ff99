//! Static members: they leave for a while, and come back to what they had.
use super::scene::{Client, Scene, assigned, join, of, reconcile_all, stay};
use crate::group::consumer::MemberState;
use pylog_wire::ErrorCode;
use pylog_wire::messages::ConsumerGroupHeartbeatRequest;

fn named(mut request: ConsumerGroupHeartbeatRequest, instance_id: &str) -> ConsumerGroupHeartbeatRequest {
    request.instance_id = Some(instance_id.into());
    request
}

/// `a` is the static member `one`, `b` is dynamic.
fn scene() -> Scene {
    let mut scene = Scene::with_topic(4);
    let mut clients = [Client::new(named(join("a", &["foo"]), "one")), Client::new(join("b", &["foo"]))];
    reconcile_all(&mut scene, &mut clients);
    scene
}

#[test]
fn who_comes_back_under_its_name_has_what_it_had_and_nobody_else_notices() {
    let mut scene = scene();
    let (foo, epoch) = (scene.id("foo"), scene.members().group_epoch);
    let answer = scene.beat(named(stay("a", -2), "one"));
    assert_eq!((answer.error_code, answer.member_epoch), (0, -2));
    let answer = scene.beat(named(join("a2", &["foo"]), "one"));
    assert_eq!((answer.member_epoch, assigned(&answer)), (3, Some(of(foo, &[0, 1]))));
    assert_eq!(scene.members().group_epoch, epoch, "no rebalance");
    assert_eq!(scene.members().members.keys().collect::<Vec<_>>(), ["a2", "b"]);
    assert_eq!(scene.members().members["a2"].state, MemberState::Stable);
    assert_eq!(scene.refused(named(stay("a", 3), "one")), ErrorCode::FencedInstanceId);
    assert_eq!(scene.refused(stay("a", 3)), ErrorCode::UnknownMemberId);
}

#[test]
fn who_comes_back_with_the_same_id_is_taken_too() {
    let mut scene = scene();
    scene.beat(named(stay("a", -2), "one"));
    let answer = scene.beat(named(join("a", &["foo"]), "one"));
    assert_eq!(assigned(&answer), Some(of(scene.id("foo"), &[0, 1])));
}

#[test]
fn who_does_not_come_back_before_its_session_is_over_is_out() {
    let mut scene = scene();
    scene.beat(named(stay("a", -2), "one"));
    scene.pass(40_000);
    scene.beat(stay("b", 3));
    assert_eq!(scene.members().members.len(), 2);
    scene.pass(5_000);
    assert_eq!(assigned(&scene.beat(stay("b", 3))), Some(of(scene.id("foo"), &[0, 1, 2, 3])));
}

#[test]
fn a_name_in_use_is_not_given_to_another() {
    let mut scene = scene();
    assert_eq!(scene.refused(named(join("c", &["foo"]), "one")), ErrorCode::UnreleasedInstanceId);
    assert_eq!(scene.refused(named(stay("c", 3), "one")), ErrorCode::FencedInstanceId);
    assert_eq!(scene.refused(named(stay("c", -2), "one")), ErrorCode::FencedInstanceId);
    assert_eq!(scene.refused(named(stay("a", 3), "two")), ErrorCode::UnknownMemberId);
    assert_eq!(
        scene.refused(stay("a", -2)),
        ErrorCode::InvalidRequest,
        "only a static member leaves for a while"
    );
}

#[test]
fn a_static_member_may_leave_for_good() {
    let mut scene = scene();
    scene.beat(named(stay("a", -1), "one"));
    assert_eq!(scene.members().members.len(), 1);
    assert_eq!(scene.beat(named(join("c", &["foo"]), "one")).error_code, 0, "the name is free again");
}

#[test]
fn who_comes_back_with_other_topics_begins_an_epoch() {
    let mut scene = scene();
    let bar = scene.topics.set("bar", 1);
    scene.beat(named(stay("a", -2), "one"));
    let answer = scene.beat(named(join("a2", &["bar"]), "one"));
    assert_eq!(answer.error_code, 0);
    assert_eq!(assigned(&answer), Some(of(bar, &[0])), "what it was to give back it does not have any more");
}
