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

/// Bytes that a compressor gets at a time, and so about how far it goes on
/// after its output has passed a limit.
const FED_AT_A_TIME: usize = 64 * 1024;

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
    compress_within(codec, bytes, usize::MAX)
}

/// [`compress`] into at most `limit` bytes: it stops as soon as more came out.
///
/// # Errors
/// [`Error::Compress`] or [`Error::CompressedTooLarge`].
pub(super) fn compress_within(
    codec: Compression,
    bytes: &[u8],
    limit: usize,
) -> Result<Vec<u8>, Error> {
    let mut fed = 0;
    let out = Bounded { bytes: Vec::with_capacity(limit.min(bytes.len() / 2)), limit };
    let made = match codec {
        Compression::None => none(bytes, out, &mut fed),
        Compression::Gzip => gzip(bytes, out, &mut fed),
        Compression::Snappy => snappy(bytes, out, &mut fed),
        Compression::Lz4 => lz4(bytes, out, &mut fed),
        Compression::Zstd => zstd(bytes, out, &mut fed),
    };
    made.map(|out| out.bytes).map_err(|error| {
        if error.kind() == io::ErrorKind::FileTooLarge {
            return Error::CompressedTooLarge { codec, limit, fed, of: bytes.len() };
        }
        Error::Compress { codec, reason: error.to_string() }
    })
}

/// Decompresses `bytes` into at most `limit` bytes; what is not compressed is
/// borrowed, whatever its length. Memory grows with what has been
/// decompressed, never with what is announced.
///
/// # Errors
/// [`Error::Decompress`] or [`Error::DecompressedTooLarge`].
pub fn decompress(codec: Compression, bytes: &[u8], limit: usize) -> Result<Cow<'_, [u8]>, Error> {
    if codec == Compression::None {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut out = Vec::new();
    decompress_with(&mut Contexts::default(), codec, bytes, limit, &mut out)?;
    Ok(Cow::Owned(out))
}

/// [`decompress`] to the end of `out`, with contexts that are used again. What
/// was decompressed is there even if it failed, so that it can be counted.
pub(super) fn decompress_with(
    contexts: &mut Contexts,
    codec: Compression,
    bytes: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    out.reserve(limit.min(bytes.len().saturating_mul(4)));
    let one_more = (limit as u64).saturating_add(1);
    let read = contexts.decoder(codec, bytes, limit).take(one_more).read_to_end(out);
    match read {
        Ok(count) if count > limit => Err(Error::DecompressedTooLarge { codec, limit }),
        Ok(_) => Ok(()),
        Err(error) => Err(decompress_error(codec, limit, &error)),
    }
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

/// What a compressor made, up to a limit.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Feeds `bytes` piece by piece, counting them in `fed`.
fn feed(encoder: &mut impl Write, bytes: &[u8], fed: &mut usize) -> io::Result<()> {
    for piece in bytes.chunks(FED_AT_A_TIME) {
        *fed += piece.len();
        encoder.write_all(piece)?;
    }
    Ok(())
}

fn none(bytes: &[u8], mut out: Bounded, fed: &mut usize) -> io::Result<Bounded> {
    feed(&mut out, bytes, fed)?;
    Ok(out)
}

fn gzip(bytes: &[u8], out: Bounded, fed: &mut usize) -> io::Result<Bounded> {
    let mut encoder = GzEncoder::new(out, flate2::Compression::default());
    feed(&mut encoder, bytes, fed)?;
    encoder.finish()
}

fn snappy(bytes: &[u8], mut out: Bounded, fed: &mut usize) -> io::Result<Bounded> {
    let mut encoder = snappy::Writer::new(&mut out)?;
    feed(&mut encoder, bytes, fed)?;
    Ok(out)
}

fn zstd(bytes: &[u8], out: Bounded, fed: &mut usize) -> io::Result<Bounded> {
    let mut encoder = zstd::stream::write::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    // The frame says its length, and small ones get small tables.
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    feed(&mut encoder, bytes, fed)?;
    encoder.finish()
}

fn lz4(bytes: &[u8], out: Bounded, fed: &mut usize) -> io::Result<Bounded> {
    // Java's reader refuses linked blocks.
    let info = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    feed(&mut encoder, bytes, fed)?;
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
    fn the_limit_of_what_comes_out_is_exact() {
        let text = text();
        for codec in Compression::ALL {
            let made = compress(codec, &text).unwrap();
            assert_eq!(compress_within(codec, &text, made.len()), Ok(made.clone()), "{codec}");
            let limit = made.len() - 1;
            let error = compress_within(codec, &text, limit).unwrap_err();
            assert!(
                matches!(error, Error::CompressedTooLarge { limit: of, .. } if of == limit),
                "{codec} {error}"
            );
        }
    }

    /// What a compressor has taken when it stops is what made the output, and
    /// not much more, however much there is.
    #[test]
    fn a_compressor_stops_soon_after_the_limit() {
        let mut state = 1_u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(8 << 20)
        .collect();
        for codec in Compression::ALL {
            match compress_within(codec, &noise, 1 << 20) {
                Err(Error::CompressedTooLarge { fed, of, .. }) => {
                    let range = (1 << 20)..(1 << 20) + (512 << 10);
                    assert!(range.contains(&fed), "{codec} was fed {fed}");
                    assert_eq!(of, noise.len());
                }
                other => panic!("{codec}: {:?}", other.map(|made| made.len())),
            }
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
