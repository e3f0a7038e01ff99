//! Any number of members, in any order: no record belongs to two of them, none that is done with comes back, all are done with at
//! last.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::window::{LIMIT, TERMS, batch, reloaded, said, wish};
use crate::share::acquire::AcquireLimits;
use crate::share::{LogBatch, SharePartition};

const MEMBERS: [&str; 3] = ["a", "b", "c"];
const IN_FLIGHT: i64 = 12;

#[derive(Debug, Clone)]
enum Step {
    Acquire {
        member: usize,
        max_records: i64,
        exact: bool,
    },
    /// One of five fates for each record that the member holds, or none for now.
    Acknowledge {
        member: usize,
        fates: Vec<i8>,
    },
    Leave(usize),
    /// So much time goes by.
    Wait(i64),
    Crash,
    /// The log begins later.
    Delete(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..3usize, 1..8i64, any::<bool>())
            .prop_map(|(member, max_records, exact)| Step::Acquire { member, max_records, exact }),
        4 => (0..3usize, prop::collection::vec(-1..=4i8, 1..20))
            .prop_map(|(member, fates)| Step::Acknowledge { member, fates }),
        1 => (0..3usize).prop_map(Step::Leave),
        1 => (1..800i64).prop_map(Step::Wait),
        1 => Just(Step::Crash),
        1 => (0..3i64).prop_map(Step::Delete),
    ];
    prop::collection::vec(step, 1..120)
}

/// Batches of a log; between some of them offsets are missing, some have nothing for members.
fn logs() -> impl Strategy<Value = Vec<LogBatch>> {
    prop::collection::vec((0..3i64, 1..6i64, prop::bool::weighted(0.2)), 1..14).prop_map(|parts| {
        let mut next = 0;
        let place = |(gap, length, is_void): (i64, i64, bool)| {
            let first = next + gap;
            next = first + length;
            LogBatch { is_void, ..batch(first, next - 1) }
        };
        parts.into_iter().map(place).collect()
    })
}

struct World {
    log: Vec<LogBatch>,
    first: i64,
    window: SharePartition,
    now_ms: i64,
    /// Who holds a record, and until when.
    held: BTreeMap<i64, (usize, i64)>,
    done: BTreeSet<i64>,
}

impl World {
    fn end(&self) -> i64 {
        self.log.last().map_or(0, |last| last.last_offset + 1)
    }

    fn is_record(&self, offset: i64) -> bool {
        self.log.iter().any(|one| !one.is_void && (one.first_offset..=one.last_offset).contains(&offset))
    }

    fn acquire(&mut self, member: usize, max_records: i64, exact: bool) -> bool {
        self.window.fit(self.first, self.end());
        let Some(from) = self.window.next_offset(IN_FLIGHT) else { return false };
        let rest: Vec<_> = self.log.iter().filter(|one| one.last_offset >= from).copied().collect();
        let until_ms = self.now_ms + 500;
        let limits = AcquireLimits { exact, max_in_flight: IN_FLIGHT, until_ms, ..wish(max_records) };
        let acquired = self.window.acquire(&Arc::from(MEMBERS[member]), from, &rest, limits);
        let mut count = 0;
        for run in &acquired {
            assert!((1..=LIMIT).contains(&run.delivery_count), "{run:?}");
            for offset in run.first_offset..=run.last_offset {
                assert!(self.is_record(offset), "there is nothing at {offset}");
                assert!(!self.done.contains(&offset), "{offset} is done with");
                let before = self.held.insert(offset, (member, until_ms));
                assert_eq!(before, None, "{offset} belongs to another member");
                count += 1;
            }
        }
        assert!(!exact || count <= max_records);
        count > 0
    }

    fn acknowledge(&mut self, member: usize, fates: &[i8]) {
        let mine: Vec<i64> =
            self.held.iter().filter(|(_, (holder, _))| *holder == member).map(|(o, _)| *o).collect();
        for (offset, fate) in mine.into_iter().zip(fates.iter().cycle()) {
            if *fate < 0 {
                continue;
            }
            self.window.acknowledge(MEMBERS[member], &[said(offset, offset, &[*fate])], TERMS).unwrap();
            match fate {
                4 => {
                    self.held.insert(offset, (member, TERMS.until_ms));
                }
                2 => {
                    self.held.remove(&offset);
                }
                _ => {
                    self.held.remove(&offset);
                    self.done.insert(offset);
                }
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Acquire { member, max_records, exact } => {
                let _found = self.acquire(*member, *max_records, *exact);
            }
            Step::Acknowledge { member, fates } => self.acknowledge(*member, fates),
            Step::Leave(member) => {
                self.window.release(MEMBERS[*member], TERMS);
                self.held.retain(|_, (holder, _)| holder != member);
            }
            Step::Wait(ms) => {
                self.now_ms += ms;
                self.window.expire(self.now_ms, TERMS);
                self.held.retain(|_, (_, until_ms)| *until_ms > self.now_ms);
            }
            Step::Crash => {
                self.window = reloaded(&self.window);
                self.held.clear();
            }
            Step::Delete(more) => {
                self.first = (self.first + more).min(self.end());
                self.window.fit(self.first, self.end());
                self.held.retain(|offset, _| *offset >= self.first);
            }
        }
        self.check();
    }

    /// The runs cover the window, and the first of them is not done with.
    fn check(&self) {
        let mut next = self.window.start_offset();
        for (at, (first, run)) in self.window.runs().enumerate() {
            assert_eq!(first, next);
            assert!(run.last >= first && (at > 0 || !run.state.is_final()));
            next = run.last + 1;
        }
        assert_eq!(next, self.window.end_offset());
        for offset in self.held.keys() {
            assert!(*offset >= self.window.start_offset() && *offset < self.window.end_offset());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_record_is_delivered_to_one_member_at_a_time_until_it_is_done_with(log in logs(), steps in steps()) {
        let window = SharePartition::new(0);
        let mut world =
            World { log, first: 0, window, now_ms: 0, held: BTreeMap::new(), done: BTreeSet::new() };
        for step in &steps {
            world.step(step);
        }
        // All that is left is accepted.
        for round in 0.. {
            prop_assert!(round < 1_000, "records are left for ever: {:?}", world.window);
            for member in 0..MEMBERS.len() {
                world.acknowledge(member, &[1]);
            }
            let found = world.acquire(0, 5, false);
            world.check();
            if !found && world.held.is_empty() && world.window.next_offset(IN_FLIGHT) == Some(world.end()) {
                break;
            }
        }
        prop_assert_eq!(world.window.start_offset(), world.end());
    }
}
