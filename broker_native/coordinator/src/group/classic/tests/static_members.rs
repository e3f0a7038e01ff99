//! Members with a group.instance.id.
use super::bench::*;

fn id_of(members: &[Known], name: &str) -> Known {
    members.iter().find(|member| member.id.starts_with(&format!("{name}-"))).expect("is there").clone()
}

#[test]
fn a_static_follower_that_restarts_keeps_its_assignment_without_a_rebalance() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join().instance("a"), join().instance("b")]);
    let (leader, follower) = (&members[0], &members[1]);
    let name = follower.id.split('-').next().expect("a name").to_owned();
    let records = bench.log.len();
    let ticket = bench.join(join().instance(&name));
    let answer = bench.joined(ticket);
    assert_eq!((answer.error_code, answer.generation_id, answer.skip_assignment), (code::NONE, 1, false));
    assert_ne!(answer.member_id, follower.id);
    assert_eq!((&answer.leader, answer.members.len()), (&leader.id, 0));
    assert_eq!((bench.state(), bench.log.len()), ("Stable", records + 1), "its new id is in the log");
    let reborn = Known { id: answer.member_id, generation: 1 };
    let ticket = bench.sync(&reborn, &[]);
    assert_eq!(bench.synced(ticket).assignment, follower.id.as_bytes(), "what the leader gave it");
    assert_eq!(bench.heartbeat_as(follower, Some(&name)), code::FENCED_INSTANCE_ID);
    assert_eq!(bench.heartbeat_as(&reborn, Some(&name)), code::NONE);
    assert_eq!(bench.heartbeat(leader), code::NONE);
}

#[test]
fn a_static_leader_that_restarts_is_told_to_skip_the_assignment_since_version_9() {
    for version in [5, 8, 9] {
        let mut bench = Bench::new();
        let members = bench.stable(vec![join().instance("a"), join().instance("b")]);
        let leader = &members[0];
        let name = leader.id.split('-').next().expect("a name").to_owned();
        let ticket = bench.join(join().instance(&name).version(version));
        let answer = bench.joined(ticket);
        assert_eq!((answer.error_code, answer.generation_id), (code::NONE, 1), "version {version}");
        if version >= 9 {
            assert_eq!((answer.skip_assignment, answer.members.len()), (true, 2));
            assert_eq!(answer.leader, answer.member_id);
        } else {
            assert_eq!((answer.skip_assignment, answer.members.len()), (false, 0));
            assert_eq!(answer.leader, leader.id, "so that it takes itself for a follower");
        }
        assert_eq!(bench.group().roster().leader(), Some(answer.member_id.as_str()));
        let ticket = bench.sync(&Known { id: answer.member_id, generation: 1 }, &[]);
        assert_eq!(bench.synced(ticket).assignment, leader.id.as_bytes());
    }
}

#[test]
fn a_static_member_that_comes_back_with_its_id_is_as_any_other() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join().instance("a"), join().instance("b")]);
    let (a, b) = (id_of(&members, "a"), id_of(&members, "b"));
    let (leader, follower) = if members[0] == a { (("a", &a), ("b", &b)) } else { (("b", &b), ("a", &a)) };
    let ticket = bench.join(join().instance(follower.0).id(&follower.1.id));
    assert_eq!(bench.known(ticket).generation, 1);
    let ticket = bench.join(join().instance(leader.0).id(&leader.1.id));
    assert!(bench.waits(ticket), "the leader begins a rebalance");
}

#[test]
fn another_id_under_the_same_instance_id_is_fenced_and_an_unknown_instance_id_is_unknown() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join().instance("a"), join().instance("b")]);
    let (a, b) = (id_of(&members, "a"), id_of(&members, "b"));
    for (id, instance, error_code) in [
        (b.id.as_str(), "a", code::FENCED_INSTANCE_ID),
        ("stranger", "a", code::FENCED_INSTANCE_ID),
        (a.id.as_str(), "nobody", code::UNKNOWN_MEMBER_ID),
    ] {
        let ticket = bench.join(join().instance(instance).id(id));
        assert_eq!(bench.joined(ticket).error_code, error_code, "{instance}");
        let mut request = sync_request(&Known { id: id.into(), generation: 1 }, &[]);
        request.group_instance_id = Some(instance.into());
        let ticket = bench.sync_with(request);
        assert_eq!(bench.synced(ticket).error_code, error_code, "{instance}");
        let member = Known { id: id.into(), generation: 1 };
        assert_eq!(bench.heartbeat_as(&member, Some(instance)), error_code, "{instance}");
    }
    assert_eq!(bench.state(), "Stable");
}

#[test]
fn a_duplicate_fences_the_one_that_waits_to_join() {
    let mut bench = Bench::new();
    let first = bench.join(join().instance("a"));
    let second = bench.join(join().instance("a"));
    let answer = bench.joined(first);
    assert_eq!(answer.error_code, code::FENCED_INSTANCE_ID);
    bench.pass(INITIAL_DELAY_MS);
    let answer = bench.joined(second);
    assert_eq!((answer.error_code, answer.members.len()), (code::NONE, 1));
    assert_eq!(answer.leader, answer.member_id);
}

#[test]
fn a_duplicate_fences_the_one_that_waits_for_its_assignment_and_the_group_rebalances() {
    let mut bench = Bench::new();
    let members = bench.generation(vec![join().instance("a"), join().instance("b")]);
    let follower = &members[1];
    let name = follower.id.split('-').next().expect("a name").to_owned();
    let waiting = bench.sync(follower, &[]);
    let ticket = bench.join(join().instance(&name));
    assert_eq!(bench.synced(waiting).error_code, code::FENCED_INSTANCE_ID);
    assert!(bench.waits(ticket), "the leader may have assigned to the old id already");
    assert_eq!(bench.heartbeat(&members[0]), code::REBALANCE_IN_PROGRESS);
}

#[test]
fn a_static_member_that_restarts_with_another_choice_of_protocol_makes_the_group_rebalance() {
    let mut bench = Bench::new();
    let both = |name: &str| join().instance(name).protocols(&["range", "roundrobin"]);
    let members = bench.stable(vec![both("a"), both("b")]);
    let follower = members[1].id.split('-').next().expect("a name").to_owned();
    let ticket = bench.join(join().instance(&follower).protocols(&["roundrobin"]));
    assert!(bench.waits(ticket));
    assert_eq!(bench.state(), "PreparingRebalance");
    let leader = members[0].id.split('-').next().expect("a name").to_owned();
    let ticket = bench.join(both(&leader).id(&members[0].id));
    assert_eq!(bench.joined(ticket).protocol_name.as_deref(), Some("roundrobin"));
}

#[test]
fn a_static_member_that_does_not_join_again_stays_until_its_session_ends() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join().instance("a"), join().times(60_000, REBALANCE_MS).instance("b")]);
    let (a, b) = (id_of(&members, "a"), id_of(&members, "b"));
    let mut ticket = bench.join(join().instance("a").id(&a.id).metadata(b"new"));
    bench.pass(REBALANCE_MS.into());
    let answer = bench.joined(ticket);
    assert_eq!((answer.generation_id, answer.members.len(), &answer.leader), (2, 2, &a.id));
    let a = Known { generation: 2, ..a };
    let sync = bench.sync(&a, &[(&a.id, "A"), (&b.id, "B")]);
    assert_eq!(&bench.synced(sync).assignment[..], b"A");
    for _ in 0..4 {
        assert_eq!(bench.heartbeat(&a), code::NONE);
        bench.pass(i64::from(REBALANCE_MS) / 4);
    }
    assert_eq!(bench.member_ids(), std::slice::from_ref(&a.id), "it did not fetch its assignment either");
    ticket = bench.join(join().instance("a").id(&a.id));
    assert_eq!(bench.known(ticket).generation, 3);
}

#[test]
fn static_members_of_which_none_joins_again_are_waited_for_once_more() {
    let mut bench = Bench::new();
    let patient = |name: &str| join().times(120_000, REBALANCE_MS).instance(name);
    let members = bench.stable(vec![patient("a"), patient("b"), join()]);
    let dynamic = id_of(&members, "client");
    bench.leave(&[(&dynamic.id, None)]);
    assert_eq!(bench.state(), "PreparingRebalance");
    bench.pass(i64::from(REBALANCE_MS) * 2);
    assert_eq!((bench.state(), bench.member_ids().len()), ("PreparingRebalance", 2));
    let a = id_of(&members, "a");
    let ticket = bench.join(patient("a").id(&a.id));
    bench.pass(REBALANCE_MS.into());
    let answer = bench.joined(ticket);
    assert_eq!((answer.generation_id, answer.leader, answer.members.len()), (2, a.id, 2));
}

#[test]
fn every_restart_gives_another_id() {
    let mut bench = Bench::prompt();
    let mut ids = vec![bench.stable(vec![join().instance("a")]).remove(0).id];
    for _ in 0..3 {
        let ticket = bench.join(join().instance("a"));
        ids.push(bench.known(ticket).id);
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
    assert_eq!(bench.member_ids().len(), 1);
}

#[test]
fn the_session_of_the_former_self_does_not_end_the_new_ones() {
    let mut bench = Bench::prompt();
    bench.stable(vec![join().instance("a")]);
    bench.pass(i64::from(SESSION_MS) - 1);
    let ticket = bench.join(join().instance("a"));
    let reborn = bench.known(ticket);
    bench.pass(i64::from(SESSION_MS) - 1);
    assert_eq!(bench.heartbeat(&reborn), code::NONE);
}
