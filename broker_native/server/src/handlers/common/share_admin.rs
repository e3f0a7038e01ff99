//! What administrators' requests about share groups have in common: the group as it is, and the share partitions that it has.
use super::share_call::{NOT_AT_THE_LEVEL, is_refused};
use crate::call::Call;
use crate::shared::Shared;
use pylog_coordinator::group::Kind;
use pylog_coordinator::share::ShareKey;
use pylog_wire::ErrorCode;

/// Most partitions that one request of a member or an administrator names: each takes many times its bytes.
pub const NAMED_MAX: usize = 100_000;

/// An error with its sentence.
pub type Refusal = (ErrorCode, String);

/// Whether share groups are kept here.
///
/// # Errors
/// UNSUPPORTED_VERSION in a cluster of a lower level.
pub fn check_kept(call: &Call) -> Result<(), Refusal> {
    match is_refused(call) {
        true => Err((ErrorCode::UnsupportedVersion, NOT_AT_THE_LEVEL.to_owned())),
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
    let plain = |error: ErrorCode| (error, error.sentence().to_owned());
    let number = groups.partition_of(group_id).ok_or_else(missing)?;
    let shard = groups.shard(number).ok_or_else(|| plain(ErrorCode::NotCoordinator))?;
    let looked = shard.look(|machine| match machine.group(group_id).map(|group| &group.kind) {
        Some(Kind::Share(group)) => Ok(group.is_empty()),
        Some(_) => Err((ErrorCode::GroupIdNotFound, format!("Group {group_id} is not a share group."))),
        None => Err(missing()),
    });
    looked.unwrap_or_else(|error| Err(plain(error)))
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
            format!("A request may name at most {NAMED_MAX} partitions: send several requests."),
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

/// Whether this broker coordinates the group, whatever it is.
///
/// # Errors
/// NOT_COORDINATOR.
pub fn check_coordinated(call: &Call, group_id: &str) -> Result<(), Refusal> {
    let groups = &call.shared.coordinators.groups;
    let is_remote = groups.partition_of(group_id).is_some_and(|number| groups.shard(number).is_none());
    match is_remote {
        true => Err((ErrorCode::NotCoordinator, ErrorCode::NotCoordinator.sentence().to_owned())),
        false => Ok(()),
    }
}

/// Forgets share partitions; the first error, or none.
pub async fn delete(shared: &Shared, keys: Vec<ShareKey>) -> ErrorCode {
    let mut first = ErrorCode::None;
    for key in keys {
        let outcome = shared.coordinators.share_store.delete(&key).await;
        shared.coordinators.share_partitions.forget(&key);
        if let (ErrorCode::None, Err(error)) = (first, outcome) {
            first = error;
        }
    }
    first
}
