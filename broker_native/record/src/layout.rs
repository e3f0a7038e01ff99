//! Byte layout of a v2 record batch (Kafka's `DefaultRecordBatch`), all integers big-endian.
//!
//! ```text
//! base_offset i64 | batch_length i32 | partition_leader_epoch i32 | magic i8 | crc u32 |
//! attributes i16 | last_offset_delta i32 | base_timestamp i64 | max_timestamp i64 |
//! producer_id i64 | producer_epoch i16 | base_sequence i32 | records_count i32 | records...
//! ```
//! `batch_length` counts the bytes after itself. The CRC-32C covers everything from `attributes` to the end; the
//! leader epoch and the base offset stand before it so that a broker can set both without computing it again.
//!
//! | attribute bits | meaning |
//! |---|---|
//! | 0-2 | compression: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd |
//! | 3 | timestamp type: 0 create time, 1 log append time |
//! | 4 | transactional |
//! | 5 | control batch |
//! | 6 | base timestamp is the delete horizon |

/// Offset of the first record.
pub const BASE_OFFSET: usize = 0;
/// Bytes that follow the length field.
pub const BATCH_LENGTH: usize = BASE_OFFSET + 8;
/// Epoch of the leader that appended the batch.
pub const PARTITION_LEADER_EPOCH: usize = BATCH_LENGTH + 4;
/// Format version, always [`MAGIC_V2`].
pub const MAGIC: usize = PARTITION_LEADER_EPOCH + 4;
/// CRC-32C of all that follows it.
pub const CRC: usize = MAGIC + 1;
/// Bit set, see the module's table.
pub const ATTRIBUTES: usize = CRC + 4;
/// Offset of the last record minus the base offset.
pub const LAST_OFFSET_DELTA: usize = ATTRIBUTES + 2;
/// Timestamp that the records' deltas are added to.
pub const BASE_TIMESTAMP: usize = LAST_OFFSET_DELTA + 4;
/// Largest timestamp of the batch.
pub const MAX_TIMESTAMP: usize = BASE_TIMESTAMP + 8;
/// Producer id, -1 without idempotence.
pub const PRODUCER_ID: usize = MAX_TIMESTAMP + 8;
/// Producer epoch, -1 without idempotence.
pub const PRODUCER_EPOCH: usize = PRODUCER_ID + 8;
/// Sequence of the first record, -1 without idempotence.
pub const BASE_SEQUENCE: usize = PRODUCER_EPOCH + 2;
/// Number of records.
pub const RECORDS_COUNT: usize = BASE_SEQUENCE + 4;
/// First byte of the (maybe compressed) records.
pub const RECORDS: usize = RECORDS_COUNT + 4;

/// Length of a batch's header.
pub const HEADER_LEN: usize = RECORDS;
/// `base_offset` and `batch_length`: what is not counted by `batch_length`.
pub const LOG_OVERHEAD: usize = PARTITION_LEADER_EPOCH;
/// The only format version that is written or read.
pub const MAGIC_V2: i8 = 2;

/// Mask of the compression bits.
pub const ATTR_COMPRESSION_MASK: i16 = 0x07;
/// Timestamps are the broker's append time.
pub const ATTR_LOG_APPEND_TIME: i16 = 0x08;
/// The batch belongs to a transaction.
pub const ATTR_TRANSACTIONAL: i16 = 0x10;
/// The batch holds a transaction marker, no user data.
pub const ATTR_CONTROL: i16 = 0x20;
/// The base timestamp is the delete horizon: when tombstones and markers of the batch may go.
pub const ATTR_DELETE_HORIZON: i16 = 0x40;

/// The timestamp of a record that has none.
pub const NO_TIMESTAMP: i64 = -1;
/// No producer has it: that of the control batch at which a mirror ended.
pub const MIRROR_END_PRODUCER_ID: i64 = -2;
