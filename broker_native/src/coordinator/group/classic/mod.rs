//! Groups of the classic protocol. Not served yet: none is ever made.
//!
//! The machine calls [`handle`], [`timer`], [`loaded`] and [`replay`]; what all kinds are asked is on [`ClassicGroup`].
use super::context::Context;
use super::group::{Claim, Group, Retention};
use super::requests::GroupRequest;
use crate::coordinator::{Caller, Record, Ticket};
use crate::wire::ErrorCode;

/// The members of a group.
#[derive(Debug, Clone, Default)]
pub struct ClassicGroup {}

/// Takes a request of this protocol.
pub fn handle(
    _group: &mut Group,
    _ticket: Ticket,
    _who: &Caller,
    _asked: GroupRequest,
    _cx: &mut Context<'_>,
) {
}

/// A deadline of this kind's is over.
pub fn timer(_group: &mut Group, _member_id: &str, _purpose: &'static str, _cx: &mut Context<'_>) {}

/// The log is at its end: sets the deadlines of the group's members.
pub fn loaded(_group: &mut Group, _cx: &mut Context<'_>) {}

/// Takes a record of this kind from the log, whose key has the type `key_type`.
///
/// # Errors
/// A sentence when the record is not what its schema says.
pub fn replay(_group: &mut Group, key_type: i16, _record: &Record) -> Result<(), String> {
    Err(format!("records of type {key_type} are not read yet"))
}

impl ClassicGroup {
    /// As [`super::group::Kind::check_commit`].
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS.
    pub fn check_commit(&self, _claim: &Claim<'_>) -> Result<(), ErrorCode> {
        Err(ErrorCode::UnknownMemberId)
    }

    /// A commit of `member_id` was taken: it counts as a sign of life.
    pub fn committed(&mut self, _member_id: &str, _cx: &mut Context<'_>) {}

    /// As [`super::group::Kind::check_fetch`].
    ///
    /// # Errors
    /// GROUP_ID_NOT_FOUND.
    pub fn check_fetch(&self, _claim: &Claim<'_>) -> Result<(), ErrorCode> {
        Ok(())
    }

    /// As [`super::group::Kind::check_offset_delete`].
    ///
    /// # Errors
    /// NON_EMPTY_GROUP.
    pub fn check_offset_delete(&self) -> Result<(), ErrorCode> {
        Ok(())
    }

    /// As [`super::group::Kind::check_delete`].
    ///
    /// # Errors
    /// NON_EMPTY_GROUP.
    pub fn check_delete(&self) -> Result<(), ErrorCode> {
        Ok(())
    }

    /// Whether a member is subscribed to the topic.
    pub fn is_subscribed_to(&self, _topic: &str) -> bool {
        false
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        true
    }

    /// As [`super::group::Kind::retention`].
    pub fn retention(&self) -> Retention {
        Retention::SinceCommit
    }

    /// Kafka's word for its state.
    pub fn state_name(&self) -> &'static str {
        "Empty"
    }

    /// `consumer`, `connect`...
    pub fn protocol_type(&self) -> &str {
        ""
    }

    /// The records that delete the group.
    pub fn tombstones(&self, _group_id: &str) -> Vec<Record> {
        Vec::new()
    }
}
