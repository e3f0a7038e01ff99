//! Kafka's serializers of one number or text, whose names are those of its command line tools: numbers are big-endian, texts UTF-8.
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{
    Array, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, LargeStringArray, StringArray,
};

use crate::column::{Column, Values};
use crate::damage::Damage;

/// A serializer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    /// UTF-8; what is none is repaired, as Java does.
    String,
    /// 8 bytes.
    Long,
    /// 4 bytes.
    Integer,
    /// 2 bytes.
    Short,
    /// 4 bytes, IEEE 754.
    Float,
    /// 8 bytes, IEEE 754.
    Double,
}

/// Adds one value to `column`, or nothing when the bytes are no such value.
///
/// # Errors
/// What is wrong with it.
pub fn read(format: Plain, column: &mut Column, bytes: &[u8]) -> Result<(), Damage> {
    let of_other_size = || Damage::whole("has not the size of a number of its format");
    match (format, &mut column.values) {
        (Plain::String, Values::Bytes(..)) => {
            return column.push_bytes(String::from_utf8_lossy(bytes).as_bytes());
        }
        (Plain::Long, Values::I64(values)) => {
            values.push(i64::from_be_bytes(bytes.try_into().map_err(|_| of_other_size())?));
        }
        (Plain::Integer, Values::I32(values)) => {
            values.push(i32::from_be_bytes(bytes.try_into().map_err(|_| of_other_size())?));
        }
        (Plain::Short, Values::I16(values)) => {
            values.push(i16::from_be_bytes(bytes.try_into().map_err(|_| of_other_size())?));
        }
        (Plain::Float, Values::F32(values)) => {
            values.push(f32::from_be_bytes(bytes.try_into().map_err(|_| of_other_size())?));
        }
        (Plain::Double, Values::F64(values)) => {
            values.push(f64::from_be_bytes(bytes.try_into().map_err(|_| of_other_size())?));
        }
        _ => return Err(Damage::whole("has a format that does not fit its column's type")),
    }
    column.added();
    Ok(())
}

/// A column, ready to be written row by row.
pub enum Writer<'a> {
    /// Texts.
    Text(&'a StringArray),
    /// Texts with wide offsets.
    LargeText(&'a LargeStringArray),
    /// 8 bytes.
    Long(&'a Int64Array),
    /// 4 bytes.
    Integer(&'a Int32Array),
    /// 2 bytes.
    Short(&'a Int16Array),
    /// 4 bytes.
    Float(&'a Float32Array),
    /// 8 bytes.
    Double(&'a Float64Array),
}

impl<'a> Writer<'a> {
    /// A writer of `array`; `None` when the format is another type's.
    pub fn new(format: Plain, array: &'a dyn Array) -> Option<Self> {
        Some(match format {
            Plain::String => match array.as_string_opt::<i32>() {
                Some(array) => Self::Text(array),
                None => Self::LargeText(array.as_string_opt::<i64>()?),
            },
            Plain::Long => Self::Long(array.as_primitive_opt::<Int64Type>()?),
            Plain::Integer => Self::Integer(array.as_primitive_opt::<Int32Type>()?),
            Plain::Short => Self::Short(array.as_primitive_opt::<Int16Type>()?),
            Plain::Float => Self::Float(array.as_primitive_opt::<Float32Type>()?),
            Plain::Double => Self::Double(array.as_primitive_opt::<Float64Type>()?),
        })
    }

    /// Appends the value of a row that has one.
    pub fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Text(array) => out.extend_from_slice(array.value(row).as_bytes()),
            Self::LargeText(array) => out.extend_from_slice(array.value(row).as_bytes()),
            Self::Long(array) => out.extend_from_slice(&array.value(row).to_be_bytes()),
            Self::Integer(array) => out.extend_from_slice(&array.value(row).to_be_bytes()),
            Self::Short(array) => out.extend_from_slice(&array.value(row).to_be_bytes()),
            Self::Float(array) => out.extend_from_slice(&array.value(row).to_be_bytes()),
            Self::Double(array) => out.extend_from_slice(&array.value(row).to_be_bytes()),
        }
    }
}
