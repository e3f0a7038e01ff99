//! JoinGroup.
use bytes::Bytes;

use super::bench::*;
use crate::group::{GroupRequest, Settings};

#[test]
fn a_first_member_leads_and_is_told_who_is_there() {
    let mut bench = Bench::prompt();
    let ticket = bench.enter(join().metadata(b"mine"));
    bench.pass(0);
    let answer = bench.joined(ticket);
    assert_eq!((answer.error_code, answer.generation_id), (code::NONE, 1));
    assert_eq!(answer.leader, answer.member_id);
    assert_eq!(
        (answer.protocol_type.as_deref(), answer.protocol_name.as_deref()),
        (Some("consumer"), Some("range"))
    );
    let [member] = &answer.members[..] else { panic!("one member, not {:?}", answer.members) };
    assert_eq!((&member.member_id, &member.metadata), (&answer.member_id, &Bytes::from_static(b"mine")));
    assert_eq!(bench.state(), "CompletingRebalance");
}

#[test]
fn a_member_id_is_the_client_id_or_the_instance_id_and_a_uuid() {
    let mut bench = Bench::new();
    let ticket = bench.join(join());
    assert_eq!(bench.joined(ticket).member_id, "client-00000000-0000-0000-0000-000000000001");
    bench.join(join().instance("fixed"));
    let ids = bench.member_ids();
    assert_eq!(ids, ["fixed-00000000-0000-0000-0000-000000000002"]);
}

#[test]
fn version_4_is_told_to_come_back_with_its_id_and_version_3_is_not() {
    for version in 0..=9 {
        let mut bench = Bench::prompt();
        let ticket = bench.join(join().version(version));
        bench.pass(0);
        let answer = bench.joined(ticket);
        let expected = if version >= 4 { code::MEMBER_ID_REQUIRED } else { code::NONE };
        assert_eq!(answer.error_code, expected, "version {version}");
        assert!(!answer.member_id.is_empty());
    }
}

#[test]
fn static_members_need_not_come_back_with_their_ids() {
    let mut bench = Bench::prompt();
    let ticket = bench.join(join().instance("a"));
    bench.pass(0);
    assert_eq!(bench.joined(ticket).error_code, code::NONE);
}

#[test]
fn a_member_id_that_the_group_never_gave_is_unknown() {
    let mut bench = Bench::prompt();
    let ticket = bench.join(join().id("made-up"));
    let answer = bench.joined(ticket);
    assert_eq!((answer.error_code, answer.member_id.as_str()), (code::UNKNOWN_MEMBER_ID, "made-up"));
    assert_eq!(bench.state(), "Dead", "no group was made");
    bench.stable(vec![join()]);
    let ticket = bench.join(join().id("made-up"));
    assert_eq!(bench.joined(ticket).error_code, code::UNKNOWN_MEMBER_ID);
}

#[test]
fn an_empty_group_id_and_one_that_no_record_can_hold_are_invalid() {
    let mut bench = Bench::prompt();
    for group_id in [String::new(), "x".repeat(32_768)] {
        let mut asked = join();
        asked.request.group_id = group_id;
        let ticket = bench.join(asked);
        assert_eq!(bench.joined(ticket).error_code, code::INVALID_GROUP_ID);
    }
}

#[test]
fn names_from_which_no_member_id_can_be_made_are_refused() {
    let mut bench = Bench::prompt();
    let ticket = bench.join(join().instance(&"n".repeat(32_767 - 37)));
    bench.pass(0);
    let member = bench.known(ticket);
    bench.sync_all(std::slice::from_ref(&member));
    let ticket = bench.join(join().instance(&"n".repeat(32_767 - 36)));
    assert_eq!(bench.joined(ticket).error_code, code::INVALID_REQUEST);
}

#[test]
fn session_time_outs_outside_the_brokers_bounds_are_refused() {
    let mut bench = Bench::prompt();
    for (session_ms, error_code) in [
        (5_999, code::INVALID_SESSION_TIMEOUT),
        (6_000, code::MEMBER_ID_REQUIRED),
        (1_800_000, code::MEMBER_ID_REQUIRED),
        (1_800_001, code::INVALID_SESSION_TIMEOUT),
    ] {
        let ticket = bench.join(join().times(session_ms, REBALANCE_MS));
        assert_eq!(bench.joined(ticket).error_code, error_code, "{session_ms}");
    }
}

#[test]
fn protocols_without_type_or_without_any_name_are_inconsistent() {
    let mut bench = Bench::prompt();
    let mut without_type = join();
    without_type.request.protocol_type.clear();
    for asked in [without_type, join().protocols(&[])] {
        let ticket = bench.join(asked);
        let answer = bench.joined(ticket);
        assert_eq!(answer.error_code, code::INCONSISTENT_GROUP_PROTOCOL);
        assert_eq!((answer.protocol_type, answer.protocol_name), (None, None), "an error names no protocol");
        assert_eq!(bench.state(), "Dead", "no group was made");
    }
}

#[test]
fn a_member_that_shares_no_protocol_or_is_of_another_type_is_inconsistent() {
    let mut bench = Bench::prompt();
    let members = bench.stable(vec![join().protocols(&["range", "roundrobin"])]);
    let mut connect = join();
    connect.request.protocol_type = "connect".into();
    for asked in [connect, join().protocols(&["sticky"])] {
        let ticket = bench.join(asked);
        assert_eq!(bench.joined(ticket).error_code, code::INCONSISTENT_GROUP_PROTOCOL);
    }
    let ticket = bench.join(join().id(&members[0].id).protocols(&["sticky"]));
    assert_eq!(bench.joined(ticket).error_code, code::INCONSISTENT_GROUP_PROTOCOL, "also one that is in");
    assert_eq!(bench.state(), "Stable");
}

#[test]
fn the_protocol_with_most_votes_among_those_that_all_speak_wins() {
    let mut bench = Bench::new();
    let tickets = [
        bench.enter(join().protocols(&["sticky", "range", "roundrobin"])),
        bench.enter(join().protocols(&["roundrobin", "range"])),
        bench.enter(join().protocols(&["range", "roundrobin"])),
    ];
    bench.pass(REBALANCE_MS.into());
    for ticket in tickets {
        // sticky is not common; range is the first common one of two members.
        assert_eq!(bench.joined(ticket).protocol_name.as_deref(), Some("range"));
    }
}

#[test]
fn a_protocol_that_a_member_names_twice_counts_once() {
    let mut bench = Bench::new();
    bench.enter(join().protocols(&["range", "range"]));
    let ticket = bench.enter(join().protocols(&["roundrobin"]));
    assert_eq!(bench.joined(ticket).error_code, code::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn a_new_member_makes_a_stable_group_rebalance_and_the_generation_grows() {
    let mut bench = Bench::prompt();
    let first = bench.stable(vec![join()]).remove(0);
    assert_eq!(first.generation, 1);
    let new = bench.enter(join());
    assert!(bench.waits(new));
    assert_eq!((bench.state(), bench.heartbeat(&first)), ("PreparingRebalance", code::REBALANCE_IN_PROGRESS));
    let again = bench.join(join().id(&first.id));
    assert_eq!(bench.known(again), Known { id: first.id.clone(), generation: 2 });
    let answer = bench.joined(new);
    assert_eq!((answer.generation_id, answer.leader), (2, first.id));
    assert!(answer.members.is_empty(), "the answer to a follower names no members");
}

#[test]
fn a_leader_that_joins_again_makes_a_stable_group_rebalance() {
    let mut bench = Bench::prompt();
    let leader = bench.stable(vec![join()]).remove(0);
    let ticket = bench.join(join().id(&leader.id));
    assert_eq!(bench.known(ticket).generation, 2);
}

#[test]
fn a_follower_that_joins_again_unchanged_is_told_the_generation_without_a_rebalance() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join(), join()]);
    let ticket = bench.join(join().id(&members[1].id));
    let answer = bench.joined(ticket);
    assert_eq!((answer.error_code, answer.generation_id, answer.members.len()), (code::NONE, 1, 0));
    assert_eq!(answer.leader, members[0].id);
    assert_eq!(bench.state(), "Stable");
}

#[test]
fn a_follower_with_changed_metadata_makes_a_stable_group_rebalance() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join(), join()]);
    let ticket = bench.join(join().id(&members[1].id).metadata(b"other"));
    assert!(bench.waits(ticket));
    assert_eq!(bench.state(), "PreparingRebalance");
}

#[test]
fn a_member_that_lost_its_answer_gets_it_again_while_assignments_are_awaited() {
    let mut bench = Bench::new();
    let members = bench.generation(vec![join(), join()]);
    for (member, told_of) in [(&members[0], 2), (&members[1], 0)] {
        let ticket = bench.join(join().id(&member.id));
        let answer = bench.joined(ticket);
        assert_eq!((answer.error_code, answer.generation_id, answer.members.len()), (code::NONE, 1, told_of));
    }
    let ticket = bench.join(join().id(&members[1].id).metadata(b"other"));
    assert!(bench.waits(ticket), "with other metadata it begins a rebalance");
    assert_eq!(bench.state(), "PreparingRebalance");
}

#[test]
fn whoever_asks_twice_is_answered_twice_and_is_one_member() {
    let mut bench = Bench::new();
    let id = bench.join(join());
    let id = bench.joined(id).member_id;
    let first = bench.join(join().id(&id));
    let second = bench.join(join().id(&id));
    let answer = bench.joined(first);
    assert_eq!((answer.error_code, answer.member_id), (code::REBALANCE_IN_PROGRESS, id.clone()));
    bench.pass(INITIAL_DELAY_MS);
    let answer = bench.joined(second);
    assert_eq!((answer.error_code, answer.members.len(), answer.member_id), (code::NONE, 1, id));
}

#[test]
fn an_id_that_was_given_to_a_dynamic_member_cannot_become_a_static_one() {
    let mut bench = Bench::new();
    let ticket = bench.join(join());
    let id = bench.joined(ticket).member_id;
    let ticket = bench.join(join().id(&id).instance("a"));
    assert_eq!(bench.joined(ticket).error_code, code::UNKNOWN_SERVER_ERROR);
}

#[test]
fn a_member_of_an_emptied_group_is_unknown() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join()]).remove(0);
    bench.leave(&[(&member.id, None)]);
    assert_eq!(bench.state(), "Empty");
    let ticket = bench.join(join().id(&member.id));
    assert_eq!(bench.joined(ticket).error_code, code::UNKNOWN_MEMBER_ID);
}

fn at_most(group_max_size: i32) -> Settings {
    Settings { group_max_size, group_initial_rebalance_delay_ms: 0, ..Settings::default() }
}

#[test]
fn a_full_group_takes_nobody_else_and_its_members_stay() {
    let mut bench = Bench::with(at_most(2));
    let tickets = [bench.enter(join()), bench.enter(join())];
    let third = bench.enter(join());
    assert_eq!(bench.joined(third).error_code, code::GROUP_MAX_SIZE_REACHED);
    bench.pass(0);
    let members = tickets.map(|ticket| bench.known(ticket));
    let fourth = bench.enter(join());
    assert_eq!(bench.joined(fourth).error_code, code::GROUP_MAX_SIZE_REACHED);
    let leader = bench.join(join().id(&members[0].id));
    assert_eq!(bench.joined(leader).error_code, code::NONE);
}

#[test]
fn a_group_that_is_too_large_since_the_limit_was_lowered_drops_the_last_to_come_back() {
    let mut bench = Bench::with(at_most(3));
    let tickets = [bench.enter(join()), bench.enter(join()), bench.enter(join())];
    bench.pass(0);
    let members = tickets.map(|ticket| bench.known(ticket));
    let ids: Vec<(&str, &str)> = members.iter().map(|m| (m.id.as_str(), "x")).collect();
    for member in &members {
        bench.sync(member, &ids);
    }
    assert_eq!(bench.state(), "Stable");
    let mut bench = bench.restarted_with(at_most(2));
    assert_eq!(bench.state(), "PreparingRebalance", "so that all can commit before one is out");
    let [a, b, c] = members.map(|member| bench.join(join().id(&member.id)));
    assert_eq!(bench.joined(c).error_code, code::GROUP_MAX_SIZE_REACHED);
    bench.pass(REBALANCE_MS.into());
    assert_eq!((bench.known(a).generation, bench.known(b).generation), (2, 2));
}

#[test]
fn groups_of_other_protocol_types_work_too() {
    let mut bench = Bench::prompt();
    let mut worker = join().protocols(&["sessioned"]).metadata(b"anything");
    worker.request.protocol_type = "connect".into();
    bench.stable(vec![worker]);
    let described = bench.describe(6);
    assert_eq!(
        (described.protocol_type.as_str(), described.protocol_data.as_str()),
        ("connect", "sessioned")
    );
}

#[test]
fn fifty_members_with_large_metadata_join_in_one_generation() {
    let mut bench = Bench::new();
    let metadata = vec![7; 15_000];
    let members = bench.stable(vec![join().metadata(&metadata); 50]);
    assert_eq!(members.len(), 50);
    assert!(members.iter().all(|member| member.generation == 1));
    let ticket = bench.join(join().id(&members[0].id).metadata(&metadata));
    for member in &members[1..] {
        bench.join(join().id(&member.id).metadata(&metadata));
    }
    let answer = bench.joined(ticket);
    assert_eq!((answer.generation_id, answer.members.len()), (2, 50));
}

#[test]
fn a_group_that_is_not_there_is_dead_and_since_version_6_an_error() {
    let mut bench = Bench::prompt();
    let described = bench.describe(5);
    assert_eq!((described.error_code, described.group_state.as_str()), (code::NONE, "Dead"));
    let described = bench.describe(6);
    assert_eq!((described.error_code, described.group_state.as_str()), (code::GROUP_ID_NOT_FOUND, "Dead"));
    assert_eq!(described.error_message.as_deref(), Some("Group readers not found."));
}

#[test]
fn metadata_and_protocol_are_described_only_when_the_group_is_stable() {
    let mut bench = Bench::prompt();
    let member = bench.generation(vec![join().metadata(b"mine")]).remove(0);
    let described = bench.describe(6);
    assert_eq!(
        (described.group_state.as_str(), described.protocol_data.as_str()),
        ("CompletingRebalance", "")
    );
    assert!(described.members[0].member_metadata.is_empty());
    bench.sync_all(std::slice::from_ref(&member));
    let described = bench.describe(6);
    assert_eq!((described.group_state.as_str(), described.protocol_data.as_str()), ("Stable", "range"));
    let shown = &described.members[0];
    assert_eq!((&shown.member_id, &shown.member_metadata[..]), (&member.id, &b"mine"[..]));
    assert_eq!((shown.client_id.as_str(), shown.client_host.as_str()), ("client", "/127.0.0.1"));
    assert_eq!(&shown.member_assignment[..], member.id.as_bytes());
    let ticket = bench.ask(6, GroupRequest::DescribeGroup("other".into()));
    assert!(!bench.waits(ticket));
}
