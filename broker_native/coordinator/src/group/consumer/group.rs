//! The state of a group: epochs, members, targets, and how a [`ConsumerChange`] alters it.
use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use super::super::claim::{OffsetClaim, Retention};
use super::super::context::GroupContext;
use super::change::{ConsumerChange, Resolved};
use super::member::{AssignedPartitions, ConsumerMember, Owned};
use crate::Record;
use pylog_wire::ErrorCode;

/// As Kafka calls the kind.
pub(super) const CONSUMER: &str = "consumer";
/// A member did not report in time.
pub(super) const SESSION: &str = "session";
/// A member did not give partitions back in time.
pub(super) const REBALANCE: &str = "rebalance";

/// A group begins here, so that the first member that is subscribed to something gets 2, as in Kafka 4.3.
pub(in crate::group) const FIRST_EPOCH: i32 = 1;

/// The members of a group, what they own and what they shall own.
#[derive(Debug, Clone)]
pub struct ConsumerGroup {
    /// Counts changes of members and topics.
    pub group_epoch: i32,
    /// Over the topics that the group is subscribed to, when the group epoch was raised last.
    pub metadata_hash: i64,
    /// The group epoch that the targets were made for; -1 when there are none.
    pub assignment_epoch: i32,
    /// By their ids.
    pub members: BTreeMap<String, ConsumerMember>,
    /// What each member shall own.
    pub targets: BTreeMap<String, AssignedPartitions>,
    /// What the members' regular expressions matched.
    pub regexes: BTreeMap<String, Resolved>,
    /// Version of the topics that were looked at last; not in the log, so that they are looked at after a restart.
    pub(super) topics_seen: Option<u64>,
    /// Static members by their names.
    static_members: HashMap<String, String>,
    /// Who owns a partition.
    owners: HashMap<(Uuid, i32), String>,
    bytes: usize,
}

impl Default for ConsumerGroup {
    fn default() -> Self {
        Self {
            group_epoch: FIRST_EPOCH,
            metadata_hash: 0,
            assignment_epoch: -1,
            members: BTreeMap::new(),
            targets: BTreeMap::new(),
            regexes: BTreeMap::new(),
            topics_seen: None,
            static_members: HashMap::new(),
            owners: HashMap::new(),
            bytes: 0,
        }
    }
}

impl ConsumerGroup {
    /// What the members cost, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes a change and makes it.
    pub(super) fn emit(&mut self, change: ConsumerChange, cx: &mut GroupContext<'_>) {
        // A change that cannot be written is not made either. `request` refuses what a client could bring it about with.
        if let Some(record) =
            change.record(cx.group_id).ok().filter(|record| size(record) <= RECORD_BYTES_MAX)
        {
            cx.effects.record(record);
            self.apply(change);
        }
    }

    /// Makes a change that is in the log.
    pub fn apply(&mut self, change: ConsumerChange) {
        match change {
            ConsumerChange::Epoch { epoch, metadata_hash } => {
                self.group_epoch = epoch;
                self.metadata_hash = metadata_hash;
            }
            ConsumerChange::Deleted => *self = Self::default(),
            ConsumerChange::Regex(regex, Some(resolved)) => {
                self.regexes.insert(regex, resolved);
            }
            ConsumerChange::Regex(regex, None) => {
                self.regexes.remove(&regex);
            }
            ConsumerChange::Assignment(made) => self.assignment_epoch = made.map_or(-1, |(epoch, _)| epoch),
            ConsumerChange::Target(member_id, Some(target)) => {
                self.targets.insert(member_id, target);
            }
            ConsumerChange::Target(member_id, None) => {
                self.targets.remove(&member_id);
            }
            ConsumerChange::Member(member_id, Some(said)) => self.put_member(&member_id, *said),
            ConsumerChange::Member(member_id, None) => self.remove_member(&member_id),
            ConsumerChange::Current(member_id, current) => {
                self.put_current(&member_id, current.map(|member| *member))
            }
        }
    }

    fn put_member(&mut self, member_id: &str, said: ConsumerMember) {
        if let Some(instance_id) = &said.instance_id {
            self.static_members.insert(instance_id.clone(), member_id.to_owned());
        }
        let member = match self.take_member(member_id) {
            None => said,
            Some(old) => ConsumerMember {
                member_epoch: old.member_epoch,
                previous_member_epoch: old.previous_member_epoch,
                state: old.state,
                assigned: old.assigned,
                pending_revocation: old.pending_revocation,
                ..said
            },
        };
        self.bytes += member.bytes();
        self.members.insert(member_id.to_owned(), member);
    }

    fn take_member(&mut self, member_id: &str) -> Option<ConsumerMember> {
        let member = self.members.remove(member_id)?;
        self.bytes = self.bytes.saturating_sub(member.bytes());
        Some(member)
    }

    fn remove_member(&mut self, member_id: &str) {
        self.disown(member_id);
        let Some(member) = self.take_member(member_id) else { return };
        if let Some(instance_id) = member.instance_id
            && self.static_members.get(&instance_id).is_some_and(|id| id == member_id)
        {
            self.static_members.remove(&instance_id);
        }
    }

    /// `None`: the member owns nothing any more; the removal of the member itself comes next.
    fn put_current(&mut self, member_id: &str, current: Option<ConsumerMember>) {
        self.disown(member_id);
        let current = match current {
            Some(current) => current,
            None if self.members.contains_key(member_id) => {
                ConsumerMember { member_epoch: -1, ..ConsumerMember::new(member_id) }
            }
            None => return,
        };
        for partition in current.owned() {
            self.owners.insert(partition, member_id.to_owned());
        }
        if !self.members.contains_key(member_id) {
            self.put_member(member_id, ConsumerMember::new(member_id));
        }
        let Some(member) = self.members.get_mut(member_id) else { return };
        member.member_epoch = current.member_epoch;
        member.previous_member_epoch = current.previous_member_epoch;
        member.state = current.state;
        member.assigned = current.assigned;
        member.pending_revocation = current.pending_revocation;
    }

    fn disown(&mut self, member_id: &str) {
        let Some(member) = self.members.get(member_id) else { return };
        for partition in member.owned() {
            if self.owners.get(&partition).is_some_and(|owner| owner == member_id) {
                self.owners.remove(&partition);
            }
        }
    }

    /// Whether a member owns the partition, in whatever way.
    pub fn is_owned(&self, topic_id: Uuid, partition: i32) -> bool {
        self.owners.contains_key(&(topic_id, partition))
    }

    /// The static member of this name.
    pub fn static_member(&self, instance_id: &str) -> Option<&ConsumerMember> {
        self.static_members.get(instance_id).and_then(|member_id| self.members.get(member_id))
    }

    /// As [`super::super::GroupKind::check_commit`].
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, UNSUPPORTED_VERSION.
    pub fn check_commit(&self, claim: &OffsetClaim<'_>) -> Result<(), ErrorCode> {
        // A tool, or a consumer that assigns itself, may commit while nobody is there.
        if claim.generation_or_epoch < 0 && self.members.is_empty() {
            return Ok(());
        }
        let anonymous = claim.member_id.is_empty() && claim.group_instance_id.is_none();
        if claim.transactional && claim.generation_or_epoch == -1 && anonymous {
            return Ok(());
        }
        let member = self.members.get(claim.member_id).ok_or(ErrorCode::UnknownMemberId)?;
        if !claim.transactional && claim.version < FIRST_COMMIT_WITH_EPOCH {
            return Err(ErrorCode::UnsupportedVersion);
        }
        check_epoch(member, claim.generation_or_epoch)
    }

    /// Whether `claim`, whose epoch is not the member's, may commit the partition all the same: it had it at that epoch and
    /// has it still (KIP-1251). So a commit that crosses the answer with the next epoch is not lost.
    pub fn owned_at(&self, claim: &OffsetClaim<'_>, topic_id: &Uuid, partition: i32) -> bool {
        self.members.get(claim.member_id).is_some_and(|member| {
            let since = member.owned_since(topic_id, partition);
            since.is_some_and(|since| (since..=member.member_epoch).contains(&claim.generation_or_epoch))
        })
    }

    /// As [`super::super::GroupKind::check_fetch`].
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
    pub fn check_fetch(&self, claim: &OffsetClaim<'_>) -> Result<(), ErrorCode> {
        if claim.member_id.is_empty() && claim.generation_or_epoch < 0 {
            return Ok(());
        }
        let member = self.members.get(claim.member_id).ok_or(ErrorCode::UnknownMemberId)?;
        check_epoch(member, claim.generation_or_epoch)
    }

    /// As [`super::super::GroupKind::check_offset_delete`].
    ///
    /// # Errors
    /// None: offsets of topics that nobody is subscribed to may go.
    pub fn check_offset_delete(&self) -> Result<(), ErrorCode> {
        Ok(())
    }

    /// As [`super::super::GroupKind::check_delete`].
    ///
    /// # Errors
    /// NON_EMPTY_GROUP.
    pub fn check_delete(&self) -> Result<(), ErrorCode> {
        if self.is_empty() { Ok(()) } else { Err(ErrorCode::NonEmptyGroup) }
    }

    /// Whether a member is subscribed to the topic.
    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        self.members.values().any(|member| member.subscribed_topic_names.contains(topic))
            || self.regexes.values().any(|resolved| resolved.topics.contains(topic))
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// As [`super::super::GroupKind::retention`].
    pub fn retention(&self) -> Retention {
        Retention::SinceCommit
    }

    /// Kafka's word for its state.
    pub fn state_name(&self) -> &'static str {
        if self.members.is_empty() {
            "Empty"
        } else if self.group_epoch > self.assignment_epoch {
            "Assigning"
        } else if self.members.values().all(|member| member.is_reconciled_to(self.assignment_epoch)) {
            "Stable"
        } else {
            "Reconciling"
        }
    }

    /// `consumer`.
    pub fn protocol_type(&self) -> &str {
        "consumer"
    }

    /// The records that delete the group.
    pub fn tombstones(&self, group_id: &str) -> Vec<Record> {
        let ids = || self.members.keys().cloned();
        let changes = ids()
            .map(|id| ConsumerChange::Current(id, None))
            .chain(self.targets.keys().cloned().map(|id| ConsumerChange::Target(id, None)))
            .chain([ConsumerChange::Assignment(None)])
            .chain(ids().map(|id| ConsumerChange::Member(id, None)))
            .chain(self.regexes.keys().cloned().map(|regex| ConsumerChange::Regex(regex, None)))
            .chain([ConsumerChange::Deleted]);
        changes.filter_map(|change| change.record(group_id).ok()).collect()
    }

    /// Everything that is in the log, to compare two groups by.
    #[cfg(test)]
    pub fn durable(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let owners: BTreeMap<_, _> = self.owners.clone().into_iter().collect();
        let names: BTreeMap<_, _> = self.static_members.clone().into_iter().collect();
        let epochs = (self.group_epoch, self.metadata_hash, self.assignment_epoch);
        (epochs, self.members.clone(), self.targets.clone(), self.regexes.clone(), owners, names)
    }
}

/// A group's largest record, and all records of a new target together: what fits into a batch under Kafka's default of
/// `max.message.bytes` (1 MiB), with room for what stands around it.
pub(in crate::group) const RECORD_BYTES_MAX: usize = 900_000;

/// Bytes of a record's key and value.
pub(in crate::group) fn size(record: &Record) -> usize {
    record.key.len() + record.value.as_ref().map_or(0, bytes::Bytes::len)
}

/// First version of OffsetCommit whose senders know that the generation may be a member epoch.
const FIRST_COMMIT_WITH_EPOCH: i16 = 9;

fn check_epoch(member: &ConsumerMember, epoch: i32) -> Result<(), ErrorCode> {
    if epoch == member.member_epoch { Ok(()) } else { Err(ErrorCode::StaleMemberEpoch) }
}

/// The same partitions, owned since `epoch`.
pub(super) fn owned_since(owned: &Owned, epoch: i32) -> Owned {
    let since =
        |partitions: &BTreeMap<i32, i32>| partitions.keys().map(|partition| (*partition, epoch)).collect();
    owned.iter().map(|(topic_id, partitions)| (*topic_id, since(partitions))).collect()
}
