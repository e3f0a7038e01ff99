//! SaslHandshake (17): which mechanism the client logs in by.
use crate::schema::messages;

messages! {
    /// The mechanism.
    SaslHandshakeRequest of SaslHandshake {
        mechanism: String [0+],
    }

    /// Whether it may be used, and which may.
    SaslHandshakeResponse of SaslHandshake {
        error_code: i16 [0+],
        mechanisms: Vec<String> [0+],
    }
}
