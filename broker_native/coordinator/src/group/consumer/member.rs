//! A member of a group: who it is, what it subscribes to, what it owns.
use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::Caller;
use pylog_wire::messages::ConsumerGroupHeartbeatRequest;
use pylog_wire::messages::consumer_group_heartbeat::TopicPartitions;

/// Partitions by the ids of their topics; no topic without partitions.
pub type AssignedPartitions = BTreeMap<Uuid, BTreeSet<i32>>;

/// Partitions with the member epochs since which they are owned (KIP-1251); no topic without partitions.
pub type Owned = BTreeMap<Uuid, BTreeMap<i32, i32>>;

/// The epoch of a static member that left for a while.
pub const LEFT_FOR_A_WHILE: i32 = -2;
/// The epoch with which a member leaves for good.
pub const LEAVES: i32 = -1;

/// Where a member is on its way to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemberState {
    /// It owns what it shall own, as of its epoch.
    #[default]
    Stable,
    /// It has been asked to give partitions back and has not yet.
    UnrevokedPartitions,
    /// It waits for partitions that others own.
    UnreleasedPartitions,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerMember {
    /// Its id.
    pub member_id: String,
    /// Name of a static member.
    pub instance_id: Option<String>,
    /// Accepted and shown; the assignors do not use it, as in Kafka.
    pub rack_id: Option<String>,
    /// As it calls itself.
    pub client_id: String,
    /// Its address.
    pub client_host: String,
    /// Topics by name.
    pub subscribed_topic_names: BTreeSet<String>,
    /// Topics by regular expression; an empty one is none, see [`ConsumerMember::regex`].
    pub subscribed_topic_regex: Option<String>,
    /// How long it may take to give partitions back.
    pub rebalance_timeout_ms: i32,
    /// The assignor that it votes for.
    pub server_assignor: Option<String>,
    /// The assignment epoch that it has reached.
    pub member_epoch: i32,
    /// The epoch before: its last answer may have been lost.
    pub previous_member_epoch: i32,
    /// Where it is.
    pub state: MemberState,
    /// What it owns and may keep.
    pub assigned: Owned,
    /// What it owns and must give back.
    pub pending_revocation: Owned,
}

/// About how many bytes a member takes besides its texts.
const MEMBER_BYTES: usize = 2_000;

impl ConsumerMember {
    /// About how many bytes it takes; what it owns is bounded by the topics that exist.
    pub fn bytes(&self) -> usize {
        let texts = [&self.instance_id, &self.rack_id, &self.subscribed_topic_regex, &self.server_assignor];
        let texts = texts.into_iter().flatten().map(String::len).sum::<usize>();
        let names = self.subscribed_topic_names.iter().map(|name| 64 + name.len()).sum::<usize>();
        let ids = self.member_id.len() + self.client_id.len() + self.client_host.len();
        MEMBER_BYTES + texts + names + 4 * ids
    }

    /// A member of which only the id is known.
    pub fn new(member_id: &str) -> Self {
        Self {
            member_id: member_id.to_owned(),
            instance_id: None,
            rack_id: None,
            client_id: String::new(),
            client_host: String::new(),
            subscribed_topic_names: BTreeSet::new(),
            subscribed_topic_regex: Some(String::new()),
            rebalance_timeout_ms: -1,
            server_assignor: None,
            member_epoch: 0,
            previous_member_epoch: -1,
            state: MemberState::Stable,
            assigned: Owned::new(),
            pending_revocation: Owned::new(),
        }
    }

    /// The same with what `request` says.
    pub fn updated(&self, request: &ConsumerGroupHeartbeatRequest, who: &Caller) -> Self {
        let mut member = self.clone();
        let set = |field: &mut Option<String>, value: &Option<String>| {
            if value.is_some() {
                field.clone_from(value);
            }
        };
        set(&mut member.instance_id, &request.instance_id);
        set(&mut member.rack_id, &request.rack_id);
        set(&mut member.server_assignor, &request.server_assignor);
        set(&mut member.subscribed_topic_regex, &request.subscribed_topic_regex);
        if request.rebalance_timeout_ms != -1 {
            member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        }
        if let Some(names) = &request.subscribed_topic_names {
            member.subscribed_topic_names = names.iter().cloned().collect();
        }
        member.client_id.clone_from(&who.client_id);
        member.client_host.clone_from(&who.host);
        member
    }

    /// Its regular expression, if it has one.
    pub fn regex(&self) -> Option<&str> {
        self.subscribed_topic_regex.as_deref().filter(|regex| !regex.is_empty())
    }

    /// Whether it reached `assignment_epoch`.
    pub fn is_reconciled_to(&self, assignment_epoch: i32) -> bool {
        self.state == MemberState::Stable && self.member_epoch == assignment_epoch
    }

    /// Whether it has been asked to give partitions back and is there to do so.
    pub fn owes_partitions(&self) -> bool {
        self.state == MemberState::UnrevokedPartitions && self.member_epoch != LEFT_FOR_A_WHILE
    }

    /// Since which epoch it owns the partition, in whatever way.
    pub fn owned_since(&self, topic_id: &Uuid, partition: i32) -> Option<i32> {
        let since =
            |owned: &Owned| owned.get(topic_id).and_then(|partitions| partitions.get(&partition)).copied();
        since(&self.assigned).or_else(|| since(&self.pending_revocation))
    }

    /// All that it owns: topic and partition.
    pub fn owned(&self) -> impl Iterator<Item = (Uuid, i32)> + '_ {
        each(&self.assigned).chain(each(&self.pending_revocation))
    }
}

/// Topic and partition, one by one.
pub fn each(owned: &Owned) -> impl Iterator<Item = (Uuid, i32)> + '_ {
    owned.iter().flat_map(|(topic_id, partitions)| partitions.keys().map(|partition| (*topic_id, *partition)))
}

/// Whether all that a member says it owns is in `owned`.
pub fn is_subset(said: &[TopicPartitions], owned: &Owned) -> bool {
    said.iter().all(|topic| {
        owned
            .get(&topic.topic_id)
            .is_some_and(|partitions| topic.partitions.iter().all(|p| partitions.contains_key(p)))
    })
}

/// Whether something that a member says it owns is in `owned`.
pub fn overlaps(said: &[TopicPartitions], owned: &Owned) -> bool {
    said.iter().any(|topic| {
        owned
            .get(&topic.topic_id)
            .is_some_and(|partitions| topic.partitions.iter().any(|p| partitions.contains_key(p)))
    })
}
