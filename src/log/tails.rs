//! `TAIL` frames: the journal's head takes over what a log has above its floor.

use std::rc::Rc;

use super::checkpoint::Floor;
use super::config::SMALL_TAIL_BYTES;
use super::error::{Error, Result};
use super::journal::frame::{FrameHeader, FrameKind};
use super::reclaim::RETRY;
use super::set::LogHandle;
use super::state::Shared;
use crate::io::Env;
use crate::model::Offset;
use crate::model::planted::{Bug, armed};

impl<E: Env> Shared<E> {
    /// Queues a `TAIL` frame: the log is its segment up to its floor, then the
    /// frame's bytes. Nothing when nothing lies above the floor.
    pub(crate) async fn queue_tail(self: &Rc<Self>, handle: LogHandle) -> Result<()> {
        self.queue_tail_from(handle, Offset(i64::MAX)).await
    }

    /// As `queue_tail`, unless the floor has passed `end`: a log that is
    /// written to meanwhile needs no copy of what later files hold.
    pub(super) async fn queue_tail_from(
        self: &Rc<Self>,
        handle: LogHandle,
        end: Offset,
    ) -> Result<()> {
        loop {
            self.journaled(handle).await?;
            let (floor, in_memory, rises) = {
                let state = self.state.borrow();
                let log = state.log(handle).ok_or(Error::Gone)?;
                if end <= log.floor.boundary() {
                    return Ok(());
                }
                let large = log.above_floor().is_none_or(|n| n > SMALL_TAIL_BYTES);
                let rises = log.has_rolled() || large && log.may_rise();
                (log.floor, log.active().head().max(log.floor.pos), rises)
            };
            if rises {
                // It grew meanwhile: its floor has to rise, not its tail.
                self.write_behind(handle, false).await?;
                let class = self.class_of(handle)?;
                let (floor, round) = self.sync_to_floor(handle, class, true).await?;
                self.take_floor(handle, floor, round);
                continue;
            }
            let base = Offset(floor.segment);
            let beginning = if in_memory > floor.pos {
                let upkeep = &self.config.pools.upkeep;
                self.read_range(upkeep, handle, base, floor.pos, in_memory).await?
            } else {
                Default::default()
            };
            match self.try_tail(handle, floor, in_memory, &beginning) {
                Tail::Queued => return Ok(()),
                Tail::Changed => {}
                Tail::Full => {
                    let class = self.class_of(handle)?;
                    self.submit(class);
                    self.env.sleep(RETRY).await;
                    self.check()?;
                }
            }
        }
    }

    fn try_tail(
        &self,
        handle: LogHandle,
        floor: Floor,
        in_memory: u64,
        beginning: &super::Slices,
    ) -> Tail {
        let mut pieces = beginning.clone();
        let (header, log_class) = {
            let state = self.state.borrow();
            let Some(log) = state.log(handle) else { return Tail::Changed };
            let segment = log.active();
            let same = log.floor == floor
                && segment.base.0 == floor.segment
                && segment.head() <= in_memory
                && segment.end_pos >= in_memory
                && log.is_journaled()
                && !log.truncating;
            if !same {
                return Tail::Changed;
            }
            if segment.end_pos <= floor.pos {
                return Tail::Queued;
            }
            segment.slices(in_memory, segment.end_pos, &mut pieces);
            let epoch = log.epochs.latest().map_or(crate::model::LeaderEpoch::NONE, |e| e.epoch);
            let header = FrameHeader {
                base_offset: Offset(floor.boundary_offset),
                end_offset: segment.end_offset,
                segment: segment.base,
                position: floor.pos,
                aux: floor.boundary_pos,
                ..FrameHeader::bare(FrameKind::Tail, log.known.log_id, epoch)
            };
            (header, log.class())
        };
        let parts: Vec<&[u8]> = pieces.iter().map(|p| &**p).collect();
        {
            // Others' appends are not to wait behind the tails of thousands.
            let journal = &self.state.borrow().journals[log_class.index()];
            if journal.is_crowded() && !journal.stalled {
                return Tail::Full;
            }
        }
        let queued = if armed(Bug::TailSplitInTwo) {
            self.split_tail(handle, header, &parts)
        } else {
            self.queue_frame(handle, header, &parts).map(|_| ())
        };
        if queued.is_ok() { Tail::Queued } else { Tail::Full }
    }

    /// The planted bug: a reset, and the bytes in a group of their own.
    fn split_tail(
        &self,
        handle: LogHandle,
        header: FrameHeader,
        parts: &[&[u8]],
    ) -> std::result::Result<(), super::AppendError> {
        let reset = FrameHeader {
            end_offset: header.base_offset,
            position: header.aux,
            aux: 0,
            ..FrameHeader { kind: FrameKind::Reset, ..header }
        };
        self.queue_frame(handle, reset, &[])?;
        {
            let mut state = self.state.borrow_mut();
            state.journals.iter_mut().for_each(|j| j.split());
        }
        self.queue_frame(handle, header, parts).map(|_| ())
    }
}

enum Tail {
    Queued,
    Changed,
    Full,
}
