//! Why records do not come from a file.

/// Why the wire is taken although the directory was seen: one sentence, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Doubt {
    pub reason: String,
    /// Whether it will be the same for every answer of this broker.
    pub lasts: bool,
}

impl Doubt {
    /// One that may pass: a file was removed, cut or replaced meanwhile.
    pub fn passing(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), lasts: false }
    }

    /// One that will be there again.
    pub fn lasting(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), lasts: true }
    }
}
