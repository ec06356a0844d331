//! Frames out of a stream of bytes, in a buffer that is used again.

use std::io::{ErrorKind, Read};

use millstream::wire::frame::{LENGTH_BYTES, Split, split};

use crate::Result;

/// Longest frame that is believed, in bytes.
const FRAME_MAX: usize = 256 << 20;

/// Received bytes that are not used up.
pub(crate) struct Frames {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// What a read brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Got {
    /// So many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The peer sends no more.
    End,
}

impl Frames {
    /// A buffer of `capacity` bytes, which grows with the frames.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { buffer: vec![0; capacity], start: 0, end: 0 }
    }

    /// Reads once.
    pub(crate) fn fill(&mut self, mut from: impl Read) -> Result<Got> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.end == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        match from.read(&mut self.buffer[self.end..]) {
            Ok(0) => Ok(Got::End),
            Ok(count) => {
                self.end += count;
                Ok(Got::Bytes(count))
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(Got::Nothing),
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(Got::Nothing),
            Err(e) => Err(e.into()),
        }
    }

    /// The next whole frame without its length.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>> {
        match split(&self.buffer[self.start..self.end], FRAME_MAX)? {
            Split::Whole { length } => {
                let body = self.start + LENGTH_BYTES;
                self.start = body + length;
                Ok(Some(&self.buffer[body..body + length]))
            }
            Split::NeedLength => Ok(None),
            Split::NeedBody { length } => {
                let need = LENGTH_BYTES + length;
                if self.buffer.len() < need {
                    self.buffer.resize(need, 0);
                }
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_any_size_come_out_whole() {
        let bodies: Vec<Vec<u8>> = [0usize, 1, 7, 64, 1000, 3].map(|n| vec![n as u8; n]).to_vec();
        let stream: Vec<u8> =
            bodies.iter().flat_map(|b| [&(b.len() as u32).to_be_bytes()[..], b].concat()).collect();
        for piece in [1, 3, 16, 5000] {
            let mut frames = Frames::new(16);
            let mut got = Vec::new();
            let mut chunks = stream.chunks(piece);
            let mut rest: &[u8] = &[];
            loop {
                if rest.is_empty() {
                    let Some(next) = chunks.next() else { break };
                    rest = next;
                }
                assert!(matches!(frames.fill(&mut rest).unwrap(), Got::Bytes(_)));
                while let Some(frame) = frames.next().unwrap() {
                    got.push(frame.to_vec());
                }
            }
            assert_eq!(got, bodies, "pieces of {piece} bytes");
            assert_eq!(frames.fill(&mut rest).unwrap(), Got::End);
        }
    }
}
