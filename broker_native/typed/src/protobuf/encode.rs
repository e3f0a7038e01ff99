//! A row of a struct -> a message, as Spark's `to_protobuf` writes it: fields by their numbers, and none for what is null.
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{Array, PrimitiveArray, StructArray};
use arrow_schema::{DataType, TimeUnit};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use std::collections::HashMap;

use super::descriptor::{indexes, is_seconds_and_nanos};
use super::plan::is_wrapper;
use super::{Prefix, Protobuf, places};

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const FIXED32: u32 = 5;

/// Writes rows of a struct as keys or values.
pub struct Writer<'a> {
    before: Vec<u8>,
    rows: Rows<'a>,
}

impl<'a> Writer<'a> {
    /// A writer of `array` as keys or values.
    ///
    /// # Errors
    /// Why the columns cannot be written as the message, in a sentence.
    pub fn new(protobuf: &Protobuf, array: &'a StructArray) -> Result<Self, String> {
        let mut before = Vec::new();
        match protobuf.prefix {
            Prefix::None => {}
            Prefix::Registered(Some(id)) => places::put(id, &indexes(&protobuf.message), &mut before),
            Prefix::Given | Prefix::Registered(None) => {
                return Err("messages begin with the id of a schema, and there is none to write".to_owned());
            }
        }
        Ok(Self { before, rows: Rows::of(&protobuf.message, array)? })
    }

    /// Appends the key or value of a row.
    ///
    /// # Errors
    /// What of the row cannot be written, in a sentence.
    pub fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), String> {
        out.extend_from_slice(&self.before);
        self.rows.write(row, out)
    }
}

/// Writes rows of a struct as messages.
struct Rows<'a> {
    fields: Vec<Field<'a>>,
}

/// One field and the column that it is made of.
struct Field<'a> {
    name: String,
    number: u32,
    array: &'a dyn Array,
    /// What stands for null.
    if_null: Option<Vec<u8>>,
    put: Put<'a>,
}

enum Put<'a> {
    Nothing,
    One { value: Value<'a>, implicit: bool },
    Items { offsets: &'a [i32], value: Value<'a>, items: &'a dyn Array, packed: bool },
    Map { offsets: &'a [i32], key: Box<Field<'a>>, value: Box<Field<'a>> },
}

enum Value<'a> {
    Number {
        bits: Box<dyn Fn(usize) -> Result<u64, String> + 'a>,
        layout: u32,
    },
    Bytes(Box<dyn Fn(usize) -> &'a [u8] + 'a>),
    /// Microseconds, and whether they are a point in time.
    Micros(&'a [i64], bool),
    Message(Rows<'a>),
    Wrapped(Box<Value<'a>>),
}

impl<'a> Rows<'a> {
    fn of(message: &MessageDescriptor, array: &'a StructArray) -> Result<Self, String> {
        let mut fields = Vec::with_capacity(array.num_columns());
        for (column, values) in array.fields().iter().zip(array.columns()) {
            let field = message.get_field_by_name(column.name()).ok_or_else(|| {
                format!("the message {} has no field {}", message.full_name(), column.name())
            })?;
            fields.push(Field::of(&field, values.as_ref())?);
        }
        let missing = message
            .fields()
            .find(|field| field.is_required() && array.column_by_name(field.name()).is_none());
        if let Some(field) = missing {
            return Err(format!(
                "the field {} is required, and there is no column for it",
                field.full_name()
            ));
        }
        fields.sort_by_key(|field| field.number);
        Ok(Self { fields })
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), String> {
        self.fields.iter().try_for_each(|field| field.write(row, out))
    }
}

impl<'a> Field<'a> {
    fn of(field: &FieldDescriptor, array: &'a dyn Array) -> Result<Self, String> {
        let misfit = || misfit(field, array.data_type());
        if field.is_group() {
            return Err(format!("the field {} is a group, which is not written", field.full_name()));
        }
        let put = if *array.data_type() == DataType::Null {
            Put::Nothing
        } else if field.is_map() {
            let (Kind::Message(entry), Some(map)) = (field.kind(), array.as_map_opt()) else {
                return Err(misfit());
            };
            let key = Self::of(&entry.map_entry_key_field(), map.keys().as_ref())?;
            let value = Self::of(&entry.map_entry_value_field(), map.values().as_ref())?;
            Put::Map {
                offsets: map.value_offsets(),
                key: Box::new(key.always()),
                value: Box::new(value.always()),
            }
        } else if field.is_list() {
            let list = array.as_list_opt::<i32>().ok_or_else(misfit)?;
            let items = list.values().as_ref();
            let value = Value::of(field, items)?;
            let packed = field.is_packed() && matches!(value, Value::Number { .. });
            Put::Items { offsets: list.value_offsets(), value, items, packed }
        } else {
            Put::One { value: Value::of(field, array)?, implicit: !field.supports_presence() }
        };
        let mut made =
            Self { name: field.name().to_owned(), number: field.number(), array, if_null: None, put };
        if field.is_required() && !matches!(field.kind(), Kind::Message(_)) {
            made.if_null = Some(default_of(field)?);
        }
        Ok(made)
    }

    /// A field that is written also when it is the default.
    fn always(mut self) -> Self {
        if let Put::One { implicit, .. } = &mut self.put {
            *implicit = false;
        }
        self
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), String> {
        if self.array.is_null(row) {
            out.extend_from_slice(self.if_null.as_deref().unwrap_or_default());
            return Ok(());
        }
        match &self.put {
            Put::Nothing => Ok(()),
            Put::One { value, implicit } => value.field(self.number, row, *implicit, out),
            Put::Items { offsets, value, items, packed } => {
                let rows = range(offsets, row);
                if let Some(null) = rows.clone().find(|item| items.is_null(*item)) {
                    let at = null - rows.start;
                    return Err(format!(
                        "the list {} has a null (item {at}), which a message cannot hold",
                        self.name
                    ));
                }
                if !*packed {
                    return rows.into_iter().try_for_each(|item| value.field(self.number, item, false, out));
                }
                if rows.is_empty() {
                    return Ok(());
                }
                key(self.number, BYTES, out);
                sized(out, |out| rows.into_iter().try_for_each(|item| value.bare(item, out)))
            }
            Put::Map { offsets, key: of_key, value } => {
                for entry in range(offsets, row) {
                    key(self.number, BYTES, out);
                    sized(out, |out| {
                        of_key.write(entry, out)?;
                        value.write(entry, out)
                    })?;
                }
                Ok(())
            }
        }
    }
}

impl<'a> Value<'a> {
    fn of(field: &FieldDescriptor, array: &'a dyn Array) -> Result<Self, String> {
        let misfit = || misfit(field, array.data_type());
        if let Kind::Message(message) = field.kind() {
            return Ok(match array.data_type() {
                DataType::Timestamp(TimeUnit::Microsecond, _)
                    if is_seconds_and_nanos(&message, "Timestamp") =>
                {
                    Self::Micros(array.as_primitive::<TimestampMicrosecondType>().values(), true)
                }
                DataType::Duration(TimeUnit::Microsecond) if is_seconds_and_nanos(&message, "Duration") => {
                    Self::Micros(array.as_primitive::<DurationMicrosecondType>().values(), false)
                }
                DataType::Struct(_) => Self::Message(Rows::of(&message, array.as_struct())?),
                _ if is_wrapper(&message) => {
                    let value = message.get_field(1).ok_or_else(misfit)?;
                    Self::Wrapped(Box::new(Self::of(&value, array).map_err(|_| misfit())?))
                }
                _ => return Err(misfit()),
            });
        }
        Ok(match (field.kind(), array.data_type()) {
            (Kind::String, DataType::Utf8) => {
                let array = array.as_string::<i32>();
                Self::Bytes(Box::new(|row| array.value(row).as_bytes()))
            }
            (Kind::String, DataType::LargeUtf8) => {
                let array = array.as_string::<i64>();
                Self::Bytes(Box::new(|row| array.value(row).as_bytes()))
            }
            (Kind::Bytes, DataType::Binary) => {
                let array = array.as_binary::<i32>();
                Self::Bytes(Box::new(|row| array.value(row)))
            }
            (Kind::Bytes, DataType::LargeBinary) => {
                let array = array.as_binary::<i64>();
                Self::Bytes(Box::new(|row| array.value(row)))
            }
            (kind, _) => {
                let layout = match kind {
                    Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => FIXED32,
                    Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => FIXED64,
                    _ => VARINT,
                };
                Self::Number { bits: bits(field, array).ok_or_else(misfit)?, layout }
            }
        })
    }

    /// Appends the value with its tag; with `implicit` not the default.
    fn field(&self, number: u32, row: usize, implicit: bool, out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Self::Number { bits, layout } => {
                let bits = bits(row)?;
                if !(implicit && bits == 0) {
                    key(number, *layout, out);
                    put_bits(bits, *layout, out);
                }
                Ok(())
            }
            Self::Bytes(bytes) => {
                let bytes = bytes(row);
                if !(implicit && bytes.is_empty()) {
                    key(number, BYTES, out);
                    varint(bytes.len() as u64, out);
                    out.extend_from_slice(bytes);
                }
                Ok(())
            }
            Self::Micros(micros, is_point) => {
                let micros = micros.get(row).copied().unwrap_or_default();
                key(number, BYTES, out);
                sized(out, |out| {
                    // The nanoseconds of a point in time are never below zero, those of a span have its sign.
                    let (seconds, rest) = match is_point {
                        true => (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000)),
                        false => (micros / 1_000_000, micros % 1_000_000),
                    };
                    for (number, part) in
                        [(1, seconds), (2, rest * 1000)].into_iter().filter(|(_, part)| *part != 0)
                    {
                        key(number, VARINT, out);
                        varint(part as u64, out);
                    }
                    Ok(())
                })
            }
            Self::Message(writer) => {
                key(number, BYTES, out);
                sized(out, |out| writer.write(row, out))
            }
            Self::Wrapped(value) => {
                key(number, BYTES, out);
                sized(out, |out| value.field(1, row, true, out))
            }
        }
    }

    /// Appends a packed value.
    fn bare(&self, row: usize, out: &mut Vec<u8>) -> Result<(), String> {
        if let Self::Number { bits, layout } = self {
            put_bits(bits(row)?, *layout, out);
        }
        Ok(())
    }
}

type Bits<'a> = Box<dyn Fn(usize) -> Result<u64, String> + 'a>;

/// The bits of a number as they are written; `None` where the column's type is not the field's.
fn bits<'a>(field: &FieldDescriptor, array: &'a dyn Array) -> Option<Bits<'a>> {
    let kind = field.kind();
    if let (Kind::Enum(found), Some(texts)) = (&kind, array.as_string_opt::<i32>()) {
        let numbers: HashMap<String, i32> =
            found.values().map(|value| (value.name().to_owned(), value.number())).collect();
        let name = field.full_name().to_owned();
        return Some(Box::new(move |row| {
            let text = texts.value(row);
            let number = numbers.get(text).ok_or_else(|| format!("the enum of {name} has no {text:?}"))?;
            Ok(i64::from(*number) as u64)
        }));
    }
    match (&kind, array.data_type()) {
        (Kind::Bool, DataType::Boolean) => {
            let array = array.as_boolean();
            return Some(Box::new(|row| Ok(u64::from(array.value(row)))));
        }
        (Kind::Float, DataType::Float32) => {
            let array = array.as_primitive::<Float32Type>();
            return Some(Box::new(|row| Ok(u64::from(array.value(row).to_bits()))));
        }
        (Kind::Double, DataType::Float64) => {
            let array = array.as_primitive::<Float64Type>();
            return Some(Box::new(|row| Ok(array.value(row).to_bits())));
        }
        _ => {}
    }
    let (number, is_long) = integer(array)?;
    let name = field.full_name().to_owned();
    Some(match kind {
        Kind::Int32 | Kind::Sfixed32 if !is_long => Box::new(move |row| Ok(number(row) as i64 as u64)),
        Kind::Enum(_) if !is_long => Box::new(move |row| Ok(number(row) as i64 as u64)),
        Kind::Sint32 if !is_long => Box::new(move |row| Ok(zigzag(number(row) as i64))),
        Kind::Uint32 | Kind::Fixed32 => Box::new(move |row| {
            let value = number(row);
            // An INT is the bits, as it is read.
            let value = if is_long { u32::try_from(value) } else { Ok(value as u32) };
            value
                .map(u64::from)
                .map_err(|_| format!("the value of {name} does not fit into 32 bits without a sign"))
        }),
        Kind::Int64 | Kind::Sfixed64 if is_long => Box::new(move |row| Ok(number(row) as i64 as u64)),
        Kind::Sint64 if is_long => Box::new(move |row| Ok(zigzag(number(row) as i64))),
        Kind::Uint64 | Kind::Fixed64 if is_long => Box::new(move |row| {
            let value = number(row);
            let value = if value < 0 && value >= i128::from(i64::MIN) {
                Ok(value as i64 as u64)
            } else {
                u64::try_from(value)
            };
            value.map_err(|_| format!("the value of {name} does not fit into 64 bits without a sign"))
        }),
        _ => return None,
    })
}

type Integer<'a> = Box<dyn Fn(usize) -> i128 + 'a>;

/// A column's integers, and whether they are long; `None` for what are none.
fn integer(array: &dyn Array) -> Option<(Integer<'_>, bool)> {
    fn of<T: arrow_array::ArrowPrimitiveType<Native: Into<i128>>>(array: &PrimitiveArray<T>) -> Integer<'_> {
        Box::new(|row| array.value(row).into())
    }
    Some(match array.data_type() {
        DataType::Int8 => (of(array.as_primitive::<Int8Type>()), false),
        DataType::Int16 => (of(array.as_primitive::<Int16Type>()), false),
        DataType::Int32 => (of(array.as_primitive::<Int32Type>()), false),
        DataType::Date32 => (of(array.as_primitive::<Date32Type>()), false),
        DataType::Int64 => (of(array.as_primitive::<Int64Type>()), true),
        DataType::Decimal128(20, 0) => (of(array.as_primitive::<Decimal128Type>()), true),
        _ => return None,
    })
}

/// The default of a required field, with its tag.
fn default_of(field: &FieldDescriptor) -> Result<Vec<u8>, String> {
    use prost_reflect::Value as Said;
    let mut out = Vec::new();
    let (number, kind) = (field.number(), field.kind());
    let layout = match kind {
        Kind::Fixed32 | Kind::Sfixed32 | Kind::Float => FIXED32,
        Kind::Fixed64 | Kind::Sfixed64 | Kind::Double => FIXED64,
        Kind::String | Kind::Bytes => BYTES,
        _ => VARINT,
    };
    key(number, layout, &mut out);
    let mut bytes = |bytes: &[u8]| {
        varint(bytes.len() as u64, &mut out);
        out.extend_from_slice(bytes);
    };
    let bits = match field.default_value() {
        Said::String(text) => {
            bytes(text.as_bytes());
            return Ok(out);
        }
        Said::Bytes(said) => {
            bytes(&said);
            return Ok(out);
        }
        Said::Bool(value) => u64::from(value),
        Said::I32(value) if kind == Kind::Sint32 => zigzag(value.into()),
        Said::I32(value) | Said::EnumNumber(value) => i64::from(value) as u64,
        Said::I64(value) if kind == Kind::Sint64 => zigzag(value),
        Said::I64(value) => value as u64,
        Said::U32(value) => value.into(),
        Said::U64(value) => value,
        Said::F32(value) => value.to_bits().into(),
        Said::F64(value) => value.to_bits(),
        _ => return Err(format!("the field {} is required and has no default", field.full_name())),
    };
    put_bits(bits, layout, &mut out);
    Ok(out)
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn put_bits(bits: u64, layout: u32, out: &mut Vec<u8>) {
    match layout {
        FIXED32 => out.extend_from_slice(&(bits as u32).to_le_bytes()),
        FIXED64 => out.extend_from_slice(&bits.to_le_bytes()),
        _ => varint(bits, out),
    }
}

fn key(number: u32, layout: u32, out: &mut Vec<u8>) {
    varint(u64::from(number << 3 | layout), out);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends what `inner` does behind its length.
fn sized(out: &mut Vec<u8>, inner: impl FnOnce(&mut Vec<u8>) -> Result<(), String>) -> Result<(), String> {
    let at = out.len();
    out.push(0);
    inner(out)?;
    let mut length = Vec::with_capacity(5);
    varint((out.len() - at - 1) as u64, &mut length);
    out.splice(at..=at, length);
    Ok(())
}

/// The items of a row of a list or map.
fn range(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    let at = |index: usize| offsets.get(index).map_or(0, |offset| *offset as usize);
    at(row)..at(row + 1)
}

fn misfit(field: &FieldDescriptor, found: &DataType) -> String {
    format!(
        "the field {} ({:?}) cannot be made of a column of the type {found}",
        field.full_name(),
        field.kind()
    )
}
