//! The group in the log.
use bytes::Bytes;

use super::bench::*;
use crate::{LogEntry, Machine, Record};
use pylog_wire::stored::Stored;
use pylog_wire::stored::group_metadata::{GroupMetadataKey, GroupMetadataValue, MemberMetadata};

#[test]
fn members_of_a_stable_group_go_on_after_a_restart_without_a_rebalance() {
    let mut bench = Bench::new();
    let members = bench.stable(vec![join(), join().instance("a")]);
    let mut after = bench.restarted();
    assert_eq!(after.state(), "Stable");
    for member in &members {
        assert_eq!(after.heartbeat(member), code::NONE);
        let ticket = after.sync(member, &[]);
        assert_eq!(after.synced(ticket).assignment, member.id.as_bytes());
    }
    assert_eq!(after.group().roster().leader(), Some(members[0].id.as_str()));
    assert_eq!(after.describe(6), bench.describe(6));
}

#[test]
fn after_a_restart_every_member_has_a_whole_session_to_be_heard_of() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join()]).remove(0);
    bench.pass(i64::from(SESSION_MS) - 1);
    let mut after = bench.restarted();
    after.pass(i64::from(SESSION_MS) - 1);
    assert_eq!(after.heartbeat(&member), code::NONE);
    after.pass(SESSION_MS.into());
    assert_eq!(after.heartbeat(&member), code::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_restart_in_a_rebalance_goes_back_to_the_generation_before() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join()]).remove(0);
    bench.enter(join());
    assert_eq!(bench.state(), "PreparingRebalance");
    let mut after = bench.restarted();
    assert_eq!((after.state(), after.heartbeat(&member)), ("Stable", code::NONE));
    assert_eq!(after.member_ids(), [member.id]);
}

#[test]
fn nothing_is_written_before_a_generation_has_its_assignments() {
    let mut bench = Bench::prompt();
    let member = bench.generation(vec![join()]).remove(0);
    assert_eq!(bench.log.len(), 0);
    bench.sync_all(std::slice::from_ref(&member));
    assert_eq!(bench.log.len(), 1);
    bench.leave(&[(&member.id, None)]);
    assert_eq!(bench.log.len(), 2, "the last member's going is written");
    let after = bench.restarted();
    assert_eq!((after.state(), after.group().generation_id()), ("Empty", 2));
}

#[test]
fn records_are_those_of_kafka_4() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join().instance("a").metadata(b"meta")]).remove(0);
    let record = &bench.log[0];
    assert_eq!(&record.key[..], b"\x00\x02\x00\x07readers");
    let bytes = record.value.as_ref().expect("not deleted");
    assert_eq!(bytes[..2], [0, 3]);
    let value = GroupMetadataValue::from_bytes(bytes).expect("reads");
    let expected = GroupMetadataValue {
        protocol_type: "consumer".into(),
        generation: 1,
        protocol: Some("range".into()),
        leader: Some(member.id.clone()),
        current_state_timestamp: value.current_state_timestamp,
        members: vec![MemberMetadata {
            member_id: member.id.clone(),
            group_instance_id: Some("a".into()),
            client_id: "client".into(),
            client_host: "/127.0.0.1".into(),
            rebalance_timeout: REBALANCE_MS,
            session_timeout: SESSION_MS,
            subscription: Bytes::from_static(b"meta"),
            assignment: Bytes::copy_from_slice(member.id.as_bytes()),
        }],
    };
    assert_eq!(value, expected);
    assert!(value.current_state_timestamp > 0);
}

#[test]
fn records_of_every_version_since_kafka_0_9_are_read() {
    let member = MemberMetadata {
        member_id: "m".into(),
        client_id: "c".into(),
        client_host: "/h".into(),
        session_timeout: 7_000,
        ..Default::default()
    };
    let value = GroupMetadataValue {
        protocol_type: "consumer".into(),
        generation: 9,
        protocol: Some("range".into()),
        leader: Some("m".into()),
        members: vec![member],
        ..Default::default()
    };
    for version in 0..=4 {
        let mut bench = Bench::new();
        bench.log.push(Record {
            key: GroupMetadataKey { group: GROUP.into() }.to_bytes(2).expect("writes"),
            value: Some(value.to_bytes(version).expect("writes")),
        });
        let bench = bench.restarted();
        assert_eq!((bench.state(), bench.group().generation_id()), ("Stable", 9), "version {version}");
        let member = bench.group().roster().get("m").expect("is there");
        assert_eq!((member.session_timeout_ms, member.rebalance_timeout_ms), (7_000, 7_000));
    }
}

#[test]
fn a_tombstone_ends_the_group() {
    let mut bench = Bench::prompt();
    let member = bench.stable(vec![join()]).remove(0);
    bench.leave(&[(&member.id, None)]);
    let tombstones = bench.group().tombstones(GROUP);
    assert_eq!(tombstones.len(), 1);
    bench.log.extend(tombstones);
    assert_eq!(bench.restarted().state(), "Dead");
}

#[test]
fn a_damaged_record_is_told_and_skipped() {
    let mut bench = Bench::prompt();
    bench.stable(vec![join()]);
    let whole = bench.log[0].clone();
    let value = whole.value.clone().expect("not deleted");
    for cut in 0..value.len() {
        let record = Record { key: whole.key.clone(), value: Some(value.slice(..cut)) };
        let entry = LogEntry::Record { offset: 0, timestamp_ms: 0, transaction: None, record };
        assert!(bench.machine.replay(&entry).is_err(), "cut at {cut}");
    }
    assert_eq!(bench.state(), "Stable");
}

#[test]
fn a_group_too_large_for_the_log_is_refused_and_keeps_nothing() {
    let mut bench = Bench::new();
    let members = bench.generation(vec![join().metadata(&[7; 600_000]), join().metadata(&[7; 600_000])]);
    let waiting = bench.sync(&members[1], &[]);
    let own = bench.sync(&members[0], &[(&members[1].id, "A")]);
    for ticket in [waiting, own] {
        let answer = bench.synced(ticket);
        assert_eq!((answer.error_code, answer.assignment.len()), (code::UNKNOWN_SERVER_ERROR, 0));
    }
    assert_eq!((bench.state(), bench.log.len()), ("PreparingRebalance", 0));
    let tickets = [0, 1].map(|at: usize| bench.join(join().id(&members[at].id)));
    let members = tickets.map(|ticket| bench.known(ticket));
    bench.sync_all(&members);
}
