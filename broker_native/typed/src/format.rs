//! The formats of keys and values, and one record of any of them.
use arrow_schema::{DataType, Field, Fields};

use crate::avro::{self, Avro};
use crate::column::{Column, Room};
use crate::damage::Damage;
use crate::json;
use crate::plain::{self, Plain};
use crate::protobuf::{self, Protobuf};
use crate::writers::Writers;

/// A format.
#[derive(Debug, Clone)]
pub enum Format {
    /// One value of Kafka's serializers.
    Plain(Plain),
    /// A JSON object.
    Json,
    /// A datum of Avro.
    Avro(Avro),
    /// A message of Protobuf.
    Protobuf(Protobuf),
}

impl Format {
    /// The format of this name, which says all of it; `None` when there is none.
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
    pub fn has_fields(&self) -> bool {
        matches!(self, Self::Json | Self::Avro(_) | Self::Protobuf(_))
    }

    /// Whether a column of this type takes what the format has.
    pub fn fits(&self, field: &Field) -> bool {
        match self {
            // What a schema does not fit is an error of its reader.
            Self::Avro(_) => true,
            Self::Json | Self::Protobuf(_) => matches!(field.data_type(), DataType::Struct(_)),
            Self::Plain(_) => *field.data_type() == self.least_type(),
        }
    }

    /// The type of a column that only tells whether a record is damaged.
    pub(crate) fn least_type(&self) -> DataType {
        match self {
            Self::Json | Self::Avro(_) | Self::Protobuf(_) => DataType::Struct(Fields::empty()),
            Self::Plain(Plain::String) => DataType::Utf8,
            Self::Plain(Plain::Long) => DataType::Int64,
            Self::Plain(Plain::Integer) => DataType::Int32,
            Self::Plain(Plain::Short) => DataType::Int16,
            Self::Plain(Plain::Float) => DataType::Float32,
            Self::Plain(Plain::Double) => DataType::Float64,
        }
    }
}

/// Reads keys or values of a format into one column.
#[derive(Debug)]
pub enum Reader {
    /// One value of Kafka's serializers.
    Plain(Plain),
    /// JSON objects.
    Json,
    /// Datums of Avro.
    Avro(avro::Reader),
    /// Messages of Protobuf.
    Protobuf(Box<protobuf::Reader>),
}

impl Reader {
    /// A reader of `column`, which with `judged` only says whether keys or values parse.
    ///
    /// # Errors
    /// Why the format cannot be read as the column.
    pub fn new(format: &Format, column: &Field, judged: bool, writers: &Writers) -> Result<Self, String> {
        Ok(match format {
            Format::Plain(plain) => Self::Plain(*plain),
            Format::Json => {
                json::check(column)?;
                Self::Json
            }
            Format::Avro(avro) => Self::Avro(avro::Reader::new(avro, column.data_type(), judged, writers)?),
            Format::Protobuf(message) => {
                let reader = protobuf::Reader::new(message, column.data_type(), writers);
                Self::Protobuf(Box::new(reader.map_err(|why| format!("cannot be read so: {why}"))?))
            }
        })
    }

    /// Makes ready for a key or value; whether it is: if not, [`Writers::missing`] says what is needed.
    #[inline]
    pub fn prepare(&mut self, bytes: Option<&[u8]>) -> bool {
        match self {
            Self::Avro(avro) => avro.prepare(bytes),
            Self::Protobuf(messages) => messages.prepare(bytes),
            Self::Plain(_) | Self::Json => true,
        }
    }

    /// Whether it needs [`Reader::prepare`].
    pub fn has_writers(&self) -> bool {
        match self {
            Self::Avro(_) => true,
            Self::Protobuf(messages) => messages.has_writers(),
            Self::Plain(_) | Self::Json => false,
        }
    }

    /// Adds one row to `column`: a null where there are no bytes; what is wrong with them, if anything is.
    #[inline]
    pub fn read(&mut self, column: &mut Column, bytes: Option<&[u8]>, room: &mut Room) -> Option<Damage> {
        let Some(bytes) = bytes else {
            column.push_null();
            return None;
        };
        match self {
            Self::Json => json::read(column, bytes, room),
            Self::Avro(avro) => avro.read(column, bytes, room),
            Self::Protobuf(messages) => messages.read(column, bytes, room),
            Self::Plain(format) => {
                let outcome = plain::read(*format, column, bytes);
                outcome.inspect_err(|_| column.push_null()).err()
            }
        }
    }
}
