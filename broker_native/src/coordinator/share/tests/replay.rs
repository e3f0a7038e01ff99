//! Whatever happens, the log gives the state of the live machine, but for who holds what.
use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use uuid::Uuid;

use super::window::batch;
use crate::coordinator::share::partition::State;
use crate::coordinator::share::requests::LogRange;
use crate::coordinator::share::{
    Batch, GroupSettings, Settings, ShareEvent, ShareKey, ShareMachine, SharePartition, ShareReply,
    ShareRequest,
};
use crate::coordinator::{Effects, Entry, Machine, Now, Record, Room, Ticket};
use crate::wire::messages::share_fetch::AcknowledgementBatch;

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

struct World {
    machine: ShareMachine,
    log: Vec<Record>,
    start: i64,
    now_ms: i64,
}

fn key() -> ShareKey {
    ShareKey { group_id: "g".into(), topic_id: Uuid::from_u128(1), partition: 0 }
}

fn settings() -> GroupSettings {
    GroupSettings {
        delivery_count_limit: 3,
        max_record_locks: 10,
        ..GroupSettings::from(&Settings::default())
    }
}

fn empty() -> ShareMachine {
    ShareMachine::new(settings(), Room::new(usize::MAX, || {}), Arc::new(|_topic: &Uuid| false))
}

fn replayed(log: &[Record]) -> ShareMachine {
    let mut machine = empty();
    for (offset, record) in (0..).zip(log) {
        let record = record.clone();
        machine.replay(&Entry::Record { offset, timestamp_ms: 0, transaction: None, record }).unwrap();
    }
    machine
}

/// Where it begins, and for each offset behind that whether it is done with and how often its delivery is known to have happened. What
/// nobody was given, and offsets without records, are as if they were not there.
type Durable = (i64, BTreeMap<i64, (bool, i16)>);

fn durable(partition: Option<&SharePartition>) -> Option<Durable> {
    let partition = partition?;
    let mut offsets = BTreeMap::new();
    for (first, run) in partition.runs() {
        let count = match run.state {
            State::Acquired { .. } => run.delivery_count - 1,
            _ => run.delivery_count,
        };
        if count > 0 {
            offsets.extend((first..=run.last).map(|offset| (offset, (run.state.is_final(), count))));
        }
    }
    Some((partition.start_offset(), offsets))
}

impl World {
    fn ask(&mut self, request: ShareRequest) -> ShareReply {
        let event = ShareEvent { ticket: Ticket(0), key: key(), settings: settings(), request };
        let Effects { records, mut replies, .. } = self.machine.handle(event, Now::same(self.now_ms));
        self.log.extend(records);
        replies.remove(0).1
    }

    fn read(&mut self, member: usize, max_records: i64, exact: bool) {
        let log = LogRange { start: self.start, end: END };
        let next = self.ask(ShareRequest::Next { log, begin: Some(self.start) });
        let ShareReply::Next(Ok(Some(from))) = next else { return };
        let firsts = (0..END).step_by(LENGTH as usize).filter(|first| first + LENGTH > from.max(self.start));
        let batches = firsts.map(|first| {
            let is_void = first / LENGTH % 4 == 3;
            Batch { is_void, ..batch(first, first + LENGTH - 1) }
        });
        let (member_id, batches) = (MEMBERS[member].to_owned(), batches.collect());
        self.ask(ShareRequest::Acquire { member_id, from, batches, max_records, exact });
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Read { member, max_records, exact } => self.read(member, max_records, exact),
            Step::Acknowledge { member, first, length, fate } => {
                let (first_offset, last_offset) = (first, first + length - 1);
                let said = AcknowledgementBatch { first_offset, last_offset, acknowledge_types: vec![fate] };
                let (member_id, batches) = (MEMBERS[member].to_owned(), vec![said]);
                self.ask(ShareRequest::Acknowledge { member_id, batches });
            }
            Step::Leave(member) => {
                self.ask(ShareRequest::Release { member_id: MEMBERS[member].to_owned() });
            }
            Step::Wait(ms) => {
                self.now_ms += ms;
                let effects = self.machine.tick(Now::same(self.now_ms));
                self.log.extend(effects.records);
            }
            Step::Delete(more) => self.start = (self.start + more).min(END),
            Step::Reset(start_offset) => {
                self.ask(ShareRequest::Reset { start_offset });
            }
            Step::Restart => self.machine = replayed(&self.log),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn the_log_gives_the_state_of_the_live_machine(steps in steps()) {
        let mut world = World { machine: empty(), log: Vec::new(), start: 0, now_ms: 0 };
        for step in &steps {
            world.step(step);
            let after = replayed(&world.log);
            prop_assert_eq!(durable(world.machine.partition(&key())), durable(after.partition(&key())), "{:?}", step);
        }
    }
}
