//! The way from one target to the next: nobody gets a partition before its owner gave it back.
use super::scene::{Client, Scene, assigned, join, of, owning, reconcile_all, stay};
use crate::group::consumer::MemberState;
use pylog_wire::ErrorCode;

#[test]
fn a_partition_moves_only_after_its_owner_gave_it_back() {
    let mut scene = Scene::with_topic(4);
    let foo = scene.id("foo");
    scene.beat(join("a", &["foo"]));
    // b joins: its partitions are still a's.
    let answer = scene.beat(join("b", &["foo"]));
    assert_eq!((answer.member_epoch, assigned(&answer)), (3, Some(of(foo, &[]))));
    assert_eq!(scene.members().members["b"].state, MemberState::UnreleasedPartitions);
    assert_eq!(scene.state(), "Reconciling");
    // a is asked to give two back, and stays in its epoch until it says that it did.
    let answer = scene.beat(stay("a", 2));
    assert_eq!((answer.member_epoch, assigned(&answer)), (2, Some(of(foo, &[0, 1]))));
    assert_eq!(scene.members().members["a"].state, MemberState::UnrevokedPartitions);
    assert_eq!(assigned(&scene.beat(stay("b", 3))), None);
    assert_eq!(assigned(&scene.beat(owning("a", 2, &[(foo, &[0, 1, 2, 3])]))), None);
    assert_eq!(scene.beat(stay("a", 2)).member_epoch, 2, "silence about what it owns is no answer");
    // It did.
    let answer = scene.beat(owning("a", 2, &[(foo, &[0, 1])]));
    assert_eq!((answer.member_epoch, assigned(&answer)), (3, None));
    assert_eq!(assigned(&scene.beat(stay("b", 3))), Some(of(foo, &[2, 3])));
    assert_eq!(scene.state(), "Stable");
}

#[test]
fn half_of_what_was_to_be_given_back_is_not_enough() {
    let mut scene = Scene::with_topic(4);
    let foo = scene.id("foo");
    scene.beat(join("a", &["foo"]));
    scene.beat(join("b", &["foo"]));
    scene.beat(stay("a", 2));
    let answer = scene.beat(owning("a", 2, &[(foo, &[0, 1, 2])]));
    assert_eq!(answer.member_epoch, 2);
    assert_eq!(assigned(&scene.beat(stay("b", 3))), None);
}

#[test]
fn a_member_that_gave_back_goes_on_to_the_newest_target_at_once() {
    let mut scene = Scene::with_topic(6);
    let foo = scene.id("foo");
    scene.beat(join("a", &["foo"]));
    scene.beat(join("b", &["foo"]));
    assert_eq!(assigned(&scene.beat(stay("a", 2))), Some(of(foo, &[0, 1, 2])));
    scene.beat(join("c", &["foo"]));
    // a gives back 3 to 5; meanwhile it shall also lose one more.
    let answer = scene.beat(owning("a", 2, &[(foo, &[0, 1, 2])]));
    assert_eq!((answer.member_epoch, assigned(&answer)), (3, Some(of(foo, &[0, 1]))));
    assert_eq!(scene.members().members["a"].state, MemberState::UnrevokedPartitions);
    let answer = scene.beat(owning("a", 3, &[(foo, &[0, 1])]));
    assert_eq!(answer.member_epoch, 4);
}

#[test]
fn free_partitions_are_given_while_others_are_waited_for() {
    let mut scene = Scene::with_topic(2);
    let foo = scene.id("foo");
    scene.beat(join("a", &["foo"]));
    let bar = scene.topics.set("bar", 2);
    let answer = scene.beat(join("b", &["foo", "bar"]));
    assert_eq!(assigned(&answer), Some(of(bar, &[0, 1])), "a keeps foo: both have two");
    assert_eq!(scene.beat(stay("a", 2)).member_epoch, 3);
    assert_eq!(scene.members().members["a"].assigned[&foo].len(), 2);
}

#[test]
fn a_member_that_does_not_give_back_in_time_is_out() {
    let mut scene = Scene::with_topic(4);
    let foo = scene.id("foo");
    scene.beat(join("a", &["foo"]));
    scene.beat(join("b", &["foo"]));
    scene.beat(stay("a", 2));
    scene.pass(4_999);
    scene.beat(stay("a", 2));
    assert_eq!(scene.members().members.len(), 2, "heartbeats do not move the deadline, nor is it over");
    scene.pass(1);
    assert_eq!(scene.refused(stay("a", 2)), ErrorCode::UnknownMemberId);
    assert_eq!(assigned(&scene.beat(stay("b", 3))), Some(of(foo, &[0, 1, 2, 3])));
}

#[test]
fn a_member_that_gave_back_in_time_stays() {
    let mut scene = Scene::with_topic(4);
    let mut clients = [Client::new(join("a", &["foo"])), Client::new(join("b", &["foo"]))];
    reconcile_all(&mut scene, &mut clients);
    scene.pass(10_000);
    assert_eq!(scene.members().members.len(), 2);
}
