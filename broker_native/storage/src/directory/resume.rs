//! Where whole batches go on behind bytes that are none.
use std::io;

use super::fits::header_at;
use crate::disk::DiskFile;
use crate::scan::{Found, Scanner};
use pylog_record::header::BatchHeader;
use pylog_record::layout;

/// Bytes that are looked at together.
const WINDOW_BYTES: usize = /* 256 KiB */ 256 << 10;

/// The first position behind `damaged` at which a batch stands whose checksum is right and which begins at `least` or a later
/// offset; its header. Where the damaged batch says that it ends is looked at first: a value may have a batch in it.
///
/// # Errors
/// Those of reading the file.
pub(super) fn next_batch(
    file: &dyn DiskFile,
    damaged: u64,
    end: u64,
    least: i64,
) -> io::Result<Option<(u64, BatchHeader)>> {
    if let Some(found) = behind(file, damaged, end, least)? {
        return Ok(Some(found));
    }
    let mut window = Vec::new();
    let mut position = damaged + 1;
    while position + layout::HEADER_LEN as u64 <= end {
        let len = usize::try_from(end - position).map_or(WINDOW_BYTES, |left| left.min(WINDOW_BYTES));
        window.resize(len, 0);
        file.read_exact_at(&mut window, position)?;
        for at in may_begin(&window) {
            let Some(Ok(Some(header))) = window.get(at..).map(BatchHeader::parse) else { continue };
            let here = position + at as u64;
            if let Some(found) = whole(file, &header, here, end, least)? {
                return Ok(Some(found));
            }
        }
        position += (len - layout::HEADER_LEN + 1) as u64;
    }
    Ok(None)
}

/// The batch behind the one at `damaged`, when that one's length is right.
fn behind(file: &dyn DiskFile, damaged: u64, end: u64, least: i64) -> io::Result<Option<(u64, BatchHeader)>> {
    let Some(header) = header_at(file, damaged, end)? else { return Ok(None) };
    let next = damaged + header.size() as u64;
    match header_at(file, next, end)? {
        Some(header) => whole(file, &header, next, end, least),
        None => Ok(None),
    }
}

/// The batch at `position`, when it is whole and its offset may stand there.
fn whole(
    file: &dyn DiskFile,
    header: &BatchHeader,
    position: u64,
    end: u64,
    least: i64,
) -> io::Result<Option<(u64, BatchHeader)>> {
    if !(least..least.saturating_add(i32::MAX.into())).contains(&header.base_offset) {
        return Ok(None);
    }
    match Scanner::checked(file, position, end).step()? {
        Found::Batch(header) => Ok(Some((position, header))),
        _ => Ok(None),
    }
}

/// Where in `window` a header may begin, by a quick look: the byte of the format is right, and the offset is no negative number.
fn may_begin(window: &[u8]) -> impl Iterator<Item = usize> {
    let last = window.len().saturating_sub(layout::HEADER_LEN);
    let magics = window.get(layout::MAGIC..=last + layout::MAGIC).unwrap_or_default();
    let is_magic = |byte: &u8| i8::from_be_bytes([*byte]) == layout::MAGIC_V2;
    let mut at = 0;
    std::iter::from_fn(move || {
        // One loop over bytes alone: a file that was made larger than its log has up to a GiB of zeros.
        let found = at + magics.get(at..)?.iter().position(is_magic)?;
        at = found + 1;
        Some(found)
    })
    .filter(|found| window.get(*found).is_some_and(|byte| *byte < 0x80))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, OpenMode, RealDisk};
    use pylog_record::builder::BatchBuilder;
    use pylog_record::compression::Codec;

    #[test]
    fn the_next_whole_batch_is_found_wherever_it_begins_and_a_damaged_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut builder = BatchBuilder::new();
        builder.append(1, None, Some(&[2; 300]), &[]).unwrap();
        let mut batch = builder.finish(Codec::None).unwrap();
        batch[..8].copy_from_slice(&40_i64.to_be_bytes());
        let find = |bytes: &[u8], least: i64| {
            let path = dir.path().join("log");
            std::fs::write(&path, bytes).unwrap();
            let file = RealDisk.open(&path, OpenMode::Read).unwrap();
            let found = next_batch(&*file, 0, bytes.len() as u64, least).unwrap();
            found.map(|(position, header)| (position, header.base_offset))
        };
        // The batch in the value of a damaged one is none of the log.
        let mut outer = BatchBuilder::new();
        outer.append(1, None, Some(&batch), &[]).unwrap();
        let mut nested = outer.finish(Codec::None).unwrap();
        *nested.last_mut().unwrap() ^= 1;
        assert_eq!(find(&[&nested[..], &batch].concat(), 0), Some((nested.len() as u64, 40)));
        // Around the borders of the windows, too.
        for before in [
            1,
            60,
            WINDOW_BYTES - 61,
            WINDOW_BYTES - 60,
            WINDOW_BYTES - 1,
            WINDOW_BYTES,
            2 * WINDOW_BYTES + 7,
        ] {
            let bytes = [&vec![2; before][..], &batch].concat();
            assert_eq!(find(&bytes, 0), Some((before as u64, 40)), "{before} bytes before it");
            assert_eq!(find(&bytes, 41), None, "it is an older one");
            let mut damaged = bytes.clone();
            *damaged.last_mut().unwrap() ^= 1;
            assert_eq!(find(&damaged, 0), None);
            assert_eq!(find(&bytes[..bytes.len() - 1], 0), None, "it is cut short");
        }
        assert_eq!(find(&[], 0), None);
    }
}
