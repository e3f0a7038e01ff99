//! What must hold, and what a failure shows of it.
use std::collections::BTreeSet;

use pylog_testkit::sim::Bites;

use super::{BROKERS, Event, Sim, Stats};
use crate::replication::node::{Acting, records_of};

impl Sim {
    pub(super) fn finish(mut self) -> Stats {
        self.check();
        let end = self.nodes[0].log().offsets().log_end_offset;
        for node in &self.nodes {
            assert_eq!(records_of(node.log(), 0, end), self.committed, "{}: {} differs", self.name, node.id);
            let Bites { dropped, torn, .. } = node.disk.bites();
            self.stats.bites += dropped + torn;
        }
        self.stats.elections = self.store.elections;
        self.stats.isr_changes = self.store.isr_changes;
        self.stats.committed = self.committed.len() as u64;
        self.stats.uncommitted = self.next_value - self.stats.committed;
        self.stats
    }

    /// All run, are in sync and equal, and all is committed.
    pub(super) fn is_well(&self) -> bool {
        let ends: BTreeSet<_> = self
            .nodes
            .iter()
            .map(|node| node.up.as_ref().map(|up| up.log.offsets()))
            .map(|offsets| offsets.map(|offsets| (offsets.log_end_offset, offsets.high_watermark)))
            .collect();
        let equal =
            matches!(ends.first(), Some(Some((end, committed))) if end == committed) && ends.len() == 1;
        equal
            && self.store.doc.isr.len() == BROKERS
            && self.store.doc.leader.is_some_and(|leader| self.leads(leader))
            && self.events.values().all(|event| !matches!(event, Event::Produce))
    }

    pub(super) fn describe(&self) -> String {
        let nodes: Vec<_> = self
            .nodes
            .iter()
            .map(|node| match &node.up {
                None => "down".to_owned(),
                Some(up) => {
                    let role = match &up.acting {
                        Acting::Leader(progress) => format!("leader {progress:?}"),
                        Acting::Follower(following) => format!("{following:?}"),
                        Acting::Nobody => "nobody".into(),
                    };
                    format!("{:?} {:?} {role}", up.log.offsets(), up.log.latest_epoch())
                }
            })
            .collect();
        format!("{:?} alive {:?}\n{}", self.store.doc, self.store.alive, nodes.join("\n"))
    }

    pub(super) fn check_leader(&mut self, id: usize) {
        let up = self.nodes[id].up.as_ref().unwrap();
        if !matches!(up.acting, Acting::Leader(_)) {
            return;
        }
        let first = *self.leaders.entry(up.doc.leader_epoch).or_insert(id);
        assert_eq!(first, id, "{}: two leaders in epoch {}", self.name, up.doc.leader_epoch);
        self.holds_committed(id, "leads");
        self.extend_committed(id);
    }

    /// The broker has all committed records.
    pub(super) fn holds_committed(&self, id: usize, why: &str) {
        let log = self.nodes[id].log();
        let end = log.offsets().log_end_offset;
        let all = self.committed.len() as i64;
        assert!(
            end >= all,
            "{}: broker {id} {why} and ends at {end} of {all}: {}",
            self.name,
            self.describe()
        );
        assert!(
            records_of(log, 0, all) == self.committed,
            "{}: broker {id} {why} with other records",
            self.name
        );
    }

    /// Remembers what a leader committed.
    pub(super) fn extend_committed(&mut self, id: usize) {
        let Some(up) = &self.nodes[id].up else { return };
        let known = self.committed.len() as i64;
        let watermark = up.log.offsets().high_watermark;
        if watermark > known {
            let new = records_of(&up.log, known, watermark);
            self.committed.extend(new);
        }
    }

    /// The high watermark of a running broker never goes back.
    pub(super) fn watch(&mut self, id: usize) {
        let Some(up) = &self.nodes[id].up else { return };
        let now = (self.nodes[id].boots, up.log.offsets().high_watermark);
        let before = self.watermarks.insert(id, now);
        if let Some((boot, watermark)) = before {
            assert!(boot != now.0 || watermark <= now.1, "{}: back from {watermark} to {now:?}", self.name);
        }
        assert!(
            now.1 <= self.committed.len() as i64,
            "{}: broker {id} knows of more than was committed",
            self.name
        );
    }

    /// What must hold at any time.
    pub(super) fn check(&mut self) {
        for id in 0..BROKERS {
            let Some(up) = &self.nodes[id].up else { continue };
            let watermark = up.log.offsets().high_watermark;
            let mine = records_of(&up.log, 0, watermark);
            assert!(mine == self.committed[..mine.len()], "{}: broker {id} differs", self.name);
            let registered = self.store.alive.get(&id) == Some(&up.broker_epoch);
            if registered && self.store.doc.isr.contains(&id) {
                self.holds_committed(id, "is in sync");
                if !self.halting.contains(&id) {
                    self.cut_power.remove(&id);
                }
            }
        }
    }
}
