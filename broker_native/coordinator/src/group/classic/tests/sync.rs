//! SyncGroup and Heartbeat.
use super::bench::*;
use crate::group::GroupRequest;

#[test]
fn followers_wait_for_the_leader_and_each_gets_its_own() {
    let mut bench = Bench::new();
    let members = bench.generation(vec![join(), join(), join()]);
    let [leader, a, b] = &members[..] else { panic!("three members") };
    let first = bench.sync(a, &[]);
    assert!(bench.waits(first));
    let own = bench.sync(leader, &[(&leader.id, "L"), (&a.id, "A"), (&b.id, "B")]);
    assert_eq!(bench.state(), "Stable");
    let late = bench.sync(b, &[]);
    for (ticket, assignment) in [(own, "L"), (first, "A"), (late, "B")] {
        let answer = bench.synced(ticket);
        assert_eq!((answer.error_code, &answer.assignment[..]), (code::NONE, assignment.as_bytes()));
        assert_eq!(
            (answer.protocol_type.as_deref(), answer.protocol_name.as_deref()),
            (Some("consumer"), Some("range"))
        );
    }
}

#[test]
fn a_member_that_the_leader_leaves_out_gets_an_empty_assignment() {
    let mut bench = Bench::new();
    let members = bench.generation(vec![join(), join()]);
    let left_out = bench.sync(&members[1], &[]);
    bench.sync(&members[0], &[(&members[0].id, "L"), ("stranger", "X")]);
    let answer = bench.synced(left_out);
    assert_eq!((answer.error_code, answer.assignment.len()), (code::NONE, 0));
}

#[test]
fn assignments_of_a_follower_are_not_taken() {
    let mut bench = Bench::new();
    let members = bench.generation(vec![join(), join()]);
    let ticket = bench.sync(&members[1], &[(&members[1].id, "mine")]);
    assert!(bench.waits(ticket));
    assert_eq!(bench.state(), "CompletingRebalance");
}

#[test]
fn a_stable_group_gives_an_assignment_as_often_as_it_is_asked() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join()]).remove(0);
    for _ in 0..2 {
        let ticket = bench.sync(&member, &[(&member.id, "other")]);
        assert_eq!(bench.synced(ticket).assignment, member.id.as_bytes());
    }
}

#[test]
fn sync_is_fenced_by_member_and_generation() {
    let mut bench = Bench::prompt();
    let stranger = Known { id: "stranger".into(), generation: 1 };
    let ticket = bench.sync(&stranger, &[]);
    assert_eq!(bench.synced(ticket).error_code, code::UNKNOWN_MEMBER_ID, "no group");
    let member = bench.generation(vec![join()]).remove(0);
    let ticket = bench.sync(&stranger, &[]);
    assert_eq!(bench.synced(ticket).error_code, code::UNKNOWN_MEMBER_ID);
    for generation in [0, 2] {
        let ticket = bench.sync(&Known { generation, ..member.clone() }, &[]);
        assert_eq!(bench.synced(ticket).error_code, code::ILLEGAL_GENERATION);
    }
    let mut nameless = sync_request(&member, &[]);
    nameless.group_id.clear();
    let ticket = bench.sync_with(nameless);
    assert_eq!(bench.synced(ticket).error_code, code::INVALID_GROUP_ID);
}

#[test]
fn sync_must_name_the_groups_protocol_and_from_version_5_on_must_name_one() {
    let mut bench = Bench::prompt();
    let member = bench.generation(vec![join()]).remove(0);
    let named = |protocol_type: Option<&str>, protocol_name: Option<&str>| {
        let mut request = sync_request(&member, &[(&member.id, "x")]);
        request.protocol_type = protocol_type.map(str::to_owned);
        request.protocol_name = protocol_name.map(str::to_owned);
        GroupRequest::SyncGroup(request)
    };
    for (protocol_type, protocol_name, error_code) in [
        (Some("connect"), Some("range"), code::INCONSISTENT_GROUP_PROTOCOL),
        (Some("consumer"), Some("sticky"), code::INCONSISTENT_GROUP_PROTOCOL),
        (None, None, code::INCONSISTENT_GROUP_PROTOCOL),
        (Some("consumer"), Some("range"), code::NONE),
    ] {
        let ticket = bench.ask(5, named(protocol_type, protocol_name));
        assert_eq!(bench.synced(ticket).error_code, error_code, "{protocol_type:?} {protocol_name:?}");
    }
    let ticket = bench.ask(4, named(None, None));
    assert_eq!(bench.synced(ticket).error_code, code::NONE);
}

#[test]
fn a_rebalance_tells_those_that_wait_for_assignments_to_join_again() {
    let mut bench = Bench::new();
    let members = bench.generation(vec![join(), join()]);
    let waiting = bench.sync(&members[1], &[]);
    bench.enter(join());
    assert_eq!(bench.synced(waiting).error_code, code::REBALANCE_IN_PROGRESS);
    let ticket = bench.sync(&members[0], &[]);
    assert_eq!(bench.synced(ticket).error_code, code::REBALANCE_IN_PROGRESS);
}

#[test]
fn who_syncs_twice_is_answered_twice() {
    let mut bench = Bench::new();
    let members = bench.generation(vec![join(), join()]);
    let first = bench.sync(&members[1], &[]);
    let second = bench.sync(&members[1], &[]);
    assert_eq!(bench.synced(first).error_code, code::REBALANCE_IN_PROGRESS);
    bench.sync(&members[0], &[(&members[1].id, "A")]);
    assert_eq!(&bench.synced(second).assignment[..], b"A");
}

#[test]
fn heartbeats_tell_of_rebalances_and_are_fenced_by_member_and_generation() {
    let mut bench = Bench::prompt();
    let stranger = Known { id: "stranger".into(), generation: 1 };
    assert_eq!(bench.heartbeat(&stranger), code::UNKNOWN_MEMBER_ID, "no group");
    let member = bench.generation(vec![join()]).remove(0);
    assert_eq!(bench.heartbeat(&member), code::NONE, "while assignments are awaited");
    assert_eq!(bench.heartbeat(&stranger), code::UNKNOWN_MEMBER_ID);
    bench.sync_all(std::slice::from_ref(&member));
    assert_eq!(bench.heartbeat(&member), code::NONE);
    assert_eq!(bench.heartbeat(&Known { generation: 2, ..member.clone() }), code::ILLEGAL_GENERATION);
    bench.enter(join());
    assert_eq!(bench.heartbeat(&member), code::REBALANCE_IN_PROGRESS);
    bench.leave(&[(&member.id, None)]);
    assert_eq!(bench.heartbeat(&member), code::UNKNOWN_MEMBER_ID);
}
