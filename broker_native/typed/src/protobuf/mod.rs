//! Protobuf -> rows of columns, as Spark's `from_protobuf` reads it, and back as `to_protobuf`.
//!
//! | file | what it does |
//! |---|---|
//! | here | a key or value: with the descriptor that is given, behind the prefix of a schema registry if there is one |
//! | [`descriptor`] | descriptors, read from a `FileDescriptorSet`; their fields as DDL |
//! | [`plan`] | a descriptor and the wanted columns -> what to do with each field |
//! | [`wire`] | the bytes of a message; fields that nobody wants |
//! | [`decode`] | a message -> a row |
//! | [`encode`] | the other way: a row -> a message |
//!
//! Any bytes are safe: lengths are held against what is left of the message, lists and maps against [`Room`], groups against
//! [`wire::DEPTH_MAX`], and messages nest no deeper than the columns.
pub mod decode;
pub mod descriptor;
pub mod encode;
pub mod plan;
pub mod wire;

use arrow_schema::{DataType, Fields};
use prost_reflect::MessageDescriptor;

use self::plan::Message;
use self::wire::Wire;
use crate::column::{Column, Room, Values};
use crate::damage::Damage;

/// How keys or values of Protobuf are read and written.
#[derive(Debug, Clone, PartialEq)]
pub struct Protobuf {
    /// The message.
    pub message: MessageDescriptor,
    /// Whether they begin with the id of a schema in a registry and where the message stands in it.
    pub registered: bool,
}

impl Protobuf {
    /// The message `name` of a `FileDescriptorSet`.
    ///
    /// # Errors
    /// Why there is none, in a sentence.
    pub fn new(set: &[u8], name: &str, registered: bool) -> Result<Self, String> {
        Ok(Self { message: descriptor::message(set, name)?, registered })
    }
}

/// Reads keys or values into one column.
#[derive(Debug)]
pub struct Reader {
    plan: Message,
    registered: bool,
    indexes: Vec<i32>,
}

impl Reader {
    /// A reader of a struct of this type.
    ///
    /// # Errors
    /// Why the message cannot be read as the columns, in a sentence.
    pub fn new(protobuf: &Protobuf, wanted: &DataType) -> Result<Self, String> {
        let none = Fields::empty();
        let fields = match wanted {
            DataType::Struct(fields) => fields,
            _ => &none,
        };
        let plan = Message::new(&protobuf.message, fields)?;
        Ok(Self { plan, registered: protobuf.registered, indexes: descriptor::indexes(&protobuf.message) })
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
        let bytes = if self.registered { self.behind_prefix(bytes)? } else { bytes };
        let Values::Struct(_, children) = &mut column.values else { return Err(wire::broken()) };
        decode::message(&mut self.plan, children, row, bytes, room, true)?;
        column.added();
        Ok(())
    }

    /// What follows the 0, the id and the indexes of the message, a count and so many numbers; a single 0 is the first message.
    fn behind_prefix<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], Damage> {
        let no_prefix = || Damage::whole("does not begin with the id of a schema");
        let mut wire = Wire(bytes);
        let [magic, ..] = wire.array::<5>().map_err(|_| no_prefix())?;
        if magic != 0 {
            return Err(no_prefix());
        }
        let mut number = || -> Result<i64, Damage> {
            let zigzag = wire.varint().map_err(|_| no_prefix())?;
            Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
        };
        let count = number()?;
        let mut is_ours = count == self.indexes.len() as i64 || (count == 0 && self.indexes == [0]);
        for at in 0..usize::try_from(count).map_err(|_| no_prefix())? {
            let index = number()?;
            is_ours &= self.indexes.get(at).is_some_and(|ours| i64::from(*ours) == index);
        }
        if is_ours { Ok(wire.0) } else { Err(Damage::whole("is another message of its schema")) }
    }
}

#[cfg(test)]
mod tests;
