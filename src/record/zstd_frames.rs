//! Zstandard frames (RFC 8878), one after the other, each as long as it says.
//!
//! The library compares the announced length with what came out, except when
//! it decompresses in several calls and the last block is empty. Readers that
//! decompress in one call, librdkafka among them, would then refuse what we
//! had accepted, so the comparison is made here as well.

use std::io::{self, Read};

use zstd::zstd_safe::{self, DCtx, InBuffer, OutBuffer, ResetDirective};

/// Decompresses frames.
pub(super) struct Reader<'a, 'z> {
    context: &'z mut DCtx<'static>,
    rest: &'a [u8],
    frame: Option<Frame>,
}

/// The frame that is being read.
struct Frame {
    announced: Option<u64>,
    made: u64,
}

impl<'a, 'z> Reader<'a, 'z> {
    /// Begins anew, whatever `context` was doing.
    pub(super) fn new(bytes: &'a [u8], context: &'z mut DCtx<'static>) -> Self {
        // What resets no parameters has no way to fail.
        let _ = context.reset(ResetDirective::SessionOnly);
        Self { context, rest: bytes, frame: None }
    }
}

impl Read for Reader<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut made = 0;
        // A step may make nothing: empty blocks, skippable frames.
        while made == 0 && !out.is_empty() && (self.frame.is_some() || !self.rest.is_empty()) {
            let rest = self.rest;
            let frame = self.frame.get_or_insert_with(|| Frame {
                announced: zstd_safe::get_frame_content_size(rest).ok().flatten(),
                made: 0,
            });
            let (mut input, mut output) = (InBuffer::around(rest), OutBuffer::around(&mut *out));
            let wanted =
                self.context.decompress_stream(&mut output, &mut input).map_err(error_of)?;
            made = output.pos();
            frame.made += made as u64;
            self.rest = &rest[input.pos()..];
            if wanted == 0 {
                let (announced, made) = (frame.announced, frame.made);
                self.frame = None;
                if announced.is_some_and(|announced| announced != made) {
                    return Err(invalid("a frame is not as long as it says"));
                }
            } else if made == 0 && self.rest.is_empty() {
                return Err(invalid("a frame is cut short"));
            }
        }
        Ok(made)
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn error_of(code: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, zstd_safe::get_error_name(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame that announces `announced` bytes (256 to 65,791) and has those
    /// of `body` in one block, then an empty one.
    fn frame(announced: usize, body: &[u8]) -> Vec<u8> {
        let block = (body.len() as u32) << 3;
        let announced = (announced - 256) as u16;
        let mut out = b"\x28\xb5\x2f\xfd\x60".to_vec();
        out.extend_from_slice(&announced.to_le_bytes());
        out.extend_from_slice(&block.to_le_bytes()[..3]);
        out.extend_from_slice(body);
        out.extend_from_slice(&[1, 0, 0]);
        out
    }

    /// All of `bytes`, read in pieces of at most `piece` bytes.
    fn read(bytes: &[u8], piece: usize) -> io::Result<Vec<u8>> {
        let mut context = DCtx::create();
        let mut reader = Reader::new(bytes, &mut context);
        let (mut made, mut buffer) = (Vec::new(), vec![0; piece]);
        while let count @ 1.. = reader.read(&mut buffer)? {
            made.extend_from_slice(&buffer[..count]);
        }
        Ok(made)
    }

    #[test]
    fn a_frame_is_as_long_as_it_says_however_it_is_read() {
        let body: Vec<u8> = (0..700u32).map(|i| (i / 3) as u8).collect();
        for piece in [1, 100, 699, 700, 701, 20_000, 70_000] {
            assert_eq!(read(&frame(700, &body), piece).unwrap(), body, "{piece}");
            let two = [frame(700, &body), frame(300, &body[..300])].concat();
            assert_eq!(read(&two, piece).unwrap(), [&body, &body[..300]].concat(), "{piece}");
            for announced in [300, 699, 701, 20_000, 65_000] {
                assert!(read(&frame(announced, &body), piece).is_err(), "{announced} {piece}");
                let second = [frame(700, &body), frame(announced, &body)].concat();
                assert!(read(&second, piece).is_err(), "{announced} {piece}");
            }
        }
    }

    #[test]
    fn frames_that_make_nothing_are_passed_over() {
        let skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc";
        let body = [7; 300];
        let bytes = [&skippable[..], &frame(300, &body), skippable].concat();
        assert_eq!(read(&bytes, 64).unwrap(), body);
        assert_eq!(read(&[], 64).unwrap(), []);
        assert!(read(&bytes[..bytes.len() - 1], 64).is_err());
    }

    #[test]
    fn a_context_forgets_what_it_was_doing() {
        let body = [7; 300];
        let bytes = frame(300, &body);
        let mut context = DCtx::create();
        Reader::new(&bytes, &mut context).read_exact(&mut [0; 10]).unwrap();
        let mut made = Vec::new();
        Reader::new(&bytes, &mut context).read_to_end(&mut made).unwrap();
        assert_eq!(made, body);
    }
}
