//! Why a request about members is refused: what the protocols of KIP-848 and of share groups have in common.
use pylog_wire::ErrorCode;

/// Names of topics that a member's record has room for.
const NAMES_BYTES_MAX: usize = 500_000;
/// Longest text that a record has room for.
const TEXT_BYTES_MAX: usize = i16::MAX as usize;

/// An error with its sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its code.
    pub error: ErrorCode,
    /// A sentence for the client's log.
    pub message: String,
}

impl Refusal {
    /// With a sentence of its own.
    pub fn new(error: ErrorCode, message: impl Into<String>) -> Self {
        Self { error, message: message.into() }
    }
}

/// There is no such group.
pub fn not_found(group_id: &str) -> Refusal {
    Refusal::new(ErrorCode::GroupIdNotFound, format!("Group {group_id} not found."))
}

/// The group is no `kind`.
pub fn not_of_this_kind(group_id: &str, kind: &str) -> Refusal {
    Refusal::new(ErrorCode::GroupIdNotFound, format!("Group {group_id} is not a {kind} group."))
}

/// The coordinators' memory is in use.
pub fn no_room() -> Refusal {
    let message = "The coordinator has no room for more (group.coordinator.max.bytes).";
    Refusal::new(ErrorCode::GroupMaxSizeReached, message)
}

/// Whether a member's record has room for what its heartbeat says: for each of the texts, and for the names of its topics together;
/// `advice` says what else a client may do.
///
/// # Errors
/// INVALID_REQUEST.
pub fn check_sizes<'a>(
    mut texts: impl Iterator<Item = &'a String>,
    names: impl Iterator<Item = &'a String>,
    advice: &str,
) -> Result<(), Refusal> {
    let invalid = |message: String| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    if texts.any(|text| text.len() > TEXT_BYTES_MAX) {
        let message = "A text is longer than 32767 bytes, which is all that a group's records have room for.";
        return invalid(message.to_owned());
    }
    if names.map(|name| name.len() + 2).sum::<usize>() > NAMES_BYTES_MAX {
        return invalid(format!(
            "The subscribed topics' names are longer than 500000 bytes together{advice}."
        ));
    }
    Ok(())
}
