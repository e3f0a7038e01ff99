//! Avro's binary encoding -> rows of columns, as Spark's `from_avro` reads it.
//!
//! | file | what it does |
//! |---|---|
//! | here | a key or value: with a schema that is given, or by the id that it begins with; what becomes of a damaged one |
//! | [`schema`] | schemas, read from JSON |
//! | [`program`] | a writer's schema, a reader's and the wanted columns -> what to do with each part of a datum |
//! | [`write`] | the other way: a row -> a datum |
//! | `defaults` | what a reader's schema says of fields that the writer did not know |
//! | `cursor` | the bytes of a datum; parts that nobody wants |
//! | `decode` | a datum -> a row |
//!
//! Any bytes are safe: counts are held against what is left of the datum and against [`Room`], and what is nested against
//! [`cursor::DEPTH_MAX`].
pub mod cursor;
pub mod decode;
mod defaults;
pub mod program;
pub mod schema;
pub mod write;

use std::sync::Arc;

use arrow_schema::DataType;

use self::cursor::Cursor;
use self::program::{Op, Resolver};
use self::schema::Schema;
use crate::column::{Column, Room, Values};
use crate::damage::Damage;
use crate::writers::{Found, WriterSchema, Writers, split};

/// How keys or values of Avro are read.
#[derive(Debug, Clone)]
pub struct Avro {
    /// The schema that they are read as; without one the columns are.
    pub schema: Option<Arc<Schema>>,
    /// Whether they begin with the id of the schema that wrote them. If not, `schema` did.
    pub registered: bool,
    /// The id with which they are written, if any.
    pub id: Option<u32>,
}

/// What the schemas of writers come to.
#[derive(Debug)]
struct Program {
    id: u32,
    writer: Arc<Schema>,
    outcome: Result<Op, Damage>,
}

/// Reads keys or values into one column.
#[derive(Debug)]
pub struct Reader {
    avro: Avro,
    wanted: DataType,
    judged: bool,
    writers: Writers,
    programs: Vec<Program>,
    /// Which of them was used last.
    last: usize,
}

impl Reader {
    /// A reader of columns of this type; with `judged` it only says whether a datum is whole.
    ///
    /// # Errors
    /// Why the schema cannot be read as the columns.
    pub fn new(avro: &Avro, wanted: &DataType, judged: bool, writers: &Writers) -> Result<Self, String> {
        let mut reader = Self {
            avro: avro.clone(),
            wanted: wanted.clone(),
            judged,
            writers: writers.clone(),
            programs: Vec::new(),
            last: 0,
        };
        if let Some(schema) = &avro.schema {
            let resolver = Resolver { writer: schema, reader: schema, by_columns: false };
            let op = resolver.root(wanted, judged);
            if let Op::Never(why) = op {
                return Err(why.to_string());
            }
            if !avro.registered {
                reader.programs.push(Program { id: 0, writer: schema.clone(), outcome: Ok(op) });
            }
        }
        Ok(reader)
    }

    /// Makes ready for records that begin with what `bytes` begins with; whether it is: if not, [`Writers::missing`] says what is needed.
    #[inline]
    pub fn prepare(&mut self, bytes: Option<&[u8]>) -> bool {
        match bytes.and_then(split) {
            Some((id, _)) if self.avro.registered => self.find(id) || self.learn(id),
            _ => true,
        }
    }

    #[inline]
    fn find(&mut self, id: u32) -> bool {
        if self.programs.get(self.last).is_some_and(|program| program.id == id) {
            return true;
        }
        let found = self.programs.iter().position(|program| program.id == id);
        self.last = found.unwrap_or(self.last);
        found.is_some()
    }

    fn learn(&mut self, id: u32) -> bool {
        let found = match self.writers.get(id) {
            Found::Unknown => return false,
            Found::Absent => {
                Err(Damage::whole("begins with the id of a schema that the registry does not have"))
            }
            Found::Schema(schema) => parsed(&schema),
        };
        let (writer, outcome) = match found {
            Ok(writer) => {
                let writer = Arc::new(writer);
                let (reader, by_columns) = match &self.avro.schema {
                    Some(reader) => (reader.clone(), false),
                    None => (writer.clone(), true),
                };
                let resolver = Resolver { writer: &writer, reader: &reader, by_columns };
                let op = resolver.root(&self.wanted, self.judged);
                (writer, Ok(op))
            }
            Err(damage) => (Arc::default(), Err(damage)),
        };
        self.last = self.programs.len();
        self.programs.push(Program { id, writer, outcome });
        true
    }

    /// Adds one row to `column`; what is wrong with the datum, if anything is: all of the row is null then.
    pub fn read(&mut self, column: &mut Column, bytes: &[u8], room: &mut Room) -> Option<Damage> {
        let (row, left) = (column.len(), room.left);
        let outcome = self.try_read(column, bytes, room);
        outcome.err().inspect(|_| {
            column.truncate(row);
            room.left = left;
            match &mut column.values {
                Values::Struct(_, fields) => {
                    fields.iter_mut().for_each(Column::push_null);
                    column.added();
                }
                _ => column.push_null(),
            }
        })
    }

    #[inline]
    fn try_read(&mut self, column: &mut Column, bytes: &[u8], room: &mut Room) -> Result<(), Damage> {
        let datum = match self.avro.registered {
            false => bytes,
            true => {
                let unknown = || Damage::whole("does not begin with the id of a schema");
                let (id, datum) = split(bytes).ok_or_else(unknown)?;
                if !self.find(id) {
                    return Err(unknown());
                }
                datum
            }
        };
        let program = self.programs.get(self.last).ok_or_else(|| Damage::whole("has no schema"))?;
        match &program.outcome {
            Ok(op) => decode::read(op, &program.writer, &mut Cursor(datum), column, room),
            Err(damage) => Err(damage.clone()),
        }
    }
}

fn parsed(schema: &WriterSchema) -> Result<Schema, Damage> {
    if schema.schema_type != "AVRO" {
        return Err(Damage::whole("was written with a schema of the registry that is none of Avro"));
    }
    let referred = schema.references.iter().map(|(_, text)| text.as_str());
    Schema::parse(&schema.text, referred).map_err(|error| Damage {
        what: format!("was written with a schema that {error}").into(),
        field: None,
    })
}

#[cfg(test)]
mod tests;
