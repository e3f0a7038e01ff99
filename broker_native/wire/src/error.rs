//! Why bytes are not a message, or a message not bytes.
//!
//! A peer's bytes never cause anything but one of these values: no panic, no large allocation. A server answers a
//! [`WireError`] by closing the connection (there is no answer to a request that cannot be read); the one exception
//! is an unknown version of ApiVersions, see [`super::header`].

/// One reason; `at` is the byte position in the frame, after the length prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The frame ends inside a value.
    #[error(
        "the frame ends at byte {at} where {needed} more bytes are needed: the sender cut it or uses another layout"
    )]
    Truncated {
        /// Where the value starts.
        at: usize,
        /// Bytes the value has to have.
        needed: usize,
    },
    /// A length or count that the bytes left in the frame cannot hold.
    #[error(
        "length {claimed} at byte {at} cannot be true with {left} bytes left: the sender uses another layout"
    )]
    Length {
        /// Where the length is written.
        at: usize,
        /// What it says.
        claimed: i64,
        /// Bytes after it.
        left: usize,
    },
    /// More elements than any message may have.
    #[error(
        "{claimed} elements at byte {at} are more than a message may have ({most}): split it into smaller requests"
    )]
    TooMany {
        /// Where their number is written.
        at: usize,
        /// What it says.
        claimed: usize,
        /// How many there may be.
        most: usize,
    },
    /// The decoded form would need more memory than the reader may take.
    #[error(
        "the message needs more than {limit_bytes} bytes of memory at byte {at}: split it into smaller requests"
    )]
    Memory {
        /// Where the array or string starts.
        at: usize,
        /// What the reader may take, in bytes.
        limit_bytes: usize,
    },
    /// A null where the protocol has none in this version.
    #[error("field {field} must not be null in version {version}: give it a value or use a newer version")]
    Null {
        /// Name of the field.
        field: &'static str,
        /// Version of the message.
        version: i16,
    },
    /// Text that is not UTF-8.
    #[error("the text at byte {at} is not UTF-8: encode it so")]
    Utf8 {
        /// Where the text starts.
        at: usize,
    },
    /// A variable-length integer of more than 32 bits.
    #[error("the variable-length integer at byte {at} has more than 32 bits: the sender uses another layout")]
    Varint {
        /// Where it starts.
        at: usize,
    },
    /// Bytes that no field claims.
    #[error("{left} bytes are left over after byte {at}: the sender uses another layout")]
    Trailing {
        /// Where the message or tagged field ended.
        at: usize,
        /// Bytes not read.
        left: usize,
    },
    /// A version this codec has no layout for.
    #[error("{message} version {version} is not supported: use a version from {min} to {max}")]
    Version {
        /// Name of the message.
        message: &'static str,
        /// The version asked for.
        version: i16,
        /// Oldest version known.
        min: i16,
        /// Newest version known.
        max: i16,
    },
    /// A value too long for its length field.
    #[error("a value of {len} bytes or elements does not fit its length field: the protocol allows {max}")]
    TooLong {
        /// Length of the value.
        len: usize,
        /// The largest that can be written.
        max: usize,
    },
}
