//! What every request and response can do, and whole frames.
use bytes::Bytes;

use super::api::ApiInfo;
use super::error::WireError;
use super::field::{Field, Version};
use super::header::{RequestHeader, ResponseHeader};
use super::reader::Reader;
use super::writer::{Chunk, Writer};

/// A request or response body.
pub trait Message: Field + Clone {
    /// Kafka's name of it.
    const NAME: &'static str;
    /// Its API: key and versions.
    const API: ApiInfo;

    /// Says how long the client should wait before its next request (KIP-219), in a response that can say so.
    fn set_throttle_time_ms(&mut self, time_ms: i32);

    /// The layout of version `number`.
    ///
    /// # Errors
    /// [`WireError::Version`] for a version that has none.
    fn version(number: i16) -> Result<Version, WireError> {
        let (min, max) = (Self::API.min, Self::API.max);
        if number < min || number > max {
            return Err(WireError::Version { message: Self::NAME, version: number, min, max });
        }
        Ok(Version { number, flexible: Self::API.is_flexible(number) })
    }

    /// Reads a body; the caller ends with [`Reader::finish`] to refuse what follows it.
    ///
    /// # Errors
    /// Any [`WireError`] but those of writing.
    fn decode(reader: &mut Reader, version: i16) -> Result<Self, WireError> {
        Self::read(reader, Self::version(version)?)
    }

    /// Writes a body. A field that `version` lacks is left out.
    ///
    /// # Errors
    /// [`WireError::Version`], [`WireError::Null`], [`WireError::TooLong`].
    fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), WireError> {
        self.write(writer, Self::version(version)?)
    }
}

/// A request, which knows its answer.
pub trait Request: Message {
    /// The answer to it.
    type Response: Message;
}

/// A request's frame, length prefix included, in parts to send in order.
///
/// # Errors
/// As [`Message::encode`].
pub fn request_frame<R: Request>(
    request: &R,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
) -> Result<Vec<Chunk>, WireError> {
    let mut writer = Writer::new();
    writer.open_frame();
    RequestHeader::encode(&mut writer, R::API.key, version, correlation_id, client_id)?;
    request.encode(&mut writer, version)?;
    writer.close_frame()?;
    Ok(writer.into_chunks())
}

/// A response's frame, length prefix included, in parts to send in order.
///
/// # Errors
/// As [`Message::encode`].
pub fn response_frame<R: Message>(
    response: &R,
    version: i16,
    correlation_id: i32,
) -> Result<Vec<Chunk>, WireError> {
    write_response(Writer::new(), response, version, correlation_id)
}

/// The frame of a Fetch answer whose records the caller sends: `records[i]` is the length in bytes of what goes
/// into the i-th partition (in order of topics and partitions), or `None` to send what the message holds. Each one
/// that is not empty becomes a [`Chunk::Records`] between the bytes around it.
///
/// # Errors
/// As [`Message::encode`].
pub fn response_frame_around<R: Message>(
    response: &R,
    version: i16,
    correlation_id: i32,
    records: impl IntoIterator<Item = Option<usize>>,
) -> Result<Vec<Chunk>, WireError> {
    write_response(Writer::with_records_apart(records), response, version, correlation_id)
}

fn write_response<R: Message>(
    mut writer: Writer,
    response: &R,
    version: i16,
    correlation_id: i32,
) -> Result<Vec<Chunk>, WireError> {
    writer.open_frame();
    ResponseHeader { correlation_id }.encode(&mut writer, R::API.key, version)?;
    response.encode(&mut writer, version)?;
    writer.close_frame()?;
    Ok(writer.into_chunks())
}

/// Reads a whole response frame (without its length prefix) to a request of `version`.
///
/// # Errors
/// As [`Message::decode`], and [`WireError::Trailing`].
pub fn decode_response<R: Message>(frame: Bytes, version: i16) -> Result<(ResponseHeader, R), WireError> {
    let mut reader = Reader::new(frame);
    let header = ResponseHeader::decode(&mut reader, R::API.key, version)?;
    let body = R::decode(&mut reader, version)?;
    reader.finish()?;
    Ok((header, body))
}
