//! Who a peer is (Kafka's `KafkaPrincipal`): a type, which is `User`, and a name.
use std::fmt;
use std::str::FromStr;

/// Who a peer is. Cheap to compare; written `User:name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Principal {
    kind: String,
    name: String,
}

/// The type of a peer that logged in, or that nobody asked.
pub const USER: &str = "User";

impl Principal {
    /// The user `name`.
    pub fn user(name: impl Into<String>) -> Self {
        Self { kind: USER.into(), name: name.into() }
    }

    /// Who was not asked: Kafka's `User:ANONYMOUS`.
    pub fn anonymous() -> Self {
        Self::user("ANONYMOUS")
    }

    /// Its type, `User` nearly always.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

/// A text that is no principal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no principal: write it as User:NAME")]
pub struct NoPrincipal(String);

impl FromStr for Principal {
    type Err = NoPrincipal;

    /// Reads `Type:name`; the name may have colons itself.
    fn from_str(text: &str) -> Result<Self, NoPrincipal> {
        let parts = text.split_once(':').filter(|(kind, name)| !kind.is_empty() && !name.is_empty());
        let (kind, name) = parts.ok_or_else(|| NoPrincipal(text.to_owned()))?;
        Ok(Self { kind: kind.to_owned(), name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_is_read_back_as_it_is_written_colons_included() {
        let principal: Principal = "User:CN=a:b,O=c".parse().unwrap();
        assert_eq!((principal.kind(), principal.name()), ("User", "CN=a:b,O=c"));
        assert_eq!(principal.to_string(), "User:CN=a:b,O=c");
    }

    #[test]
    fn a_text_without_a_type_or_a_name_is_refused() {
        for text in ["alice", ":alice", "User:", ""] {
            assert!(text.parse::<Principal>().is_err(), "{text:?}");
        }
    }
}
