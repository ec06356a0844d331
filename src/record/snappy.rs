//! The two forms in which Kafka's clients send snappy: one bare block
//! (librdkafka), or the stream of the Java library `snappy-java`: a magic,
//! two version numbers, then blocks that each have a length before them.

use std::io::{self, Read, Write};

/// What a stream of `snappy-java` starts with.
const MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
/// Magic, version and lowest compatible version.
const STREAM_HEADER_LEN: usize = 16;
/// Decompressed bytes of one block, as `snappy-java` writes them.
const BLOCK_LEN: usize = 32 * 1024;
/// The densest element of the format makes 64 bytes out of 3, so that a block
/// which announces more than this many times its length lies.
const EXPANSION_MAX: usize = 22;

/// Decompresses either form, one block at a time.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    framed: bool,
    limit: usize,
    block: Vec<u8>,
    /// Position in `block` of the first byte not handed out.
    at: usize,
}

impl<'a> Reader<'a> {
    /// No block may announce more than `limit` bytes.
    pub(super) fn new(bytes: &'a [u8], limit: usize) -> Self {
        Self { rest: bytes, framed: bytes.starts_with(MAGIC), limit, block: Vec::new(), at: 0 }
    }

    fn next_block(&mut self) -> io::Result<()> {
        let block = if self.framed { self.next_frame()? } else { std::mem::take(&mut self.rest) };
        self.at = 0;
        self.block.clear();
        if block.is_empty() {
            return Ok(());
        }
        let announced = snap::raw::decompress_len(block).map_err(io::Error::other)?;
        if announced > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if announced > block.len().saturating_mul(EXPANSION_MAX) {
            return Err(invalid("a block announces more than it can hold"));
        }
        self.block.resize(announced, 0);
        let made = snap::raw::Decoder::new()
            .decompress(block, &mut self.block)
            .map_err(io::Error::other)?;
        self.block.truncate(made);
        Ok(())
    }

    /// The next block of a stream that has something in it; empty at the end.
    fn next_frame(&mut self) -> io::Result<&'a [u8]> {
        // Streams may be concatenated: each has its header.
        while self.rest.starts_with(MAGIC) {
            let header = self.rest.split_at_checked(STREAM_HEADER_LEN);
            self.rest = header.ok_or_else(|| invalid("the stream header is cut short"))?.1;
        }
        let Some((length, rest)) = self.rest.split_first_chunk::<4>() else {
            if self.rest.is_empty() {
                return Ok(&[]);
            }
            return Err(invalid("a block length is cut short"));
        };
        let length = usize::try_from(i32::from_be_bytes(*length)).ok().filter(|len| *len > 0);
        let block = length.and_then(|len| rest.split_at_checked(len));
        let (block, rest) = block.ok_or_else(|| invalid("a block length is out of range"))?;
        self.rest = rest;
        Ok(block)
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            if self.rest.is_empty() {
                return Ok(0);
            }
            self.next_block()?;
        }
        let count = out.len().min(self.block.len() - self.at);
        out[..count].copy_from_slice(&self.block[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Writes a stream as `snappy-java` does. Each write makes blocks of its own:
/// all but the last should be of whole blocks.
pub(super) struct Writer<W> {
    out: W,
    encoder: snap::raw::Encoder,
    scratch: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the stream's header.
    pub(super) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        out.write_all(&1i32.to_be_bytes())?;
        out.write_all(&1i32.to_be_bytes())?;
        let scratch = vec![0; snap::raw::max_compress_len(BLOCK_LEN)];
        Ok(Self { out, encoder: snap::raw::Encoder::new(), scratch })
    }
}

impl<W: Write> Write for Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for block in bytes.chunks(BLOCK_LEN) {
            let made = self.encoder.compress(block, &mut self.scratch).map_err(io::Error::other)?;
            self.out.write_all(&(made as i32).to_be_bytes())?;
            self.out.write_all(&self.scratch[..made])?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Writer::new(&mut out)?.write_all(bytes)?;
        Ok(out)
    }

    fn read_all(bytes: &[u8], limit: usize) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Reader::new(bytes, limit).read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn streams_of_several_blocks_and_concatenated_ones_are_read() {
        let text: Vec<u8> = (0..100_000u32).flat_map(|i| (i / 7).to_be_bytes()).collect();
        let stream = compress(&text).unwrap();
        assert!(stream.starts_with(MAGIC));
        assert_eq!(read_all(&stream, usize::MAX).unwrap(), text);
        let twice = [stream.clone(), stream].concat();
        assert_eq!(read_all(&twice, usize::MAX).unwrap(), [text.clone(), text].concat());
        assert_eq!(read_all(&compress(b"").unwrap(), 0).unwrap(), b"");
    }

    #[test]
    fn bare_blocks_are_read() {
        let block = snap::raw::Encoder::new().compress_vec(b"bare bare bare bare").unwrap();
        assert_eq!(read_all(&block, 100).unwrap(), b"bare bare bare bare");
        assert_eq!(read_all(&[0], 100).unwrap(), b"", "a block of nothing");
    }

    #[test]
    fn lies_about_lengths_allocate_nothing() {
        // Announces 4 GiB - 1.
        let block = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, b'x'];
        let error = read_all(&block, 1 << 20).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let error = read_all(&block, usize::MAX).unwrap_err();
        assert!(error.to_string().contains("more than it can hold"), "{error}");
        let stream = compress(b"something").unwrap();
        for cut in 1..stream.len() {
            // Cut inside the magic, it is a bare block, and not a sound one.
            assert!(
                read_all(&stream[..cut], 1 << 20).is_err() || cut == STREAM_HEADER_LEN,
                "{cut}"
            );
        }
        for length in [-1i32, i32::MIN, 0, 1000] {
            let mut lie = stream.clone();
            lie[16..20].copy_from_slice(&length.to_be_bytes());
            assert!(read_all(&lie, 1 << 20).is_err(), "{length}");
        }
    }
}
