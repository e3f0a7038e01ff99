//! A row of a struct -> JSON, as Spark's `to_json` writes it: fields that are null are left out, nulls in lists and maps are written.
use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{
    Array, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, ListArray, MapArray, StringArray,
    StructArray, TimestampMicrosecondArray,
};
use arrow_schema::DataType;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::text::{as_java, quoted};
use crate::column::UnknownType;
use crate::{decimal, time};

/// A column, ready to be written row by row.
pub struct Writer<'a> {
    array: &'a dyn Array,
    values: Values<'a>,
}

enum Values<'a> {
    Null,
    Bool(&'a BooleanArray),
    Byte(&'a Int8Array),
    Short(&'a Int16Array),
    Int(&'a Int32Array),
    Long(&'a Int64Array),
    Float(&'a Float32Array),
    Double(&'a Float64Array),
    Decimal(&'a Decimal128Array, i8),
    Text(&'a StringArray),
    LargeText(&'a LargeStringArray),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    Date(&'a Date32Array),
    Timestamp(&'a TimestampMicrosecondArray, &'static str),
    List(&'a ListArray, Box<Writer<'a>>),
    Map(&'a MapArray, &'a StringArray, Box<Writer<'a>>),
    /// Each field with its name as JSON writes it, colon and all.
    Struct(Vec<(Vec<u8>, Writer<'a>)>),
}

impl<'a> Writer<'a> {
    /// A writer of `array`, the column `name`.
    ///
    /// # Errors
    /// [`UnknownType`].
    pub fn new(name: &str, array: &'a dyn Array) -> Result<Self, UnknownType> {
        let unknown = || UnknownType { name: name.to_owned(), found: array.data_type().clone() };
        let values = match array.data_type() {
            DataType::Null => Values::Null,
            DataType::Boolean => Values::Bool(array.as_boolean()),
            DataType::Int8 => Values::Byte(array.as_primitive::<Int8Type>()),
            DataType::Int16 => Values::Short(array.as_primitive::<Int16Type>()),
            DataType::Int32 => Values::Int(array.as_primitive::<Int32Type>()),
            DataType::Int64 => Values::Long(array.as_primitive::<Int64Type>()),
            DataType::Float32 => Values::Float(array.as_primitive::<Float32Type>()),
            DataType::Float64 => Values::Double(array.as_primitive::<Float64Type>()),
            DataType::Decimal128(_, scale) => Values::Decimal(array.as_primitive::<Decimal128Type>(), *scale),
            DataType::Utf8 => Values::Text(array.as_string()),
            DataType::LargeUtf8 => Values::LargeText(array.as_string()),
            DataType::Binary => Values::Binary(array.as_binary()),
            DataType::LargeBinary => Values::LargeBinary(array.as_binary()),
            DataType::Date32 => Values::Date(array.as_primitive::<Date32Type>()),
            DataType::Timestamp(arrow_schema::TimeUnit::Microsecond, zone) => {
                let zone = if zone.is_some() { "Z" } else { "" };
                Values::Timestamp(array.as_primitive::<TimestampMicrosecondType>(), zone)
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Values::List(list, Box::new(Self::new(name, list.values().as_ref())?))
            }
            DataType::Map(..) => {
                let map = array.as_map();
                let keys = map.keys().as_string_opt::<i32>().ok_or_else(unknown)?;
                Values::Map(map, keys, Box::new(Self::new(name, map.values().as_ref())?))
            }
            DataType::Struct(_) => Values::Struct(Self::fields(array.as_struct())?),
            _ => return Err(unknown()),
        };
        Ok(Self { array, values })
    }

    fn fields(array: &'a StructArray) -> Result<Vec<(Vec<u8>, Self)>, UnknownType> {
        let columns = array.fields().iter().zip(array.columns());
        columns
            .map(|(field, column)| {
                let mut label = Vec::new();
                quoted(field.name(), &mut label);
                label.push(b':');
                Ok((label, Self::new(field.name(), column.as_ref())?))
            })
            .collect()
    }

    /// Whether there is a value in a row.
    #[inline]
    pub fn has(&self, row: usize) -> bool {
        self.array.is_valid(row) && !matches!(self.values, Values::Null)
    }

    /// Appends the value of a row that has one.
    pub fn write(&self, row: usize, out: &mut Vec<u8>) {
        match &self.values {
            Values::Null => out.extend_from_slice(b"null"),
            Values::Bool(array) => out.extend_from_slice(if array.value(row) { b"true" } else { b"false" }),
            Values::Byte(array) => number(array.value(row), out),
            Values::Short(array) => number(array.value(row), out),
            Values::Int(array) => number(array.value(row), out),
            Values::Long(array) => number(array.value(row), out),
            Values::Float(array) => {
                let value = array.value(row);
                float(value.into(), || as_java(value), out);
            }
            Values::Double(array) => {
                let value = array.value(row);
                float(value, || as_java(value), out);
            }
            Values::Decimal(array, scale) => {
                out.extend_from_slice(decimal::show(array.value(row), *scale).as_bytes());
            }
            Values::Text(array) => quoted(array.value(row), out),
            Values::LargeText(array) => quoted(array.value(row), out),
            Values::Binary(array) => quoted(&STANDARD.encode(array.value(row)), out),
            Values::LargeBinary(array) => quoted(&STANDARD.encode(array.value(row)), out),
            Values::Date(array) => quoted(&time::show_date(array.value(row).into()), out),
            Values::Timestamp(array, zone) => quoted(&time::show_timestamp(array.value(row), zone), out),
            Values::List(list, items) => {
                out.push(b'[');
                for (number, item) in range(list.value_offsets(), row).enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    items.write_or_null(item, out);
                }
                out.push(b']');
            }
            Values::Map(map, keys, values) => {
                out.push(b'{');
                for (number, item) in range(map.value_offsets(), row).enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    quoted(keys.value(item), out);
                    out.push(b':');
                    values.write_or_null(item, out);
                }
                out.push(b'}');
            }
            Values::Struct(fields) => {
                out.push(b'{');
                let mut is_first = true;
                for (label, field) in fields.iter().filter(|(_, field)| field.has(row)) {
                    if !std::mem::take(&mut is_first) {
                        out.push(b',');
                    }
                    out.extend_from_slice(label);
                    field.write(row, out);
                }
                out.push(b'}');
            }
        }
    }

    fn write_or_null(&self, row: usize, out: &mut Vec<u8>) {
        if self.has(row) { self.write(row, out) } else { out.extend_from_slice(b"null") }
    }
}

/// The items of a row of a list or map.
fn range(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    let at = |index: usize| offsets.get(index).map_or(0, |offset| *offset as usize);
    at(row)..at(row + 1)
}

fn number(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    // A vector takes all that is written.
    let _ = write!(out, "{value}");
}

fn float(value: f64, shown: impl FnOnce() -> String, out: &mut Vec<u8>) {
    if value.is_finite() {
        out.extend_from_slice(shown().as_bytes());
    } else {
        quoted(super::text::word(value), out);
    }
}
