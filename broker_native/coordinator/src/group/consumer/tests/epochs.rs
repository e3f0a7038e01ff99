//! Which member epochs are taken.
use super::scene::{Client, Scene, join, of, owning, reconcile_all, stay};
use pylog_wire::ErrorCode;

/// Members `a` and `b` at epoch 3 with two partitions each.
fn two() -> (Scene, [Client; 2]) {
    let mut scene = Scene::with_topic(4);
    let mut clients = [Client::new(join("a", &["foo"])), Client::new(join("b", &["foo"]))];
    reconcile_all(&mut scene, &mut clients);
    assert_eq!(clients.each_ref().map(|client| client.epoch), [3, 3]);
    (scene, clients)
}

#[test]
fn an_epoch_from_the_future_is_fenced() {
    let (mut scene, _) = two();
    assert_eq!(scene.refused(stay("a", 4)), ErrorCode::FencedMemberEpoch);
}

#[test]
fn an_epoch_from_the_past_is_fenced() {
    let (mut scene, _) = two();
    scene.topics.set("foo", 8);
    scene.beat(stay("a", 3));
    assert_eq!(scene.members().members["a"].member_epoch, 4);
    assert_eq!(scene.refused(stay("a", 2)), ErrorCode::FencedMemberEpoch);
    assert_eq!(scene.refused(stay("a", 3)), ErrorCode::FencedMemberEpoch, "it does not say what it owns");
    let foo = scene.id("foo");
    assert_eq!(
        scene.refused(owning("a", 3, &[(foo, &[0, 1, 2, 3])])),
        ErrorCode::FencedMemberEpoch,
        "b owns some"
    );
}

#[test]
fn the_previous_epoch_is_taken_when_the_answer_may_have_been_lost() {
    let (mut scene, clients) = two();
    scene.topics.set("foo", 8);
    scene.beat(stay("a", 3));
    let foo = scene.id("foo");
    let owned: Vec<i32> = clients[0].owned[&foo].iter().copied().collect();
    let answer = scene.beat(owning("a", 3, &[(foo, &owned)]));
    assert_eq!((answer.error_code, answer.member_epoch), (0, 4));
}

#[test]
fn epoch_0_begins_anew_and_gets_what_is_free() {
    let (mut scene, _) = two();
    let answer = scene.beat(join("a", &["foo"]));
    assert_eq!((answer.error_code, answer.member_epoch), (0, 3));
    assert_eq!(super::scene::assigned(&answer), Some(of(scene.id("foo"), &[0, 1])));
}

#[test]
fn every_change_of_subscriptions_begins_an_epoch_and_nothing_else_of_a_member_does() {
    let (mut scene, _) = two();
    let mut rack = stay("a", 3);
    rack.rack_id = Some("rack-1".into());
    scene.beat(rack);
    assert_eq!(
        (scene.members().group_epoch, scene.members().members["a"].rack_id.as_deref()),
        (3, Some("rack-1"))
    );
    let mut names = stay("a", 3);
    names.subscribed_topic_names = Some(vec!["foo".into(), "bar".into()]);
    scene.beat(names);
    assert_eq!(scene.members().group_epoch, 4);
}
