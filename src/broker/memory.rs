//! One memory budget per shard, split into named pools.

use crate::io::Pool;

use super::StartError;

/// The pools of one shard.
#[derive(Clone, Debug)]
pub(super) struct Pools {
    /// Received bytes and frames under way.
    pub(super) receive: Pool,
    /// What producers wrote last.
    pub(super) tail: Pool,
    /// Journal groups.
    pub(super) journal: Pool,
    /// Encoded answers.
    pub(super) send: Pool,
    /// Reads from disk.
    pub(super) cold: Pool,
}

/// Sixteenths of the budget, by pool.
const RECEIVE: usize = 5;
const TAIL: usize = 6;
const JOURNAL: usize = 1;
const SEND: usize = 1;
const COLD: usize = 3;
const _: () = assert!(RECEIVE + TAIL + JOURNAL + SEND + COLD == 16, "the whole budget");

impl Pools {
    /// Reserves the pools of a shard with `budget` bytes in all.
    pub(super) fn reserve(budget: usize) -> Result<Self, StartError> {
        let pool = |name, sixteenths| {
            Pool::new(name, budget / 16 * sixteenths).map_err(|e| {
                StartError::Environment(format!(
                    "cannot reserve {budget} bytes of memory for a shard ({name}): {e}; lower \
                     --memory"
                ))
            })
        };
        Ok(Self {
            receive: pool("receive", RECEIVE)?,
            tail: pool("tail", TAIL)?,
            journal: pool("journal", JOURNAL)?,
            send: pool("send", SEND)?,
            cold: pool("cold", COLD)?,
        })
    }

    /// Largest frame that the receive pool can hold while others are served.
    pub(super) fn frame_max(&self) -> usize {
        self.receive.limit() * 2 / 3
    }

    /// Most record bytes of one fetch reply.
    pub(super) fn fetch_max(&self) -> usize {
        (self.cold.limit() / 8).clamp(1 << 20, 16 << 20)
    }

    /// Every pool, for reports.
    pub(super) fn all(&self) -> [&Pool; 5] {
        [&self.receive, &self.tail, &self.journal, &self.send, &self.cold]
    }
}
