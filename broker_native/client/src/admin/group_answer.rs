//! What answers about groups have in common, of every kind of group.
use super::said;
use crate::error::{ClientError, Result, code};
use pylog_wire::ErrorCode;

/// The only group of an answer about `name`.
pub(super) fn first<T>(groups: Vec<T>, name: &str) -> Result<T> {
    let missing = || ClientError::protocol("any", format!("no answer about group {name}"));
    groups.into_iter().next().ok_or_else(missing)
}

/// The message for a group that an answer describes with an error.
pub(super) fn described_error(number: i16, message: Option<&str>, group: &str) -> Option<String> {
    match code(number) {
        ErrorCode::GroupIdNotFound => Some(format!("Group '{group}' does not exist.")),
        _ => said(number, message),
    }
}
