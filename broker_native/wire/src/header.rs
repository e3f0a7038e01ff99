//! The headers of requests and responses.
//!
//! A request header is version 1, or 2 (with tagged fields) when the body is flexible; the client id keeps its
//! 16-bit length in both. A response header is version 0, or 1 when the body is flexible, except that the answer to
//! ApiVersions always has version 0.
//!
//! # An unknown version
//! [`RequestHeader::decode`] reads the header of any version of any known API. When [`RequestHeader::info`] says
//! that the version is not supported: for ApiVersions answer `ApiVersionsResponse { error_code: 35, api_keys, .. }`
//! in version 0, whatever version was asked for, so that the client can choose again; for all others there is no
//! answer that the client could read, close the connection.
use super::api::{ApiInfo, ApiKey};
use super::error::WireError;
use super::field::{Field, Nullable, Version};
use super::reader::Reader;
use super::writer::Writer;

/// Client ids and correlation ids stand before any flexible field.
const NOT_FLEXIBLE: Version = Version { number: 1, flexible: false };

/// What stands before every request's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    /// The API's number, perhaps one that is not known here.
    pub api_key: i16,
    /// The version of the body.
    pub api_version: i16,
    /// Comes back with the answer.
    pub correlation_id: i32,
    /// The client's name for itself.
    pub client_id: Option<String>,
}

impl RequestHeader {
    /// Reads a header; of an unknown API only what stands before the tagged fields.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Length`], [`WireError::Utf8`].
    pub fn decode(reader: &mut Reader) -> Result<Self, WireError> {
        let api_key = i16::read(reader, NOT_FLEXIBLE)?;
        let api_version = i16::read(reader, NOT_FLEXIBLE)?;
        let correlation_id = i32::read(reader, NOT_FLEXIBLE)?;
        let client_id = String::read_nullable(reader, NOT_FLEXIBLE)?;
        let header = Self { api_key, api_version, correlation_id, client_id };
        if header.info().is_some_and(|info| info.is_flexible(api_version)) {
            reader.tagged(|_, _| Ok(false))?;
        }
        Ok(header)
    }

    /// Writes a header.
    ///
    /// # Errors
    /// [`WireError::TooLong`] for a client id of more than 32,767 bytes.
    pub fn encode(
        writer: &mut Writer,
        key: ApiKey,
        version: i16,
        correlation_id: i32,
        client_id: Option<&str>,
    ) -> Result<(), WireError> {
        writer.raw(&key.code().to_be_bytes());
        writer.raw(&version.to_be_bytes());
        writer.raw(&correlation_id.to_be_bytes());
        writer.length(client_id.map(str::len), false, 2)?;
        writer.raw(client_id.unwrap_or_default().as_bytes());
        if key.info().is_flexible(version) {
            writer.uvarint(0);
        }
        Ok(())
    }

    /// The API, if it is known here.
    pub fn key(&self) -> Option<ApiKey> {
        ApiKey::from_code(self.api_key)
    }

    /// The API's versions, if it is known here.
    pub fn info(&self) -> Option<ApiInfo> {
        self.key().map(ApiKey::info)
    }
}

/// What stands before every response's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseHeader {
    /// That of the request.
    pub correlation_id: i32,
}

impl ResponseHeader {
    /// Reads the header of the answer to `key` in `version`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Length`].
    pub fn decode(reader: &mut Reader, key: ApiKey, version: i16) -> Result<Self, WireError> {
        let correlation_id = i32::read(reader, NOT_FLEXIBLE)?;
        if response_header_is_flexible(key, version) {
            reader.tagged(|_, _| Ok(false))?;
        }
        Ok(Self { correlation_id })
    }

    /// Writes the header of the answer to `key` in `version`.
    ///
    /// # Errors
    /// None today; the signature is that of every writer.
    pub fn encode(self, writer: &mut Writer, key: ApiKey, version: i16) -> Result<(), WireError> {
        writer.raw(&self.correlation_id.to_be_bytes());
        if response_header_is_flexible(key, version) {
            writer.uvarint(0);
        }
        Ok(())
    }
}

/// Whether the header of a response to `key` in `version` has tagged fields.
fn response_header_is_flexible(key: ApiKey, version: i16) -> bool {
    // A client reads the answer to ApiVersions before it knows what the broker speaks (KIP-511).
    key != ApiKey::ApiVersions && key.info().is_flexible(version)
}
