//! Finding the broker that answers for a group or a transactional id.
use std::collections::HashMap;

use super::address::Address;
use super::cluster::Cluster;
use crate::error::{ClientError, Result, code};
use pylog_wire::ErrorCode;
use pylog_wire::messages::find_coordinator::{Coordinator, FindCoordinatorRequest, FindCoordinatorResponse};

/// What a key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoordinatorType {
    /// A group.
    Group,
    /// A transactional id.
    Transaction,
}

impl CoordinatorType {
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

/// Calls the coordinator of `key` by `ask`, again while that fails retriably ([`check_ready`] makes it so).
///
/// # Errors
/// Those of the connection; a coordinator that is not there after `default.api.timeout.ms`.
pub fn ask_coordinator<T>(
    cluster: &mut Cluster,
    what: &str,
    kind: CoordinatorType,
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
pub fn check_ready(number: i16, key: &str) -> Result<()> {
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

fn find(cluster: &mut Cluster, kind: CoordinatorType, key: &str) -> Result<i32> {
    let answer = cluster.call_any(&question(kind, &[key.to_owned()]))?;
    let shown = first(answer);
    check_found(kind, key, &shown)?;
    Ok(shown.node_id)
}

/// A coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The broker's number.
    pub node: i32,
    /// Where it is.
    pub address: Address,
}

/// Where the coordinators of `keys` are, in their order; one request where the brokers answer for several at once.
///
/// # Errors
/// Those of the connection. What concerns one key, retriable or not, is its own.
pub fn locate(cluster: &mut Cluster, kind: CoordinatorType, keys: &[String]) -> Result<Vec<Result<Located>>> {
    let address = cluster.any()?;
    let connection = cluster.connection(&address)?;
    let version = connection.versions().pick::<FindCoordinatorRequest>(connection.broker())?;
    if version < SEVERAL_FROM {
        let locate_one = |key: &String| {
            let shown = first(cluster.call_at(&address, &question(kind, std::slice::from_ref(key)))?);
            Ok(located(kind, key, &shown))
        };
        return keys.iter().map(locate_one).collect();
    }
    let answer = cluster.call_at(&address, &question(kind, keys))?;
    let shown: HashMap<&str, &Coordinator> =
        answer.coordinators.iter().map(|shown| (shown.key.as_str(), shown)).collect();
    let missing = |key: &str| ClientError::protocol("any", format!("no answer about {} {key}", kind.name()));
    let answered = |key: &String| match shown.get(key.as_str()) {
        Some(shown) => located(kind, key, shown),
        None => Err(missing(key)),
    };
    Ok(keys.iter().map(answered).collect())
}

/// From this version of FindCoordinator on several keys are answered for at once.
const SEVERAL_FROM: i16 = 4;

fn question(kind: CoordinatorType, keys: &[String]) -> FindCoordinatorRequest {
    FindCoordinatorRequest {
        key: keys.first().cloned().unwrap_or_default(),
        key_type: kind.code(),
        coordinator_keys: keys.to_vec(),
    }
}

/// The only coordinator of an answer, of whichever version.
fn first(answer: FindCoordinatorResponse) -> Coordinator {
    let FindCoordinatorResponse { error_code, error_message, node_id, host, port, coordinators, .. } = answer;
    let old = Coordinator { error_code, error_message, node_id, host, port, ..Default::default() };
    coordinators.into_iter().next().unwrap_or(old)
}

fn located(kind: CoordinatorType, key: &str, shown: &Coordinator) -> Result<Located> {
    check_found(kind, key, shown)?;
    let port = u16::try_from(shown.port);
    let port = port.map_err(|_| ClientError::protocol("any", format!("port {} of a broker", shown.port)))?;
    Ok(Located { node: shown.node_id, address: (shown.host.clone(), port) })
}

fn check_found(kind: CoordinatorType, key: &str, shown: &Coordinator) -> Result<()> {
    let error = code(shown.error_code);
    if error == ErrorCode::None {
        return Ok(());
    }
    let said = shown.error_message.as_deref().filter(|text| !text.is_empty()).unwrap_or(error.sentence());
    Err(ClientError {
        kind: error.name(),
        message: format!("the coordinator of {} {key} cannot be found: {said}", kind.name()),
        retriable: error.is_retriable(),
    })
}
