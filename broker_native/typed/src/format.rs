//! The formats of keys and values, and one record of any of them.
use arrow_schema::{DataType, Field, Fields};

use crate::column::{Column, Room};
use crate::damage::Damage;
use crate::json;
use crate::plain::{self, Plain};

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One value of Kafka's serializers.
    Plain(Plain),
    /// A JSON object.
    Json,
}

impl Format {
    /// The format of this name; `None` when there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "json" => Self::Json,
            "string" => Self::Plain(Plain::String),
            "long" => Self::Plain(Plain::Long),
            "integer" => Self::Plain(Plain::Integer),
            "short" => Self::Plain(Plain::Short),
            "float" => Self::Plain(Plain::Float),
            "double" => Self::Plain(Plain::Double),
            _ => return None,
        })
    }

    /// Whether it has fields, which become columns.
    pub fn has_fields(self) -> bool {
        matches!(self, Self::Json)
    }

    /// Whether a column of this type takes what the format has.
    pub fn fits(self, field: &Field) -> bool {
        match self {
            Self::Json => matches!(field.data_type(), DataType::Struct(_)),
            Self::Plain(_) => *field.data_type() == self.least_type(),
        }
    }

    /// The type of a column that only tells whether a record is damaged.
    pub(crate) fn least_type(self) -> DataType {
        match self {
            Self::Json => DataType::Struct(Fields::empty()),
            Self::Plain(Plain::String) => DataType::Utf8,
            Self::Plain(Plain::Long) => DataType::Int64,
            Self::Plain(Plain::Integer) => DataType::Int32,
            Self::Plain(Plain::Short) => DataType::Int16,
            Self::Plain(Plain::Float) => DataType::Float32,
            Self::Plain(Plain::Double) => DataType::Float64,
        }
    }

    /// Adds one row to `column`: a null where there are no bytes; what is wrong with them, if anything is.
    pub fn read(self, column: &mut Column, bytes: Option<&[u8]>, room: &mut Room) -> Option<Damage> {
        let Some(bytes) = bytes else {
            column.push_null();
            return None;
        };
        match self {
            Self::Json => json::read(column, bytes, room),
            Self::Plain(format) => {
                let outcome = plain::read(format, column, bytes);
                outcome.inspect_err(|_| column.push_null()).err()
            }
        }
    }
}
