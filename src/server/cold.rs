//! Reads from closed and written-behind parts of logs, off the hot path: one
//! task per fetch, one partition after the other.

use std::rc::Rc;
use std::time::Duration;

use super::context::Context;
use crate::io::{Env, Task};
use crate::log::{ColdRead, Error};
use crate::model::ErrorCode;
use crate::shard::{PendingEvent, Place};

/// Tries while the cold pool is used up, before the partition is answered empty.
const MEMORY_TRIES: u32 = 100;

/// Time between such tries.
const MEMORY_WAIT: Duration = Duration::from_millis(5);

/// The reads of a fetch, which end when it drops this.
pub(super) struct Reads {
    left: usize,
    /// The task looks whether it is still there.
    wanted: Rc<()>,
}

impl Reads {
    /// One has come; whether it was the last.
    pub(super) fn came(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }
}

/// Starts the task; it posts one [`PendingEvent::Read`] per read. An empty
/// answer is `Err(ErrorCode::None)`: the client asks again. No further
/// read begins once the fetch is given up: its connection may be gone, and its
/// reads would take memory and disk from others.
pub(super) fn start<E: Env>(
    context: &Rc<Context<E>>,
    place: Place,
    reads: Vec<(u32, ColdRead)>,
) -> Reads {
    let started = Reads { left: reads.len(), wanted: Rc::default() };
    let wanted = Rc::downgrade(&started.wanted);
    let (context, env) = (context.clone(), context.owner.env().clone());
    let task = env.spawn(async move {
        let owner = &context.owner;
        let mut tries = 0;
        for (index, read) in reads {
            let batches = loop {
                if wanted.strong_count() == 0 {
                    return;
                }
                context.counters.cold_reads.add(1);
                match owner.logs().read_cold(read).await {
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
    started
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
