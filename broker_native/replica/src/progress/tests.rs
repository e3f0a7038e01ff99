//! One partition, its document, and followers that die, come back with less, and are late.
use proptest::prelude::*;

use super::*;

const LEADER: i32 = 1;
const LAG_MS: i64 = 1_000;

fn ends(end: i64) -> Ends {
    Ends { log_end: end, replicated_end: end }
}

fn led(isr: &[i32], min_isr: usize, end: i64, high_watermark: i64) -> Progress {
    let start =
        EpochStart { node_id: LEADER, lag_max_ms: LAG_MS, ends: ends(end), high_watermark, now_ms: 0 };
    let stored = StoredPartition { partition_epoch: 0, replicas: &[1, 2, 3], isr, min_isr };
    let mut progress = Progress::new(start, stored);
    progress.registered(|_| Some(7), end, 0);
    progress
}

fn fetch(progress: &mut Progress, id: i32, offset: i64, end: i64, now_ms: i64) -> Moved {
    progress.fetched(id, 7, (offset, 0), ends(end), now_ms)
}

fn members(progress: &Progress) -> Vec<i32> {
    progress.proposal().unwrap().new_isr.iter().map(|(id, _)| *id).collect()
}

fn at(partition_epoch: i32, isr: &[i32], min_isr: usize) -> StoredPartition<'_> {
    StoredPartition { partition_epoch, replicas: &[1, 2, 3], isr, min_isr }
}

#[test]
fn the_high_watermark_is_what_all_in_sync_replicas_have() {
    let mut progress = led(&[1, 2, 3], 1, 0, 0);
    assert_eq!(progress.appended(10, 0).high_watermark, None);
    assert_eq!(fetch(&mut progress, 2, 10, 10, 1).high_watermark, None);
    assert_eq!(fetch(&mut progress, 3, 6, 10, 2).high_watermark, Some(6));
    assert_eq!(fetch(&mut progress, 3, 10, 10, 3).high_watermark, Some(10));
    assert_eq!(fetch(&mut progress, 3, 4, 10, 4).high_watermark, None, "it never goes back");
}

#[test]
fn it_stands_while_fewer_than_min_insync_replicas_are_in_sync() {
    let mut progress = led(&[1], 2, 10, 0);
    assert!(progress.is_under_min_isr());
    fetch(&mut progress, 2, 10, 10, 1);
    assert_eq!(progress.high_watermark(), 0);
    assert_eq!(progress.stored(at(1, &[1, 2], 2), 10, 2).high_watermark, Some(10));
}

#[test]
fn a_lower_min_insync_replicas_takes_effect_without_a_change_of_the_document() {
    let mut progress = led(&[1], 2, 10, 0);
    assert_eq!(progress.stored(at(0, &[1], 1), 10, 2).high_watermark, Some(10));
}

#[test]
fn min_insync_replicas_is_at_most_the_number_of_replicas() {
    let mut progress = led(&[1], 5, 0, 0);
    let alone = StoredPartition { partition_epoch: 1, replicas: &[1], isr: &[1], min_isr: 5 };
    progress.stored(alone, 0, 0);
    assert!(!progress.is_under_min_isr());
    assert_eq!(progress.appended(3, 1).high_watermark, Some(3));
}

#[test]
fn records_that_wait_for_the_leaders_disk_do_not_count() {
    let mut progress = led(&[1, 2], 1, 0, 0);
    let behind = Ends { log_end: 10, replicated_end: 4 };
    assert_eq!(progress.fetched(2, 7, (10, 0), behind, 1).high_watermark, Some(4));
    assert_eq!(progress.appended(10, 2).high_watermark, Some(10));
}

#[test]
fn a_follower_joins_when_it_has_all_committed_records_and_those_of_earlier_epochs() {
    let mut progress = led(&[1, 2], 1, 20, 10);
    assert!(!fetch(&mut progress, 3, 9, 20, 1).proposes, "less than the high watermark");
    assert!(!fetch(&mut progress, 3, 19, 20, 2).proposes, "the epoch begins at 20");
    assert!(fetch(&mut progress, 3, 20, 20, 3).proposes);
    assert_eq!(members(&progress), [1, 2, 3]);
    assert!(!fetch(&mut progress, 3, 20, 20, 4).proposes, "one at a time");
}

#[test]
fn a_proposed_member_counts_before_it_is_stored() {
    let mut progress = led(&[1], 1, 0, 0);
    fetch(&mut progress, 2, 0, 0, 1);
    assert_eq!(members(&progress), [1, 2]);
    assert_eq!(progress.appended(5, 10_000).high_watermark, None);
    assert!(!progress.answered(0, ProposalOutcome::Refused, 10_000));
    assert_eq!(progress.appended(6, 10_000).high_watermark, Some(6), "it will never be stored");
}

#[test]
fn a_member_that_does_not_keep_up_counts_until_its_removal_is_stored() {
    let mut progress = led(&[1, 2, 3], 1, 0, 0);
    progress.appended(5, 0);
    fetch(&mut progress, 2, 5, 5, 500);
    assert!(!progress.lagging(5, LAG_MS).proposes);
    assert!(progress.lagging(5, LAG_MS + 1).proposes);
    assert_eq!(members(&progress), [1, 2]);
    assert_eq!(progress.appended(6, LAG_MS + 1).high_watermark, None);
    assert!(!progress.lagging(6, 10 * LAG_MS).proposes, "one at a time");
    fetch(&mut progress, 2, 6, 6, LAG_MS + 2);
    assert_eq!(progress.stored(at(1, &[1, 2], 1), 6, LAG_MS + 3).high_watermark, Some(6));
    assert!(progress.proposal().is_none());
}

#[test]
fn a_proposal_that_may_have_been_stored_is_asked_again_until_the_document_tells() {
    let mut progress = led(&[1, 2], 1, 0, 0);
    fetch(&mut progress, 3, 0, 0, 1);
    assert!(progress.answered(0, ProposalOutcome::Undecided, 2));
    assert!(progress.answered(0, ProposalOutcome::Outdated, 3), "the first try may be why");
    progress.stored(at(1, &[1, 2, 3], 1), 0, 4);
    assert!(!progress.answered(0, ProposalOutcome::Accepted, 5));
    assert!(progress.proposal().is_none());
}

#[test]
fn a_refused_proposal_is_not_repeated_at_once() {
    let mut progress = led(&[1, 2], 1, 0, 0);
    assert!(fetch(&mut progress, 3, 0, 0, 1).proposes);
    progress.answered(0, ProposalOutcome::Refused, 1);
    assert!(!fetch(&mut progress, 3, 0, 0, 2).proposes);
    assert!(fetch(&mut progress, 3, 0, 0, 1 + REFUSED_PAUSE_MS).proposes);
}

#[test]
fn an_answer_to_an_earlier_proposal_changes_nothing() {
    let mut progress = led(&[1, 2], 1, 0, 0);
    progress.stored(at(4, &[1, 2], 1), 0, 0);
    fetch(&mut progress, 3, 0, 0, 1);
    progress.answered(0, ProposalOutcome::Refused, 1);
    assert_eq!(members(&progress), [1, 2, 3]);
}

#[test]
fn a_follower_that_came_back_counts_for_nothing_before_it_fetches() {
    let mut progress = led(&[1, 2], 1, 0, 0);
    fetch(&mut progress, 2, 5, 9, 1);
    progress.registered(|id| (id == 2).then_some(8), 9, 2);
    assert_eq!(progress.appended(9, 3).high_watermark, None);
    assert_eq!(fetch(&mut progress, 2, 9, 9, 4), Moved::default(), "its earlier life");
    assert_eq!(progress.fetched(2, 8, (7, 0), ends(9), 5).high_watermark, Some(7));
}

#[test]
fn the_low_watermark_is_the_least_log_start_of_live_replicas() {
    let mut progress = led(&[1, 2, 3], 1, 9, 9);
    assert_eq!(progress.low_watermark(4), None, "nobody was heard of");
    progress.fetched(2, 7, (9, 2), ends(9), 1);
    progress.fetched(3, 7, (9, 3), ends(9), 1);
    assert_eq!(progress.low_watermark(4), Some(2));
    progress.registered(|id| (id == 3).then_some(7), 9, 2);
    assert_eq!(progress.low_watermark(4), Some(3));
}

/// What really is.
struct World {
    progress: Progress,
    now_ms: i64,
    end: i64,
    min_isr: usize,
    /// The document: its epoch and the ISR.
    epoch: i32,
    isr: BTreeSet<i32>,
    /// Of followers 2 and 3: records, registration, whether the leader knows of the registration.
    held: BTreeMap<i32, i64>,
    registered: BTreeMap<i32, i64>,
    known: BTreeMap<i32, i64>,
    /// Fetches under way: who, with which registration, from where.
    late: Vec<(i32, i64, i64)>,
    /// Proposals whose answers are under way, and whether they were stored.
    asked: Vec<(i32, bool)>,
    high_watermark: i64,
}

#[derive(Debug, Clone)]
enum Event {
    Append(i64),
    /// The follower copies so many records and asks for more; the request may be late.
    Copy(i32, i64, bool),
    Late(usize),
    Time(i64),
    /// The proposal reaches the store.
    Ask,
    /// An answer arrives; or is lost.
    Answer(bool),
    /// The leader reads the document.
    Read,
    /// The controller takes the follower out of the ISR.
    Drop(i32),
    /// It dies without a sync and is back with so many records less, out of the ISR.
    Restart(i32, i64),
    /// The leader learns who is registered.
    View,
}

fn event() -> impl Strategy<Value = Event> {
    let follower = || 2..=3i32;
    prop_oneof![
        4 => (1..20i64).prop_map(Event::Append),
        8 => (follower(), 0..30i64, any::<bool>()).prop_map(|(id, n, late)| Event::Copy(id, n, late)),
        2 => any::<usize>().prop_map(Event::Late),
        3 => (1..LAG_MS).prop_map(Event::Time),
        3 => Just(Event::Ask),
        2 => any::<bool>().prop_map(Event::Answer),
        3 => Just(Event::Read),
        1 => follower().prop_map(Event::Drop),
        1 => (follower(), 0..40i64).prop_map(|(id, n)| Event::Restart(id, n)),
        2 => Just(Event::View),
    ]
}

impl World {
    fn new(min_isr: usize) -> Self {
        let mut world = Self {
            progress: led(&[1, 2, 3], min_isr, 0, 0),
            now_ms: 0,
            end: 0,
            min_isr,
            epoch: 0,
            isr: [1, 2, 3].into(),
            held: [(2, 0), (3, 0)].into(),
            registered: [(2, 7), (3, 7)].into(),
            known: [(2, 7), (3, 7)].into(),
            late: Vec::new(),
            asked: Vec::new(),
            high_watermark: 0,
        };
        world.view();
        world
    }

    fn view(&mut self) -> Moved {
        self.known = self.registered.clone();
        let known = self.known.clone();
        self.progress.registered(|id| known.get(&id).copied(), self.end, self.now_ms)
    }

    fn drop_from_isr(&mut self, id: i32) {
        if self.isr.remove(&id) {
            self.epoch += 1;
        }
    }

    fn fetch(&mut self, (id, registration, offset): (i32, i64, i64)) -> Moved {
        // A fetch from behind the leader's end is out of range: the leader never counts it.
        let is_sane = offset <= self.end;
        let (known, ends, now_ms) = (self.known.get(&id) == Some(&registration), ends(self.end), self.now_ms);
        match is_sane && known {
            true => self.progress.fetched(id, registration, (offset, 0), ends, now_ms),
            false => Moved::default(),
        }
    }

    fn store(&mut self, proposal: &Proposal) -> bool {
        let is_there = |(id, epoch): &(i32, i64)| *id == LEADER || self.registered.get(id) == Some(epoch);
        let kept = |(id, _): &(i32, i64)| self.isr.contains(id);
        let may = proposal.partition_epoch == self.epoch
            && proposal.new_isr.iter().all(|member| is_there(member) || kept(member));
        if may {
            self.isr = proposal.new_isr.iter().map(|(id, _)| *id).collect();
            self.epoch += 1;
        }
        may
    }

    fn step(&mut self, event: &Event) -> Moved {
        match event {
            Event::Append(count) => {
                self.end += count;
                self.progress.appended(self.end, self.now_ms)
            }
            Event::Copy(id, count, late) => {
                let held = self.held[id].max((self.held[id] + count).min(self.end));
                self.held.insert(*id, held);
                let fetch = (*id, self.registered[id], held);
                if *late {
                    self.late.push(fetch);
                    return Moved::default();
                }
                self.fetch(fetch)
            }
            Event::Late(which) if !self.late.is_empty() => {
                let fetch = self.late.remove(which % self.late.len());
                self.fetch(fetch)
            }
            Event::Late(_) => Moved::default(),
            Event::Time(ms) => {
                self.now_ms += ms;
                self.progress.lagging(self.end, self.now_ms)
            }
            Event::Ask => {
                if let Some(proposal) = self.progress.proposal().cloned() {
                    let stored = self.store(&proposal);
                    self.asked.push((proposal.partition_epoch, stored));
                }
                Moved::default()
            }
            Event::Answer(arrives) if !self.asked.is_empty() => {
                let (epoch, stored) = self.asked.remove(0);
                let answer = match (arrives, stored) {
                    (false, _) => ProposalOutcome::Undecided,
                    (true, true) => ProposalOutcome::Accepted,
                    (true, false) if epoch != self.epoch => ProposalOutcome::Outdated,
                    (true, false) => ProposalOutcome::Refused,
                };
                self.progress.answered(epoch, answer, self.now_ms);
                Moved::default()
            }
            Event::Answer(_) => Moved::default(),
            Event::Read => {
                let isr: Vec<i32> = self.isr.iter().copied().collect();
                self.progress.stored(at(self.epoch, &isr, self.min_isr), self.end, self.now_ms)
            }
            Event::Drop(id) => {
                self.drop_from_isr(*id);
                Moved::default()
            }
            Event::Restart(id, lost) => {
                self.drop_from_isr(*id);
                self.held.insert(*id, (self.held[id] - lost).max(0));
                *self.registered.get_mut(id).unwrap() += 1;
                Moved::default()
            }
            Event::View => self.view(),
        }
    }

    fn check(&mut self, event: &Event, under_before: bool) {
        let high_watermark = self.progress.high_watermark();
        assert!(high_watermark >= self.high_watermark, "{event:?}: it went back");
        assert!(high_watermark <= self.end, "{event:?}");
        for id in self.isr.iter().filter(|id| **id != LEADER) {
            assert!(
                self.held[id] >= high_watermark,
                "{event:?}: {id} may be elected without {}..{high_watermark}",
                self.held[id]
            );
        }
        if under_before && self.progress.is_under_min_isr() {
            assert_eq!(high_watermark, self.high_watermark, "{event:?}: committed by too few");
        }
        self.high_watermark = high_watermark;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]
    #[test]
    fn every_committed_record_is_on_every_replica_that_may_be_elected(
        min_isr in 1..=3usize,
        events in prop::collection::vec(event(), 1..120),
    ) {
        let mut world = World::new(min_isr);
        for event in &events {
            let under = world.progress.is_under_min_isr();
            let asked = world.progress.proposal().cloned();
            let moved = world.step(event);
            if let Some(offset) = moved.high_watermark {
                assert_eq!(offset, world.progress.high_watermark());
            }
            if moved.proposes {
                assert_eq!(asked, None, "{event:?}: two proposals at a time");
            }
            world.check(event, under);
        }
    }
}

#[test]
fn the_random_histories_do_commit_join_and_lose_members() {
    let mut world = World::new(2);
    let mut seen = BTreeSet::new();
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..5_000 {
        let id = 2 + random(2) as i32;
        let event = match random(9) {
            0 => Event::Append(5),
            1..=3 => Event::Copy(id, 30, random(4) == 0),
            4 => Event::Time(400),
            5 => Event::Ask,
            6 => Event::Read,
            7 => Event::View,
            _ if random(10) == 0 => Event::Restart(id, 9),
            _ => Event::Late(0),
        };
        let (before, size) = (world.high_watermark, world.isr.len());
        world.step(&event);
        world.check(&event, false);
        seen.insert(world.isr.len());
        if world.high_watermark > before {
            seen.insert(10);
        }
        if world.isr.len() > size {
            seen.insert(11);
        }
    }
    assert!(seen.is_superset(&[2, 3, 10, 11].into()), "{seen:?}");
}

#[test]
fn only_a_live_follower_in_sync_could_lead_instead() {
    assert!(led(&[1, 2], 1, 0, 0).has_successor());
    assert!(!led(&[1], 1, 0, 0).has_successor(), "the others are not in sync");
    let mut progress = led(&[1, 2], 1, 0, 0);
    progress.registered(|id| (id == 3).then_some(7), 0, 0);
    assert!(!progress.has_successor(), "who is in sync is gone");
}
