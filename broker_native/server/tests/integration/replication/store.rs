//! The partition's document and who decides about it, by the rules of the control plane (`pylog_spark/cluster/election.py`
//! and `isr.py`), as far as one partition needs them.
//!
//! Members that die leave the ISR as long as it does not become empty; while it is smaller than `min.insync.replicas` they
//! stay eligible (ELR). A broker whose machine lost power leaves both before it registers again, unless it is the last.
use std::collections::{BTreeMap, BTreeSet};

use pylog_replica::progress::{Proposal, ProposalOutcome};

type Brokers = BTreeSet<usize>;

/// What is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doc {
    pub leader: Option<usize>,
    pub leader_epoch: i32,
    pub partition_epoch: i32,
    pub isr: Brokers,
    pub elr: Brokers,
}

pub struct Store {
    pub doc: Doc,
    /// Registered brokers and their epochs.
    pub alive: BTreeMap<usize, i64>,
    pub min_isr: usize,
    pub unclean_elections: bool,
    pub elections: u64,
    pub isr_changes: u64,
    replicas: usize,
    next_broker_epoch: i64,
}

impl Store {
    pub fn new(replicas: usize, min_isr: usize, unclean_elections: bool) -> Self {
        let isr = (0..replicas).collect();
        let doc = Doc { leader: Some(0), leader_epoch: 0, partition_epoch: 0, isr, elr: Brokers::new() };
        let (elections, isr_changes) = (0, 0);
        let alive = BTreeMap::new();
        Self {
            doc,
            alive,
            min_isr,
            unclean_elections,
            elections,
            isr_changes,
            replicas,
            next_broker_epoch: 100,
        }
    }

    /// A broker comes; its epoch. `clean`: its log surely is what it was.
    pub fn register(&mut self, id: usize, clean: bool) -> i64 {
        assert!(!self.alive.contains_key(&id), "its old session is there");
        let mut next = self.doc.clone();
        if !clean {
            let spare: Brokers =
                self.eligible(&next.isr, &Brokers::new()).into_iter().filter(|other| *other != id).collect();
            let mut left: Brokers = next.isr.iter().copied().filter(|other| *other != id).collect();
            if left.is_empty() {
                let first = self.first(&spare).or_else(|| spare.first().copied());
                left.extend(first);
            }
            if !left.is_empty() {
                next.elr = self.eligible(&left, &Brokers::from([id]));
                next.isr = left;
            }
        }
        if next.leader == Some(id) {
            next.leader = self.first(&next.isr);
        }
        let bump = !clean && next.leader.is_some();
        self.save(next, bump);
        self.next_broker_epoch += 1;
        self.alive.insert(id, self.next_broker_epoch);
        self.next_broker_epoch
    }

    /// The session of a broker ends.
    pub fn expire(&mut self, id: usize) {
        self.alive.remove(&id);
    }

    /// What the controller does now and then.
    pub fn reconcile(&mut self) {
        let mut next = self.doc.clone();
        let living: Brokers = next.isr.iter().copied().filter(|id| self.alive.contains_key(id)).collect();
        let mut unclean = false;
        let isr = if !living.is_empty() {
            living
        } else if let Some(eligible) = self.first(&next.elr) {
            Brokers::from([eligible])
        } else {
            let anybody = (0..self.replicas).find(|id| self.unclean_elections && self.alive.contains_key(id));
            unclean = anybody.is_some();
            anybody.map_or(next.isr.clone(), |anybody| Brokers::from([anybody]))
        };
        next.elr = if unclean { Brokers::new() } else { self.eligible(&isr, &Brokers::new()) };
        next.isr = isr;
        let stays = next.leader.is_some_and(|id| next.isr.contains(&id) && self.alive.contains_key(&id));
        if !stays {
            next.leader = self.first(&next.isr);
        }
        self.save(next, false);
    }

    /// A broker that stops cleanly hands over before it goes.
    pub fn leave(&mut self, id: usize) {
        self.expire(id);
        self.reconcile();
    }

    /// The first of `among` that is alive.
    fn first(&self, among: &Brokers) -> Option<usize> {
        among.iter().copied().find(|id| self.alive.contains_key(id))
    }

    /// The ELR once the ISR is `isr`.
    fn eligible(&self, isr: &Brokers, unclean: &Brokers) -> Brokers {
        if isr.len() >= self.min_isr {
            return Brokers::new();
        }
        let all = self.doc.isr.union(&self.doc.elr);
        all.copied().filter(|id| !isr.contains(id) && !unclean.contains(id)).collect()
    }

    /// The leader's proposal for the ISR.
    pub fn alter(&mut self, from: usize, leader_epoch: i32, proposal: &Proposal) -> ProposalOutcome {
        let is_current = self.doc.leader == Some(from)
            && self.doc.leader_epoch == leader_epoch
            && self.doc.partition_epoch == proposal.partition_epoch;
        if !is_current {
            return ProposalOutcome::Outdated;
        }
        let wanted: BTreeMap<usize, i64> =
            proposal.new_isr.iter().map(|(id, epoch)| (usize::try_from(*id).unwrap(), *epoch)).collect();
        let mut added = wanted.iter().filter(|(id, _)| !self.doc.isr.contains(id));
        if added.any(|(id, epoch)| self.alive.get(id) != Some(epoch)) {
            return ProposalOutcome::Refused;
        }
        let mut next = self.doc.clone();
        next.isr = wanted.into_keys().collect();
        next.elr = self.eligible(&next.isr, &Brokers::new());
        self.save(next, false);
        ProposalOutcome::Accepted
    }

    fn save(&mut self, mut next: Doc, bump: bool) {
        let elected = bump || next.leader != self.doc.leader;
        if next == self.doc && !elected {
            return;
        }
        self.isr_changes += u64::from(next.isr != self.doc.isr);
        self.elections += u64::from(elected && next.leader.is_some());
        next.leader_epoch = self.doc.leader_epoch + i32::from(elected);
        next.partition_epoch = self.doc.partition_epoch + 1;
        self.doc = next;
    }
}
