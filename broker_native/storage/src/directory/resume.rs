//! Where whole batches go on behind bytes that are none.
use std::io;

use crate::disk::DiskFile;
use crate::scan::{Found, Scanner};
use pylog_record::header::BatchHeader;
use pylog_record::layout;

/// Bytes that are looked at together.
const WINDOW_BYTES: usize = /* 256 KiB */ 256 << 10;

/// The first position from `from` on at which a batch stands whose checksum is right and which begins at `least` or a later
/// offset; its header.
///
/// # Errors
/// Those of reading the file.
pub(super) fn next_batch(
    file: &dyn DiskFile,
    from: u64,
    end: u64,
    least: i64,
) -> io::Result<Option<(u64, BatchHeader)>> {
    let mut window = Vec::new();
    let mut position = from;
    while position + layout::HEADER_LEN as u64 <= end {
        let len = usize::try_from(end - position).map_or(WINDOW_BYTES, |left| left.min(WINDOW_BYTES));
        window.resize(len, 0);
        file.read_exact_at(&mut window, position)?;
        for at in 0..=len - layout::HEADER_LEN {
            let Some(bytes) = window.get(at..).filter(|bytes| may_begin(bytes)) else { continue };
            let Ok(Some(header)) = BatchHeader::parse(bytes) else { continue };
            let here = position + at as u64;
            if (least..least.saturating_add(i32::MAX.into())).contains(&header.base_offset)
                && let Found::Batch(header) = Scanner::checked(file, here, end).step()?
            {
                return Ok(Some((here, header)));
            }
        }
        position += (len - layout::HEADER_LEN + 1) as u64;
    }
    Ok(None)
}

/// A quick look: the offset of a batch is no negative number, and the byte of its format is right.
fn may_begin(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|byte| *byte < 0x80)
        && bytes.get(layout::MAGIC).is_some_and(|magic| i8::from_be_bytes([*magic]) == layout::MAGIC_V2)
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
        // Around the borders of the windows, too.
        for before in [
            0,
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
