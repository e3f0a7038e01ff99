//! SaslHandshake where there is nothing to log in to: at a listener without SASL, or over a connection whose login does not end.
//!
//! A login itself is not served here, but before any handler: `network/login`.
//!
//! KIP-43. After version 0 the messages of the mechanism come without a header; after version 1 in SaslAuthenticate (KIP-152).
use crate::call::{Call, Outcome};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{SaslHandshakeRequest, SaslHandshakeResponse};

/// Answers as Kafka does; the connection stays as it is.
pub fn handle(call: &Call, _request: &SaslHandshakeRequest) -> Outcome {
    let error_code = ErrorCode::IllegalSaslState.code();
    Outcome::Now(call.answer(&SaslHandshakeResponse { error_code, ..Default::default() }))
}
