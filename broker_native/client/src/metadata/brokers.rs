//! The brokers and partition leaders that a client remembers, of a cluster that changes meanwhile. No socket.
use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::address::Address;
use super::topic_partition::{PartitionById, TopicPartition};
use pylog_wire::messages::metadata::MetadataResponse;

/// How long a broker that failed is asked last.
const ASKED_LAST_FOR: Duration = Duration::from_secs(10);

/// Addresses that failed lately.
#[derive(Debug, Default)]
pub struct FailedBrokers(HashMap<Address, Instant>);

impl FailedBrokers {
    /// `address` failed now.
    pub fn add(&mut self, address: &Address) {
        self.0.retain(|_, since| since.elapsed() < ASKED_LAST_FOR);
        self.0.insert(address.clone(), Instant::now());
    }

    /// Every address once: first those that did not fail in the order given, then the others, the oldest failure first.
    pub fn order<'a>(&self, addresses: impl Iterator<Item = &'a Address>) -> Vec<Address> {
        let (mut good, mut failed): (Vec<Address>, Vec<(Instant, Address)>) = (Vec::new(), Vec::new());
        for address in addresses {
            match self.0.get(address).filter(|since| since.elapsed() < ASKED_LAST_FOR) {
                None if !good.contains(address) => good.push(address.clone()),
                Some(since) if !failed.iter().any(|(_, known)| known == address) => {
                    failed.push((*since, address.clone()));
                }
                _ => {}
            }
        }
        failed.sort_by_key(|(since, _)| *since);
        good.extend(failed.into_iter().map(|(_, address)| address));
        good
    }
}

/// Leaders as metadata showed them last, and the newest epoch of each partition.
#[derive(Debug, Default)]
pub struct Leaders {
    /// By the topic's name and the partition's number.
    leaders: HashMap<String, HashMap<i32, i32>>,
    epochs: HashMap<PartitionById, i32>,
}

impl Leaders {
    /// The leader of a partition, by its name.
    pub fn of(&self, partition: &TopicPartition) -> Option<i32> {
        self.leaders.get(&*partition.topic)?.get(&partition.partition).copied()
    }

    /// Forgets leaders; what epochs were seen stays known.
    pub fn forget(&mut self) {
        self.leaders.clear();
    }

    /// Notes the epoch of a partition; true when none as new was seen before.
    pub fn saw(&mut self, partition: PartitionById, epoch: i32) -> bool {
        let known = self.epochs.entry(partition).or_insert(-1);
        let newer = epoch > *known;
        *known = epoch.max(*known);
        newer
    }

    /// Takes the leaders of an answer; names a partition whose epoch there is older than one seen before, and has no
    /// leader for it then.
    pub fn remember(&mut self, answer: &MetadataResponse) -> Option<TopicPartition> {
        let mut stale = None;
        for topic in &answer.topics {
            let Some(name) = &topic.name else { continue };
            let mut leaders = HashMap::with_capacity(topic.partitions.len());
            for partition in &topic.partitions {
                let by_id = (topic.topic_id, partition.partition_index);
                // Brokers without topic ids cannot say whether it is the same topic.
                let counts = !topic.topic_id.is_nil() && partition.leader_epoch >= 0;
                if counts
                    && !self.saw(by_id, partition.leader_epoch)
                    && self.is_older(by_id, partition.leader_epoch)
                {
                    stale = Some(TopicPartition::by_name(name.as_str(), partition.partition_index));
                } else if partition.leader_id >= 0 {
                    leaders.insert(partition.partition_index, partition.leader_id);
                }
            }
            match leaders.is_empty() {
                true => self.leaders.remove(name),
                false => self.leaders.insert(name.clone(), leaders),
            };
        }
        stale
    }

    fn is_older(&self, partition: PartitionById, epoch: i32) -> bool {
        self.epochs.get(&partition).is_some_and(|known| epoch < *known)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::tests::fake::metadata;

    fn address(port: u16) -> Address {
        ("h".to_owned(), port)
    }

    #[test]
    fn who_failed_is_asked_last_and_each_address_once() {
        let mut failed = FailedBrokers::default();
        let all = [address(1), address(2), address(1), address(3)];
        assert_eq!(failed.order(all.iter()), [address(1), address(2), address(3)]);
        failed.add(&address(1));
        assert_eq!(failed.order(all.iter()), [address(2), address(3), address(1)]);
        failed.add(&address(2));
        assert_eq!(failed.order(all.iter()), [address(3), address(1), address(2)]);
    }

    #[test]
    fn leaders_are_those_of_the_last_answer_about_their_topic() {
        let mut leaders = Leaders::default();
        let mut answer = metadata(1);
        assert_eq!(leaders.remember(&answer), None);
        let named = answer.topics[0].clone();
        answer.topics[0].name = Some("other".to_owned());
        assert_eq!(leaders.remember(&answer), None);
        assert_eq!(leaders.of(&TopicPartition::by_name("t", 0)), Some(1));
        answer.topics[0] = named;
        answer.topics[0].partitions.clear();
        assert_eq!(leaders.remember(&answer), None);
        assert_eq!(leaders.of(&TopicPartition::by_name("t", 0)), None);
        assert_eq!(leaders.of(&TopicPartition::by_name("other", 0)), Some(1));
    }

    #[test]
    fn an_older_epoch_than_one_seen_is_no_news_of_the_leader() {
        let mut leaders = Leaders::default();
        let mut answer = metadata(1);
        answer.topics[0].partitions[0].leader_epoch = 5;
        assert_eq!(leaders.remember(&answer), None);
        assert_eq!(leaders.of(&TopicPartition::by_name("t", 0)), Some(1));
        answer.topics[0].partitions[0].leader_epoch = 4;
        assert_eq!(leaders.remember(&answer), Some(TopicPartition::by_name("t", 0)));
        assert_eq!(leaders.of(&TopicPartition::by_name("t", 0)), None);
        // A topic of the same name that was made anew begins anew.
        answer.topics[0].topic_id = Uuid::from_u128(8);
        assert_eq!(leaders.remember(&answer), None);
    }
}
