//! The header of a record batch as a value, read without touching the records.
//!
//! Parsing never allocates and never panics; every length is checked against the bytes at hand.
use super::layout as at;

/// Why bytes are not a valid record batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// `batch_length` is smaller than a header or larger than allowed.
    #[error("batch length {0} is out of range")]
    Length(i64),
    /// A format version other than 2.
    #[error("record format version {0} is not supported, only version 2 is")]
    Magic(i8),
    /// The bytes are not what the producer sent.
    #[error("CRC mismatch: stored {stored:#010x}, computed {computed:#010x}")]
    Crc {
        /// The CRC in the header.
        stored: u32,
        /// The CRC of the bytes.
        computed: u32,
    },
    /// Attributes name a codec that does not exist.
    #[error("unknown compression type {0}")]
    Codec(i16),
    /// The batch is larger than the caller allows.
    #[error("the batch has {size} bytes, more than the {max} allowed")]
    TooLarge {
        /// Bytes of the batch.
        size: u64,
        /// Bytes allowed.
        max: u64,
    },
    /// The records do not fit, once decompressed, into the bytes allowed.
    #[error("the records decompress to more than the {0} bytes allowed")]
    Decompressed(u64),
    /// The codec has no such level.
    #[error("{codec} has no compression level {level}")]
    Level {
        /// Name of the codec.
        codec: &'static str,
        /// The level asked for.
        level: i32,
    },
    /// Header fields contradict each other or the records.
    #[error("malformed batch: {0}")]
    Malformed(&'static str),
}

/// A batch header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Bytes after the length field; the whole batch has [`BatchHeader::size`] bytes.
    pub batch_length: i32,
    /// Epoch of the leader that appended it.
    pub partition_leader_epoch: i32,
    /// Stored CRC-32C.
    pub crc: u32,
    /// Attribute bits.
    pub attributes: i16,
    /// Last offset minus base offset.
    pub last_offset_delta: i32,
    /// Milliseconds since the epoch.
    pub base_timestamp: i64,
    /// Milliseconds since the epoch.
    pub max_timestamp: i64,
    /// -1 without idempotence.
    pub producer_id: i64,
    /// -1 without idempotence.
    pub producer_epoch: i16,
    /// -1 without idempotence.
    pub base_sequence: i32,
    /// Number of records in the batch.
    pub records_count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`; `None` when fewer than [`at::HEADER_LEN`] bytes are there.
    ///
    /// # Errors
    /// [`BatchError::Magic`] and [`BatchError::Length`]; the CRC is not looked at.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, BatchError> {
        let Some(head) = bytes.first_chunk::<{ at::HEADER_LEN }>() else {
            return Ok(None);
        };
        let header = Self {
            base_offset: i64::from_be_bytes(field(head, at::BASE_OFFSET)),
            batch_length: i32::from_be_bytes(field(head, at::BATCH_LENGTH)),
            partition_leader_epoch: i32::from_be_bytes(field(head, at::PARTITION_LEADER_EPOCH)),
            crc: u32::from_be_bytes(field(head, at::CRC)),
            attributes: i16::from_be_bytes(field(head, at::ATTRIBUTES)),
            last_offset_delta: i32::from_be_bytes(field(head, at::LAST_OFFSET_DELTA)),
            base_timestamp: i64::from_be_bytes(field(head, at::BASE_TIMESTAMP)),
            max_timestamp: i64::from_be_bytes(field(head, at::MAX_TIMESTAMP)),
            producer_id: i64::from_be_bytes(field(head, at::PRODUCER_ID)),
            producer_epoch: i16::from_be_bytes(field(head, at::PRODUCER_EPOCH)),
            base_sequence: i32::from_be_bytes(field(head, at::BASE_SEQUENCE)),
            records_count: i32::from_be_bytes(field(head, at::RECORDS_COUNT)),
        };
        let [magic] = field::<1>(head, at::MAGIC);
        if i8::from_be_bytes([magic]) != at::MAGIC_V2 {
            return Err(BatchError::Magic(i8::from_be_bytes([magic])));
        }
        if header.batch_length < (at::HEADER_LEN - at::LOG_OVERHEAD) as i32 {
            return Err(BatchError::Length(header.batch_length.into()));
        }
        Ok(Some(header))
    }

    /// Bytes of the whole batch, header and overhead included.
    pub fn size(&self) -> usize {
        at::LOG_OVERHEAD + self.batch_length as usize
    }

    /// Offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.wrapping_add(self.last_offset_delta.into())
    }

    /// Whether the batch is a transaction marker.
    pub fn is_control(&self) -> bool {
        self.attributes & at::ATTR_CONTROL != 0
    }

    /// Whether a mirror ended here: the producers of the batches before are another cluster's, which may have the same ids as those of the
    /// batches behind.
    pub fn ends_mirror(&self) -> bool {
        self.is_control() && self.producer_id == at::MIRROR_END_PRODUCER_ID
    }

    /// Whether the batch belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & at::ATTR_TRANSACTIONAL != 0
    }

    /// Whether it has records of a transaction. One without any is what compaction has left of a transaction that has ended, for
    /// its producer's sequences; the marker of that may be gone.
    pub fn has_records_of_transaction(&self) -> bool {
        self.is_transactional() && !self.is_control() && self.records_count > 0
    }

    /// Whether the timestamps are the broker's.
    pub fn is_log_append_time(&self) -> bool {
        self.attributes & at::ATTR_LOG_APPEND_TIME != 0
    }

    /// From when on compaction may remove the batch's tombstones or marker, milliseconds since the epoch; `None` as long
    /// as no cleaning has seen them.
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        (self.attributes & at::ATTR_DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }

    /// Corrects the largest timestamp of `batch`, which is this header's, and its CRC. Milliseconds since the epoch.
    pub fn set_max_timestamp(&mut self, batch: &mut [u8], max_timestamp: i64) {
        self.max_timestamp = max_timestamp;
        if let Some(slot) = batch.get_mut(at::MAX_TIMESTAMP..at::PRODUCER_ID) {
            slot.copy_from_slice(&max_timestamp.to_be_bytes());
        }
        self.crc = crc32c::crc32c(batch.get(at::ATTRIBUTES..).unwrap_or_default());
        if let Some(slot) = batch.get_mut(at::CRC..at::ATTRIBUTES) {
            slot.copy_from_slice(&self.crc.to_be_bytes());
        }
    }

    /// Compares the stored CRC with that of `batch`, which holds exactly this batch.
    ///
    /// # Errors
    /// [`BatchError::Crc`] when they differ, [`BatchError::Malformed`] when `batch` is shorter than the header.
    pub fn verify_crc(&self, batch: &[u8]) -> Result<(), BatchError> {
        let covered = batch.get(at::ATTRIBUTES..).ok_or(BatchError::Malformed("shorter than its header"))?;
        let computed = crc32c::crc32c(covered);
        if computed == self.crc { Ok(()) } else { Err(BatchError::Crc { stored: self.crc, computed }) }
    }
}

/// The `N` bytes at `start` of a header; `start + N <= HEADER_LEN` holds for every constant of `layout`.
fn field<const N: usize>(head: &[u8; at::HEADER_LEN], start: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&head[start..start + N]);
    out
}
