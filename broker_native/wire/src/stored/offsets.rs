//! `__consumer_offsets`: a committed offset.
use bytes::Bytes;

use super::Stored;
use crate::error::WireError;
use crate::schema::messages;
use crate::writer::Writer;

/// The version of keys that are written.
const KEY: i16 = 1;
/// The version of values that are written, as by Kafka.
const VALUE: i16 = 3;
/// The version of values with a time of their own to expire at.
const VALUE_WITH_EXPIRY: i16 = 1;

messages! {
    /// Whose offset of what. Types 0 (of Kafka 0.8) and 1 are the same; 1 is written.
    OffsetCommitKey {
        group: String [0+],
        topic: String [0+],
        partition: i32 [0+],
    }

    /// The offset.
    OffsetCommitValue {
        offset: i64 [0+],
        leader_epoch: i32 [3+] = -1,
        metadata: String [0+],
        /// Milliseconds since the epoch.
        commit_timestamp: i64 [0+],
        /// Milliseconds since the epoch; -1: by the broker's retention.
        expire_timestamp: i64 [1-1] = -1,
    }
}

impl Stored for OffsetCommitKey {
    const NAME: &'static str = "OffsetCommitKey";
    const OLDEST: i16 = 0;
    const NEWEST: i16 = 1;
}

impl Stored for OffsetCommitValue {
    const NAME: &'static str = "OffsetCommitValue";
    const OLDEST: i16 = 0;
    const NEWEST: i16 = 4;
    const FLEXIBLE_FROM: i16 = 4;
}

/// As [`OffsetCommitKey`], from borrowed parts: the way of every commit.
///
/// # Errors
/// [`WireError::TooLong`].
pub fn commit_key(group: &str, topic: &str, partition: i32) -> Result<Bytes, WireError> {
    let mut writer = Writer::with_capacity(10 + group.len() + topic.len());
    writer.raw(&KEY.to_be_bytes());
    put_string(&mut writer, group)?;
    put_string(&mut writer, topic)?;
    writer.raw(&partition.to_be_bytes());
    Ok(writer.into_bytes())
}

/// As [`OffsetCommitValue`], from borrowed parts. A value with an `expire_timestamp` has no leader epoch.
///
/// # Errors
/// [`WireError::TooLong`].
pub fn commit_value(
    offset: i64,
    leader_epoch: i32,
    metadata: &str,
    commit_timestamp: i64,
    expire_timestamp: i64,
) -> Result<Bytes, WireError> {
    let mut writer = Writer::with_capacity(24 + metadata.len());
    let expires = expire_timestamp >= 0;
    writer.raw(&(if expires { VALUE_WITH_EXPIRY } else { VALUE }).to_be_bytes());
    writer.raw(&offset.to_be_bytes());
    if !expires {
        writer.raw(&leader_epoch.to_be_bytes());
    }
    put_string(&mut writer, metadata)?;
    writer.raw(&commit_timestamp.to_be_bytes());
    if expires {
        writer.raw(&expire_timestamp.to_be_bytes());
    }
    Ok(writer.into_bytes())
}

fn put_string(writer: &mut Writer, text: &str) -> Result<(), WireError> {
    writer.length(Some(text.len()), false, 2)?;
    writer.raw(text.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_writes_what_the_schema_says() {
        let key = OffsetCommitKey { group: "g".into(), topic: "täglich".into(), partition: 7 };
        assert_eq!(commit_key("g", "täglich", 7).unwrap(), key.to_bytes(1).unwrap());
        assert_eq!(OffsetCommitKey::from_bytes(&key.to_bytes(1).unwrap()).unwrap(), key);
        let plain = OffsetCommitValue {
            offset: 1 << 40,
            leader_epoch: 5,
            metadata: "why".into(),
            commit_timestamp: 1_700_000_000_000,
            expire_timestamp: -1,
        };
        let bytes = commit_value(1 << 40, 5, "why", 1_700_000_000_000, -1).unwrap();
        assert_eq!(bytes, plain.to_bytes(3).unwrap());
        assert_eq!(OffsetCommitValue::from_bytes(&bytes).unwrap(), plain);
        let expiring = OffsetCommitValue { leader_epoch: -1, expire_timestamp: 9, ..plain };
        let bytes = commit_value(1 << 40, 5, "why", 1_700_000_000_000, 9).unwrap();
        assert_eq!(bytes, expiring.to_bytes(1).unwrap());
        assert_eq!(OffsetCommitValue::from_bytes(&bytes).unwrap(), expiring);
    }

    #[test]
    fn values_with_tagged_fields_of_later_brokers_are_read() {
        let value = OffsetCommitValue {
            offset: 3,
            leader_epoch: 1,
            metadata: "m".into(),
            commit_timestamp: 4,
            expire_timestamp: -1,
        };
        let mut bytes = value.to_bytes(4).unwrap().to_vec();
        assert_eq!(bytes.pop(), Some(0), "no tagged field");
        bytes.extend([1, 0, 2, 0xaa, 0xbb]);
        assert_eq!(OffsetCommitValue::from_bytes(&bytes.into()).unwrap(), value);
        assert!(OffsetCommitValue::from_bytes(&Bytes::from_static(&[0, 5, 0])).is_err());
    }
}
