//! Byte fields in JSON: lower-case hexadecimal text, or null.
use bytes::Bytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Writes the text.
pub fn serialize<S: Serializer>(bytes: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).map_or('0', |&c| char::from(c));
    match bytes {
        None => to.serialize_none(),
        Some(bytes) => {
            to.serialize_str(&bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect::<String>())
        }
    }
}

/// Reads the text.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
    let nibble = |c: &u8| char::from(*c).to_digit(16).map(|v| v as u8);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(nibble(high)? << 4 | nibble(low)?),
        _ => None,
    };
    let bytes = text.as_bytes().chunks(2).map(pair).collect::<Option<Vec<u8>>>();
    bytes
        .map(|bytes| Some(Bytes::from(bytes)))
        .ok_or_else(|| D::Error::custom("bytes must be pairs of hex digits"))
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
