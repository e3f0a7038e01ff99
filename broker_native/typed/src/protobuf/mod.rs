//! Protobuf -> rows of columns, as Spark's `from_protobuf` reads it, and back as `to_protobuf`.
//!
//! | file | what it does |
//! |---|---|
//! | here | a key or value: with the descriptor that is given, behind the prefix of a schema registry if there is one |
//! | [`places`] | that prefix: where the message stands in the schema with the id |
//! | [`compile`] | schemas of a registry -> descriptors |
//! | [`descriptor`] | descriptors, read from a `FileDescriptorSet`; their fields as DDL |
//! | [`plan`] | a descriptor and the wanted columns -> what to do with each field |
//! | [`wire`] | the bytes of a message; fields that nobody wants |
//! | [`decode`] | a message -> a row |
//! | [`encode`] | the other way: a row -> a message |
//!
//! Any bytes are safe: lengths are held against what is left of the message, lists and maps against [`Room`], groups against
//! [`wire::DEPTH_MAX`], and messages nest no deeper than the columns.
pub mod compile;
pub mod decode;
pub mod descriptor;
pub mod encode;
pub mod places;
pub mod plan;
pub mod wire;

use arrow_schema::{DataType, Fields};
use prost_reflect::MessageDescriptor;

use self::places::Places;
use self::plan::Message;
use crate::column::{Column, Room, Values};
use crate::damage::Damage;
use crate::writers::{self, Writers};

/// What stands before messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// Nothing.
    None,
    /// An id that is not looked up, and the message's place in the descriptors that are given.
    Given,
    /// The id of a schema in a registry and the message's place there; this id when they are written.
    Registered(Option<u32>),
}

/// How keys or values of Protobuf are read and written.
#[derive(Debug, Clone, PartialEq)]
pub struct Protobuf {
    /// The message.
    pub message: MessageDescriptor,
    /// What stands before each.
    pub prefix: Prefix,
}

impl Protobuf {
    /// The message `name` of a `FileDescriptorSet`.
    ///
    /// # Errors
    /// Why there is none, in a sentence.
    pub fn new(set: &[u8], name: &str, prefix: Prefix) -> Result<Self, String> {
        Ok(Self { message: descriptor::message(set, name)?, prefix })
    }
}

/// Reads keys or values into one column.
#[derive(Debug)]
pub struct Reader {
    plan: Message,
    place: Place,
}

/// Where messages stand in the schemas whose ids they begin with.
#[derive(Debug)]
enum Place {
    NoPrefix,
    Given(Vec<i32>),
    Registered(Places),
}

impl Reader {
    /// A reader of a struct of this type.
    ///
    /// # Errors
    /// Why the message cannot be read as the columns, in a sentence.
    pub fn new(protobuf: &Protobuf, wanted: &DataType, writers: &Writers) -> Result<Self, String> {
        let none = Fields::empty();
        let fields = match wanted {
            DataType::Struct(fields) => fields,
            _ => &none,
        };
        let plan = Message::new(&protobuf.message, fields)?;
        let place = match protobuf.prefix {
            Prefix::None => Place::NoPrefix,
            Prefix::Given => Place::Given(descriptor::indexes(&protobuf.message)),
            Prefix::Registered(_) => Place::Registered(Places::new(protobuf.message.full_name(), writers)),
        };
        Ok(Self { plan, place })
    }

    /// Whether it needs [`Reader::prepare`].
    pub fn has_writers(&self) -> bool {
        matches!(self.place, Place::Registered(_))
    }

    /// Makes ready for records that begin with what `bytes` begins with; whether it is: if not, [`Writers::missing`] says what is needed.
    #[inline]
    pub fn prepare(&mut self, bytes: Option<&[u8]>) -> bool {
        match (&mut self.place, bytes.and_then(writers::split)) {
            (Place::Registered(places), Some((id, _))) => places.prepare(id),
            _ => true,
        }
    }

    /// Adds one row to `column`; what is wrong with the message, if anything is: all of the row is null then.
    pub fn read(&mut self, column: &mut Column, bytes: &[u8], room: &mut Room) -> Option<Damage> {
        let (row, left) = (column.len(), room.left);
        let outcome = self.try_read(column, row, bytes, room);
        outcome.err().inspect(|_| {
            column.truncate(row);
            room.left = left;
            if let Values::Struct(_, fields) = &mut column.values {
                fields.iter_mut().for_each(Column::push_null);
            }
            column.added();
        })
    }

    #[inline]
    fn try_read(
        &mut self,
        column: &mut Column,
        row: usize,
        bytes: &[u8],
        room: &mut Room,
    ) -> Result<(), Damage> {
        let bytes = self.message(bytes)?;
        let Values::Struct(_, children) = &mut column.values else { return Err(wire::broken()) };
        decode::message(&mut self.plan, children, row, bytes, room, true)?;
        column.added();
        Ok(())
    }

    /// The message itself.
    #[inline]
    fn message<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Damage> {
        if let Place::NoPrefix = self.place {
            return Ok(bytes);
        }
        let (id, indexes, message) = places::split(bytes)?;
        let wanted = match &mut self.place {
            Place::NoPrefix => &[],
            Place::Given(wanted) => wanted.as_slice(),
            Place::Registered(places) => places.of(id)?,
        };
        if indexes.are(wanted) { Ok(message) } else { Err(Damage::whole("is another message of its schema")) }
    }
}

#[cfg(test)]
mod tests;
