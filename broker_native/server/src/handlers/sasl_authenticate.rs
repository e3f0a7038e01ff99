//! SaslAuthenticate where no login is going on: see `sasl_handshake`.
//!
//! KIP-152. Version 1 says how long the login lasts (KIP-368); no other added anything.
use crate::call::{Call, Outcome};
use pylog_wire::ErrorCode;
use pylog_wire::messages::{SaslAuthenticateRequest, SaslAuthenticateResponse};

/// Answers as Kafka does; the connection stays as it is.
pub fn handle(call: &Call, _request: &SaslAuthenticateRequest) -> Outcome {
    Outcome::Now(call.answer(&SaslAuthenticateResponse {
        error_code: ErrorCode::IllegalSaslState.code(),
        error_message: Some("SaslAuthenticate request received after successful authentication".into()),
        ..Default::default()
    }))
}
