//! Closed segments that a truncation cuts into become open again.
//!
//! Rare: a segment closes below the high watermark, where nothing is cut, but
//! a truncation after a bypass closes what lies before its cut.

use std::rc::Rc;

use super::error::{Error, Result};
use super::scan::Walk;
use super::segment::index::{IndexBuilder, IndexedBatch};
use super::segment::tail::{Mark, OpenSegment, block_of};
use super::set::LogHandle;
use super::state::Shared;
use crate::io::Env;
use crate::model::Offset;

impl<E: Env> Shared<E> {
    /// Opens the segment `base` and the closed ones after it. The caller has
    /// marked the log busy. Sets `any` when there was something to open.
    pub(crate) async fn reopen(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
        any: &mut bool,
    ) -> Result<()> {
        loop {
            let last = {
                let state = self.state.borrow();
                let log = state.log(handle).ok_or(Error::Gone)?;
                log.closed.range(base..).next_back().map(|(base, s)| (*base, *s))
            };
            let Some((closed, segment)) = last else { return Ok(()) };
            let end = Mark { offset: segment.end, pos: segment.len };
            let open = self.walk_closed(handle, closed, end).await?;
            let mut state = self.state.borrow_mut();
            let log = state.log_mut(handle).ok_or(Error::Gone)?;
            log.closed.remove(&closed);
            log.open.push_front(open);
            *any = true;
        }
    }

    /// A closed segment as an open one, its index made anew.
    async fn walk_closed(&self, handle: LogHandle, base: Offset, end: Mark) -> Result<OpenSegment> {
        let interval = {
            let state = self.state.borrow();
            state.log(handle).ok_or(Error::Gone)?.known.config.index_interval_bytes
        };
        let file = self.segment_file(handle, base).await?;
        let start = Mark { offset: base, pos: 0 };
        let mut index = IndexBuilder::new(base, interval);
        let mut straddle = (start, start);
        let mut walk = Walk::new(&self.env, &file, &self.config.pools.upkeep, start, end.pos);
        while let Some((head, _)) = walk.peek().await? {
            let at = walk.at;
            index.add(&IndexedBatch {
                last_offset: head.end().plus(-1),
                max_timestamp: head.max_timestamp,
                position: at.pos,
                len: head.len as u64,
            });
            walk.skip(&head);
            if at.pos <= block_of(end.pos) {
                straddle = (at, walk.at);
            }
            if walk.at.pos <= block_of(end.pos) {
                straddle = (walk.at, walk.at);
            }
        }
        Ok(OpenSegment::resume(end, straddle, base, index))
    }
}
