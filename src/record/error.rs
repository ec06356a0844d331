//! What can be wrong with the bytes of a batch. Each variant names the place,
//! so that a message made from it is enough to find the culprit.

use super::codec::Compression;

/// A batch, or a part of it, that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The bytes end before the batch does; more bytes may make it whole.
    #[error("batch needs {needed} bytes, {available} are there")]
    Incomplete {
        /// Bytes that the batch, or its length field, needs.
        needed: usize,
        /// Bytes that are there.
        available: usize,
    },
    /// The length field announces less than a header.
    #[error("batch length field (byte 8) is {length}, a batch has at least {min}", min = super::header::LENGTH_MIN)]
    LengthTooSmall {
        /// The length field as read.
        length: i32,
    },
    /// A format other than 2.
    #[error("batch has magic {magic} (byte 16), only 2 is read")]
    UnsupportedMagic {
        /// The magic byte as read.
        magic: i8,
    },
    /// The attributes name no compression that exists.
    #[error("batch attributes (byte 21) name compression {id}, known are 0 to 4")]
    UnknownCompression {
        /// The lowest three bits of the attributes.
        id: u8,
    },
    /// A compressed part that its own format does not allow.
    #[error("{codec} data cannot be decompressed: {reason}")]
    Decompress {
        /// The format.
        codec: Compression,
        /// What its reader said.
        reason: String,
    },
    /// Decompression went past the caller's limit and was stopped there.
    #[error("{codec} data grows past the limit of {limit} bytes")]
    DecompressedTooLarge {
        /// The format.
        codec: Compression,
        /// The caller's limit, in bytes.
        limit: usize,
    },
    /// Compression made more than the caller's limit and was stopped there.
    #[error("{codec} makes more than {limit} bytes out of {fed} of {of} bytes")]
    CompressedTooLarge {
        /// The format.
        codec: Compression,
        /// The caller's limit, in bytes.
        limit: usize,
        /// Bytes that the compressor had taken when it was stopped.
        fed: usize,
        /// Bytes that there were.
        of: usize,
    },
    /// A compressor failed, which only memory exhaustion can make it do.
    #[error("{codec} compression failed: {reason}")]
    Compress {
        /// The format.
        codec: Compression,
        /// What the compressor said.
        reason: String,
    },
    /// A record whose bytes contradict each other.
    #[error("record {index}, byte {at} of the records: {fault}")]
    Record {
        /// Position of the record in its batch, from 0.
        index: i32,
        /// Position in the (decompressed) bytes of the records.
        at: usize,
        /// What is wrong there.
        fault: Fault,
    },
}

/// What is wrong with one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// The bytes end inside the record.
    #[error("the bytes end inside a record")]
    Truncated,
    /// A varint with more bits than its type, or more bytes than that takes.
    #[error("a varint does not fit its type")]
    Varint,
    /// A negative record length.
    #[error("record length is {0}")]
    NegativeLength(i32),
    /// The fields do not end where the record length says.
    #[error("record length and the fields disagree by {0} bytes")]
    Length(i64),
    /// Offsets of a batch from a producer run 0, 1, 2 and so on.
    #[error("offset delta is {0}, not the index of the record")]
    OffsetDelta(i32),
    /// A header count below zero or above what the rest of the record can hold.
    #[error("header count is {0}")]
    HeaderCount(i32),
    /// A header without a key.
    #[error("a header has key length {0}")]
    HeaderKey(i32),
    /// Bytes left over after the last record.
    #[error("bytes are left after the last record")]
    TrailingBytes,
}
