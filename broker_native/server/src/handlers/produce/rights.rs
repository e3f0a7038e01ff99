//! What a producer may write to.
use super::look::Batches;
use super::mirrored::is_mirror;
use super::verify::transactional;
use crate::authorization::table::{PRODUCE_INTERNAL, PRODUCE_TOPIC, PRODUCE_TRANSACTION};
use crate::call::Call;
use crate::handlers::common::lookup::check_topic;
use crate::state::topics::Topic;
use pylog_wire::ErrorCode;
use pylog_wire::messages::ProduceRequest;

/// As in Kafka, a client with this name may write into internal topics.
const ADMIN_CLIENT: &str = "__admin_client";

/// For each topic of the request why the client may not write to it; empty where nobody asks.
pub fn refusals(call: &Call, request: &ProduceRequest) -> Vec<Option<ErrorCode>> {
    if !call.is_guarded() {
        return Vec::new();
    }
    let topics = request.topic_data.iter();
    topics.map(|topic| check_topic(call, &PRODUCE_TOPIC, &topic.name, &topic.topic_id).err()).collect()
}

/// Whether the request has transactional records and is not in a transactional id's name that the client may use.
pub fn is_transaction_denied(call: &Call, batches: &Batches, bytes: &[u8]) -> bool {
    // The transactions of a mirror's batches are another cluster's.
    if !call.is_guarded() || is_mirror(&batches.request) {
        return false;
    }
    let mut ranges = batches.ranges.iter().flatten();
    let is_transactional = ranges.any(|range| bytes.get(range.clone()).and_then(transactional).is_some());
    let id = batches.request.transactional_id.as_deref();
    is_transactional && id.is_none_or(|id| !call.may(&PRODUCE_TRANSACTION, id))
}

/// Whether a transaction may hold the topic: neither an internal one nor a mirror, whose marker would take the place of another cluster's
/// record.
pub fn may_enter_transaction(call: &Call, topic: &Topic) -> bool {
    check_internal(call, topic).is_ok() && !topic.is_mirror()
}

/// Whether the client may write to the topic itself, which may be an internal one.
///
/// # Errors
/// With a sentence.
pub fn check_internal(call: &Call, topic: &Topic) -> Result<(), (ErrorCode, String)> {
    if !topic.internal {
        return Ok(());
    }
    if call.client_id.as_deref() != Some(ADMIN_CLIENT) {
        let why =
            format!("Cannot append to internal topic {}: only its coordinator writes to it.", topic.name);
        return Err((ErrorCode::InvalidTopicException, why));
    }
    call.check_cluster(&PRODUCE_INTERNAL).map_err(|error| (error, error.sentence().to_owned()))
}
