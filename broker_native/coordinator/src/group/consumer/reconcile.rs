//! One member's next step from what it owns to its target.
//!
//! ```text
//! Stable ── new target takes something away ──> UnrevokedPartitions ── gave it back ──┐
//!   │  └─── new target, nothing to give back ───────────────────────┐                 │
//!   │                                                                v                v
//!   └──────────<── all of the target is free or its own ──── (moves to the target's epoch)
//!                                                                    │
//! UnreleasedPartitions <── others still own some of the target ──────┘
//! ```
use std::collections::BTreeSet;

use uuid::Uuid;

use super::member::{AssignedPartitions, ConsumerMember, MemberState, Owned, overlaps};
use pylog_wire::messages::consumer_group_heartbeat::TopicPartitions;

/// What a member is reconciled to.
pub struct Goal<'a> {
    /// The epoch of the target.
    pub epoch: i32,
    /// What the member shall own.
    pub target: &'a AssignedPartitions,
    /// Whether any member owns a partition.
    pub is_owned: &'a dyn Fn(Uuid, i32) -> bool,
    /// What the member says it owns, if it says.
    pub said: Option<&'a [TopicPartitions]>,
}

impl Goal<'_> {
    /// The member after its next step; the same when it has to wait.
    pub fn step(&self, member: &ConsumerMember) -> ConsumerMember {
        match member.state {
            MemberState::Stable if member.member_epoch == self.epoch => member.clone(),
            MemberState::UnrevokedPartitions if self.may_hold(&member.pending_revocation) => member.clone(),
            // What had to be given back is: the epoch is over.
            MemberState::UnrevokedPartitions => self.next(member, member.member_epoch + 1),
            MemberState::Stable | MemberState::UnreleasedPartitions => self.next(member, member.member_epoch),
        }
    }

    /// Whether the member may still hold some of `owned`: it does until it says that it does not.
    fn may_hold(&self, owned: &Owned) -> bool {
        self.said.is_none_or(|said| overlaps(said, owned))
    }

    fn next(&self, member: &ConsumerMember, epoch: i32) -> ConsumerMember {
        let split = self.split(&member.assigned);
        let mut next = ConsumerMember { previous_member_epoch: member.member_epoch, ..member.clone() };
        next.assigned = split.kept;
        if !split.revoked.is_empty() && self.may_hold(&split.revoked) {
            next.state = MemberState::UnrevokedPartitions;
            next.member_epoch = epoch;
            next.pending_revocation = split.revoked;
            return next;
        }
        for (topic_id, partition) in split.free {
            next.assigned.entry(topic_id).or_default().insert(partition, self.epoch);
        }
        next.state = if split.waits { MemberState::UnreleasedPartitions } else { MemberState::Stable };
        next.member_epoch = self.epoch;
        next.pending_revocation = Owned::new();
        next
    }

    fn split(&self, assigned: &Owned) -> Split {
        let mut split = Split::default();
        for (topic_id, partitions) in assigned {
            for (partition, since) in partitions {
                let stays = self.target.get(topic_id).is_some_and(|target| target.contains(partition));
                let to = if stays { &mut split.kept } else { &mut split.revoked };
                to.entry(*topic_id).or_default().insert(*partition, *since);
            }
        }
        for (topic_id, partitions) in self.target {
            let kept = split.kept.get(topic_id);
            for partition in partitions.iter().filter(|p| !kept.is_some_and(|kept| kept.contains_key(p))) {
                if (self.is_owned)(*topic_id, *partition) {
                    split.waits = true;
                } else {
                    split.free.insert((*topic_id, *partition));
                }
            }
        }
        split
    }
}

/// What a member owns and its target, side by side.
#[derive(Default)]
struct Split {
    /// It owns it and is to own it.
    kept: Owned,
    /// It owns it and is not to.
    revoked: Owned,
    /// It is to own it, and no member does.
    free: BTreeSet<(Uuid, i32)>,
    /// It is to own something that another member owns, or that it has itself to give back first.
    waits: bool,
}
