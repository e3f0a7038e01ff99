//! Random producers, ends, restarts and lost outcomes: each transaction ends one way, everywhere; nothing late gets into a
//! later one; the log is the whole truth.
use std::collections::HashMap;

use proptest::prelude::*;

use super::bench::{Bench, ID, V1, V2};
use crate::Machine;
use crate::transaction::metadata::{NONE, ProducerIdentity, TxnMetadata};
use crate::transaction::{TxnAction, TxnState};
use pylog_record::TopicPartition;
use pylog_record::control::Marker;
use pylog_wire::ErrorCode;

#[derive(Debug, Clone)]
enum Step {
    Init { keep: bool },
    Resume { who: usize },
    Add { who: usize, partition: i32 },
    End { who: usize, version: i16, committed: bool },
    Write { all: bool },
    Pass { ms: i64 },
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => any::<bool>().prop_map(|keep| Step::Init { keep }),
        1 => (0..4usize).prop_map(|who| Step::Resume { who }),
        5 => (0..4usize, 0..4).prop_map(|(who, partition)| Step::Add { who, partition }),
        4 => (0..4usize, prop_oneof![Just(V1), Just(V2)], any::<bool>())
            .prop_map(|(who, version, committed)| Step::End { who, version, committed }),
        4 => any::<bool>().prop_map(|all| Step::Write { all }),
        1 => prop_oneof![Just(10), Just(100), Just(59_000), Just(61_000)].prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..120)
}

/// The partitions, as a log would see them.
#[derive(Default)]
struct TxnPartitions {
    /// What each partition knows of the producer: the epoch of its last marker or batch.
    epochs: HashMap<(i64, i32), i16>,
    /// How a transaction, by id and marker's epoch, ended; with version 2 there is one for each.
    ends: HashMap<(i64, i16), Marker>,
}

impl TxnPartitions {
    fn marker(&mut self, action: &TxnAction, partition: i32) {
        let key = (action.producer_id, partition);
        let before = self.epochs.insert(key, action.producer_epoch).unwrap_or(NONE);
        assert!(before <= action.producer_epoch, "a marker must not be older than what it ends");
        if action.transaction_version.bumps_epoch() {
            let end = self.ends.entry((action.producer_id, action.producer_epoch)).or_insert(action.marker);
            assert_eq!(*end, action.marker, "a transaction ends one way in all partitions");
        }
    }
}

struct World {
    bench: Bench,
    partitions: TxnPartitions,
    /// Everybody who ever got an epoch, newest first.
    producers: Vec<ProducerIdentity>,
}

impl World {
    fn who(&self, index: usize) -> Option<ProducerIdentity> {
        self.producers.get(index).copied()
    }

    fn came(&mut self, outcome: Result<ProducerIdentity, ErrorCode>) {
        if let Ok(producer) = outcome {
            self.producers.retain(|one| *one != producer);
            self.producers.insert(0, producer);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Init { keep } => {
                let request = pylog_wire::messages::InitProducerIdRequest {
                    keep_prepared_txn: keep,
                    ..Bench::request()
                };
                let answer = self.bench.init_with(request);
                self.came(super::bench::producer(&answer));
            }
            Step::Resume { who } => {
                if let Some(who) = self.who(who) {
                    let outcome = self.bench.resume(who);
                    self.came(outcome);
                }
            }
            Step::Add { who, partition } => self.add(who, partition),
            Step::End { who, version, committed } => self.end(who, version, committed),
            Step::Write { all } => self.write(all),
            Step::Pass { ms } => self.bench.pass(ms),
            Step::Restart => self.bench.restart(),
        }
    }

    fn add(&mut self, who: usize, partition: i32) {
        let Some(who) = self.who(who) else { return };
        let speaker = self.bench.machine.transaction(ID).map(TxnMetadata::speaker);
        if self.bench.add(who, &[partition]) == ErrorCode::None {
            assert_eq!(Some(who), speaker, "a late request got into a transaction");
            let epoch = self.partitions.epochs.entry((who.id, partition)).or_insert(who.epoch);
            assert!(*epoch <= who.epoch, "the partition has fenced the producer already");
            *epoch = who.epoch;
        }
    }

    fn end(&mut self, who: usize, version: i16, committed: bool) {
        let Some(who) = self.who(who) else { return };
        let before = self.bench.machine.transaction(ID).cloned();
        let outcome = self.bench.end(version, who, committed);
        if let (Ok(next), Some(before)) = (outcome, before) {
            let after = self.bench.metadata();
            if before.state == TxnState::Ongoing {
                assert_eq!(before.speaker(), who, "a late end ended a later transaction");
                assert_eq!(after.state == TxnState::PrepareCommit, committed);
            }
            assert_eq!(next, after.successor());
            if version == V2 {
                assert!(next != who, "every end raises the epoch");
            }
        }
        self.came(outcome);
    }

    /// Writes the markers of the oldest action; when not `all`, the last partition fails.
    fn write(&mut self, all: bool) {
        if self.bench.markers.is_empty() {
            return;
        }
        let action = self.bench.markers.remove(0);
        let mut partitions = action.partitions.clone();
        let failed = if all { Vec::new() } else { partitions.pop().into_iter().collect() };
        for TopicPartition { partition, .. } in partitions {
            self.partitions.marker(&action, partition);
        }
        self.bench.written(&action, failed);
    }

    fn check(&self) {
        let live = self.bench.machine.transaction(ID).cloned();
        let replayed = self.bench.replayed().transaction(ID).cloned();
        assert_eq!(as_logged(live), as_logged(replayed), "the log is the whole truth");
        if let Some(metadata) = self.bench.machine.transaction(ID) {
            let deadline = self.bench.machine.next_deadline_ms();
            let waits = metadata.state.is_ending() && !self.bench.markers.is_empty();
            assert!(waits || deadline.is_some(), "{:?} has no way on", metadata.state);
        }
    }
}

/// What the log has of it: not the epoch before, and of a pending end all partitions.
fn as_logged(metadata: Option<TxnMetadata>) -> Option<TxnMetadata> {
    metadata.map(|mut metadata| {
        metadata.last_epoch = NONE;
        if metadata.state.is_ending() {
            metadata.partitions.clear();
        }
        metadata
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_transaction_ends_one_way_everywhere_and_nothing_late_gets_into_a_later_one(steps in steps()) {
        let mut world =
            World { bench: Bench::new(), partitions: TxnPartitions::default(), producers: Vec::new() };
        for step in steps {
            world.step(step);
            world.check();
        }
        // Whatever happened: the decided end comes, and the id can be used.
        for _ in 0..3 {
            world.bench.restart();
            while !world.bench.markers.is_empty() {
                world.write(true);
            }
        }
        prop_assert!(world.bench.machine.transaction(ID).is_none_or(|metadata| !metadata.state.is_ending()));
    }
}
