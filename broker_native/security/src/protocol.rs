//! The security protocol of a listener or a client (Kafka's `SecurityProtocol`).
use std::fmt;
use std::str::FromStr;

/// Whether bytes are encrypted, and whether the client logs in by SASL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecurityProtocol {
    /// Neither.
    Plaintext,
    /// TLS; who the client is says its certificate, where it has one.
    Ssl,
    /// SASL without encryption.
    SaslPlaintext,
    /// SASL over TLS.
    SaslSsl,
}

impl SecurityProtocol {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Plaintext, Self::Ssl, Self::SaslPlaintext, Self::SaslSsl];

    /// Kafka's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        }
    }

    /// Whether the bytes are encrypted.
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::Ssl | Self::SaslSsl)
    }

    /// Whether the client logs in by SASL.
    pub fn has_sasl(self) -> bool {
        matches!(self, Self::SaslPlaintext | Self::SaslSsl)
    }
}

impl fmt::Display for SecurityProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is none of the four.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no security protocol: use PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")]
pub struct UnknownProtocol(String);

impl FromStr for SecurityProtocol {
    type Err = UnknownProtocol;

    /// Reads Kafka's name, in any case, as Kafka does.
    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        let found = Self::ALL.into_iter().find(|protocol| protocol.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| UnknownProtocol(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_in_any_case_and_another_is_refused() {
        for protocol in SecurityProtocol::ALL {
            assert_eq!(protocol.name().to_lowercase().parse(), Ok(protocol));
        }
        let error = "TLS".parse::<SecurityProtocol>().unwrap_err().to_string();
        assert!(error.contains("SASL_SSL"), "{error}");
    }
}
