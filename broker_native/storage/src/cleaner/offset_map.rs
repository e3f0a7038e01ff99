//! The last offset of each key in the dirty part of a log, in bounded memory: a fixed table of 24 bytes an entry.
//!
//! A key is known by 128 bits of two SipHashes whose secret differs from run to run, so that nobody can choose keys that
//! collide, and by chance two of a billion keys do with a probability of about 1e-21. A collision would lose a record.
//!
//! The table is made for the run at hand: as large as the dirty offsets need, at most as large as allowed, and it is
//! never filled beyond its load factor. What does not fit any more is left to the next run.
use std::hash::{BuildHasher, Hasher, RandomState};

/// Bytes of an entry: two halves of the hash, the offset.
const ENTRY_BYTES: usize = 24;

/// One entry; all zero is an empty one.
#[derive(Clone, Copy, Default)]
struct Slot {
    hash: [u64; 2],
    /// The offset plus one.
    offset: u64,
}

/// See the module.
pub(super) struct OffsetMap {
    slots: Vec<Slot>,
    secrets: [RandomState; 2],
    entries: usize,
    /// Most entries.
    limit: usize,
}

impl OffsetMap {
    /// A table for `wanted` keys, of at most `bytes` and filled up to `load` of them (0 to 1).
    pub fn new(bytes: usize, load: f64, wanted: u64) -> Self {
        let load = load.clamp(0.1, 0.99);
        let needed = (wanted as f64 / load).ceil() + 1.0;
        // At least one key fits into a table of two.
        let slots = ((bytes / ENTRY_BYTES) as f64).min(needed).max(2.0) as usize;
        let limit = ((slots as f64 * load) as usize).clamp(1, slots - 1);
        Self {
            slots: vec![Slot::default(); slots],
            secrets: [RandomState::new(), RandomState::new()],
            entries: 0,
            limit,
        }
    }

    /// Notes that `key` stands at `offset`, which is larger than all before; `false`: a new key does not fit any more.
    pub fn put(&mut self, key: &[u8], offset: i64) -> bool {
        let hash = self.hash(key);
        let at = self.find(hash);
        let full = self.entries >= self.limit;
        let Some(slot) = self.slots.get_mut(at) else { return false };
        if slot.offset == 0 {
            if full {
                return false;
            }
            self.entries += 1;
        }
        *slot = Slot { hash, offset: offset as u64 + 1 };
        true
    }

    /// The largest offset of `key`; `None` when it is not known.
    pub fn get(&self, key: &[u8]) -> Option<i64> {
        let slot = self.slots.get(self.find(self.hash(key)))?;
        (slot.offset > 0).then(|| slot.offset as i64 - 1)
    }

    /// Bytes of the table.
    pub fn bytes(&self) -> usize {
        self.slots.len() * ENTRY_BYTES
    }

    fn hash(&self, key: &[u8]) -> [u64; 2] {
        let half = |secret: &RandomState| {
            let mut hasher = secret.build_hasher();
            hasher.write(key);
            hasher.finish()
        };
        let [first, second] = &self.secrets;
        [half(first), half(second)]
    }

    /// The slot that holds `hash`, or the empty one where it belongs. There is always an empty one.
    fn find(&self, hash: [u64; 2]) -> usize {
        let len = self.slots.len();
        // Spreads the hash over the table without a division.
        let mut at = ((u128::from(hash[0]) * len as u128) >> 64) as usize;
        while let Some(slot) = self.slots.get(at) {
            if slot.offset == 0 || slot.hash == hash {
                break;
            }
            at = if at + 1 == len { 0 } else { at + 1 };
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_with_its_last_offset_up_to_the_load() {
        let mut map = OffsetMap::new(1_000 * ENTRY_BYTES, 0.9, u64::MAX);
        let key = |i: i64| i.to_string().into_bytes();
        let fitted = (0..2_000).take_while(|i| map.put(&key(*i), *i)).count();
        assert_eq!((fitted, map.entries, map.bytes()), (900, 900, 24_000));
        assert!((0..900).all(|i| map.put(&key(i), 5_000 + i)), "known keys go on fitting");
        assert!((0..900).all(|i| map.get(&key(i)) == Some(5_000 + i)));
        assert!((900..2_000).all(|i| map.get(&key(i)).is_none()));
    }

    #[test]
    fn a_small_job_takes_a_small_table_and_no_memory_still_makes_progress() {
        let mut small = OffsetMap::new(128 << 20, 0.9, 90);
        assert!(small.bytes() <= 102 * ENTRY_BYTES, "{}", small.bytes());
        assert!((0..90_u8).all(|i| small.put(&[i], i.into())));
        let mut none = OffsetMap::new(0, 0.9, 1 << 40);
        assert!(none.put(b"one", 0) && !none.put(b"two", 1) && none.put(b"one", 2));
        assert_eq!((none.get(b"one"), none.get(b"two")), (Some(2), None));
    }

    #[test]
    fn an_empty_key_and_offset_zero_are_a_key_and_an_offset() {
        let mut map = OffsetMap::new(1_000, 0.9, 10);
        assert_eq!(map.get(b""), None);
        assert!(map.put(b"", 0));
        assert_eq!(map.get(b""), Some(0));
    }
}
