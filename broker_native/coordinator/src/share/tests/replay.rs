//! Whatever happens, what is kept is the state of the leader, but for who holds what.
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::scene::{Scene, key, settings};
use super::window::batch;
use crate::share::partition::RecordState;
use crate::share::requests::LogRange;
use crate::share::{GroupSettings, LogBatch, SharePartition, ShareReply, ShareRequest, stored};

const MEMBERS: [&str; 2] = ["a", "b"];
/// Offsets of the log: batches of three records, of which each fourth is void.
const END: i64 = 36;
const LENGTH: i64 = 3;

#[derive(Debug, Clone)]
enum Step {
    Read {
        member: usize,
        max_records: i64,
        exact: bool,
    },
    Acknowledge {
        member: usize,
        first: i64,
        length: i64,
        fate: i8,
    },
    Leave(usize),
    Wait(i64),
    /// The log begins later.
    Delete(i64),
    /// An administrator moves the group.
    Reset(i64),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..2usize, 1..8i64, any::<bool>())
            .prop_map(|(member, max_records, exact)| Step::Read { member, max_records, exact }),
        6 => (0..2usize, 0..END, 1..5i64, 0..=4i8)
            .prop_map(|(member, first, length, fate)| Step::Acknowledge { member, first, length, fate }),
        1 => (0..2usize).prop_map(Step::Leave),
        1 => (1..20_000i64).prop_map(Step::Wait),
        1 => (0..3i64).prop_map(Step::Delete),
        1 => (0..END).prop_map(Step::Reset),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..80)
}

/// Where it begins, and for each offset behind that whether it is done with and how often its delivery is known to have happened. What
/// nobody was given, and offsets without records, are as if they were not there.
type Durable = (i64, BTreeMap<i64, (bool, i16)>);

fn durable(partition: Option<&SharePartition>) -> Option<Durable> {
    let partition = partition?;
    let mut offsets = BTreeMap::new();
    for (first, run) in partition.runs() {
        let count = match run.state {
            RecordState::Acquired { .. } => run.delivery_count - 1,
            _ => run.delivery_count,
        };
        if count > 0 {
            offsets.extend((first..=run.last).map(|offset| (offset, (run.state.is_final(), count))));
        }
    }
    Some((partition.start_offset(), offsets))
}

struct World {
    scene: Scene,
    start: i64,
}

impl World {
    fn read(&mut self, member: usize, max_records: i64, exact: bool) {
        let log = LogRange { start: self.start, end: END };
        let next = self.scene.ask("g", ShareRequest::Next { log, begin: Some(self.start) });
        let ShareReply::Next(Ok(Some(from))) = next else { return };
        let firsts = (0..END).step_by(LENGTH as usize).filter(|first| first + LENGTH > from.max(self.start));
        let batches = firsts.map(|first| {
            let is_void = first / LENGTH % 4 == 3;
            LogBatch { is_void, ..batch(first, first + LENGTH - 1) }
        });
        let (member_id, batches) = (MEMBERS[member].to_owned(), batches.collect());
        self.scene.ask("g", ShareRequest::Acquire { member_id, from, batches, max_records, exact });
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Read { member, max_records, exact } => self.read(member, max_records, exact),
            Step::Acknowledge { member, first, length, fate } => {
                self.scene.acknowledge(MEMBERS[member], first, first + length - 1, fate);
            }
            Step::Leave(member) => {
                self.scene.ask("g", ShareRequest::Release { member_id: MEMBERS[member].to_owned() });
            }
            Step::Wait(ms) => {
                self.scene.now_ms += ms;
                self.scene.tick();
            }
            Step::Delete(more) => self.start = (self.start + more).min(END),
            Step::Reset(start_offset) => {
                self.scene.keeper.reset(&key("g"), start_offset);
                let effects = self.scene.leader.machine.forget(&key("g"));
                self.scene.leader.take(effects);
            }
            Step::Restart => self.scene.restart(),
        }
    }

    /// What the next leader finds.
    fn kept(&mut self) -> Option<SharePartition> {
        let epoch = self.scene.leader.epoch;
        let kept = self.scene.keeper.read(&key("g"), epoch).ok()?;
        Some(stored::partition_of(&kept))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn what_is_kept_is_the_state_of_the_leader(steps in steps()) {
        let mut scene = Scene::new(usize::MAX >> 1);
        scene.settings = GroupSettings { delivery_count_limit: 3, max_record_locks: 10, ..settings() };
        let mut world = World { scene, start: 0 };
        for step in &steps {
            world.step(step);
            let kept = world.kept();
            if let Some(led) = world.scene.leader.machine.windows().partition(&key("g")) {
                prop_assert_eq!(durable(Some(led)), durable(kept.as_ref()), "{:?}", step);
            }
        }
    }
}
