//! Typed views of an incoming Arrow batch's columns: each accepts a family of types and refuses others by name.
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, BinaryArray, BinaryViewArray, Int8Array, Int16Array, Int32Array, Int64Array, LargeBinaryArray,
    LargeListArray, LargeStringArray, ListArray, StringArray, StringViewArray, StructArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray,
};
use arrow_schema::{DataType, TimeUnit};

use super::row_error::RowError;

/// Binary or string.
pub(crate) enum BytesColumn<'a> {
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    Text(TextColumn<'a>),
    /// A column of type null: all rows are null.
    Null,
}

impl<'a> BytesColumn<'a> {
    pub(crate) fn new(name: &'static str, array: &'a dyn Array) -> Result<Self, RowError> {
        Ok(match array.data_type() {
            DataType::Binary => Self::Binary(array.as_binary()),
            DataType::LargeBinary => Self::LargeBinary(array.as_binary()),
            DataType::BinaryView => Self::BinaryView(array.as_binary_view()),
            DataType::Null => Self::Null,
            _ => {
                Self::Text(TextColumn::of(array).ok_or_else(|| wrong_type(name, array, "binary or string"))?)
            }
        })
    }

    #[inline(always)]
    pub(crate) fn get(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Self::Binary(array) => array.is_valid(row).then(|| array.value(row)),
            Self::LargeBinary(array) => array.is_valid(row).then(|| array.value(row)),
            Self::BinaryView(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Text(text) => text.get(row).map(str::as_bytes),
            Self::Null => None,
        }
    }
}

/// String.
pub(crate) enum TextColumn<'a> {
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a StringViewArray),
    Null,
}

impl<'a> TextColumn<'a> {
    pub(crate) fn new(name: &'static str, array: &'a dyn Array) -> Result<Self, RowError> {
        Self::of(array).ok_or_else(|| wrong_type(name, array, "string"))
    }

    fn of(array: &'a dyn Array) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Utf8 => Self::Utf8(array.as_string()),
            DataType::LargeUtf8 => Self::LargeUtf8(array.as_string()),
            DataType::Utf8View => Self::Utf8View(array.as_string_view()),
            DataType::Null => Self::Null,
            _ => return None,
        })
    }

    #[inline(always)]
    pub(crate) fn get(&self, row: usize) -> Option<&'a str> {
        match self {
            Self::Utf8(array) => array.is_valid(row).then(|| array.value(row)),
            Self::LargeUtf8(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Utf8View(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Null => None,
        }
    }
}

/// Signed integer of any width.
pub(crate) enum IntColumn<'a> {
    Int8(&'a Int8Array),
    Int16(&'a Int16Array),
    Int32(&'a Int32Array),
    Int64(&'a Int64Array),
    Null,
}

impl<'a> IntColumn<'a> {
    pub(crate) fn new(name: &'static str, array: &'a dyn Array) -> Result<Self, RowError> {
        Ok(match array.data_type() {
            DataType::Int8 => Self::Int8(array.as_primitive::<Int8Type>()),
            DataType::Int16 => Self::Int16(array.as_primitive::<Int16Type>()),
            DataType::Int32 => Self::Int32(array.as_primitive::<Int32Type>()),
            DataType::Int64 => Self::Int64(array.as_primitive::<Int64Type>()),
            DataType::Null => Self::Null,
            _ => return Err(wrong_type(name, array, "int (8, 16, 32 or 64 bits)")),
        })
    }

    #[inline(always)]
    pub(crate) fn get(&self, row: usize) -> Option<i64> {
        match self {
            Self::Int8(array) => array.is_valid(row).then(|| array.value(row).into()),
            Self::Int16(array) => array.is_valid(row).then(|| array.value(row).into()),
            Self::Int32(array) => array.is_valid(row).then(|| array.value(row).into()),
            Self::Int64(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Null => None,
        }
    }
}

/// Timestamp of any unit. With a zone it is an instant; without, it is taken as UTC.
pub(crate) enum TimeColumn<'a> {
    Second(&'a TimestampSecondArray),
    Millisecond(&'a TimestampMillisecondArray),
    Microsecond(&'a TimestampMicrosecondArray),
    Nanosecond(&'a TimestampNanosecondArray),
    Null,
}

impl<'a> TimeColumn<'a> {
    pub(crate) fn new(name: &'static str, array: &'a dyn Array) -> Result<Self, RowError> {
        Ok(match array.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => {
                Self::Second(array.as_primitive::<TimestampSecondType>())
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                Self::Millisecond(array.as_primitive::<TimestampMillisecondType>())
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Self::Microsecond(array.as_primitive::<TimestampMicrosecondType>())
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                Self::Nanosecond(array.as_primitive::<TimestampNanosecondType>())
            }
            DataType::Null => Self::Null,
            _ => return Err(wrong_type(name, array, "timestamp")),
        })
    }

    /// Milliseconds since the epoch, rounded down.
    #[inline(always)]
    pub(crate) fn get_ms(&self, row: usize) -> Option<i64> {
        match self {
            Self::Second(array) => array.is_valid(row).then(|| array.value(row).saturating_mul(1000)),
            Self::Millisecond(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Microsecond(array) => array.is_valid(row).then(|| array.value(row).div_euclid(1000)),
            Self::Nanosecond(array) => array.is_valid(row).then(|| array.value(row).div_euclid(1_000_000)),
            Self::Null => None,
        }
    }
}

/// List of (key string, value binary or string).
pub(crate) struct HeadersColumn<'a> {
    lists: Lists<'a>,
    structs: &'a StructArray,
    keys: TextColumn<'a>,
    values: BytesColumn<'a>,
}

enum Lists<'a> {
    List(&'a ListArray),
    LargeList(&'a LargeListArray),
}

impl<'a> HeadersColumn<'a> {
    /// `None` for a column of type null.
    pub(crate) fn new(name: &'static str, array: &'a dyn Array) -> Result<Option<Self>, RowError> {
        let refused = || wrong_type(name, array, "array<struct<key: string, value: binary>>");
        let (lists, items) = match array.data_type() {
            DataType::List(_) => (Lists::List(array.as_list()), array.as_list::<i32>().values()),
            DataType::LargeList(_) => (Lists::LargeList(array.as_list()), array.as_list::<i64>().values()),
            DataType::Null => return Ok(None),
            _ => return Err(refused()),
        };
        let items: &StructArray = items.as_struct_opt().ok_or_else(refused)?;
        let field = |field: &str| items.column_by_name(field).ok_or_else(refused);
        let keys = TextColumn::new(name, field("key")?.as_ref()).map_err(|_| refused())?;
        let values = BytesColumn::new(name, field("value")?.as_ref()).map_err(|_| refused())?;
        Ok(Some(Self { lists, structs: items, keys, values }))
    }

    /// The items of a row, as rows of the two inner columns.
    #[inline(always)]
    pub(crate) fn items(&self, row: usize) -> std::ops::Range<usize> {
        match self.lists {
            Lists::List(list) if list.is_valid(row) => {
                let offsets = list.value_offsets();
                offsets[row] as usize..offsets[row + 1] as usize
            }
            Lists::LargeList(list) if list.is_valid(row) => {
                let offsets = list.value_offsets();
                offsets[row] as usize..offsets[row + 1] as usize
            }
            _ => 0..0,
        }
    }

    /// Key and value of an item; both null when the item is.
    #[inline(always)]
    pub(crate) fn item(&self, item: usize) -> (Option<&'a str>, Option<&'a [u8]>) {
        if self.structs.is_null(item) {
            return (None, None);
        }
        (self.keys.get(item), self.values.get(item))
    }
}

fn wrong_type(column: &'static str, array: &dyn Array, accepted: &'static str) -> RowError {
    RowError::WrongType { column, found: array.data_type().to_string(), accepted }
}
