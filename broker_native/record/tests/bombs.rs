//! Decompression bombs: a few bytes that claim or hold far more than the caller allows are an error, and the process does
//! not grow. One test only: it watches the peak memory of its process.
#![allow(clippy::unwrap_used)]
use std::io::Write;

use pylog_record::compression::decompress;
use pylog_record::{BatchError, BatchHeader, Codec, layout, records};

const MIB: usize = 1024 * 1024;
const LIMIT: usize = MIB;
/// What a bomb would make.
const BOMB_MIB: usize = 512;
/// The limit, tables and windows of four codecs, and the allocator's slack.
const GROWTH_ALLOWED: usize = 24 * MIB;

#[test]
fn bombs_are_refused_and_the_process_does_not_grow() {
    let bombs = [
        (Codec::Gzip, gzip_bomb()),
        (Codec::Lz4, lz4_bomb()),
        (Codec::Zstd, zstd_bomb()),
        (Codec::Zstd, zstd_claim()),
        (Codec::Snappy, snappy_bomb()),
        (Codec::Snappy, xerial_bomb()),
        (Codec::Snappy, vec![0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 0x00]),
    ];
    let before = peak_bytes();
    for (number, (codec, bomb)) in bombs.iter().enumerate() {
        let refused = decompress(*codec, bomb, LIMIT).unwrap_err();
        let right = matches!(refused, BatchError::Decompressed(_) | BatchError::Malformed(_));
        assert!(right, "bomb {number}, {codec:?}: {refused}");
        if bomb.len() > 100 {
            assert_eq!(refused, BatchError::Decompressed(LIMIT as u64), "bomb {number}, {codec:?}");
        }
    }
    hostile_counts();
    let grown = peak_bytes() - before;
    assert!(grown < GROWTH_ALLOWED, "grew by {grown} bytes");
}

/// Claimed counts are bounded by the bytes at hand: neither the iterator nor its size hint believes them.
fn hostile_counts() {
    let mut head = vec![0; layout::HEADER_LEN];
    head[layout::MAGIC] = 2;
    head[layout::BATCH_LENGTH..layout::BATCH_LENGTH + 4].copy_from_slice(&100_i32.to_be_bytes());
    for count in [i32::MAX, i32::MAX - 15, -2, -1, 1000] {
        head[layout::RECORDS_COUNT..layout::RECORDS_COUNT + 4].copy_from_slice(&count.to_be_bytes());
        let header = BatchHeader::parse(&head).unwrap().unwrap();
        let mut iter = records(&[0; 51], &header);
        assert_eq!(iter.len(), 0, "{count}");
        assert!(iter.next().unwrap().is_err(), "{count}");
        assert!(iter.next().is_none(), "{count}");
    }
}

fn zeros(mut writer: impl Write) {
    let chunk = vec![0; MIB];
    (0..BOMB_MIB).for_each(|_| writer.write_all(&chunk).unwrap());
    writer.flush().unwrap();
}

fn gzip_bomb() -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zeros(&mut writer);
    writer.finish().unwrap()
}

fn lz4_bomb() -> Vec<u8> {
    let mut writer = lz4_flex::frame::FrameEncoder::new(Vec::new());
    zeros(&mut writer);
    writer.finish().unwrap()
}

/// A frame of 1 kB that makes 32 MiB: blocks of one repeated byte, 128 KiB each.
fn zstd_bomb() -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58]; // magic, no content size, window of 2 MiB
    for block in 0..250_u32 {
        let last = u32::from(block == 249);
        let head = last | 1 << 1 | (128 * 1024) << 3;
        frame.extend_from_slice(&head.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// A frame that claims 2^40 bytes and a window of as much.
fn zstd_claim() -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0]; // magic, content size of 8 bytes, single segment
    frame.extend_from_slice(&(1_u64 << 40).to_le_bytes());
    frame.extend_from_slice(&[1, 0, 0]);
    frame
}

fn snappy_bomb() -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(&vec![0; 4 * MIB]).unwrap()
}

/// Many small framed blocks, each below the limit.
fn xerial_bomb() -> Vec<u8> {
    let block = snap::raw::Encoder::new().compress_vec(&[0; 32 * 1024]).unwrap();
    let mut stream = vec![0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
    for _ in 0..1000 {
        stream.extend_from_slice(&(block.len() as u32).to_be_bytes());
        stream.extend_from_slice(&block);
    }
    stream
}

/// Largest resident size of this process so far.
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1024
}
