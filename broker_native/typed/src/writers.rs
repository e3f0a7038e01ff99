//! The schemas with which records were written, by the ids that a schema registry gave them and that keys and values begin with.
//!
//! A reader that meets an id that is not here ends with [`crate::BadRecord::UnknownWriters`]; whoever reads asks the registry, adds what it
//! says, and reads on. One table serves all readers of a plan, keys and values, whatever their formats.
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

/// What begins a key or value that was written with a registered schema; the id follows, big-endian.
pub const MAGIC: u8 = 0;
/// Bytes of both.
pub const PREFIX_BYTES: usize = 5;

/// A schema as the registry gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterSchema {
    /// The registry's word for its format: `AVRO`, `JSON`, `PROTOBUF`.
    pub schema_type: String,
    /// Its text.
    pub text: String,
    /// The names and texts of all that it refers to, each behind those that it refers to itself.
    pub references: Vec<(String, String)>,
}

/// What is known of an id.
#[derive(Debug, Clone)]
pub enum Found {
    /// Its schema.
    Schema(Arc<WriterSchema>),
    /// The registry has none.
    Absent,
    /// Nothing yet; it is among [`Writers::missing`] now.
    Unknown,
}

/// The table.
#[derive(Debug, Clone, Default)]
pub struct Writers(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    known: HashMap<u32, Option<Arc<WriterSchema>>>,
    missing: BTreeSet<u32>,
}

impl Writers {
    /// Says what the registry knows of an id; `None` when it has no schema of this id.
    pub fn add(&self, id: u32, schema: Option<WriterSchema>) {
        let mut table = self.0.lock();
        table.known.insert(id, schema.map(Arc::new));
        table.missing.remove(&id);
    }

    /// What is known of an id.
    pub fn get(&self, id: u32) -> Found {
        let mut table = self.0.lock();
        match table.known.get(&id) {
            Some(Some(schema)) => Found::Schema(schema.clone()),
            Some(None) => Found::Absent,
            None => {
                table.missing.insert(id);
                Found::Unknown
            }
        }
    }

    /// The ids that were asked for and are not known yet.
    pub fn missing(&self) -> Vec<u32> {
        self.0.lock().missing.iter().copied().collect()
    }
}

/// The id that a key or value begins with, and what follows it; `None` when it does not begin so.
#[inline]
pub fn split(bytes: &[u8]) -> Option<(u32, &[u8])> {
    match bytes {
        [MAGIC, a, b, c, d, datum @ ..] => Some((u32::from_be_bytes([*a, *b, *c, *d]), datum)),
        _ => None,
    }
}
