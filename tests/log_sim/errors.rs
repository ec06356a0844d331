//! What an injected I/O error calls for: the reason with which the process has
//! to end, or an error to one reader. Anything else is a broken promise, and
//! so is silence.

use std::path::Path;

use millstream::io::sim::{FaultOp, Hit};
use millstream::log::{Error, FatalReason};

/// Whether the process has to end on it: what passes by itself is waited for.
pub(crate) fn ends_process(hit: &Hit) -> bool {
    let passes = [libc::ENOSPC, libc::EDQUOT, libc::EMFILE, libc::ENFILE].contains(&hit.errno);
    matches!(hit.op, FaultOp::Write | FaultOp::Sync) && !passes
}

/// Whether `error` is what one of the faults calls for: the right kind, about
/// the right file.
pub(crate) fn called_for(hits: &[Hit], error: &Error) -> bool {
    hits.iter().any(|hit| match error {
        Error::Fatal { reason, detail } => {
            reasons(hit).contains(reason) && detail.contains(stem(&hit.path))
        }
        Error::Io { path, .. } | Error::Unreadable { path, .. } => {
            hit.op == FaultOp::Read && path == Path::new(&hit.path)
        }
        _ => false,
    })
}

/// As `called_for`, of a reason whose file is not known.
pub(crate) fn reason_called_for(hits: &[Hit], reason: FatalReason) -> bool {
    hits.iter().any(|hit| reasons(hit).contains(&reason))
}

fn reasons(hit: &Hit) -> &'static [FatalReason] {
    let path = &hit.path;
    let journal = path.ends_with(".journal");
    // Written as a whole, under another name or without consequence.
    let small = path.ends_with(".tmp") || path.ends_with("partition.metadata");
    match hit.op {
        FaultOp::Open | FaultOp::Allocate => &[],
        FaultOp::Read if journal => &[FatalReason::JournalRead],
        // Of the block that write-behind or reclaim goes on in.
        FaultOp::Read => &[FatalReason::SegmentWrite],
        _ if small => &[FatalReason::Checkpoint],
        FaultOp::Write if journal => &[FatalReason::JournalWrite],
        FaultOp::Write => &[FatalReason::SegmentWrite],
        // A start writes a segment's index as a whole.
        FaultOp::Sync if path.ends_with("index") => &[FatalReason::Sync, FatalReason::SegmentWrite],
        FaultOp::Sync => &[FatalReason::Sync],
    }
}

/// The path without the end that a temporary file has in another way.
fn stem(path: &str) -> &str {
    path.strip_suffix(".tmp").unwrap_or(path)
}
