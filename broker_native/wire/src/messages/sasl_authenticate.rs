//! SaslAuthenticate (36): one message of the mechanism's exchange.
use bytes::Bytes;

use super::hex;
use crate::schema::messages;

messages! {
    /// What the client says.
    SaslAuthenticateRequest of SaslAuthenticate {
        #[serde(with = "hex::never_null")]
        auth_bytes: Bytes [0+],
    }

    /// What the broker says.
    SaslAuthenticateResponse of SaslAuthenticate {
        error_code: i16 [0+],
        error_message: Option<String> [0+],
        #[serde(with = "hex::never_null")]
        auth_bytes: Bytes [0+],
        /// After how long the client must log in again; 0: never.
        session_lifetime_ms: i64 [1+],
    }
}
