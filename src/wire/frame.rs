//! Cuts a stream of bytes into frames of the protocol: four bytes of length,
//! then as many bytes.
//!
//! Stateless: the caller accumulates bytes in a buffer of its own and asks
//! after each arrival. The length is judged before the caller reserves
//! anything for the body (checklist 1).

use super::error::WireError;
use super::generated::ApiKey;
use super::header::{RequestHeader, ResponseHeader};
use super::message::{Request, Response};
use super::writer::Writer;

/// Bytes of the length field in front of each frame.
pub const LENGTH_BYTES: usize = 4;

/// What the bytes at hand hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Split {
    /// The length field itself is not complete.
    NeedLength,
    /// The frame's body has this many bytes, and not all are here yet.
    NeedBody {
        /// Length of the body in bytes, within the limit.
        length: usize,
    },
    /// A whole frame: its body is `LENGTH_BYTES..LENGTH_BYTES + length`.
    Whole {
        /// Length of the body in bytes.
        length: usize,
    },
}

/// Judges the four length bytes: `socket.request.max.bytes` is `limit`.
pub fn check_length(announced: i32, limit: usize) -> Result<usize, WireError> {
    let length = usize::try_from(announced).map_err(|_| WireError::NegativeFrame(announced))?;
    if length > limit {
        return Err(WireError::FrameTooLong { length, limit });
    }
    Ok(length)
}

/// Looks at the start of the accumulated bytes.
pub fn split(accumulated: &[u8], limit: usize) -> Result<Split, WireError> {
    let Some(prefix) = accumulated.first_chunk::<LENGTH_BYTES>() else {
        return Ok(Split::NeedLength);
    };
    let length = check_length(i32::from_be_bytes(*prefix), limit)?;
    if accumulated.len() - LENGTH_BYTES < length {
        return Ok(Split::NeedBody { length });
    }
    Ok(Split::Whole { length })
}

/// Appends the length (to be filled in) and the response header; returns
/// where the frame starts, for [`end_response`].
pub fn begin_response(out: &mut Vec<u8>, key: ApiKey, version: i16, correlation_id: i32) -> usize {
    let start = out.len();
    let mut writer = Writer::new(out);
    writer.int32(0);
    ResponseHeader { correlation_id }.write(&mut writer, key, version);
    start
}

/// Fills in the length of the frame that starts at `start` and ends where
/// `out` ends, plus `elsewhere` bytes that are sent from another place.
pub fn end_response(out: &mut Vec<u8>, start: usize, elsewhere: usize) -> Result<(), WireError> {
    let length = out.len() - start - LENGTH_BYTES + elsewhere;
    let length = i32::try_from(length).map_err(|_| WireError::TooLong(length))?;
    Writer::new(out).patch_int32(start, length);
    Ok(())
}

/// Appends a whole response frame. On an error `out` is as it was.
pub fn write_response<M: Response>(
    out: &mut Vec<u8>,
    version: i16,
    correlation_id: i32,
    body: &M,
) -> Result<(), WireError> {
    out.reserve(LENGTH_BYTES + ResponseHeader::size(M::KEY, version) + body.size(version));
    let start = begin_response(out, M::KEY, version, correlation_id);
    let written = body.write(&mut Writer::new(out), version);
    written.and_then(|()| end_response(out, start, 0)).inspect_err(|_| out.truncate(start))
}

/// Appends a whole request frame. On an error `out` is as it was.
pub fn write_request<M: Request>(
    out: &mut Vec<u8>,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    body: &M,
) -> Result<(), WireError> {
    let start = out.len();
    let header = RequestHeader {
        key: M::KEY,
        version,
        correlation_id,
        client_id: client_id.map(std::borrow::Cow::Borrowed),
    };
    out.reserve(LENGTH_BYTES + header.size() + body.size(version));
    let mut writer = Writer::new(out);
    writer.int32(0);
    let written = header.write(&mut writer).and_then(|()| body.write(&mut writer, version));
    written.and_then(|()| end_response(out, start, 0)).inspect_err(|_| out.truncate(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_the_length_before_the_body() {
        assert_eq!(split(&[0, 0, 0], 10), Ok(Split::NeedLength));
        assert_eq!(split(&[0, 0, 0, 2, 9], 10), Ok(Split::NeedBody { length: 2 }));
        assert_eq!(split(&[0, 0, 0, 2, 9, 9, 9], 10), Ok(Split::Whole { length: 2 }));
        assert_eq!(split(&[0, 0, 0, 0], 10), Ok(Split::Whole { length: 0 }));
        assert_eq!(split(&[0xff; 4], 10), Err(WireError::NegativeFrame(-1)));
        assert_eq!(
            split(&0x7fff_ffff_i32.to_be_bytes(), 100),
            Err(WireError::FrameTooLong { length: 0x7fff_ffff, limit: 100 })
        );
        assert_eq!(
            split(&[0, 0, 0, 11], 10).unwrap_err().to_string(),
            "frame of 11 bytes is over the limit of 10 (socket.request.max.bytes)"
        );
    }
}
