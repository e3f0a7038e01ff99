//! A column while it is built: it grows value by value, forgets the last ones ([`Column::truncate`]), and becomes an Arrow array.
//!
//! Arrow's own builders cannot forget, which a record needs that is damaged behind its first fields. Room: a record can hold empty objects
//! of three bytes each for a list of structs with hundreds of fields, so that what it becomes is bounded by [`Room`], not by its bytes.
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DurationMicrosecondArray,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, ListArray, MapArray,
    NullArray, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, TimeUnit};

use crate::damage::Damage;

/// Most values of one Arrow batch in lists and maps, each struct there counted with all its fields.
pub const MAX_CELLS: usize = 32 * 1024 * 1024;

/// What lists and maps of a batch may still grow by.
#[derive(Debug)]
pub struct Room {
    pub(crate) left: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { left: MAX_CELLS }
    }
}

impl Room {
    /// Takes room for one more item of `column`.
    ///
    /// # Errors
    /// When there is none.
    #[inline]
    pub fn take(&mut self, column: &Column) -> Result<(), Damage> {
        self.take_many(column, 1)
    }

    /// Takes room for `count` more items of `column`.
    ///
    /// # Errors
    /// When there is none.
    #[inline]
    pub fn take_many(&mut self, column: &Column, count: usize) -> Result<(), Damage> {
        let left = count.checked_mul(column.cells).and_then(|cells| self.left.checked_sub(cells));
        self.left = left.ok_or_else(|| Damage::whole("opens to more values than a batch may have"))?;
        Ok(())
    }
}

/// A type of Spark's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `void`.
    Null,
    /// `boolean`.
    Bool,
    /// `tinyint`.
    Byte,
    /// `smallint`.
    Short,
    /// `int`.
    Int,
    /// `bigint`.
    Long,
    /// `float`.
    Float,
    /// `double`.
    Double,
    /// `decimal(precision, scale)`.
    Decimal(u8, i8),
    /// `string`.
    Text,
    /// `binary`.
    Binary,
    /// `date`.
    Date,
    /// `timestamp`.
    Timestamp,
    /// `timestamp_ntz`.
    TimestampNtz,
    /// `interval day to second`.
    Duration,
    /// `array`.
    List,
    /// `map`.
    Map,
    /// `struct`.
    Struct,
}

/// A type that typed reads do not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {name} has a type that typed reads and writes do not know ({found})")]
pub struct UnknownType {
    /// The field.
    pub name: String,
    /// Arrow's type.
    pub found: DataType,
}

/// A column being built.
#[derive(Debug)]
pub struct Column {
    /// Its type.
    pub kind: Kind,
    data_type: DataType,
    /// Values that one item adds, in all columns below.
    cells: usize,
    valid: Vec<bool>,
    /// Where its values are.
    pub values: Values,
}

/// The values of a column; a null has some value here, too.
#[derive(Debug)]
pub enum Values {
    /// None.
    Null,
    /// Booleans.
    Bool(Vec<bool>),
    /// 8 bits.
    I8(Vec<i8>),
    /// 16 bits.
    I16(Vec<i16>),
    /// 32 bits; days.
    I32(Vec<i32>),
    /// 64 bits; microseconds.
    I64(Vec<i64>),
    /// Single floats.
    F32(Vec<f32>),
    /// Double floats.
    F64(Vec<f64>),
    /// Decimals without their point.
    I128(Vec<i128>),
    /// Texts and bytes.
    Bytes(Ends, Vec<u8>),
    /// Lists.
    List(Ends, Box<Column>),
    /// Maps: keys and values.
    Map(Ends, Box<Column>, Box<Column>),
    /// Structs.
    Struct(Names, Vec<Column>),
}

/// Arrow's offsets: 0, then the end of each value.
#[derive(Debug)]
pub struct Ends(Vec<i32>);

impl Ends {
    fn new() -> Self {
        Self(vec![0])
    }

    fn last(&self) -> usize {
        self.0.last().map_or(0, |end| *end as usize)
    }

    #[inline]
    fn push(&mut self, end: usize) -> Result<(), Damage> {
        let end = i32::try_from(end).map_err(|_| Damage::whole("makes a column larger than 2 GiB"))?;
        self.0.push(end);
        Ok(())
    }

    fn repeat(&mut self) {
        self.0.push(self.0.last().copied().unwrap_or(0));
    }

    fn take(&mut self) -> OffsetBuffer<i32> {
        OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(&mut self.0, vec![0])))
    }
}

/// The names of a struct's fields.
#[derive(Debug)]
pub struct Names(Vec<Box<[u8]>>);

impl Names {
    /// The number of the field with this name. Objects mostly name fields in the same order: `guess` is looked at first, and becomes the
    /// number behind the one that is found.
    #[inline]
    pub fn find(&self, name: &[u8], guess: &mut usize) -> Option<usize> {
        let found = match self.0.get(*guess) {
            Some(next) if **next == *name => Some(*guess),
            _ => self.0.iter().position(|known| **known == *name),
        };
        if let Some(found) = found {
            *guess = found + 1;
        }
        found
    }

    /// The name of a field.
    pub fn name(&self, index: usize) -> String {
        self.0.get(index).map_or(String::new(), |name| String::from_utf8_lossy(name).into_owned())
    }
}

impl Column {
    /// An empty column for `field`.
    ///
    /// # Errors
    /// [`UnknownType`].
    pub fn new(field: &Field) -> Result<Self, UnknownType> {
        let unknown = || UnknownType { name: field.name().clone(), found: field.data_type().clone() };
        let (kind, values) = match field.data_type() {
            DataType::Null => (Kind::Null, Values::Null),
            DataType::Boolean => (Kind::Bool, Values::Bool(Vec::new())),
            DataType::Int8 => (Kind::Byte, Values::I8(Vec::new())),
            DataType::Int16 => (Kind::Short, Values::I16(Vec::new())),
            DataType::Int32 => (Kind::Int, Values::I32(Vec::new())),
            DataType::Int64 => (Kind::Long, Values::I64(Vec::new())),
            DataType::Float32 => (Kind::Float, Values::F32(Vec::new())),
            DataType::Float64 => (Kind::Double, Values::F64(Vec::new())),
            DataType::Decimal128(precision, scale) => {
                (Kind::Decimal(*precision, *scale), Values::I128(Vec::new()))
            }
            DataType::Utf8 => (Kind::Text, Values::Bytes(Ends::new(), Vec::new())),
            DataType::Binary => (Kind::Binary, Values::Bytes(Ends::new(), Vec::new())),
            DataType::Date32 => (Kind::Date, Values::I32(Vec::new())),
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => (Kind::Timestamp, Values::I64(Vec::new())),
            DataType::Timestamp(TimeUnit::Microsecond, None) => (Kind::TimestampNtz, Values::I64(Vec::new())),
            DataType::Duration(TimeUnit::Microsecond) => (Kind::Duration, Values::I64(Vec::new())),
            DataType::List(item) => (Kind::List, Values::List(Ends::new(), Box::new(Self::new(item)?))),
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(parts) => match parts.as_ref() {
                    [key, value] if !key.data_type().is_nested() => {
                        let (key, value) = (Box::new(Self::new(key)?), Box::new(Self::new(value)?));
                        (Kind::Map, Values::Map(Ends::new(), key, value))
                    }
                    _ => return Err(unknown()),
                },
                _ => return Err(unknown()),
            },
            DataType::Struct(fields) => (Kind::Struct, Self::fields(fields)?),
            _ => return Err(unknown()),
        };
        let cells = match &values {
            Values::Struct(_, fields) => 1 + fields.iter().map(|field| field.cells).sum::<usize>(),
            _ => 1,
        };
        Ok(Self { kind, data_type: field.data_type().clone(), cells, valid: Vec::new(), values })
    }

    fn fields(fields: &Fields) -> Result<Values, UnknownType> {
        let columns = fields.iter().map(|field| Self::new(field)).collect::<Result<_, _>>()?;
        Ok(Values::Struct(
            Names(fields.iter().map(|field| field.name().as_bytes().into()).collect()),
            columns,
        ))
    }

    /// Number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.valid.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.valid.is_empty()
    }

    /// Whether value number `row` is no null.
    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        self.valid.get(row).copied().unwrap_or(false)
    }

    /// The text or bytes of value number `row`; `None` in columns of other types.
    #[inline]
    pub fn bytes(&self, row: usize) -> Option<&[u8]> {
        let Values::Bytes(ends, data) = &self.values else { return None };
        data.get(*ends.0.get(row)? as usize..*ends.0.get(row + 1)? as usize)
    }

    /// Says that a value was added to [`Column::values`], with whatever belongs to it.
    #[inline]
    pub fn added(&mut self) {
        self.valid.push(true);
    }

    /// Adds the text or bytes of one value.
    ///
    /// # Errors
    /// When the column would be larger than Arrow's offsets reach.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), Damage> {
        if let Values::Bytes(ends, data) = &mut self.values {
            ends.push(data.len() + bytes.len())?;
            data.extend_from_slice(bytes);
            self.valid.push(true);
        }
        Ok(())
    }

    /// Ends a list or map, whose items were added.
    ///
    /// # Errors
    /// As [`Column::push_bytes`].
    pub fn end_items(&mut self) -> Result<(), Damage> {
        match &mut self.values {
            Values::List(ends, items) => ends.push(items.len())?,
            Values::Map(ends, keys, _) => ends.push(keys.len())?,
            _ => return Ok(()),
        }
        self.valid.push(true);
        Ok(())
    }

    /// Adds a null.
    pub fn push_null(&mut self) {
        match &mut self.values {
            Values::Null => {}
            Values::Bool(values) => values.push(false),
            Values::I8(values) => values.push(0),
            Values::I16(values) => values.push(0),
            Values::I32(values) => values.push(0),
            Values::I64(values) => values.push(0),
            Values::F32(values) => values.push(0.0),
            Values::F64(values) => values.push(0.0),
            Values::I128(values) => values.push(0),
            Values::Bytes(ends, _) | Values::List(ends, _) | Values::Map(ends, ..) => ends.repeat(),
            Values::Struct(_, fields) => fields.iter_mut().for_each(Self::push_null),
        }
        self.valid.push(false);
    }

    /// Forgets all values from number `len` on, also those below that belong to no value yet.
    pub fn truncate(&mut self, len: usize) {
        self.valid.truncate(len);
        match &mut self.values {
            Values::Null => {}
            Values::Bool(values) => values.truncate(len),
            Values::I8(values) => values.truncate(len),
            Values::I16(values) => values.truncate(len),
            Values::I32(values) => values.truncate(len),
            Values::I64(values) => values.truncate(len),
            Values::F32(values) => values.truncate(len),
            Values::F64(values) => values.truncate(len),
            Values::I128(values) => values.truncate(len),
            Values::Bytes(ends, data) => {
                ends.0.truncate(len + 1);
                data.truncate(ends.last());
            }
            Values::List(ends, items) => {
                ends.0.truncate(len + 1);
                items.truncate(ends.last());
            }
            Values::Map(ends, keys, values) => {
                ends.0.truncate(len + 1);
                keys.truncate(ends.last());
                values.truncate(ends.last());
            }
            Values::Struct(_, fields) => fields.iter_mut().for_each(|field| field.truncate(len)),
        }
    }

    /// The values as an Arrow array; the column is empty then.
    ///
    /// # Errors
    /// When Arrow refuses it, which would be a bug.
    pub fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let rows = self.valid.len();
        let valid = std::mem::take(&mut self.valid);
        let nulls = valid.contains(&false).then(|| NullBuffer::new(BooleanBuffer::from(valid)));
        Ok(match &mut self.values {
            Values::Null => Arc::new(NullArray::new(rows)),
            Values::Bool(values) => {
                Arc::new(BooleanArray::new(BooleanBuffer::from(std::mem::take(values)), nulls))
            }
            Values::I8(values) => Arc::new(Int8Array::new(std::mem::take(values).into(), nulls)),
            Values::I16(values) => Arc::new(Int16Array::new(std::mem::take(values).into(), nulls)),
            Values::I32(values) => {
                let values = std::mem::take(values).into();
                match self.kind {
                    Kind::Date => Arc::new(Date32Array::new(values, nulls)),
                    _ => Arc::new(Int32Array::new(values, nulls)),
                }
            }
            Values::I64(values) => {
                let values = std::mem::take(values).into();
                match &self.data_type {
                    DataType::Timestamp(_, zone) => Arc::new(
                        TimestampMicrosecondArray::new(values, nulls).with_timezone_opt(zone.clone()),
                    ),
                    DataType::Duration(_) => Arc::new(DurationMicrosecondArray::new(values, nulls)),
                    _ => Arc::new(Int64Array::new(values, nulls)),
                }
            }
            Values::F32(values) => Arc::new(Float32Array::new(std::mem::take(values).into(), nulls)),
            Values::F64(values) => Arc::new(Float64Array::new(std::mem::take(values).into(), nulls)),
            Values::I128(values) => Arc::new(
                Decimal128Array::new(std::mem::take(values).into(), nulls)
                    .with_data_type(self.data_type.clone()),
            ),
            Values::Bytes(ends, data) => {
                let (ends, data) = (ends.take(), Buffer::from_vec(std::mem::take(data)));
                match self.kind {
                    Kind::Text => Arc::new(StringArray::try_new(ends, data, nulls)?),
                    _ => Arc::new(BinaryArray::try_new(ends, data, nulls)?),
                }
            }
            _ => self.finish_nested(rows, nulls)?,
        })
    }

    fn finish_nested(&mut self, rows: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let wrong =
            || ArrowError::InvalidArgumentError("a column's type is not that of its values".to_owned());
        Ok(match (&mut self.values, &self.data_type) {
            (Values::List(ends, items), DataType::List(item)) => {
                Arc::new(ListArray::try_new(item.clone(), ends.take(), items.finish()?, nulls)?)
            }
            (Values::Map(ends, keys, values), DataType::Map(entries, sorted)) => {
                let DataType::Struct(parts) = entries.data_type() else { return Err(wrong()) };
                let arrays = vec![keys.finish()?, values.finish()?];
                let pairs = StructArray::try_new(parts.clone(), arrays, None)?;
                Arc::new(MapArray::try_new(entries.clone(), ends.take(), pairs, nulls, *sorted)?)
            }
            (Values::Struct(_, fields), DataType::Struct(types)) => {
                let arrays = fields.iter_mut().map(Self::finish).collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new_with_length(types.clone(), arrays, nulls, rows)?)
            }
            _ => return Err(wrong()),
        })
    }
}
