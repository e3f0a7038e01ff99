//! What tells apart connections that may be used for each other from those that may not.
use std::collections::BTreeMap;
use std::fmt;

/// The settings, by name, that a connection was opened with; secrets among them.
#[derive(Clone, PartialEq, Eq)]
pub struct Terms(BTreeMap<String, String>);

impl fmt::Debug for Terms {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl Terms {
    /// Of everything that was given, what a connection depends on.
    pub fn of(given: &BTreeMap<&str, &str>) -> Self {
        const PREFIXES: [&str; 4] = ["security.", "ssl.", "sasl.", "socket."];
        const NAMES: [&str; 6] = [
            "client.id",
            "enable.ssl.certificate.verification",
            "receive.buffer.bytes",
            "receive.message.max.bytes",
            "request.timeout.ms",
            "send.buffer.bytes",
        ];
        let counts =
            |name: &str| NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let kept = given.iter().filter(|(name, _)| counts(name));
        Self(kept.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }
}
