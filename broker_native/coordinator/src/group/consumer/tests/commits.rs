//! Who may commit and fetch offsets.
use super::scene::{Client, Scene, join, reconcile_all, stay};
use crate::group::OffsetClaim;
use pylog_wire::ErrorCode;

const NOBODY: OffsetClaim<'static> = OffsetClaim {
    member_id: "",
    group_instance_id: None,
    generation_or_epoch: -1,
    transactional: false,
    version: 9,
};

#[test]
fn commits_come_from_members_at_their_epoch_or_from_tools_while_nobody_is_there() {
    let mut scene = Scene::with_topic(1);
    scene.beat(join("a", &["foo"]));
    let group = scene.members();
    let a = OffsetClaim { member_id: "a", generation_or_epoch: 2, ..NOBODY };
    assert_eq!(group.check_commit(&a), Ok(()));
    assert_eq!(
        group.check_commit(&OffsetClaim { generation_or_epoch: 1, ..a }),
        Err(ErrorCode::StaleMemberEpoch)
    );
    assert_eq!(
        group.check_commit(&OffsetClaim { generation_or_epoch: 3, ..a }),
        Err(ErrorCode::StaleMemberEpoch)
    );
    assert_eq!(group.check_commit(&OffsetClaim { member_id: "b", ..a }), Err(ErrorCode::UnknownMemberId));
    assert_eq!(group.check_commit(&OffsetClaim { version: 8, ..a }), Err(ErrorCode::UnsupportedVersion));
    assert_eq!(group.check_commit(&OffsetClaim { version: 3, transactional: true, ..a }), Ok(()));
    assert_eq!(group.check_commit(&NOBODY), Err(ErrorCode::UnknownMemberId));
    assert_eq!(
        group.check_commit(&OffsetClaim { transactional: true, ..NOBODY }),
        Ok(()),
        "an old producer's transaction"
    );
    scene.beat(stay("a", -1));
    assert_eq!(scene.members().check_commit(&NOBODY), Ok(()));
    assert_eq!(scene.members().check_commit(&a), Err(ErrorCode::UnknownMemberId));
}

#[test]
fn a_commit_of_the_epoch_before_is_taken_for_what_the_member_still_has() {
    let mut scene = Scene::with_topic(4);
    let mut clients = [Client::new(join("a", &["foo"])), Client::new(join("b", &["foo"]))];
    reconcile_all(&mut scene, &mut clients);
    let (foo, group) = (scene.id("foo"), scene.members());
    let late = OffsetClaim { member_id: "a", generation_or_epoch: 2, ..NOBODY };
    assert_eq!(group.check_commit(&late), Err(ErrorCode::StaleMemberEpoch));
    assert_eq!(
        [0, 1, 2, 3].map(|partition| group.owned_at(&late, &foo, partition)),
        [true, true, false, false]
    );
    let never = OffsetClaim { member_id: "b", generation_or_epoch: 2, ..NOBODY };
    assert!(!group.owned_at(&never, &foo, 2), "b got it at epoch 3");
    assert!(
        !group.owned_at(&OffsetClaim { generation_or_epoch: 4, ..late }, &foo, 0),
        "an epoch from the future"
    );
}

#[test]
fn who_says_that_it_is_a_member_must_be_one_to_fetch() {
    let mut scene = Scene::with_topic(1);
    scene.beat(join("a", &["foo"]));
    let group = scene.members();
    let a = OffsetClaim { member_id: "a", generation_or_epoch: 2, ..NOBODY };
    assert_eq!(group.check_fetch(&a), Ok(()));
    assert_eq!(group.check_fetch(&NOBODY), Ok(()));
    assert_eq!(
        group.check_fetch(&OffsetClaim { generation_or_epoch: 3, ..a }),
        Err(ErrorCode::StaleMemberEpoch)
    );
    assert_eq!(group.check_fetch(&OffsetClaim { member_id: "b", ..a }), Err(ErrorCode::UnknownMemberId));
}

#[test]
fn only_an_empty_group_may_be_deleted() {
    let mut scene = Scene::with_topic(1);
    scene.beat(join("a", &["foo"]));
    assert_eq!(scene.members().check_delete(), Err(ErrorCode::NonEmptyGroup));
    scene.beat(stay("a", -1));
    assert_eq!(scene.members().check_delete(), Ok(()));
    let tombstones = scene.members().tombstones(super::scene::GROUP);
    scene.log.extend(tombstones);
    assert!(matches!(scene.replayed().kind, crate::group::GroupKind::Simple));
}
