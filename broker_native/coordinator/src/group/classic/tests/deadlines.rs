//! What happens when time passes.
use super::bench::*;

#[test]
fn an_empty_group_waits_for_more_members_before_its_first_rebalance() {
    let mut bench = Bench::new();
    let first = bench.enter(join());
    bench.pass(INITIAL_DELAY_MS - 1);
    assert!(bench.waits(first));
    bench.pass(1);
    assert_eq!(bench.known(first).generation, 1);
}

#[test]
fn members_that_come_during_the_wait_make_it_longer_up_to_the_rebalance_time_out() {
    let mut bench = Bench::new();
    let mut tickets = vec![bench.enter(join())];
    let mut waited_ms = 0;
    while bench.waits(tickets[0]) {
        tickets.push(bench.enter(join()));
        bench.pass(INITIAL_DELAY_MS);
        waited_ms += INITIAL_DELAY_MS;
        assert!(waited_ms <= 60_000, "it ends");
    }
    assert_eq!(waited_ms, 21_000, "the rebalance time-out of 20 s, in steps of 3 s");
    let generations: Vec<i32> = tickets.into_iter().map(|ticket| bench.known(ticket).generation).collect();
    assert!(generations.iter().all(|generation| *generation == 1));
}

#[test]
fn the_wait_ends_when_nobody_came_during_the_last_of_it() {
    let mut bench = Bench::new();
    let first = bench.enter(join());
    bench.pass(1_000);
    let second = bench.enter(join());
    bench.pass(2_000);
    assert!(bench.waits(first), "the second made it longer");
    bench.pass(INITIAL_DELAY_MS);
    assert_eq!((bench.known(first).generation, bench.known(second).generation), (1, 1));
}

#[test]
fn a_silent_member_is_out_and_the_others_rebalance() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join(), join()]);
    bench.pass(i64::from(SESSION_MS) - 1);
    assert_eq!(bench.heartbeat(&members[0]), code::NONE);
    bench.pass(1);
    assert_eq!(bench.heartbeat(&members[0]), code::REBALANCE_IN_PROGRESS);
    assert_eq!(bench.heartbeat(&members[1]), code::UNKNOWN_MEMBER_ID);
    assert_eq!(bench.member_ids(), [members[0].id.clone()]);
}

#[test]
fn heartbeats_keep_a_member_in() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join()]).remove(0);
    for _ in 0..10 {
        bench.pass(i64::from(SESSION_MS) - 1);
        assert_eq!(bench.heartbeat(&member), code::NONE);
    }
}

#[test]
fn a_group_whose_members_all_fall_silent_becomes_empty() {
    let mut bench = Bench::new();
    bench.stable(vec![join(), join()]);
    bench.pass(SESSION_MS.into());
    bench.pass(REBALANCE_MS.into());
    assert_eq!(bench.state(), "Empty");
    assert!(bench.waits_for_nothing());
}

#[test]
fn an_id_that_does_not_come_back_is_forgotten_and_holds_nothing_up_any_more() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join()]).remove(0);
    let pending = bench.join(join().times(6_000, REBALANCE_MS));
    let pending = bench.joined(pending).member_id;
    let ticket = bench.join(join().id(&member.id));
    bench.pass(5_999);
    assert!(bench.waits(ticket), "the one with the new id is expected");
    bench.pass(1);
    assert_eq!(bench.known(ticket).generation, 2);
    let late = bench.join(join().id(&pending));
    assert_eq!(bench.joined(late).error_code, code::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_group_that_only_gave_ids_away_is_gone_when_none_came_back() {
    let mut bench = Bench::new();
    bench.join(join());
    assert_eq!(bench.state(), "Empty");
    bench.pass(SESSION_MS.into());
    assert_eq!(bench.state(), "Dead");
    assert!(bench.log.is_empty() && bench.waits_for_nothing());
}

#[test]
fn a_new_member_is_expected_when_it_comes_back_with_its_id() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join()]).remove(0);
    let pending = bench.join(join());
    let pending = bench.joined(pending).member_id;
    let old = bench.join(join().id(&member.id));
    assert!(bench.waits(old));
    let new = bench.join(join().id(&pending));
    assert_eq!((bench.known(old).generation, bench.known(new).generation), (2, 2));
}

#[test]
fn members_that_do_not_join_again_in_time_are_out() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join(), join(), join()]);
    let ticket = bench.join(join().id(&members[1].id).metadata(b"new"));
    for _ in 0..4 {
        assert_eq!(bench.heartbeat(&members[0]), code::REBALANCE_IN_PROGRESS, "alive, but busy");
        assert_eq!(bench.heartbeat(&members[2]), code::REBALANCE_IN_PROGRESS);
        assert!(bench.waits(ticket));
        bench.pass(i64::from(REBALANCE_MS) / 4);
    }
    let answer = bench.joined(ticket);
    assert_eq!((answer.generation_id, answer.leader, answer.members.len()), (2, members[1].id.clone(), 1));
    assert_eq!(bench.heartbeat(&members[0]), code::UNKNOWN_MEMBER_ID);
}

#[test]
fn the_group_waits_as_long_as_its_most_patient_member() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join(), join().times(SESSION_MS, 50_000)]);
    let patient = bench.group().roster().iter().find(|m| m.rebalance_timeout_ms == 50_000).expect("is there");
    let hasty = members.iter().find(|m| m.id != patient.member_id).expect("is there").clone();
    let patient = members.iter().find(|m| m.id != hasty.id).expect("is there").clone();
    let ticket = bench.join(join().id(&hasty.id).metadata(b"new"));
    for _ in 0..49 {
        bench.pass(1_000);
        assert_eq!(bench.heartbeat(&patient), code::REBALANCE_IN_PROGRESS);
    }
    assert!(bench.waits(ticket));
    bench.pass(1_000);
    assert_eq!(bench.known(ticket).generation, 2);
}

#[test]
fn members_that_wait_are_not_missed() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join(), join().times(SESSION_MS, 300_000)]);
    let waiting = bench.join(join().id(&members[0].id).times(6_000, 300_000));
    for _ in 0..20 {
        bench.pass(5_000);
        assert_eq!(bench.heartbeat(&members[1]), code::REBALANCE_IN_PROGRESS);
    }
    let other = bench.join(join().id(&members[1].id));
    assert_eq!((bench.known(waiting).generation, bench.known(other).generation), (2, 2));
}

#[test]
fn a_new_member_waits_five_minutes_at_most() {
    let mut bench = Bench::new();
    let member = bench.stable(vec![join().times(SESSION_MS, 600_000)]).remove(0);
    let new = bench.enter(join());
    for _ in 0..300 {
        assert!(bench.waits(new));
        assert_eq!(bench.heartbeat(&member), code::REBALANCE_IN_PROGRESS);
        bench.pass(1_000);
    }
    let answer = bench.joined(new);
    assert_eq!((answer.error_code, answer.member_id.as_str()), (code::UNKNOWN_MEMBER_ID, ""));
}

#[test]
fn who_does_not_sync_in_time_is_out_and_the_others_rebalance() {
    let mut bench = Bench::new();
    let members = bench.generation(vec![join(), join(), join()]);
    let waiting = bench.sync(&members[1], &[]);
    for _ in 0..4 {
        assert_eq!(bench.heartbeat(&members[0]), code::NONE, "heartbeats alone do not help");
        assert_eq!(bench.heartbeat(&members[2]), code::NONE);
        bench.pass(i64::from(REBALANCE_MS) / 4);
    }
    assert_eq!(bench.synced(waiting).error_code, code::REBALANCE_IN_PROGRESS);
    assert_eq!(bench.member_ids(), [members[1].id.clone()]);
    let ticket = bench.join(join().id(&members[1].id));
    assert_eq!(bench.known(ticket).generation, 2);
}

#[test]
fn a_follower_that_never_fetches_its_assignment_is_out_also_of_a_stable_group() {
    let mut bench = Bench::new();
    let members = bench.generation(vec![join(), join()]);
    bench.sync(&members[0], &[(&members[1].id, "A")]);
    assert_eq!(bench.state(), "Stable");
    for _ in 0..4 {
        assert_eq!(bench.heartbeat(&members[0]), code::NONE);
        assert_eq!(bench.heartbeat(&members[1]), code::NONE);
        bench.pass(i64::from(REBALANCE_MS) / 4);
    }
    assert_eq!(bench.heartbeat(&members[1]), code::UNKNOWN_MEMBER_ID);
    assert_eq!(bench.heartbeat(&members[0]), code::REBALANCE_IN_PROGRESS);
}

#[test]
fn once_all_have_synced_only_heartbeats_count() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join(), join()]);
    for _ in 0..10 {
        bench.pass(i64::from(REBALANCE_MS) / 4);
        assert!(members.iter().all(|member| bench.heartbeat(member) == code::NONE));
    }
    assert_eq!(bench.state(), "Stable");
}

#[test]
fn a_wall_clock_that_is_set_moves_no_deadline() {
    for set_ms in [-3_600_000, 3_600_000] {
        let mut bench = Bench::new();
        let first = bench.enter(join());
        bench.set_ms = set_ms;
        bench.pass(INITIAL_DELAY_MS - 1);
        assert!(bench.waits(first), "the clock was set by {set_ms} ms");
        bench.pass(1);
        assert_eq!(bench.known(first).generation, 1, "the clock was set by {set_ms} ms");
        let mut bench = Bench::new();
        let member = bench.stable(vec![join()]).remove(0);
        bench.set_ms = set_ms;
        bench.pass(i64::from(SESSION_MS) - 1);
        assert_eq!(bench.heartbeat(&member), code::NONE);
        bench.pass(i64::from(SESSION_MS));
        assert_eq!(bench.heartbeat(&member), code::UNKNOWN_MEMBER_ID);
    }
}
