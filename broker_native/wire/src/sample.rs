//! Values of every message for tests, made from bytes so that proptest can shrink them.
//!
//! Bytes that run out count as zeros, and zeros make the smallest value: nothing, empty, null where allowed.
use bytes::Bytes;
use uuid::Uuid;

use super::field::{Field, Nullable, Version};

/// Bytes to make values from.
pub struct Entropy<'a> {
    bytes: &'a [u8],
}

impl<'a> Entropy<'a> {
    /// Takes from `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    fn below(&mut self, end: u8) -> usize {
        usize::from(self.byte() % end)
    }
}

/// A field type that values can be made of.
pub trait Sample: Field {
    /// A value that exists in `version`: fields that the version lacks have their defaults.
    fn sample(entropy: &mut Entropy<'_>, version: Version) -> Self;
}

macro_rules! sample_numbers {
    ($($type:ty),*) => {$(
        impl Sample for $type {
            fn sample(entropy: &mut Entropy<'_>, _: Version) -> Self {
                match entropy.below(8) {
                    0 => 0,
                    1 => 1,
                    2 => Self::MIN,
                    3 => Self::MAX,
                    4 => Self::from_be_bytes([0xff; size_of::<$type>()]),
                    _ => Self::from_be_bytes(entropy.array()),
                }
            }
        }
    )*};
}
sample_numbers!(i8, i16, u16, i32, u32, i64);

impl Sample for f64 {
    /// A number that JSON can say.
    fn sample(entropy: &mut Entropy<'_>, _: Version) -> Self {
        f64::from(i32::from_be_bytes(entropy.array())) / 8.0
    }
}

impl Sample for bool {
    fn sample(entropy: &mut Entropy<'_>, _: Version) -> Self {
        entropy.below(2) == 1
    }
}

impl Sample for Uuid {
    fn sample(entropy: &mut Entropy<'_>, _: Version) -> Self {
        Self::from_bytes(entropy.array())
    }
}

impl Sample for String {
    fn sample(entropy: &mut Entropy<'_>, _: Version) -> Self {
        // Across 126, 127 and 128 bytes the compact length grows from one byte to two.
        let len = match entropy.below(16) {
            15 => 120 + entropy.below(16),
            len => len,
        };
        (0..len).map(|_| ['a', 'Z', '.', '-', '0', 'ü', '€', '𝄞'][entropy.below(8)]).collect()
    }
}

impl Sample for Bytes {
    fn sample(entropy: &mut Entropy<'_>, _: Version) -> Self {
        let len = entropy.below(200);
        (0..len).map(|_| entropy.byte()).collect()
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(entropy: &mut Entropy<'_>, version: Version) -> Self {
        (0..entropy.below(4)).map(|_| T::sample(entropy, version)).collect()
    }
}

impl<T: Sample + Nullable> Sample for Option<T> {
    fn sample(entropy: &mut Entropy<'_>, version: Version) -> Self {
        (entropy.below(3) != 0).then(|| T::sample(entropy, version))
    }
}
