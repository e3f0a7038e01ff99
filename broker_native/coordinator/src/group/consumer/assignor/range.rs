//! `range`: each topic's partitions in consecutive runs, in the order of the members.
//!
//! Static members come first, by their names, so that they keep their runs when they come back under another member id.
use std::collections::BTreeMap;

use super::subscriber::{Subscriber, by_topic};
use crate::group::consumer::member::AssignedPartitions;

/// The targets of all members.
pub fn assign(subscribers: &[Subscriber]) -> BTreeMap<String, AssignedPartitions> {
    let mut ordered = subscribers.to_vec();
    ordered.sort_by(|one, other| key(one).cmp(&key(other)));
    let mut targets: BTreeMap<String, AssignedPartitions> =
        ordered.iter().map(|subscriber| (subscriber.member_id.clone(), AssignedPartitions::new())).collect();
    for (topic_id, (partitions, owners)) in by_topic(&ordered) {
        let members = i32::try_from(owners.len()).unwrap_or(i32::MAX).max(1);
        let (each, extra) = (partitions / members, partitions % members);
        let mut next = 0;
        for (rank, owner) in (0..).zip(owners) {
            let end = next + each + i32::from(rank < extra);
            let target = ordered.get(owner).and_then(|subscriber| targets.get_mut(&subscriber.member_id));
            if let Some(target) = target.filter(|_| next < end) {
                target.insert(topic_id, (next..end).collect());
            }
            next = end;
        }
    }
    targets
}

fn key(subscriber: &Subscriber) -> (bool, Option<&str>, &str) {
    let instance_id = subscriber.instance_id.as_deref();
    (instance_id.is_none(), instance_id, &subscriber.member_id)
}
