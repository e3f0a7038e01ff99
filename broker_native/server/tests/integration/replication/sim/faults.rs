//! What goes wrong, and how it is put right.
use pylog_testkit::sim::Fault;

use super::{BROKERS, Event, Sim, Weather};

impl Sim {
    pub(super) fn fault(&mut self) {
        if !self.faults {
            return;
        }
        let ms = 20 + self.dice.below(150);
        self.later(ms, Event::Fault);
        self.check();
        let id = self.dice.below(BROKERS as u64) as usize;
        let other = (id + 1 + self.dice.below(2) as usize) % BROKERS;
        match self.dice.below(12) {
            0..=2 => self.crash(id, false),
            3 | 4 => self.cut_power(id),
            5 => self.stop(id),
            6 => {
                self.cut.insert((id, other));
                if self.dice.one_in(2) {
                    self.cut.insert((other, id));
                }
            }
            7 => _ = self.alone.insert(id),
            8 => {
                if let Some(up) = &mut self.nodes[id].up {
                    up.paused = true;
                }
            }
            9 => self.mend(),
            10 => {
                let id = self.dice.below(BROKERS as u64) as usize;
                if let Some(errors) = self.nodes[id].up.as_ref().map(|up| up.logs.run_maintenance()) {
                    errors.iter().for_each(|error| self.died(id, error));
                }
            }
            _ => {}
        }
        for id in 0..BROKERS {
            if self.nodes[id].up.is_none() && self.dice.one_in(2) {
                self.start(id);
            }
        }
    }

    fn mend(&mut self) {
        self.cut.clear();
        self.alone.clear();
        for node in &mut self.nodes {
            if let Some(up) = &mut node.up {
                up.paused = false;
            }
        }
    }

    /// No faults from now on.
    pub(super) fn heal(&mut self) {
        self.faults = false;
        self.mend();
        for id in 0..BROKERS {
            if self.halting.contains(&id) {
                self.crash(id, true);
            }
            if self.nodes[id].up.is_none() {
                self.start(id);
            }
        }
        self.announce_all();
    }

    pub(super) fn crash(&mut self, id: usize, power: bool) {
        if self.nodes[id].up.is_none() {
            return;
        }
        self.halting.remove(&id);
        self.stats.kills += u64::from(!power);
        self.stats.power_cuts += u64::from(power);
        if power {
            self.cut_power.insert(id);
        }
        let seed = power.then(|| self.dice.below(u64::MAX));
        self.nodes[id].crash(seed);
    }

    /// At once, or at one of the next changes of the disk.
    fn cut_power(&mut self, id: usize) {
        let safe = match self.weather {
            Weather::Kills => false,
            Weather::FlushedPower => true,
            Weather::PowerOfOne => self.cut_power.iter().all(|other| *other == id),
        };
        if !safe || self.nodes[id].up.is_none() {
            return;
        }
        if self.dice.one_in(2) {
            return self.crash(id, true);
        }
        self.halting.insert(id);
        self.cut_power.insert(id);
        let change = self.dice.below(30);
        self.nodes[id].disk.inject(Fault::Halt(change));
    }

    /// A clean stop: leadership is handed over first.
    fn stop(&mut self, id: usize) {
        let ready = self.nodes[id].up.as_ref().is_some_and(|up| !up.paused)
            && !self.alone.contains(&id)
            && !self.halting.contains(&id);
        if ready {
            self.store.leave(id);
            self.announce_all();
            self.nodes[id].stop();
        }
    }

    pub(super) fn start(&mut self, id: usize) {
        // Its old session is over before it comes back.
        if self.nodes[id].boots > 0 {
            self.store.expire(id);
            // That its machine lost power is known from more than its own files.
            let clean = self.nodes[id].clean || !self.cut_power.contains(&id);
            self.store.register(id, clean);
        }
        let (doc, alive) = (self.store.doc.clone(), self.store.alive.clone());
        if let Err(error) = self.nodes[id].start(doc, alive, self.now_ms) {
            panic!("{}: broker {id} does not start: {error}", self.name);
        }
        self.check_leader(id);
        self.announce_all();
    }
}
