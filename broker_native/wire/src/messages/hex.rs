//! Byte fields in JSON: lower-case hexadecimal text, or null.
use bytes::Bytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes the text.
pub fn serialize<S: Serializer>(bytes: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
    match bytes {
        None => to.serialize_none(),
        Some(bytes) => to.serialize_str(&::hex::encode(bytes)),
    }
}

/// Reads the text.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let bytes = ::hex::decode(text).map_err(|_| D::Error::custom("bytes must be pairs of hex digits"))?;
    Ok(Some(bytes.into()))
}

/// For fields that are never null.
pub mod never_null {
    use super::{Bytes, Deserializer, Error, Serializer};

    /// Writes the text.
    pub fn serialize<S: Serializer>(bytes: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        super::serialize(&Some(bytes.clone()), to)
    }

    /// Reads the text.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        super::deserialize(from)?.ok_or_else(|| D::Error::custom("these bytes cannot be null"))
    }
}
