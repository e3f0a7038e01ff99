//! The first bytes of a key or value, which say by which schema it is written: 0, then the schema's id in four bytes, the highest
//! first. So Confluent's serializers write for all formats.

/// How many bytes that are.
pub const HEAD_BYTES: usize = 5;
/// The first of them.
const MAGIC: u8 = 0;

/// What a key or value begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Head {
    /// There is none.
    #[default]
    Null,
    /// The id of the schema.
    Schema(i32),
    /// It says nothing of a schema.
    Other,
}

impl Head {
    /// Of the front of a key or value, at least [`HEAD_BYTES`] where it has as many.
    pub fn of(bytes: Option<&[u8]>) -> Self {
        match bytes.map(<[u8]>::first_chunk::<HEAD_BYTES>) {
            None => Self::Null,
            Some(Some(&[MAGIC, id @ ..])) => Self::Schema(i32::from_be_bytes(id)),
            Some(_) => Self::Other,
        }
    }
}

/// Those of one record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heads {
    /// Of its key.
    pub key: Head,
    /// Of its value.
    pub value: Head,
}
