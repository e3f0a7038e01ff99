//! The simulation: three brokers, a network that delays, drops, doubles and reorders, a store, faults by a seed.
//!
//! What holds in every run without unclean elections:
//! - A record below a high watermark is there for ever, with its value, on every broker that leads from then on, and on
//!   every running member of the stored ISR.
//! - What two brokers hold below their high watermarks is equal, epoch by epoch.
//! - The high watermark of a running broker never goes back, and no follower gives up what is below its own.
//! - Each epoch has one leader. A broker without its lease serves nothing.
//! - Once all faults are over, all replicas become equal and in sync, and all of it is committed.
mod checks;
mod faults;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pylog_replica::following::Position;
use pylog_replica::following::machine::{Need, Step};
use pylog_replica::progress::{Proposal, ProposalOutcome};
use pylog_storage::clock::ManualClock;
use pylog_storage::{Durability, StorageError};
use pylog_wire::ErrorCode;
use pylog_wire::messages::fetch::PartitionData;

use crate::replication::node::{Acting, Node};
use crate::replication::store::Store;

pub const BROKERS: usize = 3;
/// A session that is not renewed for so long is over.
const SESSION_MS: i64 = 120;
/// A broker leads so much shorter.
const MARGIN_MS: i64 = 20;
/// A question whose answer does not come is asked again after so long.
const ANSWER_MS: i64 = 60;
/// When the faults end.
const FAULTS_MS: i64 = 3_000;
/// How long it may take until all is well again.
const HEALING_MS: i64 = 5_000;

/// A small random sequence.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }

    pub fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// What may go wrong in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Processes die, pause and are cut off, any number at once; machines keep their power.
    Kills,
    /// Machines lose their power as well, the next one when the last is in sync again; `min.insync.replicas` is 2.
    PowerOfOne,
    /// Any machine loses its power at any time; records are flushed.
    FlushedPower,
}

#[derive(Debug, Clone)]
enum Message {
    Fetch {
        from: usize,
        broker_epoch: i64,
        at: Position,
    },
    Fetched {
        at: Position,
        data: PartitionData,
    },
    Ends {
        from: usize,
        leader_epoch: i32,
    },
    Found {
        leader_epoch: i32,
        ends: Result<(i64, i64), ErrorCode>,
    },
    /// To the store.
    Propose {
        from: usize,
        leader_epoch: i32,
        proposal: Proposal,
    },
    Proposed {
        leader_epoch: i32,
        partition_epoch: i32,
        answer: ProposalOutcome,
    },
    /// The document is to be read.
    Look,
}

#[derive(Debug, Clone)]
enum Event {
    Message { to: usize, boot: Option<u64>, message: Message },
    Store { message: Message },
    Tick(usize),
    Settle,
    Produce,
    Fault,
}

/// How often what was to be shown really happened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stats {
    pub runs: u64,
    pub elections: u64,
    pub isr_changes: u64,
    pub truncations: u64,
    pub restarts: u64,
    pub kills: u64,
    pub power_cuts: u64,
    pub dropped: u64,
    pub doubled: u64,
    pub committed: u64,
    pub uncommitted: u64,
    pub bites: u64,
}

impl Stats {
    pub fn add(&mut self, other: &Self) {
        let sum = |mine: &mut u64, theirs: u64| *mine += theirs;
        sum(&mut self.runs, other.runs);
        sum(&mut self.elections, other.elections);
        sum(&mut self.isr_changes, other.isr_changes);
        sum(&mut self.truncations, other.truncations);
        sum(&mut self.restarts, other.restarts);
        sum(&mut self.kills, other.kills);
        sum(&mut self.power_cuts, other.power_cuts);
        sum(&mut self.dropped, other.dropped);
        sum(&mut self.doubled, other.doubled);
        sum(&mut self.committed, other.committed);
        sum(&mut self.uncommitted, other.uncommitted);
        sum(&mut self.bites, other.bites);
    }
}

pub struct Sim {
    name: String,
    dice: Dice,
    weather: Weather,
    now_ms: i64,
    clock: Arc<ManualClock>,
    pub store: Store,
    pub nodes: Vec<Node>,
    events: BTreeMap<(i64, u64), Event>,
    next_event: u64,
    /// Links that are cut, one way.
    cut: BTreeSet<(usize, usize)>,
    /// Brokers that do not reach the store.
    alone: BTreeSet<usize>,
    /// Machines whose power went since they were in sync.
    cut_power: BTreeSet<usize>,
    /// Brokers whose disk is about to go.
    halting: BTreeSet<usize>,
    leaders: BTreeMap<i32, usize>,
    watermarks: BTreeMap<usize, (u64, i64)>,
    pub committed: Vec<(i32, u64)>,
    next_value: u64,
    faults: bool,
    pub stats: Stats,
}

impl Sim {
    pub fn new(seed: u64, weather: Weather) -> Self {
        let mut dice = Dice::new(seed);
        let min_isr = if weather == Weather::PowerOfOne { 2 } else { 1 + dice.below(2) as usize };
        let durability = match weather {
            Weather::FlushedPower => Durability::Flushed,
            _ => Durability::PageCache,
        };
        let clock = Arc::new(ManualClock::at(1_000_000));
        // From one that hardly any follower keeps to one that a pause of the network does not exceed.
        let lag_max_ms = 10 + dice.below(300) as i64;
        let node = |id| Node { lag_max_ms, ..Node::new(id, &clock, durability, min_isr) };
        let nodes = (0..BROKERS).map(node).collect();
        let mut sim = Self {
            name: format!("seed {seed}, {weather:?}, min.insync.replicas {min_isr}, lag {lag_max_ms} ms"),
            dice,
            weather,
            now_ms: 0,
            clock,
            store: Store::new(BROKERS, min_isr, false),
            nodes,
            events: BTreeMap::new(),
            next_event: 0,
            cut: BTreeSet::new(),
            alone: BTreeSet::new(),
            cut_power: BTreeSet::new(),
            halting: BTreeSet::new(),
            leaders: BTreeMap::new(),
            watermarks: BTreeMap::new(),
            committed: Vec::new(),
            next_value: 0,
            faults: true,
            stats: Stats { runs: 1, ..Stats::default() },
        };
        for id in 0..BROKERS {
            sim.store.register(id, true);
        }
        for id in 0..BROKERS {
            sim.start(id);
            sim.later(1 + id as u64, Event::Tick(id));
        }
        sim.later(5, Event::Settle);
        sim.later(3, Event::Produce);
        sim.later(50, Event::Fault);
        sim
    }

    fn later(&mut self, ms: u64, event: Event) {
        self.next_event += 1;
        self.events.insert((self.now_ms + ms as i64, self.next_event), event);
    }

    /// Runs until all is well at the end; the figures.
    pub fn run(mut self) -> Stats {
        while let Some(((at, _), event)) = self.events.pop_first() {
            self.clock.advance_ms(at - self.now_ms);
            self.now_ms = at;
            if at >= FAULTS_MS && self.faults {
                self.heal();
            }
            self.happen(event);
            if !self.faults && self.is_well() {
                return self.finish();
            }
            assert!(at < FAULTS_MS + HEALING_MS, "{}: not well again: {}", self.name, self.describe());
        }
        unreachable!("ticks never end")
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick(id) => self.tick(id),
            Event::Produce => self.produce(),
            Event::Fault => self.fault(),
            Event::Settle => {
                self.reconcile();
                let ms = 5 + self.dice.below(40);
                self.later(ms, Event::Settle);
            }
            Event::Store { message } => self.decide(message),
            Event::Message { to, boot, message } => {
                let Some(up) = &self.nodes[to].up else { return };
                if boot.is_some_and(|boot| boot != self.nodes[to].boots) {
                    return;
                }
                if up.paused {
                    return self.later(7, Event::Message { to, boot, message });
                }
                self.deliver(to, message);
                self.watch(to);
            }
        }
    }

    /// The messages of a broker to itself, the store and others take their time, or never come.
    fn send(&mut self, from: usize, to: usize, message: Message) {
        let boot =
            matches!(message, Message::Fetched { .. } | Message::Found { .. }).then(|| self.nodes[to].boots);
        if self.cut.contains(&(from, to)) || (self.faults && self.dice.one_in(25)) {
            self.stats.dropped += 1;
            return;
        }
        let event = Event::Message { to, boot, message };
        if self.faults && self.dice.one_in(25) {
            self.stats.doubled += 1;
            let ms = 1 + self.dice.below(80);
            self.later(ms, event.clone());
        }
        let ms = self.delay();
        self.later(ms, event);
    }

    fn delay(&mut self) -> u64 {
        match self.faults && self.dice.one_in(10) {
            true => 1 + self.dice.below(60),
            false => 1 + self.dice.below(4),
        }
    }

    fn deliver(&mut self, to: usize, message: Message) {
        let now_ms = self.now_ms;
        match message {
            Message::Fetch { from, broker_epoch, at } => {
                if self.leads(to) {
                    let data = self.nodes[to].serve(from, broker_epoch, &at, now_ms);
                    self.extend_committed(to);
                    self.send(to, from, Message::Fetched { at, data });
                }
            }
            Message::Ends { from, leader_epoch } => {
                if self.leads(to) {
                    let ends = self.nodes[to].serve_ends(leader_epoch);
                    self.send(to, from, Message::Found { leader_epoch, ends });
                }
            }
            Message::Fetched { at, data } => {
                let watermark = self.nodes[to].log().offsets().high_watermark;
                let step = self.nodes[to].fetched(&at, &data, now_ms);
                self.nodes[to].up().asked_ms = None;
                self.stepped(to, watermark, step);
            }
            Message::Found { leader_epoch, ends } => {
                let watermark = self.nodes[to].log().offsets().high_watermark;
                let step = self.nodes[to].found(leader_epoch, ends, now_ms);
                self.nodes[to].up().asked_ms = None;
                self.stepped(to, watermark, Ok(step));
            }
            Message::Proposed { leader_epoch, partition_epoch, answer } => {
                self.nodes[to].proposed(leader_epoch, partition_epoch, answer, now_ms);
            }
            Message::Look => {
                if !self.alone.contains(&to) {
                    self.learn(to);
                }
            }
            Message::Propose { .. } => unreachable!("only the store decides"),
        }
    }

    /// What a follower did with an answer.
    fn stepped(&mut self, id: usize, watermark: i64, step: Result<Step, StorageError>) {
        let step = match step {
            Ok(step) => step,
            Err(error) => return self.died(id, &error),
        };
        if let Some(news) = step.news {
            assert!(self.halting.contains(&id), "{}: broker {id}: {news}", self.name);
            return self.crash(id, true);
        }
        if let Some((before, after)) = step.truncated {
            self.stats.truncations += u64::from(after < before);
            self.stats.restarts += u64::from(after > before);
            assert!(
                after >= watermark,
                "{}: broker {id} gave up what was committed, {before} to {after}",
                self.name
            );
        }
    }

    fn died(&mut self, id: usize, error: &StorageError) {
        assert!(self.halting.contains(&id), "{}: broker {id}: {error}", self.name);
        self.crash(id, true);
    }

    /// Whether the broker may act as a leader now.
    fn leads(&self, id: usize) -> bool {
        let lease = |renewed_ms: i64| self.now_ms < renewed_ms + SESSION_MS - MARGIN_MS;
        self.nodes[id]
            .up
            .as_ref()
            .is_some_and(|up| matches!(up.acting, Acting::Leader(_)) && !up.paused && lease(up.renewed_ms))
    }

    fn tick(&mut self, id: usize) {
        let ms = 2 + self.dice.below(8);
        self.later(ms, Event::Tick(id));
        let now_ms = self.now_ms;
        let Some(up) = &mut self.nodes[id].up else { return };
        if up.renewed_ms + SESSION_MS <= now_ms && self.store.alive.get(&id) == Some(&up.broker_epoch) {
            self.store.expire(id);
        }
        if up.paused {
            return;
        }
        if !self.alone.contains(&id) {
            if !self.store.alive.contains_key(&id) {
                // The process lives on with a new session; nothing of its log was lost.
                up.broker_epoch = self.store.register(id, true);
                self.announce_all();
            }
            self.nodes[id].up().renewed_ms = now_ms;
        }
        self.ask(id);
        self.lead(id);
        self.watch(id);
    }

    /// A follower's next question.
    fn ask(&mut self, id: usize) {
        let now_ms = self.now_ms;
        let Some(leader) = self.nodes[id].leader() else { return };
        if self.nodes[id].up().asked_ms.is_some_and(|asked| now_ms < asked + ANSWER_MS) {
            return;
        }
        let broker_epoch = self.nodes[id].up().broker_epoch;
        let message = match self.nodes[id].need(now_ms) {
            Need::Fetch(at) => Message::Fetch { from: id, broker_epoch, at },
            Need::Ends => Message::Ends { from: id, leader_epoch: self.nodes[id].up().doc.leader_epoch },
            Need::Wait(_) | Need::Nothing => return,
        };
        self.nodes[id].up().asked_ms = Some(now_ms);
        self.send(id, leader, message);
    }

    /// A leader's timers: group commit, the ISR.
    fn lead(&mut self, id: usize) {
        if !self.leads(id) {
            return;
        }
        let now_ms = self.now_ms;
        if self.weather == Weather::FlushedPower {
            if let Err(error) = self.nodes[id].flush(now_ms) {
                return self.died(id, &error);
            }
            self.extend_committed(id);
        }
        if let Some((leader_epoch, proposal)) = self.nodes[id].proposal(now_ms) {
            let lost = self.alone.contains(&id) || (self.faults && self.dice.one_in(6));
            if !lost {
                let ms = self.delay();
                self.later(
                    ms,
                    Event::Store { message: Message::Propose { from: id, leader_epoch, proposal } },
                );
            }
        }
    }

    fn decide(&mut self, message: Message) {
        let Message::Propose { from, leader_epoch, proposal } = message else { return };
        let partition_epoch = proposal.partition_epoch;
        let answer = self.store.alter(from, leader_epoch, &proposal);
        self.announce_all();
        // An answer that is lost is an answer that says nothing.
        let answer = if self.faults && self.dice.one_in(6) { ProposalOutcome::Undecided } else { answer };
        let ms = self.delay();
        let message = Message::Proposed { leader_epoch, partition_epoch, answer };
        self.later(ms, Event::Message { to: from, boot: Some(self.nodes[from].boots), message });
    }

    fn reconcile(&mut self) {
        let before = self.store.doc.clone();
        self.store.reconcile();
        if before != self.store.doc {
            self.announce_all();
        }
    }

    /// Everybody will look, each after its own time.
    fn announce_all(&mut self) {
        for to in 0..BROKERS {
            let ms = self.delay();
            self.later(ms, Event::Message { to, boot: None, message: Message::Look });
        }
    }

    fn learn(&mut self, id: usize) {
        let (doc, alive) = (self.store.doc.clone(), self.store.alive.clone());
        let learned = self.nodes[id].learn(&doc, &alive, self.now_ms);
        match learned {
            Ok(()) => self.check_leader(id),
            Err(error) => self.died(id, &error),
        }
    }

    fn produce(&mut self) {
        if !self.faults {
            return;
        }
        let ms = 1 + self.dice.below(20);
        self.later(ms, Event::Produce);
        let Some(id) = (0..BROKERS).find(|id| self.leads(*id)) else { return };
        let Acting::Leader(progress) = &self.nodes[id].up().acting else { return };
        if progress.is_under_min_isr() && self.dice.one_in(2) {
            // acks=all is refused; acks=1 is not.
            return;
        }
        let count = 1 + self.dice.below(3);
        let values: Vec<_> = (self.next_value..self.next_value + count).collect();
        self.next_value += count;
        let now_ms = self.now_ms;
        match self.nodes[id].produce(&values, now_ms) {
            Ok(_) => self.extend_committed(id),
            Err(error) => self.died(id, &error),
        }
        self.watch(id);
    }
}
