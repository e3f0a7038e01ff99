//! Kafka's field types: how each is read and written.
//!
//! Integers are big-endian. In flexible versions (KIP-482) lengths are unsigned LEB128 of length + 1, 0 for null;
//! before, signed 16 bits for strings and 32 for bytes and arrays, -1 for null.
use bytes::Bytes;
use uuid::Uuid;

use super::error::WireError;
use super::reader::Reader;
use super::writer::Writer;

/// The version of the message being read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Its number.
    pub number: i16,
    /// Whether lengths are compact and tagged fields exist.
    pub flexible: bool,
}

/// A value that can be a field of a message.
pub trait Field: Sized {
    /// The fewest bytes it takes on the wire.
    fn min_bytes(version: Version) -> usize;
    /// Reads one.
    ///
    /// # Errors
    /// Any [`WireError`] but those of writing.
    fn read(reader: &mut Reader, version: Version) -> Result<Self, WireError>;
    /// Writes one.
    ///
    /// # Errors
    /// [`WireError::TooLong`], [`WireError::Null`].
    fn write(&self, writer: &mut Writer, version: Version) -> Result<(), WireError>;
}

/// A field type that has a null; `Option` of it is a field too.
pub trait Nullable: Field {
    /// Reads one; `None` stands for null.
    ///
    /// # Errors
    /// As [`Field::read`].
    fn read_nullable(reader: &mut Reader, version: Version) -> Result<Option<Self>, WireError>;
    /// Writes one, or null.
    ///
    /// # Errors
    /// As [`Field::write`].
    fn write_nullable(value: Option<&Self>, writer: &mut Writer, version: Version) -> Result<(), WireError>;
    /// The fewest bytes it takes on the wire, null included.
    fn min_bytes_nullable(version: Version) -> usize {
        Self::min_bytes(version)
    }
}

/// Whether a value is null; only `Option` fields can be.
pub trait IsNull {
    /// True for `None`.
    fn is_null(&self) -> bool;
}

impl<T> IsNull for Option<T> {
    fn is_null(&self) -> bool {
        self.is_none()
    }
}

impl<T: Nullable> Field for Option<T> {
    fn min_bytes(version: Version) -> usize {
        T::min_bytes_nullable(version)
    }
    #[inline]
    fn read(reader: &mut Reader, version: Version) -> Result<Self, WireError> {
        T::read_nullable(reader, version)
    }
    #[inline]
    fn write(&self, writer: &mut Writer, version: Version) -> Result<(), WireError> {
        T::write_nullable(self.as_ref(), writer, version)
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn min_bytes(_: Version) -> usize {
                size_of::<$type>()
            }
            #[inline]
            fn read(reader: &mut Reader, _: Version) -> Result<Self, WireError> {
                Ok(<$type>::from_be_bytes(reader.array()?))
            }
            #[inline]
            fn write(&self, writer: &mut Writer, _: Version) -> Result<(), WireError> {
                writer.raw(&self.to_be_bytes());
                Ok(())
            }
        }
    )*};
}
numbers!(i8, i16, u16, i32, u32, i64, f64);

impl Field for bool {
    fn min_bytes(_: Version) -> usize {
        1
    }
    #[inline]
    fn read(reader: &mut Reader, _: Version) -> Result<Self, WireError> {
        let [byte] = reader.array()?;
        Ok(byte != 0)
    }
    #[inline]
    fn write(&self, writer: &mut Writer, _: Version) -> Result<(), WireError> {
        writer.raw(&[u8::from(*self)]);
        Ok(())
    }
}

impl Field for Uuid {
    fn min_bytes(_: Version) -> usize {
        16
    }
    #[inline]
    fn read(reader: &mut Reader, _: Version) -> Result<Self, WireError> {
        Ok(Self::from_bytes(reader.array()?))
    }
    #[inline]
    fn write(&self, writer: &mut Writer, _: Version) -> Result<(), WireError> {
        writer.raw(self.as_bytes());
        Ok(())
    }
}

/// A value that must not be null was; the reader stands after its length, which takes at least one byte.
#[cold]
fn null_length(reader: &Reader) -> WireError {
    WireError::Length { at: reader.position().saturating_sub(1), claimed: -1, left: reader.left() }
}

/// Reads and writes a type with a null by its nullable form.
macro_rules! not_null {
    () => {
        #[inline]
        fn read(reader: &mut Reader, version: Version) -> Result<Self, WireError> {
            Self::read_nullable(reader, version)?.ok_or_else(|| null_length(reader))
        }
        #[inline]
        fn write(&self, writer: &mut Writer, version: Version) -> Result<(), WireError> {
            Self::write_nullable(Some(self), writer, version)
        }
    };
}

impl Field for String {
    fn min_bytes(version: Version) -> usize {
        if version.flexible { 1 } else { 2 }
    }
    not_null!();
}

impl Nullable for String {
    #[inline]
    fn read_nullable(reader: &mut Reader, version: Version) -> Result<Option<Self>, WireError> {
        reader.string(version.flexible)
    }
    #[inline]
    fn write_nullable(value: Option<&Self>, writer: &mut Writer, version: Version) -> Result<(), WireError> {
        writer.length(value.map(String::len), version.flexible, 2)?;
        writer.raw(value.map(String::as_bytes).unwrap_or_default());
        Ok(())
    }
}

impl Field for Bytes {
    fn min_bytes(version: Version) -> usize {
        if version.flexible { 1 } else { 4 }
    }
    not_null!();
}

impl Nullable for Bytes {
    #[inline]
    fn read_nullable(reader: &mut Reader, version: Version) -> Result<Option<Self>, WireError> {
        reader.bytes(version.flexible)
    }
    #[inline]
    fn write_nullable(value: Option<&Self>, writer: &mut Writer, version: Version) -> Result<(), WireError> {
        writer.bytes(value, version.flexible)
    }
}

impl<T: Field> Field for Vec<T> {
    fn min_bytes(version: Version) -> usize {
        if version.flexible { 1 } else { 4 }
    }
    not_null!();
}

impl<T: Field> Nullable for Vec<T> {
    #[inline]
    fn read_nullable(reader: &mut Reader, version: Version) -> Result<Option<Self>, WireError> {
        let Some(count) = reader.count(version.flexible, T::min_bytes(version), size_of::<T>())? else {
            return Ok(None);
        };
        let mut elements = Self::with_capacity(count);
        for _ in 0..count {
            elements.push(T::read(reader, version)?);
        }
        Ok(Some(elements))
    }
    #[inline]
    fn write_nullable(value: Option<&Self>, writer: &mut Writer, version: Version) -> Result<(), WireError> {
        writer.length(value.map(Vec::len), version.flexible, 4)?;
        for element in value.into_iter().flatten() {
            element.write(writer, version)?;
        }
        Ok(())
    }
}

/// Bytes of a struct that is null: its marker alone.
pub(super) const NULL_STRUCT_BYTES: usize = 1;
/// Marker of a struct that is there; a null one has a negative marker (KIP-893).
const STRUCT_IS_THERE: i8 = 1;
const STRUCT_IS_NULL: i8 = -1;

/// Reads a struct behind its marker.
pub(super) fn read_nullable_struct<T: Field>(
    reader: &mut Reader,
    version: Version,
) -> Result<Option<T>, WireError> {
    let marker = i8::read(reader, version)?;
    if marker < 0 { Ok(None) } else { T::read(reader, version).map(Some) }
}

/// Writes a struct behind its marker.
pub(super) fn write_nullable_struct<T: Field>(
    value: Option<&T>,
    writer: &mut Writer,
    version: Version,
) -> Result<(), WireError> {
    match value {
        None => STRUCT_IS_NULL.write(writer, version),
        Some(value) => {
            STRUCT_IS_THERE.write(writer, version)?;
            value.write(writer, version)
        }
    }
}
