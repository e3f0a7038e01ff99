//! What a heartbeat must look like, and how one is refused.
use super::assignor;
use super::member::{LEAVES, LEFT_FOR_A_WHILE};
use super::subscription;
use crate::group::refusal::{Refusal, check_sizes};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

/// First version whose members make their ids themselves.
const FIRST_WITH_OWN_ID: i16 = 1;
impl From<Refusal> for ConsumerGroupHeartbeatResponse {
    fn from(refusal: Refusal) -> Self {
        Self { error_code: refusal.error.code(), error_message: Some(refusal.message), ..Default::default() }
    }
}

fn invalid(message: &str) -> Result<(), Refusal> {
    Err(Refusal::new(ErrorCode::InvalidRequest, message))
}

/// Whether the request makes sense whatever the group is.
///
/// # Errors
/// INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION.
pub fn check(request: &ConsumerGroupHeartbeatRequest, version: i16) -> Result<(), Refusal> {
    let blank = |text: &str| text.trim().is_empty();
    let joins = request.member_epoch == 0;
    if blank(&request.member_id) && (version >= FIRST_WITH_OWN_ID || !joins) {
        return invalid("MemberId can't be empty.");
    }
    if blank(&request.group_id) {
        return invalid("GroupId can't be empty.");
    }
    if request.instance_id.as_deref().is_some_and(blank) {
        return invalid("InstanceId can't be empty.");
    }
    if request.rack_id.as_deref().is_some_and(blank) {
        return invalid("RackId can't be empty.");
    }
    if joins {
        check_join(request)?;
    } else if request.member_epoch == LEFT_FOR_A_WHILE && request.instance_id.is_none() {
        return invalid("InstanceId can't be null.");
    } else if request.member_epoch < LEFT_FOR_A_WHILE {
        return invalid("MemberEpoch is invalid.");
    }
    if let Some(name) = request.server_assignor.as_deref().filter(|name| !assignor::NAMES.contains(name)) {
        return Err(Refusal::new(
            ErrorCode::UnsupportedAssignor,
            format!(
                "ServerAssignor {name} is not supported. Supported assignors: {}.",
                assignor::NAMES.join(", ")
            ),
        ));
    }
    check_lengths(request)?;
    check_regex(request)
}

fn check_join(request: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
    if request.rebalance_timeout_ms == -1 {
        return invalid("RebalanceTimeoutMs must be provided in first request.");
    }
    if request.topic_partitions.as_ref().is_none_or(|owned| !owned.is_empty()) {
        return invalid("TopicPartitions must be empty when (re-)joining.");
    }
    if request.subscribed_topic_names.is_none() && request.subscribed_topic_regex.is_none() {
        return invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        );
    }
    Ok(())
}

fn check_lengths(request: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
    let names = request.subscribed_topic_names.iter().flatten();
    let optional = [&request.instance_id, &request.rack_id, &request.subscribed_topic_regex];
    let texts = [&request.group_id, &request.member_id]
        .into_iter()
        .chain(optional.into_iter().flatten())
        .chain(names.clone());
    check_sizes(texts, names, ": use a regular expression")
}

fn check_regex(request: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
    let leaves = matches!(request.member_epoch, LEAVES | LEFT_FOR_A_WHILE);
    let Some(regex) = request.subscribed_topic_regex.as_deref().filter(|regex| !leaves && !regex.is_empty())
    else {
        return Ok(());
    };
    match subscription::compile(regex) {
        Ok(_) => Ok(()),
        Err(why) => Err(Refusal::new(
            ErrorCode::InvalidRegularExpression,
            format!("SubscribedTopicRegex `{regex}` is not a valid regular expression: {why}."),
        )),
    }
}
