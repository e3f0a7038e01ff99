//! Which partition a key belongs to: Kafka's default partitioner, so that all clients agree.

const SEED: u32 = 0x9747_b28c;
const M: u32 = 0x5bd1_e995;
const R: u32 = 24;

/// 32-bit MurmurHash2 with the seed that Kafka's clients use.
pub fn murmur2(data: &[u8]) -> i32 {
    let mut h = SEED ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(M);
        h = h.wrapping_mul(M) ^ (k ^ (k >> R)).wrapping_mul(M);
    }
    let tail = words.remainder();
    if !tail.is_empty() {
        let k = tail.iter().rev().fold(0, |k, &byte| k << 8 | u32::from(byte));
        h = (h ^ k).wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    (h ^ (h >> 15)) as i32
}

/// The partition of `key` in a topic of `partitions` (> 0) partitions.
pub fn partition_for_key(key: &[u8], partitions: i32) -> i32 {
    (murmur2(key) & i32::MAX) % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn murmur2_gives_the_values_of_kafkas_own_tests() {
        let known: [(&[u8], i32); 7] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
            (b"", 275_646_681),
        ];
        for (key, hash) in known {
            assert_eq!(murmur2(key), hash, "{key:?}");
        }
    }

    #[test]
    fn a_partition_is_never_negative() {
        for partitions in [1, 2, 3, 7, 1000, i32::MAX] {
            for key in [b"21".as_slice(), b"foobar", b"", b"abc"] {
                assert!((0..partitions).contains(&partition_for_key(key, partitions)));
            }
        }
        assert_eq!(partition_for_key(b"21", 7), (-973_932_308 & i32::MAX) % 7);
    }
}
