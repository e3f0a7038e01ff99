//! What a classic group says when it is asked about commits, deletion and age.
use super::bench::*;
use crate::group::{OffsetClaim, Retention};
use pylog_wire::ErrorCode;

fn claim<'a>(member_id: &'a str, generation_or_epoch: i32) -> OffsetClaim<'a> {
    OffsetClaim { member_id, group_instance_id: None, generation_or_epoch, transactional: false, version: 9 }
}

#[test]
fn commits_are_fenced_by_member_and_generation() {
    let mut bench = Bench::prompt();
    let member = bench.generation(vec![join()]).remove(0);
    let commit = |bench: &Bench, claim: OffsetClaim<'_>| bench.group().check_commit(&claim);
    assert_eq!(
        commit(&bench, claim(&member.id, 1)),
        Err(ErrorCode::RebalanceInProgress),
        "before the assignment"
    );
    let transactional = OffsetClaim { transactional: true, ..claim(&member.id, 1) };
    assert_eq!(commit(&bench, transactional), Ok(()), "transactions do not ask for the state");
    bench.sync_all(std::slice::from_ref(&member));
    assert_eq!(commit(&bench, claim(&member.id, 1)), Ok(()));
    assert_eq!(commit(&bench, claim(&member.id, 0)), Err(ErrorCode::IllegalGeneration));
    assert_eq!(commit(&bench, claim("stranger", 1)), Err(ErrorCode::UnknownMemberId));
    assert_eq!(
        commit(&bench, claim("", -1)),
        Err(ErrorCode::UnknownMemberId),
        "an admin, while it is in use"
    );
    assert_eq!(
        commit(&bench, OffsetClaim { transactional: true, ..claim("", -1) }),
        Ok(()),
        "an old transaction"
    );
    bench.enter(join());
    assert_eq!(
        commit(&bench, claim(&member.id, 1)),
        Ok(()),
        "the old generation may commit before it joins again"
    );
    bench.leave(&[(&member.id, None)]);
    let last = bench.member_ids();
    bench.leave(&[(&last[0], None)]);
    assert_eq!(bench.state(), "Empty");
    assert_eq!(commit(&bench, claim("", -1)), Ok(()), "an admin, when it is not in use");
    assert_eq!(commit(&bench, claim(&member.id, 1)), Err(ErrorCode::UnknownMemberId));
}

#[test]
fn a_commit_of_a_fenced_static_member_is_refused() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join().instance("a")]).remove(0);
    bench.join(join().instance("a"));
    let claim = OffsetClaim { group_instance_id: Some("a"), ..claim(&member.id, 1) };
    assert_eq!(bench.group().check_commit(&claim), Err(ErrorCode::FencedInstanceId));
}

#[test]
fn a_group_is_subscribed_to_what_its_members_say() {
    let mut bench = Bench::new();
    bench.stable(vec![
        join().metadata(&consumer_metadata(&["x", "y"])),
        join().metadata(&consumer_metadata(&["z"])),
    ]);
    let subscribed = |bench: &Bench| ["w", "x", "y", "z"].map(|topic| bench.group().is_subscribed_to(topic));
    assert_eq!(subscribed(&bench), [false, true, true, true]);
    assert_eq!(subscribed(&bench.restarted()), [false, true, true, true]);
    let mut bench = Bench::prompt();
    bench.stable(vec![join().metadata(b"\0")]);
    assert_eq!(subscribed(&bench), [true; 4], "what cannot be read may be anything");
}

#[test]
fn only_a_group_without_members_can_be_deleted() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join()]).remove(0);
    assert_eq!(bench.group().check_delete(), Err(ErrorCode::NonEmptyGroup));
    assert_eq!(bench.group().check_offset_delete(), Ok(()), "of topics that nobody is subscribed to");
    bench.leave(&[(&member.id, None)]);
    assert_eq!(bench.group().check_delete(), Ok(()));
    let mut worker = join();
    worker.request.protocol_type = "connect".into();
    bench.stable(vec![worker]);
    assert_eq!(bench.group().check_offset_delete(), Err(ErrorCode::NonEmptyGroup), "who knows what it reads");
}

#[test]
fn offsets_grow_old_from_when_the_last_member_left() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join()]).remove(0);
    assert_eq!(bench.group().retention(), Retention::SinceCommit, "of topics that nobody is subscribed to");
    bench.pass(5_000);
    bench.leave(&[(&member.id, None)]);
    assert_eq!(bench.group().retention(), Retention::Since(bench.now_ms));
    assert_eq!(bench.restarted().group().retention(), Retention::Since(bench.now_ms));
    bench.enter(join());
    assert_eq!(bench.group().retention(), Retention::Keep);
}
