//! Topic ids as text: Kafka's form (22 characters of URL-safe base64), read also with hyphens.
use uuid::Uuid;

use crate::error::{ClientError, Result};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Characters of 16 bytes in base64 without padding.
const TEXT_LEN: usize = 22;
/// Bits that a base64 character carries.
const CHARACTER_BITS: u32 = 6;
/// Bits of the last character that stand after the 128 bits of the id.
const SPARE_BITS: u32 = TEXT_LEN as u32 * CHARACTER_BITS - u128::BITS;

/// Kafka's text of `id`; empty for the nil id, which stands for "none".
pub fn text(id: Uuid) -> String {
    if id.is_nil() {
        return String::new();
    }
    let bits = id.as_u128();
    let character = |index: u32| {
        // The first characters take the highest bits; the last takes the two that are left.
        let shift = u128::BITS.checked_sub((index + 1) * CHARACTER_BITS);
        let value = shift.map_or(bits << SPARE_BITS, |shift| bits >> shift) & 0x3f;
        ALPHABET.get(value as usize).map_or('?', |byte| char::from(*byte))
    };
    (0..TEXT_LEN as u32).map(character).collect()
}

/// The id of a text; nil for the empty text.
///
/// # Errors
/// `INVALID_ARGUMENT` when it is neither form.
pub fn parse(text: &str) -> Result<Uuid> {
    if text.is_empty() {
        return Ok(Uuid::nil());
    }
    let id = if text.len() == TEXT_LEN { from_base64(text) } else { Uuid::parse_str(text).ok() };
    id.ok_or_else(|| ClientError::invalid(format!("{text:?} is not a topic id")))
}

fn from_base64(text: &str) -> Option<Uuid> {
    let mut bits = 0_u128;
    for (index, byte) in text.bytes().enumerate() {
        let value = ALPHABET.iter().position(|known| *known == byte)? as u128;
        if index + 1 < TEXT_LEN {
            bits = bits << CHARACTER_BITS | value;
        } else {
            bits = bits << (CHARACTER_BITS - SPARE_BITS) | value >> SPARE_BITS;
        }
    }
    Some(Uuid::from_u128(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_id_agree_with_kafka_and_with_each_other() {
        // `kafka-storage format -t MkU3OEVBNTcwNTJENDM2Qk`: the bytes are the ASCII text below.
        let id = Uuid::from_bytes(*b"2E78EA57052D436B");
        assert_eq!(text(id), "MkU3OEVBNTcwNTJENDM2Qg");
        assert_eq!(parse("MkU3OEVBNTcwNTJENDM2Qg").unwrap(), id);
        for seed in 0..200_u128 {
            let id = Uuid::from_u128((u128::MAX / 7).wrapping_mul(seed + 1));
            assert_eq!(parse(&text(id)).unwrap(), id);
        }
        assert_eq!(parse(&id.to_string()).unwrap(), id);
    }

    #[test]
    fn nil_is_the_empty_text_and_nonsense_is_refused() {
        assert_eq!(text(Uuid::nil()), "");
        assert_eq!(parse("").unwrap(), Uuid::nil());
        assert!(parse("not an id").is_err());
        assert!(parse("MkU3OEVBNTcwNTJENDM2Q!").is_err());
    }
}
