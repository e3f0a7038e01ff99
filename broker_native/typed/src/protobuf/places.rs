//! What stands before messages of a schema registry: a 0, the id of the schema that wrote them, and where the message stands in that.
//!
//! The place is a count and so many indexes, of a file's messages and then of a message's messages, as zigzag varints; a single 0 is the first
//! message. Schemas may come to have their messages at other places, so each id is looked up once; a schema registry's rules keep
//! all else readable, and so nothing but the place is taken from the schema of a writer.
use std::collections::HashMap;

use super::compile::{Source, compile};
use super::wire::Wire;
use crate::damage::Damage;
use crate::writers::{Found, MAGIC, WriterSchema, Writers};

/// What a schema is called while it is compiled; nothing can import it by that name.
const NAME: &str = "this schema";
/// The registry's word for the format.
const TYPE: &str = "PROTOBUF";

/// Where a message stands, by the ids of the schemas that have it.
#[derive(Debug)]
pub struct Places {
    /// Its full name.
    message: String,
    writers: Writers,
    known: Vec<(u32, Result<Vec<i32>, Damage>)>,
    /// Which of them was used last.
    last: usize,
}

impl Places {
    /// Of the message with this full name.
    pub fn new(message: &str, writers: &Writers) -> Self {
        Self { message: message.to_owned(), writers: writers.clone(), known: Vec::new(), last: 0 }
    }

    /// Makes ready for records that begin with an id; whether it is: if not, [`Writers::missing`] says what is needed.
    #[inline]
    pub fn prepare(&mut self, id: u32) -> bool {
        self.find(id) || self.learn(id)
    }

    /// Where the message stands in the schema with this id, for which [`Places::prepare`] was called.
    ///
    /// # Errors
    /// Why it stands nowhere there.
    #[inline]
    pub fn of(&mut self, id: u32) -> Result<&[i32], Damage> {
        self.find(id);
        match self.known.get(self.last).filter(|(known, _)| *known == id) {
            Some((_, outcome)) => outcome.as_deref().map_err(Clone::clone),
            None => Err(Damage::whole("has no schema")),
        }
    }

    #[inline]
    fn find(&mut self, id: u32) -> bool {
        if self.known.get(self.last).is_some_and(|(known, _)| *known == id) {
            return true;
        }
        let found = self.known.iter().position(|(known, _)| *known == id);
        self.last = found.unwrap_or(self.last);
        found.is_some()
    }

    fn learn(&mut self, id: u32) -> bool {
        let outcome = match self.writers.get(id) {
            Found::Unknown => return false,
            Found::Absent => {
                Err(Damage::whole("begins with the id of a schema that the registry does not have"))
            }
            Found::Schema(schema) => place(&self.message, &schema),
        };
        self.last = self.known.len();
        self.known.push((id, outcome));
        true
    }
}

fn place(message: &str, schema: &WriterSchema) -> Result<Vec<i32>, Damage> {
    if schema.schema_type != TYPE {
        return Err(Damage::whole("was written with a schema of the registry that is none of Protobuf"));
    }
    let damage = |what: String| Damage { what: what.into(), field: None };
    let mut files: HashMap<String, Source> =
        schema.references.iter().map(|(name, text)| (name.clone(), Source::registered(text))).collect();
    files.insert(NAME.to_owned(), Source::registered(&schema.text));
    let compiled = compile(NAME, files)
        .map_err(|error| damage(format!("was written with a schema that cannot be compiled: {error}")))?;
    let found =
        compiled.pool.get_message_by_name(message).filter(|found| found.parent_file() == compiled.file);
    let found =
        found.ok_or_else(|| damage(format!("was written with a schema that has no message {message}")))?;
    Ok(super::descriptor::indexes(&found))
}

/// The id and the indexes that bytes begin with, and what follows.
///
/// # Errors
/// They do not begin so.
pub fn split(bytes: &[u8]) -> Result<(u32, Indexes<'_>, &[u8]), Damage> {
    let no_prefix = || Damage::whole("does not begin with the id of a schema");
    let mut wire = Wire(bytes);
    let [magic, id @ ..] = wire.array::<5>().map_err(|_| no_prefix())?;
    if magic != MAGIC {
        return Err(no_prefix());
    }
    let count = usize::try_from(number(&mut wire).ok_or_else(no_prefix)?).map_err(|_| no_prefix())?;
    let indexes = wire.0;
    for _ in 0..count {
        number(&mut wire).ok_or_else(no_prefix)?;
    }
    Ok((u32::from_be_bytes(id), Indexes { count, bytes: indexes }, wire.0))
}

fn number(wire: &mut Wire<'_>) -> Option<i64> {
    let zigzag = wire.varint().ok()?;
    Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
}

/// Indexes that were read over once.
#[derive(Debug)]
pub struct Indexes<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl Indexes<'_> {
    /// Whether they are these.
    #[inline]
    pub fn are(&self, wanted: &[i32]) -> bool {
        if self.count == 0 {
            return wanted == [0];
        }
        let mut wire = Wire(self.bytes);
        self.count == wanted.len()
            && wanted.iter().all(|wanted| number(&mut wire) == Some(i64::from(*wanted)))
    }
}

/// Appends what stands before a message.
pub fn put(id: u32, indexes: &[i32], out: &mut Vec<u8>) {
    out.push(MAGIC);
    out.extend(id.to_be_bytes());
    if indexes == [0] {
        out.push(0);
        return;
    }
    let count = i32::try_from(indexes.len()).unwrap_or(i32::MAX);
    for number in std::iter::once(count).chain(indexes.iter().copied()) {
        // Neither is ever below zero, so that zigzag is twice the number.
        let mut zigzag = number.unsigned_abs() << 1;
        while zigzag >= 0x80 {
            out.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        out.push(zigzag as u8);
    }
}
