//! The state of a share group, and how a [`ShareChange`] alters it.
use std::collections::BTreeMap;

use uuid::Uuid;

use super::super::claim::{OffsetClaim, Retention};
use super::super::context::GroupContext;
use super::assignor;
use super::change::ShareChange;
use super::member::ShareMember;
use crate::Record;
use crate::group::consumer::group::{FIRST_EPOCH, RECORD_BYTES_MAX, size};
use crate::group::consumer::member::AssignedPartitions;
use crate::group::consumer::subscription::hash_topics;
use pylog_wire::ErrorCode;

/// As Kafka calls the kind.
pub(super) const SHARE: &str = "share";
/// A member did not report in time.
pub(super) const SESSION: &str = "share session";

/// The members of a group and what they shall read.
#[derive(Debug, Clone)]
pub struct ShareGroup {
    /// Counts changes of members and topics.
    pub group_epoch: i32,
    /// Over the topics that the group is subscribed to, when the group epoch was raised last.
    pub metadata_hash: i64,
    /// The group epoch that the targets were made for.
    pub assignment_epoch: i32,
    /// By their ids.
    pub members: BTreeMap<String, ShareMember>,
    /// What each member shall read.
    pub targets: BTreeMap<String, AssignedPartitions>,
    /// Version of the topics that were looked at last; not in the log, so that they are looked at after a restart.
    pub(super) topics_seen: Option<u64>,
    bytes: usize,
}

impl Default for ShareGroup {
    fn default() -> Self {
        Self {
            group_epoch: FIRST_EPOCH,
            metadata_hash: 0,
            // Nobody reads anything in the first epoch.
            assignment_epoch: FIRST_EPOCH,
            members: BTreeMap::new(),
            targets: BTreeMap::new(),
            topics_seen: None,
            bytes: 0,
        }
    }
}

impl ShareGroup {
    /// What the members cost, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes a change and makes it.
    pub(super) fn emit(&mut self, change: ShareChange, cx: &mut GroupContext<'_>) {
        // A change that cannot be written is not made either; `heartbeat` refuses what a client could bring it about with.
        if let Ok(record) = change.record(cx.group_id) {
            cx.effects.record(record);
            self.apply(change);
        }
    }

    /// Makes a change that is in the log.
    pub fn apply(&mut self, change: ShareChange) {
        match change {
            ShareChange::Epoch { epoch, metadata_hash } => {
                (self.group_epoch, self.metadata_hash) = (epoch, metadata_hash);
            }
            ShareChange::Deleted => *self = Self::default(),
            ShareChange::Assignment(made) => self.assignment_epoch = made.map_or(0, |(epoch, _)| epoch),
            ShareChange::Target(member_id, Some(target)) => drop(self.targets.insert(member_id, target)),
            ShareChange::Target(member_id, None) => drop(self.targets.remove(&member_id)),
            ShareChange::Member(member_id, Some(said)) => {
                let known = self.take(&member_id).unwrap_or_default();
                let ShareMember { member_epoch, previous_member_epoch, assigned, .. } = known;
                self.put(member_id, ShareMember { member_epoch, previous_member_epoch, assigned, ..*said });
            }
            ShareChange::Member(member_id, None) => drop(self.take(&member_id)),
            ShareChange::Current(member_id, Some(now)) => {
                let known = self.take(&member_id).unwrap_or_default();
                let ShareMember { member_epoch, previous_member_epoch, assigned, .. } = *now;
                self.put(member_id, ShareMember { member_epoch, previous_member_epoch, assigned, ..known });
            }
            // The removal of the member itself comes next.
            ShareChange::Current(_, None) => {}
        }
    }

    fn put(&mut self, member_id: String, member: ShareMember) {
        self.bytes += member.bytes(&member_id);
        self.members.insert(member_id, member);
    }

    fn take(&mut self, member_id: &str) -> Option<ShareMember> {
        let member = self.members.remove(member_id)?;
        self.bytes = self.bytes.saturating_sub(member.bytes(member_id));
        Some(member)
    }

    /// Removes a member and begins a new epoch.
    pub(super) fn remove(&mut self, member_id: &str, cx: &mut GroupContext<'_>) {
        self.emit(ShareChange::Current(member_id.to_owned(), None), cx);
        self.emit(ShareChange::Target(member_id.to_owned(), None), cx);
        self.emit(ShareChange::Member(member_id.to_owned(), None), cx);
        cx.cancel_timer(member_id, SESSION);
        self.begin_epoch(cx);
    }

    /// Begins a new epoch.
    pub(super) fn begin_epoch(&mut self, cx: &mut GroupContext<'_>) {
        self.raise_epoch_if(true, cx);
        if self.is_empty() {
            // Nobody is there to ask for a target: an empty group has that of its epoch (as Kafka from 4.3 on).
            self.emit(ShareChange::Assignment(Some((self.group_epoch, cx.now_ms))), cx);
        }
    }

    /// Raises the group's epoch when `needed`, or when its topics are not those of its epoch.
    pub(super) fn raise_epoch_if(&mut self, needed: bool, cx: &mut GroupContext<'_>) {
        let names = self.members.values().flat_map(|member| &member.subscribed_topic_names).collect();
        let metadata_hash = hash_topics(names, cx.topics);
        if needed || metadata_hash != self.metadata_hash {
            self.emit(ShareChange::Epoch { epoch: self.group_epoch.saturating_add(1), metadata_hash }, cx);
        }
    }

    /// Makes the target of the group's epoch. One that is too large for the log is not made: the bytes that it has are given back.
    pub(super) fn assign(&mut self, cx: &mut GroupContext<'_>) -> Result<(), usize> {
        let mut targets = assignor::assign(&self.members, cx.topics);
        targets.retain(|member_id, target| self.targets.get(member_id) != Some(target));
        let changes =
            targets.into_iter().map(|(member_id, target)| ShareChange::Target(member_id, Some(target)));
        let changes: Vec<ShareChange> = changes.collect();
        let records = changes.iter().filter_map(|change| change.record(cx.group_id).ok());
        let bytes: usize = records.map(|record| size(&record)).sum();
        if bytes > RECORD_BYTES_MAX {
            return Err(bytes);
        }
        for change in changes {
            self.emit(change, cx);
        }
        self.emit(ShareChange::Assignment(Some((self.group_epoch, cx.now_ms))), cx);
        Ok(())
    }

    /// Whether the member reads the partition, as it was given or shall be.
    pub fn reads(&self, member_id: &str, topic_id: &Uuid, partition: i32) -> bool {
        let has =
            |all: &AssignedPartitions| all.get(topic_id).is_some_and(|numbers| numbers.contains(&partition));
        self.members.get(member_id).is_some_and(|member| has(&member.assigned))
            || self.targets.get(member_id).is_some_and(has)
    }

    /// As [`super::super::GroupKind::check_commit`].
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND: a share group has no committed offsets.
    pub fn check_commit(&self, _claim: &OffsetClaim<'_>) -> Result<(), ErrorCode> {
        Err(ErrorCode::GroupIdNotFound)
    }

    /// As [`super::super::GroupKind::check_fetch`]. A share group has no committed offsets, and the answer is, as Kafka's, that there
    /// are none.
    pub fn check_fetch(&self, _claim: &OffsetClaim<'_>) -> Result<(), ErrorCode> {
        Ok(())
    }

    /// As [`super::super::GroupKind::check_offset_delete`].
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND: a share group has no committed offsets.
    pub fn check_offset_delete(&self) -> Result<(), ErrorCode> {
        Err(ErrorCode::GroupIdNotFound)
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
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// As [`super::super::GroupKind::retention`]: what it did with records is kept until it is deleted.
    pub fn retention(&self) -> Retention {
        Retention::Keep
    }

    /// Kafka's word for its state.
    pub fn state_name(&self) -> &'static str {
        if self.is_empty() { "Empty" } else { "Stable" }
    }

    /// `share`.
    pub fn protocol_type(&self) -> &str {
        "share"
    }

    /// The records that delete the group.
    pub fn tombstones(&self, group_id: &str) -> Vec<Record> {
        let ids = || self.members.keys().cloned();
        let changes = ids()
            .map(|id| ShareChange::Current(id, None))
            .chain(self.targets.keys().cloned().map(|id| ShareChange::Target(id, None)))
            .chain([ShareChange::Assignment(None)])
            .chain(ids().map(|id| ShareChange::Member(id, None)))
            .chain([ShareChange::Deleted]);
        changes.filter_map(|change| change.record(group_id).ok()).collect()
    }

    /// Everything that is in the log, to compare two groups by.
    #[cfg(test)]
    pub fn durable(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let epochs = (self.group_epoch, self.metadata_hash, self.assignment_epoch);
        (epochs, self.members.clone(), self.targets.clone())
    }
}
