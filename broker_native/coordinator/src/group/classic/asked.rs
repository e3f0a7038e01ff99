//! What every kind of group is asked; see [`crate::group::GroupKind`].
use super::group::{CONSUMER, ClassicGroup};
use super::state::ClassicState;
use super::stored::tombstone;
use crate::Record;
use crate::group::claim::{OffsetClaim, Retention};
use crate::group::context::GroupContext;
use pylog_wire::ErrorCode;
use pylog_wire::messages::describe_groups::DescribedGroup;

impl ClassicGroup {
    /// As [`crate::group::GroupKind::check_commit`].
    ///
    /// # Errors
    /// UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID, REBALANCE_IN_PROGRESS.
    pub fn check_commit(&self, claim: &OffsetClaim<'_>) -> Result<(), ErrorCode> {
        if claim.generation_or_epoch < 0 && self.is_empty() {
            // An admin client, or a consumer that assigns itself.
            return Ok(());
        }
        let names_a_member = !claim.member_id.is_empty() || claim.group_instance_id.is_some();
        if claim.generation_or_epoch >= 0 || names_a_member {
            self.check_member(claim.member_id, claim.group_instance_id)?;
            if claim.generation_or_epoch != self.generation_id {
                return Err(ErrorCode::IllegalGeneration);
            }
        } else if !claim.transactional && !self.is_empty() {
            // Old transactional commits name no member and are taken all the same.
            return Err(ErrorCode::UnknownMemberId);
        }
        if !claim.transactional && self.state == ClassicState::CompletingRebalance {
            // The member knows the generation but not yet what is its own in it.
            return Err(ErrorCode::RebalanceInProgress);
        }
        Ok(())
    }

    /// A commit of `member_id` was taken: it counts as a sign of life.
    pub fn committed(&mut self, member_id: &str, cx: &mut GroupContext<'_>) {
        self.expect_heartbeat(member_id, cx);
    }

    /// As [`crate::group::GroupKind::check_fetch`].
    ///
    /// # Errors
    /// None: anybody may read the offsets of a classic group.
    pub fn check_fetch(&self, _claim: &OffsetClaim<'_>) -> Result<(), ErrorCode> {
        Ok(())
    }

    /// As [`crate::group::GroupKind::check_offset_delete`].
    ///
    /// # Errors
    /// NON_EMPTY_GROUP: what its members read cannot be known.
    pub fn check_offset_delete(&self) -> Result<(), ErrorCode> {
        let known = self.is_empty() || self.protocol_type() == CONSUMER;
        if known { Ok(()) } else { Err(ErrorCode::NonEmptyGroup) }
    }

    /// As [`crate::group::GroupKind::check_delete`].
    ///
    /// # Errors
    /// NON_EMPTY_GROUP.
    pub fn check_delete(&self) -> Result<(), ErrorCode> {
        if self.is_empty() { Ok(()) } else { Err(ErrorCode::NonEmptyGroup) }
    }

    /// Whether a member is subscribed to the topic; of consumers whose metadata cannot be read it is assumed.
    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.topics {
            Some(topics) => topics.contains(topic),
            None => self.protocol_type() == CONSUMER,
        }
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.state == ClassicState::Empty
    }

    /// As [`crate::group::GroupKind::retention`].
    pub fn retention(&self) -> Retention {
        let consumes_known_topics = self.protocol_type() == CONSUMER && self.topics.is_some();
        match (self.state, self.since_ms) {
            _ if self.protocol_type.is_none() => Retention::SinceCommit,
            (ClassicState::Empty, Some(since_ms)) => Retention::Since(since_ms),
            (ClassicState::Empty, None) => Retention::SinceCommit,
            (ClassicState::Stable, _) if consumes_known_topics => Retention::SinceCommit,
            _ => Retention::Keep,
        }
    }

    /// Kafka's word for its state.
    pub fn state_name(&self) -> &'static str {
        self.state.name()
    }

    /// `consumer`, `connect`...; empty when it never had a member.
    pub fn protocol_type(&self) -> &str {
        self.protocol_type.as_deref().unwrap_or_default()
    }

    /// The records that delete the group.
    pub fn tombstones(&self, group_id: &str) -> Vec<Record> {
        tombstone(group_id).into_iter().collect()
    }

    /// As DescribeGroups shows it.
    pub fn describe(&self, group_id: &str) -> DescribedGroup {
        let protocol = self.protocol_name.as_deref().filter(|_| self.state == ClassicState::Stable);
        DescribedGroup {
            group_id: group_id.to_owned(),
            group_state: self.state_name().to_owned(),
            protocol_type: self.protocol_type().to_owned(),
            protocol_data: protocol.unwrap_or_default().to_owned(),
            members: self.roster.iter().map(|member| member.describe(protocol)).collect(),
            ..Default::default()
        }
    }
}
