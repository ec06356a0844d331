//! One memory budget per shard, split into named pools.

use crate::io::Pool;
use crate::io::ring::RingConfig;

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
    /// Housekeeping of the logs, which readers cannot starve.
    pub(super) upkeep: Pool,
    /// For frames that cannot grow in the receive pool.
    pub(super) frames: Pool,
}

/// Least memory per shard, in bytes: what the ring takes, and room for frames
/// with a batch of the default `max.message.bytes` in each of them.
pub(super) const MEMORY_MIN_BYTES: usize = 64 << 20;

/// Of the share for reads from disk, this part is for housekeeping instead, and
/// no more than so many bytes: it reads and writes a few MiB at a time.
const UPKEEP_PART: usize = 6;
const UPKEEP_MAX_BYTES: usize = 8 << 20;

/// Sixteenths of the budget, by pool.
const RECEIVE: usize = 5;
const TAIL: usize = 6;
const JOURNAL: usize = 1;
const SEND: usize = 1;
const COLD: usize = 3;
const _: () = assert!(RECEIVE + TAIL + JOURNAL + SEND + COLD == 16, "the whole budget");

impl Pools {
    /// Reserves the pools of a shard with `budget` bytes in all, from which its
    /// ring takes what `ring` says.
    pub(super) fn reserve(budget: usize, ring: &RingConfig) -> Result<Self, StartError> {
        let pool = |name, bytes| {
            Pool::new(name, bytes).map_err(|e| {
                StartError::Environment(format!(
                    "cannot reserve {budget} bytes of memory for a shard ({name}): {e}; lower \
                     --memory"
                ))
            })
        };
        let received = budget / 16 * RECEIVE;
        // What the ring leaves is for frames; two thirds of it are the reserve.
        let reserve = received.checked_sub(ring.pool_bytes()).map_or(0, |left| left * 2 / 3);
        if reserve == 0 {
            return Err(StartError::Usage(format!(
                "--memory {budget}: the ring's buffers of {} bytes leave nothing for frames; \
                 raise --memory",
                ring.pool_bytes()
            )));
        }
        let cold = budget / 16 * COLD;
        let upkeep = (cold / UPKEEP_PART).min(UPKEEP_MAX_BYTES);
        Ok(Self {
            receive: pool("receive", received - reserve)?,
            frames: pool("frames", reserve)?,
            tail: pool("tail", budget / 16 * TAIL)?,
            journal: pool("journal", budget / 16 * JOURNAL)?,
            send: pool("send", budget / 16 * SEND)?,
            cold: pool("cold", cold - upkeep)?,
            upkeep: pool("upkeep", upkeep)?,
        })
    }

    /// Largest frame that can be held while others are served.
    pub(super) fn frame_max(&self) -> usize {
        self.frames.limit()
    }

    /// Most record bytes of one fetch reply.
    pub(super) fn fetch_max(&self) -> usize {
        (self.cold.limit() / 8).clamp(1 << 20, 16 << 20)
    }

    /// Every pool, for reports.
    pub(super) fn all(&self) -> [&Pool; 7] {
        let Self { receive, tail, journal, send, cold, upkeep, frames } = self;
        [receive, frames, tail, journal, send, cold, upkeep]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_memory_holds_the_ring_and_a_frame_of_default_size() {
        let ring = RingConfig::default();
        let pools = Pools::reserve(MEMORY_MIN_BYTES, &ring).unwrap();
        let _rings = pools.receive.take(ring.pool_bytes()).unwrap();
        assert!(pools.receive.take(1 << 20).is_some());
        assert!(pools.frames.take(pools.frame_max()).is_some());
        let all: usize = pools.all().iter().map(|pool| pool.limit()).sum();
        assert!(all <= MEMORY_MIN_BYTES + 7 * 4096, "{all} bytes");
        assert!(pools.upkeep.limit() >= 2 << 20, "a window of a segment, and more");
        assert!(pools.frame_max() > 2 << 20, "{} bytes", pools.frame_max());
        let small = Pools::reserve(32 << 20, &ring).unwrap_err().to_string();
        assert!(small.contains("raise --memory"), "{small}");
    }
}
