//! The SASL mechanisms, by their registered names.
use std::fmt;
use std::str::FromStr;

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mechanism {
    /// The password itself (RFC 4616): only over TLS.
    Plain,
    /// A proof that one knows the password (RFC 7677).
    ScramSha256,
    /// The same by SHA-512.
    ScramSha512,
    /// A token that somebody else has signed (RFC 7628).
    OauthBearer,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Plain, Self::ScramSha256, Self::ScramSha512, Self::OauthBearer];

    /// Its registered name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
            Self::OauthBearer => "OAUTHBEARER",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is none of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no SASL mechanism that pylog speaks: use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
)]
pub struct UnknownMechanism(String);

impl FromStr for Mechanism {
    type Err = UnknownMechanism;

    /// Reads the registered name, in upper case, as Kafka does.
    fn from_str(text: &str) -> Result<Self, UnknownMechanism> {
        let found = Self::ALL.into_iter().find(|mechanism| mechanism.name() == text);
        found.ok_or_else(|| UnknownMechanism(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_another_is_refused() {
        for mechanism in Mechanism::ALL {
            assert_eq!(mechanism.to_string().parse(), Ok(mechanism));
        }
        for text in ["GSSAPI", "plain", "", "SCRAM-SHA-1"] {
            let error = text.parse::<Mechanism>().unwrap_err().to_string();
            assert!(error.contains("SCRAM-SHA-512"), "{error}");
        }
    }
}
