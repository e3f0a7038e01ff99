//! `uniform`: equal numbers of partitions, and as few moves from the target before as that allows.
//!
//! 1. Every member keeps what it was to own and is still subscribed to.
//! 2. Partitions without an owner go to the subscriber with the fewest; topics with many partitions for each subscriber
//!    come first, because they leave the least choice.
//! 3. Topic by topic, partitions move from the subscriber with the most to that with the fewest, while they differ by more
//!    than one. Repeated until nothing moves, at most [`ROUNDS_MAX`] times.
//!
//! When all members are subscribed to the same topics, their numbers of partitions differ by at most one.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::subscriber::{Subscriber, by_topic};
use crate::group::consumer::member::AssignedPartitions;

/// Members with overlapping subscriptions may need some rounds; a limit, because equality is a wish.
const ROUNDS_MAX: usize = 16;

/// The targets of all members.
pub fn assign(subscribers: &[Subscriber]) -> BTreeMap<String, AssignedPartitions> {
    let topics = by_topic(subscribers);
    let mut order: Vec<Uuid> = topics.keys().copied().collect();
    // Partitions for each subscriber, compared as fractions.
    let weight = |topic_id: &Uuid| {
        topics.get(topic_id).map_or((0, 1), |(n, members)| (i64::from(*n), members.len() as i64))
    };
    order.sort_by(|one, other| {
        let ((n1, m1), (n2, m2)) = (weight(one), weight(other));
        (n2 * m1).cmp(&(n1 * m2)).then(m1.cmp(&m2)).then(one.cmp(other))
    });
    let mut table = Table::keeping(subscribers);
    for topic_id in &order {
        if let Some((partitions, members)) = topics.get(topic_id) {
            table.give_out(*topic_id, *partitions, members);
        }
    }
    for _ in 0..ROUNDS_MAX {
        let mut moved = false;
        for topic_id in &order {
            moved |= topics.get(topic_id).is_some_and(|(_, members)| table.even_out(*topic_id, members));
        }
        if !moved {
            break;
        }
    }
    let ids = subscribers.iter().map(|subscriber| subscriber.member_id.clone());
    ids.zip(table.rows.into_iter().map(|row| row.partitions)).collect()
}

#[derive(Default)]
struct Row {
    partitions: AssignedPartitions,
    load: usize,
}

/// The partitions of each member; members by their places in the list.
struct Table {
    rows: Vec<Row>,
    taken: BTreeSet<(Uuid, i32)>,
}

impl Table {
    /// With what may stay as it was.
    fn keeping(subscribers: &[Subscriber]) -> Self {
        let mut table = Self { rows: Vec::with_capacity(subscribers.len()), taken: BTreeSet::new() };
        for (at, subscriber) in subscribers.iter().enumerate() {
            table.rows.push(Row::default());
            for (topic_id, partitions) in &subscriber.before {
                let count = subscriber.topics.get(topic_id).copied().unwrap_or(0);
                for partition in partitions.range(..count) {
                    if table.taken.insert((*topic_id, *partition)) {
                        table.put(at, *topic_id, *partition);
                    }
                }
            }
        }
        table
    }

    fn put(&mut self, at: usize, topic_id: Uuid, partition: i32) {
        if let Some(row) = self.rows.get_mut(at) {
            row.partitions.entry(topic_id).or_default().insert(partition);
            row.load += 1;
        }
    }

    /// Takes the member's last partition of the topic.
    fn take(&mut self, at: usize, topic_id: Uuid) -> Option<i32> {
        let row = self.rows.get_mut(at)?;
        let partitions = row.partitions.get_mut(&topic_id)?;
        let partition = partitions.pop_last()?;
        if partitions.is_empty() {
            row.partitions.remove(&topic_id);
        }
        row.load -= 1;
        Some(partition)
    }

    fn load(&self, at: usize) -> usize {
        self.rows.get(at).map_or(0, |row| row.load)
    }

    fn give_out(&mut self, topic_id: Uuid, partitions: i32, members: &[usize]) {
        let mut by_load: BTreeSet<(usize, usize)> = members.iter().map(|at| (self.load(*at), *at)).collect();
        for partition in 0..partitions {
            if self.taken.contains(&(topic_id, partition)) {
                continue;
            }
            let Some((load, at)) = by_load.pop_first() else { return };
            self.taken.insert((topic_id, partition));
            self.put(at, topic_id, partition);
            by_load.insert((load + 1, at));
        }
    }

    /// Whether something moved.
    fn even_out(&mut self, topic_id: Uuid, members: &[usize]) -> bool {
        let mut fewest: BTreeSet<(usize, usize)> = members.iter().map(|at| (self.load(*at), *at)).collect();
        let has_some =
            |at: &&usize| self.rows.get(**at).is_some_and(|row| row.partitions.contains_key(&topic_id));
        // Only those can give that have partitions of the topic.
        let mut most: BTreeSet<(usize, Reverse<usize>)> =
            members.iter().filter(has_some).map(|at| (self.load(*at), Reverse(*at))).collect();
        let mut moved = false;
        while let (Some((least, to)), Some((load, Reverse(from)))) =
            (fewest.first().copied(), most.last().copied())
        {
            if load <= least + 1 {
                break;
            }
            most.pop_last();
            let Some(partition) = self.take(from, topic_id) else { continue };
            self.put(to, topic_id, partition);
            moved = true;
            fewest.remove(&(least, to));
            fewest.insert((least + 1, to));
            fewest.remove(&(load, from));
            fewest.insert((load - 1, from));
            // Who received keeps what it got: it is below the others.
            most.insert((load - 1, Reverse(from)));
            if most.remove(&(least, Reverse(to))) {
                most.insert((least + 1, Reverse(to)));
            }
        }
        moved
    }
}
