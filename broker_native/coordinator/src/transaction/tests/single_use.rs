//! Transactional ids of one transaction each are forgotten soon after it.
use super::bench::{Bench, ID, producer};
use crate::transaction::metadata::ProducerIdentity;
use crate::transaction::requests::{TransactionVersion, TxnReply, TxnRequest};
use crate::transaction::{Settings, TxnState};
use pylog_wire::ErrorCode;
use pylog_wire::messages::add_partitions_to_txn::{AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction};
use pylog_wire::messages::{EndTxnRequest, InitProducerIdRequest};

const ONCE: &str = "pylog-once.query.7.0.ab12cd34";
const SOON_MS: i64 = 600_000;

fn init(bench: &mut Bench, id: &str, prepares: bool) -> ProducerIdentity {
    let answer = bench.init_with(InitProducerIdRequest {
        transactional_id: Some(id.into()),
        enable_2_pc: prepares,
        keep_prepared_txn: prepares,
        ..Bench::request()
    });
    producer(&answer).unwrap()
}

fn add(bench: &mut Bench, id: &str, who: ProducerIdentity) {
    let transaction = AddPartitionsToTxnTransaction {
        transactional_id: id.into(),
        producer_id: who.id,
        producer_epoch: who.epoch,
        verify_only: false,
        topics: vec![AddPartitionsToTxnTopic { name: "orders".into(), partitions: vec![0] }],
    };
    let transaction_version = TransactionVersion::V2;
    bench.ask(12, TxnRequest::AddPartitions { transaction, transaction_version, patient: false }).unwrap();
}

fn commit(bench: &mut Bench, id: &str, who: ProducerIdentity) -> i16 {
    let request = EndTxnRequest {
        transactional_id: id.into(),
        producer_id: who.id,
        producer_epoch: who.epoch,
        committed: true,
    };
    match bench.ask(5, TxnRequest::EndTxn(request)) {
        Some(TxnReply::EndTxn(answer)) => answer.error_code,
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn an_id_of_one_transaction_is_forgotten_ten_minutes_after_its_end_and_others_are_not() {
    let mut bench = Bench::new();
    for id in [ONCE, ID, "my-pylog-once."] {
        let who = init(&mut bench, id, false);
        add(&mut bench, id, who);
        assert_eq!(commit(&mut bench, id, who), 0);
    }
    bench.write_markers();
    let records = bench.log.len();
    bench.pass(SOON_MS - 1);
    assert!(bench.machine.transaction(ONCE).is_some());
    bench.pass(1);
    assert!(bench.machine.transaction(ONCE).is_none());
    let tombstone = bench.log.last().unwrap();
    assert_eq!((bench.log.len(), &tombstone.value), (records + 1, &None));
    assert!(bench.replayed().transaction(ONCE).is_none());
    assert!(bench.machine.transaction(ID).is_some() && bench.machine.transaction("my-pylog-once.").is_some());
}

#[test]
fn an_end_that_is_repeated_after_its_id_was_forgotten_is_told_that_nobody_knows_it() {
    let mut bench = Bench::new();
    let who = init(&mut bench, ONCE, false);
    add(&mut bench, ONCE, who);
    assert_eq!(commit(&mut bench, ONCE, who), 0);
    bench.write_markers();
    bench.pass(SOON_MS - 1);
    assert_eq!(commit(&mut bench, ONCE, who), 0, "said again");
    bench.pass(1);
    assert_eq!(commit(&mut bench, ONCE, who), ErrorCode::InvalidProducerIdMapping.code());
}

#[test]
fn what_is_prepared_is_never_forgotten_and_what_nobody_began_is() {
    let mut bench = Bench::new();
    let who = init(&mut bench, ONCE, false);
    add(&mut bench, ONCE, who);
    let reborn = init(&mut bench, ONCE, true);
    init(&mut bench, "pylog-once.idle", false);
    bench.pass(1_000 * SOON_MS);
    bench.restart();
    bench.pass(1_000 * SOON_MS);
    assert_eq!(bench.machine.transaction(ONCE).unwrap().state, TxnState::Ongoing);
    assert!(bench.machine.transaction("pylog-once.idle").is_none());
    assert_eq!(commit(&mut bench, ONCE, reborn), 0);
}

#[test]
fn a_restart_does_not_begin_the_ten_minutes_anew() {
    let mut bench = Bench::new();
    init(&mut bench, ONCE, false);
    bench.pass(SOON_MS / 2);
    bench.restart();
    bench.pass(SOON_MS / 2);
    assert!(bench.machine.transaction(ONCE).is_none());
}

#[test]
fn ids_of_one_transaction_are_not_remembered_longer_than_others() {
    let settings = Settings { transactional_id_expiration_ms: 1_000, ..Settings::default() };
    let mut bench = Bench::with(settings);
    init(&mut bench, ONCE, false);
    bench.pass(1_000);
    assert!(bench.machine.transaction(ONCE).is_none());
}
