//! Zigzag varints of a record (Protocol Buffers' encoding): 1-5 bytes for an i32, 1-10 for an i64.
//!
//! Reading takes the bytes from the front of a slice and is bounded by it. An encoding longer than its type is refused,
//! as Kafka does.
use super::header::BatchError;

/// Most bytes of an encoded i32.
pub(crate) const MAX_I32_LEN: usize = 5;
/// Most bytes of an encoded i64.
pub(crate) const MAX_I64_LEN: usize = 10;

pub(crate) const TRUNCATED: BatchError = BatchError::Malformed("a record ends in the middle of a field");
pub(crate) const TOO_LONG: BatchError = BatchError::Malformed("a varint is longer than its type");

/// Takes one i32 from the front of `bytes`.
#[inline(always)]
pub(crate) fn take_i32(bytes: &mut &[u8]) -> Result<i32, BatchError> {
    // Nearly all lengths, deltas and counts take one or two bytes.
    match **bytes {
        [a, ref rest @ ..] if a < 0x80 => {
            *bytes = rest;
            Ok(unzigzag32(u32::from(a)))
        }
        [a, b, ref rest @ ..] if b < 0x80 => {
            *bytes = rest;
            Ok(unzigzag32(u32::from(a & 0x7f) | u32::from(b) << 7))
        }
        _ => take_long(bytes, MAX_I32_LEN).map(|raw| unzigzag32(raw as u32)),
    }
}

/// Takes one i64 from the front of `bytes`.
#[inline(always)]
pub(crate) fn take_i64(bytes: &mut &[u8]) -> Result<i64, BatchError> {
    match **bytes {
        [a, ref rest @ ..] if a < 0x80 => {
            *bytes = rest;
            Ok(unzigzag64(u64::from(a)))
        }
        [a, b, ref rest @ ..] if b < 0x80 => {
            *bytes = rest;
            Ok(unzigzag64(u64::from(a & 0x7f) | u64::from(b) << 7))
        }
        _ => take_long(bytes, MAX_I64_LEN).map(unzigzag64),
    }
}

/// Takes a length-prefixed field; a negative length is null.
#[inline(always)]
pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, BatchError> {
    let len = take_i32(bytes)?;
    if len < 0 {
        return Ok(None);
    }
    take(bytes, len as usize).map(Some)
}

/// Takes `len` bytes.
#[inline(always)]
pub(crate) fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Result<&'a [u8], BatchError> {
    match bytes.split_at_checked(len) {
        Some((head, rest)) => {
            *bytes = rest;
            Ok(head)
        }
        None => Err(TRUNCATED),
    }
}

#[cold]
fn take_long(bytes: &mut &[u8], max_len: usize) -> Result<u64, BatchError> {
    let mut raw = 0_u64;
    for (at, &byte) in bytes.iter().take(max_len).enumerate() {
        raw |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Ok(raw);
        }
    }
    Err(if bytes.len() < max_len { TRUNCATED } else { TOO_LONG })
}

#[inline(always)]
fn unzigzag32(raw: u32) -> i32 {
    (raw >> 1) as i32 ^ -((raw & 1) as i32)
}

#[inline(always)]
fn unzigzag64(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}

#[inline(always)]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Bytes that `value` takes; the same for an i32 as for the equal i64.
#[inline(always)]
pub(crate) fn len(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Writes `value` at the front of `out` and returns how many bytes it took; `out` has room for them.
#[inline(always)]
pub(crate) fn put(out: &mut [u8], value: i64) -> usize {
    let mut raw = zigzag(value);
    let mut at = 0;
    for slot in out.iter_mut() {
        at += 1;
        if raw < 0x80 {
            *slot = raw as u8;
            break;
        }
        *slot = raw as u8 | 0x80;
        raw >>= 7;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_boundary_value_survives_a_round_trip_in_the_length_that_was_said() {
        for shift in 0..63 {
            for value in [1_i64 << shift, (1_i64 << shift) - 1, -(1_i64 << shift), i64::MAX, i64::MIN] {
                let mut out = [0; MAX_I64_LEN];
                let written = put(&mut out, value);
                assert_eq!(written, len(value), "{value}");
                let mut rest = &out[..written];
                assert_eq!(take_i64(&mut rest), Ok(value));
                assert!(rest.is_empty());
                if let Ok(small) = i32::try_from(value) {
                    let mut rest = &out[..written];
                    assert_eq!(take_i32(&mut rest), Ok(small));
                }
            }
        }
    }

    #[test]
    fn a_cut_or_endless_varint_is_an_error() {
        assert_eq!(take_i32(&mut [0x80_u8, 0x80].as_slice()), Err(TRUNCATED));
        assert_eq!(take_i32(&mut [].as_slice()), Err(TRUNCATED));
        assert_eq!(take_i32(&mut [0x80_u8; 6].as_slice()), Err(TOO_LONG));
        assert_eq!(take_i64(&mut [0x80_u8; 11].as_slice()), Err(TOO_LONG));
    }
}
