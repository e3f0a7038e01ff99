//! What administrators' requests about share groups have in common: the group as it is, and the share partitions that it has.
use super::share_call::{NOT_IN_A_CLUSTER, ask, error_of, is_refused};
use crate::coordinator::group::Kind;
use crate::coordinator::share::{ShareKey, ShareRequest};
use crate::server::dispatch::Call;
use crate::server::shared::Shared;
use crate::wire::ErrorCode;

/// Most partitions that one request of a member or an administrator names: each takes many times its bytes.
pub const NAMED_MAX: usize = 100_000;

/// An error with its sentence.
pub type Refusal = (ErrorCode, String);

/// Whether share groups are kept here.
///
/// # Errors
/// UNSUPPORTED_VERSION in a cluster.
pub fn check_kept(call: &Call) -> Result<(), Refusal> {
    match is_refused(call) {
        true => Err((ErrorCode::UnsupportedVersion, NOT_IN_A_CLUSTER.to_owned())),
        false => Ok(()),
    }
}

/// Whether share groups are kept here, and the id can be one's.
///
/// # Errors
/// As [`check_kept`]; INVALID_GROUP_ID.
pub fn check_id(call: &Call, group_id: &str) -> Result<(), Refusal> {
    check_kept(call)?;
    match group_id.is_empty() {
        true => Err((ErrorCode::InvalidGroupId, ErrorCode::InvalidGroupId.sentence().to_owned())),
        false => Ok(()),
    }
}

/// Whether the share group has no members.
///
/// # Errors
/// As [`check_id`]; GROUP_ID_NOT_FOUND when it is none; those of its coordinator.
pub fn is_empty(call: &Call, group_id: &str) -> Result<bool, Refusal> {
    check_id(call, group_id)?;
    let groups = &call.shared.coordinators.groups;
    let missing = || (ErrorCode::GroupIdNotFound, format!("Group {group_id} not found."));
    let shard = groups.partition_of(group_id).and_then(|number| groups.shard(number)).ok_or_else(missing)?;
    let looked = shard.look(|machine| match machine.group(group_id).map(|group| &group.kind) {
        Some(Kind::Share(group)) => Ok(group.is_empty()),
        Some(_) => Err((ErrorCode::GroupIdNotFound, format!("Group {group_id} is not a share group."))),
        None => Err(missing()),
    });
    looked.unwrap_or_else(|error| Err((error, error.sentence().to_owned())))
}

/// As [`is_empty`], for what is done to a group without members only.
///
/// # Errors
/// Also NON_EMPTY_GROUP.
pub fn must_be_empty(call: &Call, group_id: &str) -> Result<(), Refusal> {
    match is_empty(call, group_id)? {
        true => Ok(()),
        false => Err((ErrorCode::NonEmptyGroup, format!("Group {group_id} has members."))),
    }
}

/// Refuses a request that names too many partitions.
///
/// # Errors
/// INVALID_REQUEST.
pub fn check_count(partitions: usize) -> Result<(), Refusal> {
    match partitions > NAMED_MAX {
        true => Err((
            ErrorCode::InvalidRequest,
            format!("One request names at most {NAMED_MAX} partitions: send several."),
        )),
        false => Ok(()),
    }
}

/// Whether all is known that share groups did. Asked before an answer about many partitions: clients try again when all of a request is
/// refused, not when one partition is.
///
/// # Errors
/// COORDINATOR_LOAD_IN_PROGRESS.
pub fn check_loaded(shared: &Shared) -> Result<(), Refusal> {
    let plain = |error: ErrorCode| (error, error.sentence().to_owned());
    shared.coordinators.shares.for_each_loaded(|_| ()).map_err(plain)
}

/// The share partitions of a group.
///
/// # Errors
/// COORDINATOR_LOAD_IN_PROGRESS while they are not all known.
pub fn keys(shared: &Shared, group_id: &str) -> Result<Vec<ShareKey>, ErrorCode> {
    let mut keys = Vec::new();
    shared.coordinators.shares.for_each_loaded(|shares| keys.extend(shares.keys_of(group_id).cloned()))?;
    keys.sort_unstable();
    Ok(keys)
}

/// Forgets share partitions; the first error, or none.
pub async fn delete(shared: &Shared, keys: Vec<ShareKey>) -> ErrorCode {
    let asked: Vec<_> = keys.into_iter().map(|key| ask(shared, key, ShareRequest::Delete)).collect();
    let mut first = ErrorCode::None;
    for waiting in asked {
        let error = error_of(waiting.await);
        if first == ErrorCode::None {
            first = error;
        }
    }
    first
}
