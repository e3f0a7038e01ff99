//! LeaveGroup.
use super::bench::*;
use crate::group::GroupReply;
use crate::group::GroupRequest;
use pylog_wire::messages::LeaveGroupRequest;

#[test]
fn the_last_member_leaves_an_empty_group_of_the_next_generation() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join()]).remove(0);
    assert_eq!(bench.left_with(&[(&member.id, None)]), [code::NONE]);
    assert_eq!((bench.state(), bench.group().generation_id()), ("Empty", 2));
}

#[test]
fn a_leaving_leader_makes_the_others_rebalance_under_a_new_one() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join(), join()]);
    bench.leave(&[(&members[0].id, None)]);
    assert_eq!(bench.heartbeat(&members[1]), code::REBALANCE_IN_PROGRESS);
    let ticket = bench.join(join().id(&members[1].id));
    let answer = bench.joined(ticket);
    assert_eq!((answer.generation_id, answer.leader, answer.members.len()), (2, members[1].id.clone(), 1));
}

#[test]
fn who_leaves_while_its_requests_wait_gets_them_answered() {
    let mut bench = Bench::new();
    let members = bench.generation(vec![join(), join()]);
    let sync = bench.sync(&members[1], &[]);
    bench.leave(&[(&members[1].id, None)]);
    assert_eq!(bench.synced(sync).error_code, code::UNKNOWN_MEMBER_ID);
    let new = bench.enter(join());
    let id =
        bench.member_ids().into_iter().find(|id| !members.iter().any(|m| &m.id == id)).expect("the new one");
    bench.leave(&[(&id, None)]);
    let answer = bench.joined(new);
    assert_eq!((answer.error_code, answer.member_id.as_str()), (code::UNKNOWN_MEMBER_ID, ""));
}

#[test]
fn the_rebalance_goes_on_without_the_member_that_left_during_it() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join(), join()]);
    let ticket = bench.join(join().id(&members[0].id));
    assert!(bench.waits(ticket));
    bench.leave(&[(&members[1].id, None)]);
    assert_eq!(bench.known(ticket).generation, 2);
}

#[test]
fn several_leave_at_once_and_each_has_its_own_answer() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join().instance("a"), join().instance("b"), join()]);
    let id_of = |name: &str| members.iter().find(|m| m.id.starts_with(name)).expect("is there").id.clone();
    let (b, dynamic) = (id_of("b-"), id_of("client-"));
    let pending = bench.join(join());
    let pending = bench.joined(pending).member_id;
    let leaving: &[(&str, Option<&str>)] = &[
        ("", Some("a")),
        (&b, Some("b")),
        (&dynamic, None),
        (&pending, None),
        ("", Some("nobody")),
        ("stranger", None),
    ];
    let answer = bench.leave(leaving);
    assert_eq!(answer.error_code, code::NONE);
    let (unknown, fine) = (code::UNKNOWN_MEMBER_ID, code::NONE);
    let codes: Vec<i16> = answer.members.iter().map(|member| member.error_code).collect();
    assert_eq!(codes, [fine, fine, fine, fine, unknown, unknown]);
    let named: Vec<(&str, Option<&str>)> =
        answer.members.iter().map(|m| (m.member_id.as_str(), m.group_instance_id.as_deref())).collect();
    assert_eq!(named, leaving, "as they were asked");
    assert_eq!(bench.state(), "Empty");
}

#[test]
fn a_static_member_under_another_id_is_fenced_and_stays() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join().instance("a"), join().instance("b")]);
    assert_eq!(bench.left_with(&[("wrong", Some("a"))]), [code::FENCED_INSTANCE_ID]);
    assert_eq!(bench.left_with(&[(&members[0].id, Some("nobody"))]), [code::UNKNOWN_MEMBER_ID]);
    assert_eq!((bench.state(), bench.member_ids().len()), ("Stable", 2));
}

#[test]
fn a_group_that_is_not_there_knows_no_member() {
    let mut bench = Bench::new();
    assert_eq!(bench.left_with(&[("a", None), ("", Some("b"))]), [code::UNKNOWN_MEMBER_ID; 2]);
    let ticket = bench.ask(5, GroupRequest::LeaveGroup(LeaveGroupRequest::default()));
    assert!(
        matches!(&bench.answers[&ticket], GroupReply::LeaveGroup(answer) if answer.error_code == code::INVALID_GROUP_ID)
    );
}

#[test]
fn an_id_that_was_given_away_and_leaves_no_longer_holds_the_rebalance_up() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join()]).remove(0);
    let pending = bench.join(join());
    let pending = bench.joined(pending).member_id;
    let ticket = bench.join(join().id(&member.id));
    assert!(bench.waits(ticket), "the one with the new id is expected");
    bench.leave(&[(&pending, None)]);
    assert_eq!(bench.known(ticket).generation, 2);
}
