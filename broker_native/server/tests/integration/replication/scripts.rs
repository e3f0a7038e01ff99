//! Known ways to lose or mix up records, played step by step: the scenarios of KIP-101 and KIP-279, KAFKA-7164, and what a
//! follower does when its log and its leader's do not meet at all.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pylog_replica::following::Position;
use pylog_replica::following::machine::{Need, Step};
use pylog_replica::progress::ProposalOutcome;
use pylog_storage::Durability;
use pylog_storage::clock::ManualClock;
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::PartitionData;

use crate::replication::node::{Acting, Node, records_of};
use crate::replication::store::Doc;

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;

/// Brokers that do only what a test says.
struct Script {
    nodes: Vec<Node>,
    doc: Doc,
    alive: BTreeMap<usize, i64>,
    now_ms: i64,
    value: u64,
}

impl Script {
    /// A leads in epoch 0; all of `isr` are in sync.
    fn new(isr: &[usize]) -> Self {
        let clock = Arc::new(ManualClock::at(1_000_000));
        let isr: BTreeSet<_> = isr.iter().copied().collect();
        let doc = Doc { leader: Some(A), leader_epoch: 0, partition_epoch: 0, isr, elr: BTreeSet::new() };
        let nodes = (0..3).map(|id| Node::new(id, &clock, Durability::PageCache, 1)).collect();
        let alive = (0..3).map(|id| (id, 100 + id as i64)).collect();
        let mut script = Self { nodes, doc, alive, now_ms: 0, value: 0 };
        (0..3).for_each(|id| script.start(id));
        script
    }

    fn start(&mut self, id: usize) {
        self.nodes[id].start(self.doc.clone(), self.alive.clone(), self.now_ms).unwrap();
    }

    /// The process dies; its log stays.
    fn kill(&mut self, id: usize) {
        self.nodes[id].crash(None);
    }

    /// `id` leads in a new epoch, in which `isr` is in sync; those of `informed` hear of it.
    fn lead(&mut self, id: usize, isr: &[usize], informed: &[usize]) {
        self.doc.leader = Some(id);
        self.doc.leader_epoch += 1;
        self.doc.partition_epoch += 1;
        self.doc.isr = isr.iter().copied().collect();
        informed.iter().for_each(|id| self.nodes[*id].learn(&self.doc, &self.alive, self.now_ms).unwrap());
    }

    /// `id` appends `count` records, one batch each.
    fn write(&mut self, id: usize, count: u64) {
        for _ in 0..count {
            self.value += 1;
            self.nodes[id].produce(&[self.value], self.now_ms).unwrap();
        }
    }

    fn ask(&mut self, id: usize) -> Position {
        match self.nodes[id].need(self.now_ms) {
            Need::Fetch(at) => at,
            other => panic!("broker {id} wants {other:?}"),
        }
    }

    fn serve(&mut self, id: usize, at: &Position) -> PartitionData {
        let leader = self.nodes[id].leader().unwrap();
        let epoch = self.alive[&id];
        self.nodes[leader].serve(id, epoch, at, self.now_ms)
    }

    /// One question of `id` and what it does with the answer.
    fn copy(&mut self, id: usize) -> Step {
        self.now_ms += 200;
        let at = self.ask(id);
        let answer = self.serve(id, &at);
        self.nodes[id].fetched(&at, &answer, self.now_ms).unwrap()
    }

    /// Copies until there is nothing more; what was given up on the way.
    fn follow(&mut self, id: usize) -> Vec<(i64, i64)> {
        let mut given_up = Vec::new();
        for _ in 0..50 {
            let before = self.ask(id);
            let step = self.copy(id);
            given_up.extend(step.truncated);
            if self.ask(id) == before && step.truncated.is_none() {
                return given_up;
            }
        }
        panic!("broker {id} never has enough");
    }

    /// What A proposes is refused, and nobody waits for its followers any more.
    fn drop_from_isr(&mut self) {
        self.now_ms += 1_000;
        let (epoch, proposal) = self.nodes[A].proposal(self.now_ms).unwrap();
        self.nodes[A].proposed(epoch, proposal.partition_epoch, ProposalOutcome::Refused, self.now_ms);
    }

    fn log(&self, id: usize) -> Vec<(i32, u64)> {
        let offsets = self.nodes[id].log().offsets();
        records_of(self.nodes[id].log(), offsets.log_start_offset, offsets.log_end_offset)
    }

    fn watermark(&self, id: usize) -> i64 {
        self.nodes[id].log().offsets().high_watermark
    }

    fn end(&self, id: usize) -> i64 {
        self.nodes[id].log().offsets().log_end_offset
    }

    /// Where the leader's log begins and ends, asked and taken by `id`.
    fn seek(&mut self, id: usize) -> Step {
        self.now_ms += 200;
        assert_eq!(self.nodes[id].need(self.now_ms), Need::Ends);
        let leader = self.nodes[id].leader().unwrap();
        let epoch = self.doc.leader_epoch;
        let ends = self.nodes[leader].serve_ends(epoch);
        self.nodes[id].found(epoch, ends, self.now_ms)
    }
}

#[test]
fn kip_101_a_restarted_follower_keeps_what_it_does_not_know_to_be_committed() {
    let mut script = Script::new(&[A, B]);
    script.write(A, 2);
    script.copy(B);
    // B asks on, which commits both at A; the answer, which would let B know, is lost.
    let at = script.ask(B);
    script.serve(B, &at);
    assert_eq!((script.watermark(A), script.watermark(B)), (2, 0));
    script.kill(B);
    script.start(B);
    script.kill(A);
    script.lead(B, &[B], &[B]);
    assert_eq!(script.log(B), [(0, 1), (0, 2)], "a committed record is gone");
    script.write(B, 1);
    script.start(A);
    assert_eq!(script.follow(A), []);
    assert_eq!(script.log(A), script.log(B));
}

#[test]
fn kip_101_replicas_that_both_lost_power_do_not_stay_different() {
    let mut script = Script::new(&[A, B]);
    script.write(A, 1);
    script.follow(B);
    script.write(A, 1);
    script.kill(A);
    script.kill(B);
    script.start(B);
    script.lead(B, &[B], &[B]);
    script.write(B, 1);
    script.start(A);
    assert_ne!(script.log(A)[1], script.log(B)[1]);
    assert_eq!(script.follow(A), [(2, 1)]);
    assert_eq!(script.log(A), [(0, 1), (1, 3)]);
    assert_eq!(script.log(A), script.log(B));
}

#[test]
fn kip_279_logs_whose_epochs_alternate_meet_again() {
    let mut script = Script::new(&[A, B]);
    script.write(A, 1);
    script.follow(B);
    script.kill(B);
    script.lead(A, &[A], &[A]);
    script.write(A, 2);
    script.kill(A);
    script.start(B);
    script.lead(B, &[B], &[B]);
    script.write(B, 1);
    script.kill(B);
    script.start(A);
    script.lead(A, &[A], &[A]);
    script.write(A, 1);
    script.kill(A);
    script.start(B);
    script.lead(B, &[B], &[B]);
    script.write(B, 1);
    assert_eq!(script.log(B).iter().map(|(epoch, _)| *epoch).collect::<Vec<_>>(), [0, 2, 4]);
    script.start(A);
    assert_eq!(script.log(A).iter().map(|(epoch, _)| *epoch).collect::<Vec<_>>(), [0, 1, 1, 3]);
    // Of epochs 1 and 3 B knows nothing, of 2 A does not.
    assert_eq!(script.follow(A), [(4, 3), (3, 1)]);
    assert_eq!(script.log(A), script.log(B));
}

#[test]
fn kafka_7164_a_missed_epoch_of_another_leader_is_made_good_although_the_leader_is_the_same() {
    let mut script = Script::new(&[A, B, C]);
    script.write(A, 1);
    script.follow(B);
    script.follow(C);
    script.write(A, 1);
    script.follow(C);
    // B leads, A follows it; C hears nothing of it.
    script.lead(B, &[A, B], &[A, B]);
    script.write(B, 1);
    assert_eq!(script.follow(A), [(2, 1)]);
    script.lead(A, &[A, B], &[A, B, C]);
    assert_ne!(script.log(C), script.log(A));
    assert_eq!(script.follow(C), [(2, 1)]);
    assert_eq!(script.log(C), script.log(A));
}

#[test]
fn an_epoch_in_which_nothing_was_written_takes_nothing_from_anybody() {
    let mut script = Script::new(&[A, B, C]);
    script.write(A, 3);
    script.follow(B);
    script.follow(C);
    script.lead(B, &[A, B, C], &[A, B, C]);
    script.lead(C, &[A, B, C], &[A, B, C]);
    for id in [A, B] {
        assert_eq!(script.follow(id), []);
    }
    script.write(C, 1);
    for id in [A, B] {
        assert_eq!(script.follow(id), []);
        assert_eq!(script.log(id), script.log(C));
    }
}

#[test]
fn a_follower_whose_records_the_leader_has_deleted_begins_anew_where_the_leader_does() {
    let mut script = Script::new(&[A]);
    script.write(A, 2);
    script.follow(B);
    script.drop_from_isr();
    script.write(A, 40);
    script.nodes[A].log().delete_records_before(30).unwrap();
    let step = script.copy(B);
    assert_eq!(step, Step::default());
    assert_eq!(script.seek(B).truncated, Some((2, 30)));
    assert_eq!(script.follow(B), []);
    assert_eq!(script.log(B), script.log(A));
    assert_eq!(script.nodes[B].log().offsets().log_start_offset, 30);
}

#[test]
fn a_follower_that_has_nothing_but_is_ahead_goes_back_to_its_leaders_end() {
    let mut script = Script::new(&[A]);
    script.write(A, 40);
    script.nodes[A].log().delete_records_before(40).unwrap();
    script.copy(B);
    script.seek(B);
    assert_eq!(script.end(B), 40);
    // An unclean election: C never had a record.
    script.lead(C, &[C], &[A, B, C]);
    script.write(C, 3);
    script.copy(B);
    script.seek(B);
    script.follow(B);
    assert_eq!(script.log(B), script.log(C));
    assert_eq!(script.nodes[B].log().offsets().log_start_offset, 0);
}

#[test]
fn where_the_leaders_log_begins_is_where_the_followers_does() {
    let mut script = Script::new(&[A, B]);
    script.write(A, 20);
    script.follow(B);
    script.nodes[A].log().delete_records_before(7).unwrap();
    script.copy(B);
    assert_eq!(script.nodes[B].log().offsets().log_start_offset, 7);
}

#[test]
fn a_damaged_batch_is_reported_once_never_written_and_asked_for_again() {
    let mut script = Script::new(&[A, B]);
    script.write(A, 1);
    let at = script.ask(B);
    let good = script.serve(B, &at);
    let mut bytes = good.records.clone().unwrap().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    let damaged = PartitionData { records: Some(bytes.into()), ..good.clone() };
    let step = script.nodes[B].fetched(&at, &damaged, script.now_ms).unwrap();
    assert!(step.news.is_some());
    assert_eq!(script.end(B), 0);
    let Need::Wait(until) = script.nodes[B].need(script.now_ms) else { panic!("no pause after a failure") };
    script.now_ms = until as i64;
    assert_eq!(script.ask(B), at);
    let step = script.nodes[B].fetched(&at, &damaged, script.now_ms).unwrap();
    assert_eq!(step.news, None, "the same failure is reported again");
    script.now_ms += 1_000;
    script.ask(B);
    script.nodes[B].fetched(&at, &good, script.now_ms).unwrap();
    assert_eq!(script.log(B), script.log(A));
    let Acting::Follower(following) = &script.nodes[B].up().acting else { panic!("B follows") };
    assert!(!following.is_failed());
}

#[test]
fn a_late_answer_changes_nothing() {
    let mut script = Script::new(&[A, B]);
    script.write(A, 2);
    let at = script.ask(B);
    let late = script.serve(B, &at);
    script.follow(B);
    let before = script.log(B);
    assert_eq!(script.nodes[B].fetched(&at, &late, script.now_ms).unwrap(), Step::default());
    script.lead(C, &[C], &[B, C]);
    assert_eq!(script.nodes[B].fetched(&at, &late, script.now_ms).unwrap(), Step::default());
    assert_eq!(script.log(B), before);
}

#[test]
fn a_leader_that_does_not_know_the_epoch_yet_is_asked_again_soon_and_then_less_often() {
    let mut script = Script::new(&[A, B]);
    script.lead(C, &[A, B, C], &[B]);
    let mut pauses = Vec::new();
    for _ in 0..4 {
        let at = script.ask(B);
        let answer = script.serve(B, &at);
        assert_eq!(answer.error_code, ErrorCode::UnknownLeaderEpoch.code());
        script.nodes[B].fetched(&at, &answer, script.now_ms).unwrap();
        let Need::Wait(until) = script.nodes[B].need(script.now_ms) else {
            panic!("no pause after a refusal")
        };
        pauses.push(until as i64 - script.now_ms);
        script.now_ms = until as i64;
    }
    assert_eq!(pauses, [20, 40, 80, 100]);
}
