//! What Kafka's coordinators store in their internal topics: keys and values of records, declared like messages.
//!
//! A key or value is its schema's version (i16), then the fields; a version is flexible (compact lengths, tagged fields)
//! from [`Stored::FLEXIBLE_FROM`] on. Kafka's key "versions" are numbers of record types.
//!
//! Layouts: group-coordinator, share-coordinator and transaction-coordinator, `src/main/resources/common/message/*.json`.
use bytes::Bytes;

use super::error::WireError;
use super::field::{Field, Version};
use super::reader::Reader;
use super::writer::Writer;

pub mod consumer_groups;
pub mod group_metadata;
pub mod offsets;
pub mod share_groups;
pub mod shares;
pub mod transactions;

/// The version's own bytes are never flexible.
const PLAIN: Version = Version { number: 0, flexible: false };

/// A key or a value.
pub trait Stored: Field {
    /// Kafka's name of it.
    const NAME: &'static str;
    /// Oldest version that is read.
    const OLDEST: i16;
    /// Newest version that is read.
    const NEWEST: i16;
    /// First version with compact lengths and tagged fields; `i16::MAX` for none.
    const FLEXIBLE_FROM: i16 = i16::MAX;

    /// The bytes of version `number`.
    ///
    /// # Errors
    /// [`WireError::Version`], [`WireError::Null`], [`WireError::TooLong`].
    fn to_bytes(&self, number: i16) -> Result<Bytes, WireError> {
        let version = layout::<Self>(number)?;
        let mut writer = Writer::with_capacity(64);
        number.write(&mut writer, PLAIN)?;
        self.write(&mut writer, version)?;
        Ok(writer.into_bytes())
    }

    /// Reads the version and the fields.
    ///
    /// # Errors
    /// Any [`WireError`] but those of writing; [`WireError::Version`] for a version that is not known here.
    fn from_bytes(bytes: &Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes.clone());
        let version = layout::<Self>(i16::read(&mut reader, PLAIN)?)?;
        let value = Self::read(&mut reader, version)?;
        reader.finish()?;
        Ok(value)
    }
}

fn layout<T: Stored>(number: i16) -> Result<Version, WireError> {
    if number < T::OLDEST || number > T::NEWEST {
        return Err(WireError::Version { message: T::NAME, version: number, min: T::OLDEST, max: T::NEWEST });
    }
    Ok(Version { number, flexible: number >= T::FLEXIBLE_FROM })
}

/// A record's value in version `number`; without one the record deletes its key.
///
/// # Errors
/// Those of [`Stored::to_bytes`].
pub fn value_bytes<T: Stored>(value: Option<T>, number: i16) -> Result<Option<Bytes>, WireError> {
    value.map(|value| value.to_bytes(number)).transpose()
}

/// Reads what [`value_bytes`] gives.
///
/// # Errors
/// Those of [`Stored::from_bytes`].
pub fn read_value<T: Stored>(value: Option<&Bytes>) -> Result<Option<T>, WireError> {
    value.map(T::from_bytes).transpose()
}

/// The record type of a key, and its first field, which names the group or the transactional id in every type.
///
/// # Errors
/// [`WireError::Truncated`], [`WireError::Length`], [`WireError::Utf8`].
pub fn type_and_name(key: &Bytes) -> Result<(i16, String), WireError> {
    let mut reader = Reader::new(key.clone());
    let number = i16::read(&mut reader, PLAIN)?;
    Ok((number, String::read(&mut reader, PLAIN)?))
}
