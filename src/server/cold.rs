//! Reads from closed and written-behind parts of logs, off the hot path: one
//! task per fetch, one partition after the other.

use std::rc::Rc;
use std::time::Duration;

use crate::io::{Env, Task};
use crate::log::{ColdRead, Error, LogSet};
use crate::model::ErrorCode;
use crate::shard::{Owner, PendingEvent, Place};

/// Tries while the cold pool is used up, before the partition is answered empty.
const MEMORY_TRIES: u32 = 100;

/// Time between such tries.
const MEMORY_WAIT: Duration = Duration::from_millis(5);

/// Starts the task; it posts one [`PendingEvent::Read`] per read. An empty
/// answer is `Err(ErrorCode::None)`: the client asks again.
pub(super) fn start<E: Env>(
    logs: LogSet<E>,
    owner: Rc<Owner<E>>,
    place: Place,
    reads: Vec<(u32, ColdRead)>,
) {
    let env = owner.env().clone();
    let task = env.spawn(async move {
        let mut tries = 0;
        for (index, read) in reads {
            let batches = loop {
                match logs.read_cold(read).await {
                    Err(Error::NoMemory(_)) if tries < MEMORY_TRIES => {
                        tries += 1;
                        owner.lack_memory();
                        owner.env().sleep(MEMORY_WAIT).await;
                    }
                    Ok(slices) if slices.is_empty() => break Err(ErrorCode::None),
                    Ok(slices) => break Ok(slices),
                    Err(error) => break Err(code(&error)),
                }
            };
            owner.mailbox().post(place, PendingEvent::Read { index, batches });
        }
    });
    task.detach();
}

fn code(error: &Error) -> ErrorCode {
    match error {
        Error::NoMemory(_) => ErrorCode::None,
        Error::Gone => ErrorCode::UnknownTopicOrPartition,
        Error::OutOfRange(_) => ErrorCode::OffsetOutOfRange,
        Error::Corrupt { .. } | Error::Unreadable { .. } => {
            tracing::error!("{error}");
            ErrorCode::CorruptMessage
        }
        _ => {
            tracing::error!("cold read failed: {error}");
            ErrorCode::KafkaStorageError
        }
    }
}
