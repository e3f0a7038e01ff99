//! A text that is never shown: a password, a token, a private key.
use std::fmt;

use zeroize::Zeroizing;

/// What is shown in a secret's place.
pub const HIDDEN: &str = "[hidden]";

/// A secret text; the value of a setting of the kind PASSWORD. `Debug` and `Display` say `[hidden]` (as Kafka's `Password`); the memory is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Keeps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself, for who needs it; never for a message.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is no text: none was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_debug_nor_display_shows_it() {
        let secret = Secret::new("swordfish");
        assert!(!format!("{secret:?} {secret}").contains("swordfish"));
        assert_eq!(secret.reveal(), "swordfish");
    }
}
