//! The four compressions of batches, each behind a limit on what comes out.
//!
//! What each is in Kafka: gzip members, snappy as `snappy-java` streams or bare
//! blocks, lz4 in its frame format with independent blocks, zstd frames (since
//! KIP-110). What is written is what every client reads.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read, Write};

use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use zstd::zstd_safe::DCtx;

use super::error::Error;
use super::{snappy, zstd_frames};

/// How the records of a batch are compressed. Numbers are those of the
/// attributes, names those of Kafka's `compression.type`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Compression {
    /// Not at all.
    #[default]
    None = 0,
    /// RFC 1952.
    Gzip = 1,
    /// See `snappy.rs`.
    Snappy = 2,
    /// LZ4 frames, not bare blocks.
    Lz4 = 3,
    /// RFC 8878.
    Zstd = 4,
}

impl Compression {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The number in the attributes of a batch.
    #[must_use]
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The compression with this number.
    ///
    /// # Errors
    /// [`Error::UnknownCompression`] above 4.
    pub fn from_id(id: u8) -> Result<Self, Error> {
        Self::ALL.get(usize::from(id)).copied().ok_or(Error::UnknownCompression { id })
    }

    /// Kafka's name, with `none` for no compression.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Compresses `bytes`, each format at the level that Kafka's clients use by
/// default.
///
/// # Errors
/// [`Error::Compress`].
pub fn compress(codec: Compression, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let made = match codec {
        Compression::None => Ok(bytes.to_vec()),
        Compression::Gzip => gzip(bytes),
        Compression::Snappy => snappy::compress(bytes),
        Compression::Lz4 => lz4(bytes),
        Compression::Zstd => zstd::bulk::compress(bytes, zstd::DEFAULT_COMPRESSION_LEVEL),
    };
    made.map_err(|error| Error::Compress { codec, reason: error.to_string() })
}

/// Decompresses `bytes` into at most `limit` bytes; what is not compressed is
/// borrowed, whatever its length. Memory grows with what has been
/// decompressed, never with what is announced.
///
/// # Errors
/// [`Error::Decompress`] or [`Error::DecompressedTooLarge`].
pub fn decompress(codec: Compression, bytes: &[u8], limit: usize) -> Result<Cow<'_, [u8]>, Error> {
    let mut contexts = Contexts::default();
    decompress_with(&mut contexts, codec, bytes, limit)
}

/// [`decompress`], with contexts that are used again.
pub(super) fn decompress_with<'a>(
    contexts: &mut Contexts,
    codec: Compression,
    bytes: &'a [u8],
    limit: usize,
) -> Result<Cow<'a, [u8]>, Error> {
    if codec == Compression::None {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut out = Vec::with_capacity(limit.min(bytes.len().saturating_mul(4)));
    let one_more = (limit as u64).saturating_add(1);
    let read = contexts.decoder(codec, bytes, limit).take(one_more).read_to_end(&mut out);
    read.map_err(|error| decompress_error(codec, limit, &error))?;
    if out.len() > limit {
        return Err(Error::DecompressedTooLarge { codec, limit });
    }
    Ok(Cow::Owned(out))
}

/// What a reader of a codec said, as this layer's error.
pub(super) fn decompress_error(codec: Compression, limit: usize, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::FileTooLarge {
        return Error::DecompressedTooLarge { codec, limit };
    }
    Error::Decompress { codec, reason: error.to_string() }
}

/// State of decompressors that is costly to make and can be used again.
#[derive(Default)]
pub(super) struct Contexts {
    zstd: Option<DCtx<'static>>,
}

impl Contexts {
    /// A reader of the decompressed bytes. The caller counts them; `limit` is
    /// for formats that decompress whole blocks.
    pub(super) fn decoder<'a, 'z>(
        &'z mut self,
        codec: Compression,
        bytes: &'a [u8],
        limit: usize,
    ) -> Decoder<'a, 'z> {
        match codec {
            Compression::None => Decoder::None(bytes),
            Compression::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(bytes))),
            Compression::Snappy => Decoder::Snappy(snappy::Reader::new(bytes, limit)),
            Compression::Lz4 => Decoder::Lz4(Box::new(FrameDecoder::new(EndMarked(bytes)))),
            Compression::Zstd => {
                // A frame may ask for a window of 128 MiB (level 22 does). The
                // library reserves that and touches what it fills, so that
                // the limit on the output bounds the memory in use as well.
                let context = self.zstd.get_or_insert_with(DCtx::create);
                Decoder::Zstd(zstd_frames::Reader::new(bytes, context))
            }
        }
    }
}

/// Reads what one codec decompresses.
pub(super) enum Decoder<'a, 'z> {
    None(&'a [u8]),
    Gzip(Box<MultiGzDecoder<&'a [u8]>>),
    Snappy(snappy::Reader<'a>),
    Lz4(Box<FrameDecoder<EndMarked<'a>>>),
    Zstd(zstd_frames::Reader<'a, 'z>),
}

impl Read for Decoder<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::None(bytes) => bytes.read(out),
            Self::Gzip(reader) => reader.read(out),
            Self::Snappy(reader) => reader.read(out),
            Self::Lz4(reader) => reader.read(out),
            Self::Zstd(reader) => reader.read(out),
        }
    }
}

/// Input of an LZ4 frame. The decoder takes missing bytes for the end of the
/// frame, which Java's refuses: a batch without an end mark would be accepted
/// and then stop every Java consumer. After the end mark nobody reads on.
pub(super) struct EndMarked<'a>(&'a [u8]);

impl Read for EndMarked<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() && !out.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no end mark"));
        }
        self.0.read(out)
    }
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let out = Vec::with_capacity(bytes.len() / 2);
    let mut encoder = GzEncoder::new(out, flate2::Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn lz4(bytes: &[u8]) -> io::Result<Vec<u8>> {
    // Java's reader refuses linked blocks.
    let info = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::with_capacity(bytes.len() / 2));
    encoder.write_all(bytes)?;
    encoder.finish().map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Vec<u8> {
        (0..20_000u32)
            .flat_map(|i| format!("line {} of the text\n", i % 777).into_bytes())
            .collect()
    }

    #[test]
    fn every_codec_round_trips() {
        let text = text();
        for codec in Compression::ALL {
            for len in [0, 1, 100, 32 * 1024, 64 * 1024, 64 * 1024 + 1, text.len()] {
                let packed = compress(codec, &text[..len]).unwrap();
                let back = decompress(codec, &packed, text.len()).unwrap();
                assert_eq!(back, &text[..len], "{codec} {len}");
            }
        }
    }

    #[test]
    fn the_limit_is_exact() {
        let text = text();
        for codec in &Compression::ALL[1..] {
            let packed = compress(*codec, &text).unwrap();
            assert!(decompress(*codec, &packed, text.len()).is_ok());
            assert_eq!(
                decompress(*codec, &packed, text.len() - 1),
                Err(Error::DecompressedTooLarge { codec: *codec, limit: text.len() - 1 })
            );
        }
    }

    #[test]
    fn bytes_cut_short_are_never_whole() {
        let text = text();
        for codec in &Compression::ALL[1..] {
            let packed = compress(*codec, &text[..100_000]).unwrap();
            for cut in (0..packed.len()).step_by(7) {
                let made = decompress(*codec, &packed[..cut], text.len());
                assert!(
                    made.is_err() || made.is_ok_and(|made| made.len() < 100_000),
                    "{codec} {cut}"
                );
            }
        }
    }

    #[test]
    fn names_and_numbers_are_kafkas() {
        for (id, name) in ["none", "gzip", "snappy", "lz4", "zstd"].iter().enumerate() {
            let codec = Compression::from_id(id as u8).unwrap();
            assert_eq!((codec.id(), codec.name()), (id as u8, *name));
        }
        assert_eq!(Compression::from_id(5), Err(Error::UnknownCompression { id: 5 }));
    }
}
