//! After a restart members go on where they were.
use super::scene::{Client, Scene, assigned, join, of, owning, reconcile_all, stay};
use crate::group::consumer::{self, ConsumerChange};
use crate::group::{Group, GroupKind};
use pylog_wire::ErrorCode;
use pylog_wire::stored::type_and_name;

#[test]
fn members_go_on_with_their_epochs_after_a_restart() {
    let mut scene = Scene::with_topic(4);
    let mut clients = [Client::new(join("a", &["foo"])), Client::new(join("b", &["foo"]))];
    reconcile_all(&mut scene, &mut clients);
    let written = scene.log.len();
    scene.restart();
    reconcile_all(&mut scene, &mut clients);
    assert_eq!(clients.each_ref().map(|client| (client.epoch, client.count())), [(3, 2), (3, 2)]);
    assert_eq!(scene.log.len(), written, "and nothing had to be written for it");
}

#[test]
fn sessions_begin_anew_with_a_restart_and_end() {
    let mut scene = Scene::with_topic(1);
    scene.beat(join("a", &["foo"]));
    scene.pass(40_000);
    scene.restart();
    scene.pass(44_999);
    assert_eq!(scene.members().members.len(), 1);
    scene.pass(1);
    assert_eq!(scene.state(), "Empty");
}

#[test]
fn who_owes_partitions_owes_them_after_a_restart() {
    let mut scene = Scene::with_topic(4);
    let foo = scene.id("foo");
    scene.beat(join("a", &["foo"]));
    scene.beat(join("b", &["foo"]));
    scene.beat(stay("a", 2));
    scene.restart();
    assert_eq!(assigned(&scene.beat(stay("b", 3))), None);
    assert_eq!(scene.beat(owning("a", 2, &[(foo, &[0, 1])])).member_epoch, 3);
    assert_eq!(assigned(&scene.beat(stay("b", 3))), Some(of(foo, &[2, 3])));
    scene.beat(join("c", &["foo"]));
    scene.beat(stay("a", 3));
    scene.restart();
    scene.pass(5_000);
    assert_eq!(scene.refused(stay("a", 3)), ErrorCode::UnknownMemberId, "its time-out runs too");
}

#[test]
fn topics_that_changed_while_the_coordinator_was_away_are_noticed() {
    let mut scene = Scene::with_topic(1);
    scene.beat(join("a", &["foo"]));
    let foo = scene.topics.set("foo", 2);
    scene.restart();
    assert_eq!(assigned(&scene.beat(stay("a", 2))), Some(of(foo, &[0, 1])));
}

#[test]
fn a_log_that_was_compacted_gives_the_same_group() {
    let mut scene = Scene::with_topic(6);
    let mut clients = ["a", "b", "c"].map(|id| Client::new(join(id, &["foo"])));
    reconcile_all(&mut scene, &mut clients);
    scene.beat(stay("b", -1));
    reconcile_all(&mut scene, &mut clients[2..]);
    // The last record of every key, in the order of the log, tombstones included.
    let last = |at: usize| !scene.log[at + 1..].iter().any(|later| later.key == scene.log[at].key);
    let kept: Vec<_> = (0..scene.log.len()).filter(|at| last(*at)).map(|at| &scene.log[at]).collect();
    assert!(kept.len() < scene.log.len());
    for tombstones in [true, false] {
        let mut group = Group::default();
        for record in kept.iter().filter(|record| tombstones || record.value.is_some()) {
            let (key_type, _) = type_and_name(&record.key).expect("a key");
            consumer::replay(&mut group, key_type, record).expect("it can be replayed");
        }
        let GroupKind::Consumer(group) = group.kind else { panic!("{group:?}") };
        assert_eq!(group.durable(), scene.members().durable());
    }
}

#[test]
fn what_is_left_of_a_deleted_group_makes_no_group() {
    let mut group = Group::default();
    for change in [
        ConsumerChange::Current("a".into(), None),
        ConsumerChange::Target("a".into(), None),
        ConsumerChange::Member("a".into(), None),
        ConsumerChange::Regex("x".into(), None),
        ConsumerChange::Assignment(None),
        ConsumerChange::Deleted,
    ] {
        let record = change.record("group").expect("short");
        let (key_type, _) = type_and_name(&record.key).expect("a key");
        consumer::replay(&mut group, key_type, &record).expect("it can be replayed");
        assert!(matches!(group.kind, GroupKind::Simple));
    }
}
