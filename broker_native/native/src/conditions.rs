//! Conditions on keys, texts and bytes, from Python's values.
use std::collections::HashSet;

use super::error::{Failure, kind};
use pylog_columnar::KeyCondition;

/// `in`, `prefix` or `range`, and its keys; `None` among them is no key, or no bound.
pub type KeyTest = (String, Vec<Option<Vec<u8>>>);

/// One condition on keys, or on texts.
///
/// # Errors
/// `INVALID_ARGUMENT` for an unknown one.
pub fn condition((how, keys): KeyTest) -> Result<KeyCondition, Failure> {
    match (how.as_str(), &keys[..]) {
        ("in", _) => {
            let null = keys.contains(&None);
            Ok(KeyCondition::In { keys: keys.into_iter().flatten().collect::<HashSet<_>>(), null })
        }
        ("prefix", _) => Ok(KeyCondition::Prefix(keys.into_iter().flatten().collect())),
        ("range", [low, high]) => Ok(KeyCondition::Range { low: low.clone(), high: high.clone() }),
        _ => {
            let message = format!(
                "a condition on keys is 'in', 'prefix' or 'range' (with two keys), not {how:?} with {} keys",
                keys.len()
            );
            Err(Failure::new(kind::INVALID_ARGUMENT, message))
        }
    }
}
