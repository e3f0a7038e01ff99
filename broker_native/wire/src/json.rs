//! Frames from and to JSON, for callers that name an API by its name: programs and tests that talk to a broker raw.
//!
//! A message in JSON has Kafka's field names in snake_case; fields left out have their defaults, bytes are hexadecimal
//! text (see `messages::hex`). A field that the message does not have is refused: a typing error must not become
//! a default.
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::any_request::Visitor;
use super::api::ApiKey;
use super::error::WireError;
use super::message::{Request, decode_response, request_frame};
use super::writer::Chunk;

/// Why a request was not made, or an answer not read.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// Not JSON, or a value of the wrong type.
    #[error("the JSON does not fit the message: {0}")]
    Json(#[from] serde_json::Error),
    /// A field that the message does not have.
    #[error("the message has no field {0}: use the names of Kafka's descriptors in snake_case")]
    UnknownField(String),
    /// The codec refused it.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// The frame of a request to `key`, length prefix included.
///
/// # Errors
/// Any [`JsonError`].
pub fn request_frame_from_json(
    key: ApiKey,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    json: &str,
) -> Result<Vec<Chunk>, JsonError> {
    key.visit(Asking { version, correlation_id, client_id, json })
}

/// The correlation id and the body of an answer from `key`; `frame` has no length prefix.
///
/// # Errors
/// [`JsonError::Wire`].
pub fn response_to_json(key: ApiKey, version: i16, frame: Bytes) -> Result<(i32, String), JsonError> {
    key.visit(Answered { version, frame })
}

struct Asking<'a> {
    version: i16,
    correlation_id: i32,
    client_id: Option<&'a str>,
    json: &'a str,
}

impl Visitor for Asking<'_> {
    type Output = Result<Vec<Chunk>, JsonError>;

    fn visit<R: Request + Serialize + DeserializeOwned>(self) -> Self::Output
    where
        R::Response: Serialize,
    {
        let given: Value = serde_json::from_str(self.json)?;
        let request = R::deserialize(&given)?;
        if let Some(field) = unknown_field(&given, &serde_json::to_value(&request)?) {
            return Err(JsonError::UnknownField(field));
        }
        Ok(request_frame(&request, self.version, self.correlation_id, self.client_id)?)
    }
}

struct Answered {
    version: i16,
    frame: Bytes,
}

impl Visitor for Answered {
    type Output = Result<(i32, String), JsonError>;

    fn visit<R: Request + Serialize + DeserializeOwned>(self) -> Self::Output
    where
        R::Response: Serialize,
    {
        let (header, answer) = decode_response::<R::Response>(self.frame, self.version)?;
        Ok((header.correlation_id, serde_json::to_string(&answer)?))
    }
}

/// The first field of `given` that `known` (the same message with all its fields) lacks.
fn unknown_field(given: &Value, known: &Value) -> Option<String> {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            given.iter().find_map(|(name, value)| match known.get(name) {
                None => Some(name.clone()),
                Some(known) => unknown_field(value, known).map(|inner| format!("{name}.{inner}")),
            })
        }
        (Value::Array(given), Value::Array(known)) => {
            given.iter().zip(known).find_map(|(given, known)| unknown_field(given, known))
        }
        _ => None,
    }
}
