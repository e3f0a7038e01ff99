//! Groups of the KIP-848 protocol. Not served yet: none is ever made.
//!
//! The machine calls [`handle`], [`timer`], [`loaded`] and [`replay`]; what all kinds are asked is on [`ConsumerGroup`].
use super::context::Context;
use super::group::{Claim, Group, Retention};
use super::requests::GroupRequest;
use crate::coordinator::{Caller, Record, Ticket};
use crate::wire::ErrorCode;

/// The members of a group.
#[derive(Debug, Clone, Default)]
pub struct ConsumerGroup {}

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

impl ConsumerGroup {
    /// As [`super::group::Kind::check_commit`].
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
    pub fn check_commit(&self, _claim: &Claim<'_>) -> Result<(), ErrorCode> {
        Err(ErrorCode::UnknownMemberId)
    }

    /// As [`super::group::Kind::check_fetch`].
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH.
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

    /// `consumer`.
    pub fn protocol_type(&self) -> &str {
        ""
    }

    /// The records that delete the group.
    pub fn tombstones(&self, _group_id: &str) -> Vec<Record> {
        Vec::new()
    }
}
