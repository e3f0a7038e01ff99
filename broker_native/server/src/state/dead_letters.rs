//! Records that a topic does not take, on their way to its dead letter topic (`schema.validation.dead.letter.topic`). Python writes
//! them there, by a client, since the topic may be led by any broker.
use super::questions::Questions;

/// Batches whose dead letters are being written at once, half of them of one address.
pub const WAITING_MAX: u32 = 32;
/// Most bytes of keys, values and headers that are at fault in one batch.
pub const BYTES_MAX: usize = /* 4 MiB */ 4 << 20;

/// One record at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Option<Vec<u8>>,
    /// Milliseconds since the epoch; -1 for none.
    pub timestamp_ms: i64,
    /// Its headers, and those that say where it was to go and what is wrong with it.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Letter {
    /// Bytes of key, value and headers.
    pub fn bytes(&self) -> usize {
        let of = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        let headers = self.headers.iter().map(|(name, value)| name.len() + of(value));
        of(&self.key) + of(&self.value) + headers.sum::<usize>()
    }
}

/// What is at fault in one batch.
#[derive(Debug)]
pub struct Letters {
    /// The topic that it goes to.
    pub to: String,
    /// The records.
    pub letters: Vec<Letter>,
}

/// What became of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// They stand in the topic.
    All,
    /// They do not; it may be tried again.
    NotNow(String),
    /// The topic is not there, or does not take them.
    Never(String),
}

/// Those that wait for Python.
pub type DeadLetters = Questions<Letters, Written>;
