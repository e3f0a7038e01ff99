//! Why a value was not taken.
use jiter::JiterError;

use crate::damage::Damage;

/// Why a value was not taken.
pub(super) enum Bad {
    /// It does not fit: it was passed over, and the column may hold parts of it.
    Misfit(Damage),
    /// This is no JSON.
    Broken,
}

impl From<JiterError> for Bad {
    fn from(_: JiterError) -> Self {
        Self::Broken
    }
}

impl From<Damage> for Bad {
    fn from(damage: Damage) -> Self {
        Self::Misfit(damage)
    }
}
