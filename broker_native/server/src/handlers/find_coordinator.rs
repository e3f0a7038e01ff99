//! FindCoordinator: which broker keeps a group or a transaction; makes the internal topic that it is kept in.
//!
//! Version 1 asks for transactions too (KIP-98); 4 for several keys (KIP-699); 5 knows TRANSACTION_ABORTABLE (KIP-890); 6
//! asks for share groups (KIP-932).
use super::common::brokers::{BrokerEndpoint, Brokers};
use super::common::forwarded_metadata::{self, ForwardedAnswer};
use super::common::internal_topic;
use super::common::share_call::{NOT_AT_THE_LEVEL, is_refused};
use crate::authorization::table::{
    FIND_COORDINATOR_GROUP, FIND_COORDINATOR_SHARE, FIND_COORDINATOR_TRANSACTION,
};
use crate::call::{Call, Outcome, Reply};
use crate::coordinators::Coordinator;
use pylog_coordinator::Machine;
use pylog_coordinator::share::ShareKey;
use pylog_wire::ErrorCode;
use pylog_wire::messages::find_coordinator::Coordinator as Found;
use pylog_wire::messages::{FindCoordinatorRequest, FindCoordinatorResponse};

/// From this version on the request has many keys.
const MANY_FROM: i16 = 4;
/// Node id, and port, of a coordinator that is not there.
const NONE: i32 = -1;
/// Key types.
const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;
/// First version with share partitions.
const SHARE_FROM: i16 = 6;

/// Answers at once, or after the internal topic was made.
pub fn handle(call: Call, mut request: FindCoordinatorRequest) -> Outcome {
    if call.version < MANY_FROM {
        request.coordinator_keys = vec![std::mem::take(&mut request.key)];
    }
    let refused = remove_denied(&call, &mut request);
    if request.coordinator_keys.is_empty() && !refused.is_empty() {
        return Outcome::Now(respond(&call, refused));
    }
    if forwarded_metadata::is_needed(&call) {
        return Outcome::later(async move { forwarded(&call, request, refused).await });
    }
    let Some(topic) = missing_topic(&call, request.key_type) else {
        return Outcome::Now(reply(&call, &request, refused));
    };
    call.shared.metrics.events.increment();
    Outcome::later(async move {
        internal_topic::make(&call, topic).await;
        reply(&call, &request, refused)
    })
}

/// Takes out the keys that the client may not ask for, and answers them.
fn remove_denied(call: &Call, request: &mut FindCoordinatorRequest) -> Vec<Found> {
    let key_type = request.key_type;
    let check = |key: &str| match key_type {
        GROUP => call.check(&FIND_COORDINATOR_GROUP, key),
        TRANSACTION => call.check(&FIND_COORDINATOR_TRANSACTION, key),
        SHARE => call.check_cluster(&FIND_COORDINATOR_SHARE),
        _ => Ok(()),
    };
    let mut errors = Vec::new();
    let keys = call.set_aside_where(&mut request.coordinator_keys, |key| {
        let refusal = check(key).err();
        errors.extend(refusal);
        refusal.is_some()
    });
    keys.into_iter().zip(errors).map(|(key, error)| nowhere(key, error, "")).collect()
}

/// The answer of a broker without a lease: forwarded to the other brokers.
async fn forwarded(call: &Call, request: FindCoordinatorRequest, refused: Vec<Found>) -> Reply {
    // A broker without a lease names no coordinator.
    let knows = |answer: &FindCoordinatorResponse| {
        answer.coordinators.iter().any(|coordinator| coordinator.error_code == ErrorCode::None.code())
    };
    match forwarded_metadata::ask(call, request.clone(), knows).await {
        ForwardedAnswer::Known(mut answer) => {
            if !forwarded_metadata::is_over_inter_broker_listener(call) {
                let brokers = Brokers::of(call);
                answer.coordinators.iter_mut().for_each(|found| readdress(found, &brokers));
            }
            answer.coordinators.extend(refused);
            respond(call, answer.coordinators)
        }
        ForwardedAnswer::Nothing => reply(call, &request, refused),
        ForwardedAnswer::CutOff => forwarded_metadata::cut_off(),
    }
}

/// Replaces the address of a coordinator, which another broker named, by that of the listener that the client came over.
fn readdress(found: &mut Found, brokers: &Brokers) {
    if found.error_code != ErrorCode::None.code() {
        return;
    }
    let Found { node_id, host, port, error_code, .. } = found;
    match brokers.find(*node_id) {
        Some(endpoint) => (*host, *port) = (endpoint.host, endpoint.port),
        None => {
            (*node_id, *host, *port) = (NONE, String::new(), NONE);
            *error_code = ErrorCode::CoordinatorNotAvailable.code();
        }
    }
}

/// The topic to be made before the answer.
fn missing_topic(call: &Call, key_type: i8) -> Option<&'static str> {
    let coordinators = &call.shared.coordinators;
    match key_type {
        GROUP => internal_topic::missing(&coordinators.groups),
        TRANSACTION => internal_topic::missing(&coordinators.transactions),
        // That of share partitions is made for the first member of a share group.
        _ => None,
    }
}

fn reply(call: &Call, request: &FindCoordinatorRequest, refused: Vec<Found>) -> Reply {
    let found = request.coordinator_keys.iter().map(|key| found(call, request.key_type, key));
    respond(call, found.chain(refused).collect())
}

fn respond(call: &Call, mut coordinators: Vec<Found>) -> Reply {
    if call.version >= MANY_FROM {
        return call.answer(&FindCoordinatorResponse { coordinators, ..Default::default() });
    }
    let coordinator = coordinators.pop().unwrap_or_default();
    let error = ErrorCode::from_code(coordinator.error_code).unwrap_or(ErrorCode::UnknownServerError);
    call.answer(&FindCoordinatorResponse {
        error_code: coordinator.error_code,
        error_message: Some(if error == ErrorCode::None { "NONE" } else { error.sentence() }.into()),
        node_id: coordinator.node_id,
        host: coordinator.host,
        port: coordinator.port,
        ..Default::default()
    })
}

fn found(call: &Call, key_type: i8, key: &str) -> Found {
    let coordinators = &call.shared.coordinators;
    let brokers = Brokers::of(call);
    let keeper = match key_type {
        SHARE if is_refused(call) => Err(ErrorCode::UnsupportedVersion),
        _ if !call.shared.cluster.may_lead() => Err(ErrorCode::CoordinatorNotAvailable),
        GROUP => keeper(call, &brokers, &coordinators.groups, key),
        TRANSACTION => keeper(call, &brokers, &coordinators.transactions, key),
        SHARE if call.version >= SHARE_FROM && ShareKey::is_text(key) => {
            keeper(call, &brokers, &coordinators.shares, key)
        }
        _ => Err(ErrorCode::InvalidRequest),
    };
    let sentence = if keeper == Err(ErrorCode::UnsupportedVersion) { NOT_AT_THE_LEVEL } else { "" };
    let key = key.to_owned();
    match keeper {
        Ok(BrokerEndpoint { id: node_id, host, port, .. }) => {
            let error_message = Some(sentence.to_owned());
            Found { key, node_id, host, port, error_code: ErrorCode::None.code(), error_message }
        }
        Err(error) => nowhere(key, error, sentence),
    }
}

/// The answer about a key whose coordinator is not told.
fn nowhere(key: String, error: ErrorCode, sentence: &str) -> Found {
    Found {
        key,
        node_id: NONE,
        host: String::new(),
        port: NONE,
        error_code: error.code(),
        error_message: Some(sentence.to_owned()),
    }
}

/// The broker that keeps `key`, also while it is loading it: who leads the key's partition of the internal topic.
fn keeper<M: Machine>(
    call: &Call,
    brokers: &Brokers,
    coordinator: &Coordinator<M>,
    key: &str,
) -> Result<BrokerEndpoint, ErrorCode>
where
    M::Action: 'static,
{
    let none = ErrorCode::CoordinatorNotAvailable;
    let number = coordinator.partition_of(key).ok_or(none)?;
    let image = call.shared.topics.now();
    let topic = image.named(coordinator.topic()).ok_or(none)?;
    let leader = topic.partition(number).ok_or(none)?.spec.leader;
    // One whose log is broken is not kept here.
    if leader == brokers.own_id() && coordinator.shard(number).is_none() {
        return Err(none);
    }
    brokers.find(leader).ok_or(none)
}
