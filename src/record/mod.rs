//! Record batches of format 2 (KIP-98): reading them in place, iterating and
//! building them, their checksum, their four compressions, and the checks that
//! a batch must pass before it is appended.
//!
//! Everything here is pure: bytes in, values out, on whatever core calls. The
//! layer knows neither requests, nor files, nor partitions; it knows what one
//! batch is. Bytes from outside are hostile until [`validate_produce`] (or a
//! [`BatchView`] plus [`RecordIter`]) has said otherwise: no input makes it
//! panic, and no announced length is believed before the bytes are there.
//!
//! The two older formats are not read at all: since Kafka 4.0 no client that
//! still works sends them (KIP-724).

pub mod build;
pub mod codec;
mod crc;
mod error;
mod header;
mod iter;
mod snappy;
mod validate;
mod varint;
mod walk;
mod zstd_frames;

pub use build::{BatchBuilder, ControlType, NewRecord};
pub use codec::{Compression, compress, decompress};
pub use crc::{Crc32c, crc32c};
pub use error::{Error, Fault};
pub use header::{
    BatchIter, BatchSummary, BatchView, HEADER_LEN, LOG_OVERHEAD, TimestampType, batches,
    patch_base, patch_log_append_time, patch_max_timestamp,
};
pub use iter::{Header, HeaderIter, Record, RecordIter};
pub use validate::{
    FinalBytes, ProduceRules, RECORD_ERRORS_MAX, Rejected, TargetCompression, Validated, Validator,
    validate_produce,
};
