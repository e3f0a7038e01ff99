//! Which partition of an internal topic keeps a key: Java's `String.hashCode`, as clients' tools expect.

/// The partition of `key` among `partitions`; `None` when there are none.
pub fn partition_of(key: &str, partitions: i32) -> Option<i32> {
    let hash = key.encode_utf16().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()));
    // As Kafka's Utils.abs: the one number without a positive counterpart is 0.
    hash.checked_abs().unwrap_or(0).checked_rem(partitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_where_kafka_keeps_it() {
        assert_eq!(partition_of("a", 50), Some(97 % 50));
        assert_eq!(partition_of("ab", 50), Some((97 * 31 + 98) % 50));
        // "polygenelubricants".hashCode() is Integer.MIN_VALUE.
        assert_eq!(partition_of("polygenelubricants", 50), Some(0));
        assert_eq!(partition_of("polygenelubricants", 7), Some(0));
        // Two UTF-16 units.
        assert_eq!(partition_of("\u{1F600}", 50), Some((0xD83D * 31 + 0xDE00) % 50));
        assert_eq!(partition_of("a", 0), None);
    }
}
