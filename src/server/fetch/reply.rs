//! The reply of a fetch: heads through scratch memory, records as they are.

use crate::shard::Output;
use crate::wire::fetch::PlanState;
use crate::wire::{FetchResponsePlan, FetchResponseTop, Piece, WireError};

use super::super::reply;
use super::part::State;
use super::pending::PendingFetch;

/// A reply as it is encoded.
#[derive(Default)]
pub(super) struct Planning {
    /// Everything but records.
    heads: Vec<u8>,
    pieces: Vec<Piece>,
    /// Set once it has begun.
    state: Option<PlanState>,
    /// The next partition, and the topic that it is of.
    next: usize,
    topic: usize,
    /// Partitions of the topic that are left.
    left: usize,
    failed: Option<WireError>,
}

impl PendingFetch {
    /// Encodes heads as long as there is `time`; whether all are.
    pub(super) fn plan(&self, planning: &mut Planning, time: impl FnMut() -> bool) -> bool {
        self.try_plan(planning, time).unwrap_or_else(|error| {
            planning.failed = Some(error);
            true
        })
    }

    fn try_plan(
        &self,
        planning: &mut Planning,
        mut time: impl FnMut() -> bool,
    ) -> Result<bool, WireError> {
        let Planning { heads, pieces, state, next, topic, left, .. } = planning;
        let mut plan = match state.take() {
            Some(state) => FetchResponsePlan::resume(heads, pieces, state),
            None => {
                let top = FetchResponseTop {
                    throttle_time_ms: 0,
                    error_code: self.error,
                    session_id: self.session.id,
                    topic_count: self.groups.len(),
                };
                reply::begin(heads, self.to);
                FetchResponsePlan::new(heads, pieces, self.to.version, top)?
            }
        };
        while let Some(part) = self.parts.get(*next) {
            if !time() {
                *state = Some(plan.pause());
                return Ok(false);
            }
            if !part.silent {
                if *left == 0 {
                    *left = self.groups[*topic];
                    *topic += 1;
                    plan.topic(&part.topic.reference(), *left)?;
                }
                *left -= 1;
                plan.partition(&part.outcome(*next, self.terms.isolation))?;
            }
            *next += 1;
        }
        let record_bytes = plan.finish(&[])?;
        reply::end(heads, 0, record_bytes)?;
        Ok(true)
    }

    /// Encodes the reply: heads through `scratch`, records as they are.
    ///
    /// # Errors
    /// Why the connection must be closed.
    pub(in crate::server) fn encode(
        mut self,
        scratch: &mut Vec<u8>,
        out: &mut Output,
    ) -> Result<bool, String> {
        let long = self.planning.take();
        let is_long = long.is_some();
        let planning = long.map_or_else(
            || {
                let heads = std::mem::take(scratch);
                let mut planning = Planning { heads, ..Planning::default() };
                self.plan(&mut planning, || true);
                planning
            },
            |planning| *planning,
        );
        if let Some(error) = planning.failed {
            return Err(format!("Fetch reply: {error}"));
        }
        let mut room = true;
        for piece in planning.pieces {
            match piece {
                Piece::Head(range) => room &= out.write(&planning.heads[range]),
                Piece::Records(number) => {
                    if let State::Found(slices) = &mut self.parts[number].state {
                        slices.drain(..).for_each(|slice| out.slice(slice));
                    }
                }
            }
        }
        if !is_long {
            *scratch = planning.heads;
        }
        Ok(room)
    }
}
