//! The state of a share group, and how a [`Change`] alters it.
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

use super::super::context::Context;
use super::super::state::{Claim, Retention};
use super::SESSION;
use super::assignor;
use super::change::Change;
use crate::group::consumer::Partitions;
use crate::group::consumer::group::{FIRST_EPOCH, RECORD_BYTES_MAX, size};
use crate::group::consumer::subscription::hash_topics;
use crate::{Caller, Record};
use pylog_wire::ErrorCode;
use pylog_wire::messages::ShareGroupHeartbeatRequest;

/// What a member costs besides its texts, about.
const MEMBER_BYTES: usize = 1_000;

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Member {
    /// Where it stands, as it says.
    pub rack_id: Option<String>,
    /// As it calls itself.
    pub client_id: String,
    /// Its address.
    pub client_host: String,
    /// Topics by name.
    pub subscribed_topic_names: BTreeSet<String>,
    /// The assignment epoch that it was told.
    pub member_epoch: i32,
    /// The epoch before: its last answer may have been lost.
    pub previous_member_epoch: i32,
    /// What it was told to read.
    pub assigned: Partitions,
}

impl Member {
    /// What it costs, about; what it reads is bounded by what there is.
    pub fn bytes(&self, member_id: &str) -> usize {
        let names = self.subscribed_topic_names.iter().map(|name| 64 + name.len()).sum::<usize>();
        let rack = self.rack_id.as_ref().map_or(0, String::len);
        MEMBER_BYTES + rack + names + 4 * (member_id.len() + self.client_id.len() + self.client_host.len())
    }

    /// The same with what `request` says.
    pub fn updated(&self, request: &ShareGroupHeartbeatRequest, who: &Caller) -> Self {
        let mut member = self.clone();
        if request.rack_id.is_some() {
            member.rack_id.clone_from(&request.rack_id);
        }
        if let Some(names) = &request.subscribed_topic_names {
            member.subscribed_topic_names = names.iter().cloned().collect();
        }
        member.client_id.clone_from(&who.client_id);
        member.client_host.clone_from(&who.host);
        member
    }
}

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
    pub members: BTreeMap<String, Member>,
    /// What each member shall read.
    pub targets: BTreeMap<String, Partitions>,
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
    pub(super) fn emit(&mut self, change: Change, cx: &mut Context<'_>) {
        // A change that cannot be written is not made either; `heartbeat` refuses what a client could bring it about with.
        if let Ok(record) = change.record(cx.group_id) {
            cx.effects.record(record);
            self.apply(change);
        }
    }

    /// Makes a change that is in the log.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Epoch { epoch, metadata_hash } => {
                (self.group_epoch, self.metadata_hash) = (epoch, metadata_hash);
            }
            Change::Deleted => *self = Self::default(),
            Change::Assignment(made) => self.assignment_epoch = made.map_or(0, |(epoch, _)| epoch),
            Change::Target(member_id, Some(target)) => drop(self.targets.insert(member_id, target)),
            Change::Target(member_id, None) => drop(self.targets.remove(&member_id)),
            Change::Member(member_id, Some(said)) => {
                let known = self.take(&member_id).unwrap_or_default();
                let Member { member_epoch, previous_member_epoch, assigned, .. } = known;
                self.put(member_id, Member { member_epoch, previous_member_epoch, assigned, ..*said });
            }
            Change::Member(member_id, None) => drop(self.take(&member_id)),
            Change::Current(member_id, Some(now)) => {
                let known = self.take(&member_id).unwrap_or_default();
                let Member { member_epoch, previous_member_epoch, assigned, .. } = *now;
                self.put(member_id, Member { member_epoch, previous_member_epoch, assigned, ..known });
            }
            // The removal of the member itself comes next.
            Change::Current(_, None) => {}
        }
    }

    fn put(&mut self, member_id: String, member: Member) {
        self.bytes += member.bytes(&member_id);
        self.members.insert(member_id, member);
    }

    fn take(&mut self, member_id: &str) -> Option<Member> {
        let member = self.members.remove(member_id)?;
        self.bytes = self.bytes.saturating_sub(member.bytes(member_id));
        Some(member)
    }

    /// Removes a member and begins a new epoch.
    pub(super) fn remove(&mut self, member_id: &str, cx: &mut Context<'_>) {
        self.emit(Change::Current(member_id.to_owned(), None), cx);
        self.emit(Change::Target(member_id.to_owned(), None), cx);
        self.emit(Change::Member(member_id.to_owned(), None), cx);
        cx.cancel_timer(member_id, SESSION);
        self.begin_epoch(cx);
    }

    /// Begins a new epoch.
    pub(super) fn begin_epoch(&mut self, cx: &mut Context<'_>) {
        self.raise_epoch_if(true, cx);
        if self.is_empty() {
            // Nobody is there to ask for a target: an empty group has that of its epoch (as Kafka from 4.3 on).
            self.emit(Change::Assignment(Some((self.group_epoch, cx.now_ms))), cx);
        }
    }

    /// Raises the group's epoch when `needed`, or when its topics are not those of its epoch.
    pub(super) fn raise_epoch_if(&mut self, needed: bool, cx: &mut Context<'_>) {
        let names = self.members.values().flat_map(|member| &member.subscribed_topic_names).collect();
        let metadata_hash = hash_topics(names, cx.topics);
        if needed || metadata_hash != self.metadata_hash {
            self.emit(Change::Epoch { epoch: self.group_epoch.saturating_add(1), metadata_hash }, cx);
        }
    }

    /// Makes the target of the group's epoch. One that is too large for the log is not made: the bytes that it has are given back.
    pub(super) fn assign(&mut self, cx: &mut Context<'_>) -> Result<(), usize> {
        let mut targets = assignor::assign(self, cx.topics);
        targets.retain(|member_id, target| self.targets.get(member_id) != Some(target));
        let changes = targets.into_iter().map(|(member_id, target)| Change::Target(member_id, Some(target)));
        let changes: Vec<Change> = changes.collect();
        let records = changes.iter().filter_map(|change| change.record(cx.group_id).ok());
        let bytes: usize = records.map(|record| size(&record)).sum();
        if bytes > RECORD_BYTES_MAX {
            return Err(bytes);
        }
        for change in changes {
            self.emit(change, cx);
        }
        self.emit(Change::Assignment(Some((self.group_epoch, cx.now_ms))), cx);
        Ok(())
    }

    /// Whether the member reads the partition, as it was told or shall be.
    pub fn reads(&self, member_id: &str, topic_id: &Uuid, partition: i32) -> bool {
        let has = |all: &Partitions| all.get(topic_id).is_some_and(|numbers| numbers.contains(&partition));
        self.members.get(member_id).is_some_and(|member| has(&member.assigned))
            || self.targets.get(member_id).is_some_and(has)
    }

    /// As [`super::super::group::Kind::check_commit`].
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND: a share group has no committed offsets.
    pub fn check_commit(&self, _claim: &Claim<'_>) -> Result<(), ErrorCode> {
        Err(ErrorCode::GroupIdNotFound)
    }

    /// As [`super::super::group::Kind::check_fetch`]. A share group has no committed offsets, and the answer is, as Kafka's, that there
    /// are none.
    pub fn check_fetch(&self, _claim: &Claim<'_>) -> Result<(), ErrorCode> {
        Ok(())
    }

    /// As [`super::super::group::Kind::check_offset_delete`].
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND: a share group has no committed offsets.
    pub fn check_offset_delete(&self) -> Result<(), ErrorCode> {
        Err(ErrorCode::GroupIdNotFound)
    }

    /// As [`super::super::group::Kind::check_delete`].
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

    /// As [`super::super::group::Kind::retention`]: what it did with records is kept until it is deleted.
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
            .map(|id| Change::Current(id, None))
            .chain(self.targets.keys().cloned().map(|id| Change::Target(id, None)))
            .chain([Change::Assignment(None)])
            .chain(ids().map(|id| Change::Member(id, None)))
            .chain([Change::Deleted]);
        changes.filter_map(|change| change.record(group_id).ok()).collect()
    }

    /// Everything that is in the log, to compare two groups by.
    #[cfg(test)]
    pub fn durable(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let epochs = (self.group_epoch, self.metadata_hash, self.assignment_epoch);
        (epochs, self.members.clone(), self.targets.clone())
    }
}
