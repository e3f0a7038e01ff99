//! Finding the broker that answers for a group or a transactional id.
use crate::client::cluster::Cluster;
use crate::client::error::{ClientError, Result, code};
use crate::wire::ErrorCode;
use crate::wire::messages::FindCoordinatorRequest;

/// What a key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A group.
    Group,
    /// A transactional id.
    Transaction,
}

impl Kind {
    fn code(self) -> i8 {
        match self {
            Self::Group => 0,
            Self::Transaction => 1,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Transaction => "transactional id",
        }
    }
}

/// Calls the coordinator of `key` by `ask`, again while that fails retriably ([`settled`] makes it so).
///
/// # Errors
/// Those of the connection; a coordinator that is not there after `default.api.timeout.ms`.
pub fn at<T>(
    cluster: &mut Cluster,
    what: &str,
    kind: Kind,
    key: &str,
    mut ask: impl FnMut(&mut Cluster, i32) -> Result<T>,
) -> Result<T> {
    cluster.retrying(what, |cluster| {
        cluster.metadata(Some(&[]), false)?;
        let node = find(cluster, kind, key)?;
        ask(cluster, node)
    })
}

/// An error code of an answer that only says "not here" or "not yet" as an error worth another attempt; other codes are
/// part of the answer.
///
/// # Errors
/// `NOT_COORDINATOR`, `COORDINATOR_LOAD_IN_PROGRESS`, `COORDINATOR_NOT_AVAILABLE`, `CONCURRENT_TRANSACTIONS`.
pub fn settled(number: i16, key: &str) -> Result<()> {
    let error = code(number);
    match error {
        ErrorCode::NotCoordinator
        | ErrorCode::CoordinatorLoadInProgress
        | ErrorCode::CoordinatorNotAvailable
        | ErrorCode::ConcurrentTransactions => {
            Err(ClientError::retriable(error.name(), format!("{key}: {}", error.sentence())))
        }
        _ => Ok(()),
    }
}

fn find(cluster: &mut Cluster, kind: Kind, key: &str) -> Result<i32> {
    let request = FindCoordinatorRequest {
        key: key.to_owned(),
        key_type: kind.code(),
        coordinator_keys: vec![key.to_owned()],
    };
    let answer = cluster.call_any(&request)?;
    let (number, message, node) = match answer.coordinators.first() {
        Some(one) => (one.error_code, one.error_message.as_deref(), one.node_id),
        None => (answer.error_code, answer.error_message.as_deref(), answer.node_id),
    };
    let error = code(number);
    if error == ErrorCode::None {
        return Ok(node);
    }
    let said = message.filter(|text| !text.is_empty()).unwrap_or(error.sentence());
    Err(ClientError {
        kind: error.name(),
        message: format!("the coordinator of {} {key} cannot be found: {said}", kind.name()),
        retriable: error.is_retriable(),
    })
}
