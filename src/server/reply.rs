//! Encoded replies: length prefix, header, body.

use crate::wire::{ApiKey, Message, WireError, Writer, frame};

/// A request's identity, as far as its reply needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReplyTo {
    pub(super) key: ApiKey,
    pub(super) version: i16,
    pub(super) correlation_id: i32,
}

/// Starts a reply in `out`: room for the length prefix, then the header.
/// Returns where it starts, for [`end`].
pub(super) fn begin(out: &mut Vec<u8>, to: ReplyTo) -> usize {
    frame::begin_response(out, to.key, to.version, to.correlation_id)
}

/// Writes the length prefix of the reply that began at `start`; `beyond` bytes
/// of it follow elsewhere (record slices).
pub(super) fn end(out: &mut Vec<u8>, start: usize, beyond: usize) -> Result<(), WireError> {
    frame::end_response(out, start, beyond)
}

/// A whole reply. A body that cannot be encoded is a bug of its handler; the
/// error names it and the connection is closed.
pub(super) fn encode<M: Message>(to: ReplyTo, body: &M) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(16 + body.size(to.version));
    let start = begin(&mut out, to);
    body.write(&mut Writer::new(&mut out), to.version)
        .map_err(|e| format!("{} version {} cannot be encoded: {e}", M::NAME, to.version))?;
    end(&mut out, start, 0).map_err(|e| format!("{}: {e}", M::NAME))?;
    Ok(out)
}
