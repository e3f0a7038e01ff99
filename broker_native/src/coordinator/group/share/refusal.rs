//! Why a request of a share group is refused.
use crate::wire::ErrorCode;

/// An error with its sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its code.
    pub error: ErrorCode,
    /// A sentence for the client's log.
    pub message: String,
}

impl Refusal {
    pub(super) fn new(error: ErrorCode, message: impl Into<String>) -> Self {
        Self { error, message: message.into() }
    }
}

/// There is no such group.
pub(super) fn not_found(group_id: &str) -> Refusal {
    Refusal::new(ErrorCode::GroupIdNotFound, format!("Group {group_id} not found."))
}

/// The group is of another kind.
pub(super) fn not_of_this_kind(group_id: &str) -> Refusal {
    Refusal::new(ErrorCode::GroupIdNotFound, format!("Group {group_id} is not a share group."))
}

/// The coordinators' memory is in use.
pub(super) fn no_room() -> Refusal {
    let message = "The coordinator has no room for more (group.coordinator.max.bytes).";
    Refusal::new(ErrorCode::GroupMaxSizeReached, message)
}
