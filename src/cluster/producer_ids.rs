//! Producer ids that this node may hand out.
//!
//! Owner: the shard that answers InitProducerId. Ids come in blocks from the
//! metadata log, so that no two nodes and no two starts give the same one;
//! what is left of a block at a stop is never given.

use std::collections::VecDeque;
use std::ops::Range;

use crate::model::ProducerId;

/// Blocks that were allocated and the ids still in them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProducerIds(VecDeque<Range<i64>>);

impl ProducerIds {
    /// Adds a block, once its record is durable.
    pub fn add(&mut self, first: ProducerId, count: i64) {
        self.0.push_back(first.0..first.0 + count);
    }

    /// One id; none until a block is added.
    pub fn take(&mut self) -> Option<ProducerId> {
        let block = self.0.front_mut()?;
        let id = block.next();
        if block.is_empty() {
            self.0.pop_front();
        }
        id.map(ProducerId)
    }

    /// Ids left: ask for a block before there are none.
    #[must_use]
    pub fn left(&self) -> i64 {
        self.0.iter().map(|block| block.end - block.start).sum()
    }
}
