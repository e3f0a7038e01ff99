//! Topic ids as text: Kafka's form (22 characters of URL-safe base64), read also with hyphens.
use base64::alphabet;
use base64::engine::general_purpose::NO_PAD;
use base64::engine::{Engine, GeneralPurpose};
use uuid::Uuid;

use crate::error::{ClientError, Result};

/// Characters of 16 bytes in base64 without padding.
const TEXT_LEN: usize = 22;
/// Kafka's form of ids. The last 4 bits of the text mean nothing.
const IDS: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// Kafka's text of `id`; empty for the nil id, which stands for "none".
pub fn text(id: Uuid) -> String {
    if id.is_nil() { String::new() } else { IDS.encode(id.as_bytes()) }
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
    Uuid::from_slice(&IDS.decode(text).ok()?).ok()
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
