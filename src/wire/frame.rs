//! Cuts a stream of bytes into frames of the protocol: four bytes of length,
//! then as many bytes.
//!
//! Stateless: the caller accumulates bytes in a buffer of its own and asks
//! after each arrival. The length is judged before the caller reserves
//! anything for the body (checklist 1).

use super::error::WireError;

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
            "frame of 11 bytes is over the limit of 10"
        );
    }
}
