//! Sans-IO codec of Kafka's wire protocol: bytes in, values out, and back.
//!
//! # Layout
//! | file | what |
//! |---|---|
//! | [`messages`] | every message as a table of fields, one file per API |
//! | [`stored`] | keys and values of records in internal topics |
//! | [`api`] | numbers and versions of the APIs |
//! | [`any_request`] | which request has which response; requests of an API that is known by its number only |
//! | [`errors`] | Kafka's error codes: number, name, sentence, retriable |
//! | [`header`] | what stands before a body, and what to do with an unknown version |
//! | [`message`] | decode, encode, whole frames, Fetch answers around records in files |
//! | [`json`] | the same for callers that name an API and give JSON |
//! | [`reader`], [`writer`], [`field`] | the bounded reader, the writer, the field types under both |
//! | `schema` | the macro under [`messages`] |
//!
//! # Example: a broker's side
//! ```
//! use pylog_wire::{ApiKey, Message, Reader, RequestHeader, message, messages::*};
//! # let chunks = message::request_frame(&MetadataRequest::default(), 9, 7, Some("me")).unwrap();
//! # let pylog_wire::Chunk::Bytes(frame) = &chunks[0] else { panic!() };
//! # let frame = frame.slice(4..);
//! let mut reader = Reader::new(frame); // the bytes after the length prefix
//! let header = RequestHeader::decode(&mut reader)?;
//! assert_eq!(header.key(), Some(ApiKey::Metadata));
//! let request = MetadataRequest::decode(&mut reader, header.api_version)?;
//! reader.finish()?;
//! let chunks = message::response_frame(&MetadataResponse::default(), header.api_version, header.correlation_id)?;
//! # Ok::<(), pylog_wire::WireError>(())
//! ```
pub mod any_request;
pub mod api;
pub mod consumer_protocol;
pub mod error;
pub mod errors;
pub mod field;
pub mod header;
pub mod json;
pub mod message;
pub mod messages;
pub mod reader;
#[cfg(test)]
mod sample;
mod schema;
pub mod stored;
#[cfg(test)]
mod tests;
pub mod writer;

pub use any_request::AnyRequest;
pub use api::{ApiInfo, ApiKey};
pub use error::WireError;
pub use errors::ErrorCode;
pub use header::{RequestHeader, ResponseHeader};
pub use message::{Message, Request};
pub use reader::Reader;
pub use writer::{Chunk, Writer};
