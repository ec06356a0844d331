//! The reply of a fetch: heads through scratch memory, records as they are.

use crate::shard::Output;
use crate::wire::{FetchResponsePlan, FetchResponseTop, Piece, WireError};

use super::super::reply;
use super::part::State;
use super::pending::PendingFetch;

impl PendingFetch {
    /// Encodes the reply: heads through `scratch`, records as they are.
    ///
    /// # Errors
    /// Why the connection must be closed.
    pub(in crate::server) fn encode(
        mut self,
        scratch: &mut Vec<u8>,
        out: &mut Output,
    ) -> Result<bool, String> {
        self.parts.retain(|part| !part.silent);
        let mut pieces = Vec::with_capacity(self.parts.len() * 2 + 1);
        let start = reply::begin(scratch, self.to);
        let planned = self.plan(scratch, &mut pieces);
        let planned = planned.and_then(|record_bytes| reply::end(scratch, start, record_bytes));
        planned.map_err(|e| format!("Fetch reply: {e}"))?;
        let mut room = true;
        for piece in pieces {
            match piece {
                Piece::Head(range) => room &= out.write(&scratch[range]),
                Piece::Records(number) => {
                    if let State::Found(slices) = &mut self.parts[number].state {
                        slices.drain(..).for_each(|slice| out.slice(slice));
                    }
                }
            }
        }
        Ok(room)
    }

    fn plan(&self, scratch: &mut Vec<u8>, pieces: &mut Vec<Piece>) -> Result<usize, WireError> {
        let groups = || self.parts.chunk_by(|a, b| a.topic == b.topic);
        let top = FetchResponseTop {
            throttle_time_ms: 0,
            error_code: self.error,
            session_id: self.session.id,
            topic_count: groups().count(),
        };
        let mut plan = FetchResponsePlan::new(scratch, pieces, self.to.version, top)?;
        let mut number = 0;
        for group in groups() {
            plan.topic(&group[0].topic.reference(), group.len())?;
            for part in group {
                plan.partition(&part.outcome(number, self.terms.isolation))?;
                number += 1;
            }
        }
        plan.finish(&[])
    }
}
