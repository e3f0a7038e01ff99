//! FindCoordinator: which broker keeps a group or a transaction; makes the internal topic that it is kept in.
use super::metadata::advertised;
use crate::coordinator::Machine;
use crate::server::coordinators::Coordinator;
use crate::server::decide::{Kind, ask};
use crate::server::dispatch::{Call, Outcome, Reply};
use crate::server::notice::notice;
use crate::wire::ErrorCode;
use crate::wire::messages::find_coordinator::Coordinator as Found;
use crate::wire::messages::{FindCoordinatorRequest, FindCoordinatorResponse};

/// From this version on the request has many keys.
const MANY_FROM: i16 = 4;
/// Node id, and port, of a coordinator that is not there.
const NONE: i32 = -1;
/// Key types.
const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

/// Answers at once, or after the internal topic was made.
pub fn handle(call: Call, request: FindCoordinatorRequest) -> Outcome {
    let Some(topic) = missing_topic(&call, request.key_type) else {
        return Outcome::Now(reply(&call, &request));
    };
    call.shared.metrics.events.one();
    Outcome::later(async move {
        let json = serde_json::json!({ "topics": [topic] }).to_string();
        if let Err(why) = ask(call.shared.decider.as_ref(), Kind::AutoCreateTopics, json, 0).await {
            notice(&format!("topic {topic} was not made: {why}"));
        }
        reply(&call, &request)
    })
}

/// The topic to be made before the answer.
fn missing_topic(call: &Call, key_type: i8) -> Option<&'static str> {
    let coordinators = &call.shared.coordinators;
    let (topic, is_there) = match key_type {
        GROUP => (coordinators.groups.topic(), coordinators.groups.has_topic()),
        TRANSACTION => (coordinators.transactions.topic(), coordinators.transactions.has_topic()),
        _ => return None,
    };
    (!is_there).then_some(topic)
}

fn reply(call: &Call, request: &FindCoordinatorRequest) -> Reply {
    if call.version >= MANY_FROM {
        let keys = request.coordinator_keys.iter();
        let coordinators = keys.map(|key| found(call, request.key_type, key)).collect();
        return call.answer(&FindCoordinatorResponse { coordinators, ..Default::default() });
    }
    let one = found(call, request.key_type, &request.key);
    let error = ErrorCode::from_code(one.error_code).unwrap_or(ErrorCode::UnknownServerError);
    call.answer(&FindCoordinatorResponse {
        error_code: one.error_code,
        error_message: Some(if error == ErrorCode::None { "NONE" } else { error.sentence() }.into()),
        node_id: one.node_id,
        host: one.host,
        port: one.port,
        ..Default::default()
    })
}

fn found(call: &Call, key_type: i8, key: &str) -> Found {
    let coordinators = &call.shared.coordinators;
    let error = match key_type {
        GROUP => state(&coordinators.groups, key),
        TRANSACTION => state(&coordinators.transactions, key),
        // Share groups are not kept.
        _ => ErrorCode::InvalidRequest,
    };
    let ((host, port), node_id) = match error {
        ErrorCode::None => (advertised(call), call.shared.settings.node_id),
        _ => ((String::new(), NONE), NONE),
    };
    let error_message = Some(String::new());
    Found { key: key.to_owned(), node_id, host, port, error_code: error.code(), error_message }
}

/// Whether this broker keeps `key`; also while it is being loaded.
fn state<M: Machine>(coordinator: &Coordinator<M>, key: &str) -> ErrorCode
where
    M::Action: 'static,
{
    match coordinator.partition_of(key).and_then(|partition| coordinator.shard(partition)) {
        Some(_) => ErrorCode::None,
        None => ErrorCode::CoordinatorNotAvailable,
    }
}
