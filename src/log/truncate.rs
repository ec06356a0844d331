//! Suffix truncation: a `RESET` frame queued before any new one, or a `TAIL`
//! where the bytes before the cut were written straight to the segment.

use std::rc::Rc;

use super::checkpoint::Floor;
use super::config::{BLOCK, DurabilityClass};
use super::error::{Error, Result};
use super::journal::frame::{FrameHeader, FrameKind};
use super::read::head_in;
use super::segment::head::HEADER_LEN;
use super::segment::index::IndexedBatch;
use super::segment::names::{self, Kind};
use super::segment::tail::{Mark, block_of};
use super::set::{LogHandle, Slices};
use super::state::Shared;
use crate::io::{Env, File as _, FileSystem as _};
use crate::model::{LeaderEpoch, Offset};

impl<E: Env> Shared<E> {
    /// See `LogSet::truncate`.
    pub(crate) async fn truncate(
        self: &Rc<Self>,
        handle: LogHandle,
        to: Offset,
        epoch: LeaderEpoch,
    ) -> Result<()> {
        self.announce(handle, to)?;
        let held = self.hold(handle).await;
        let claimed = held.is_ok();
        let result = match held {
            Ok(()) => self.truncate_held(handle, to, epoch).await,
            Err(error) => Err(error),
        };
        if let Some(log) = self.state.borrow_mut().log_mut(handle) {
            log.truncating = false;
            log.truncate_to = None;
        }
        if claimed {
            self.release(handle);
        }
        {
            let mut state = self.state.borrow_mut();
            state.report(handle);
            // What passed it over meanwhile.
            state.queue_behind(handle, false);
        }
        self.kick_behind();
        self.wake();
        result
    }

    /// From now on nothing beyond `to` is appended or reported as durable.
    fn announce(&self, handle: LogHandle, to: Offset) -> Result<()> {
        let mut state = self.state.borrow_mut();
        let log = state.log_mut(handle).ok_or(Error::Gone)?;
        if to < log.high_watermark {
            return Err(Error::BelowHighWatermark { to, high_watermark: log.high_watermark });
        }
        if to > log.end() || log.truncate_to.is_some() {
            return Err(Error::OutOfRange(to));
        }
        log.truncate_to = Some(to);
        // Progress that nobody has fetched yet is void.
        state.events.retain(|(h, at)| *h != handle || *at <= to);
        Ok(())
    }

    /// Waits until nothing of the log is on its way and nobody writes its
    /// segments.
    async fn hold(self: &Rc<Self>, handle: LogHandle) -> Result<()> {
        loop {
            // A snapshot that is being stored may speak of what goes away.
            self.journaled(handle).await?;
            self.claim_quiet(handle).await?;
            let held = {
                let mut state = self.state.borrow_mut();
                let log = state.log_mut(handle).ok_or(Error::Gone)?;
                log.truncating = log.is_journaled() && log.snapshots == 0;
                log.truncating
            };
            if held {
                // Write-behind goes on to other logs.
                self.signal.notify();
                return Ok(());
            }
            self.release(handle);
        }
    }

    /// Until it is done: half a truncation is nothing that a caller could take
    /// back, and what stands in its way passes.
    async fn truncate_held(
        self: &Rc<Self>,
        handle: LogHandle,
        to: Offset,
        epoch: LeaderEpoch,
    ) -> Result<()> {
        let mut reopened = false;
        let dropped = loop {
            match self.prepare_and_cut(handle, to, epoch, &mut reopened).await {
                Err(error) if error.passes() => self.wait_out(&error).await?,
                other => break other?,
            }
        };
        let class = self.state.borrow().log(handle).map(super::state::Log::class);
        let class = class.ok_or(Error::Gone)?;
        self.settle(class).await?;
        if class == DurabilityClass::Os {
            // Producer snapshots are synced: those of the records to come must
            // not outlive, in a loss of power, the frame that this cut is.
            self.sync_page_cache_journal().await?;
        }
        loop {
            match self.remove_segments(handle, &dropped).await {
                Err(error) if error.passes() => self.wait_out(&error).await?,
                other => return other,
            }
        }
    }

    async fn wait_out(self: &Rc<Self>, error: &Error) -> Result<()> {
        tracing::warn!(%error, "a truncation waits");
        if !self.give_up_reserve(error).await && !self.give_back_ahead(error).await {
            self.env.sleep(self.config.no_space_retry).await;
        }
        self.check()
    }

    async fn prepare_and_cut(
        self: &Rc<Self>,
        handle: LogHandle,
        to: Offset,
        epoch: LeaderEpoch,
        reopened: &mut bool,
    ) -> Result<Vec<Offset>> {
        self.drop_snapshots_after(handle, to).await?;
        let (base, segment_end) = self.segment_of(handle, to)?;
        let mark = if to == base {
            Mark { offset: base, pos: 0 }
        } else {
            self.locate(handle, base, to, segment_end).await?
        };
        assert_eq!(mark.offset, to, "truncation is to a batch boundary");
        let cut_block = block_of(mark.pos);
        // A frame may have put the floor into a later segment: then only a
        // `TAIL` takes it back.
        self.reopen(handle, base, reopened).await?;
        let written = self.open_segment(handle, base, |s| s.written)?;
        let tail = if *reopened || written > cut_block {
            Some(self.tail_at(handle, base, cut_block, mark).await?)
        } else {
            None
        };
        let regrown = self.batches_after_entry(handle, base, mark).await?;
        self.cut(handle, base, mark, epoch, tail, &regrown).await
    }

    /// Floor and bytes for a `TAIL` that ends at `mark`, its segment synced up
    /// to the floor and all segments before it closed.
    async fn tail_at(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
        cut_block: u64,
        mark: Mark,
    ) -> Result<(Floor, Slices)> {
        loop {
            let first = {
                let state = self.state.borrow();
                let log = state.log(handle).ok_or(Error::Gone)?;
                log.open.front().map(|s| s.base)
            };
            match first {
                Some(first) if first < base => self.close_segment(handle, first).await?,
                _ => break,
            }
        }
        let mut boundary = Mark { offset: base, pos: 0 };
        loop {
            if boundary.pos >= mark.pos {
                break;
            }
            let head = self.head_of(handle, base, boundary).await?;
            let next = Mark { offset: head.end(), pos: boundary.pos + head.len as u64 };
            if next.pos > cut_block {
                break;
            }
            boundary = next;
        }
        let upkeep = &self.config.pools.upkeep;
        let bytes = self.read_range(upkeep, handle, base, cut_block, mark.pos).await?;
        let file = self.segment_file(handle, base).await?;
        let synced = file.sync_data().await;
        synced.map_err(|e| Error::fatal(super::FatalReason::Sync, file.path(), &e))?;
        let floor = Floor {
            segment: base.0,
            pos: cut_block,
            boundary_pos: boundary.pos,
            boundary_offset: boundary.offset.0,
        };
        Ok((floor, bytes))
    }

    async fn head_of(
        &self,
        handle: LogHandle,
        base: Offset,
        at: Mark,
    ) -> Result<super::segment::head::BatchHead> {
        let (upkeep, to) = (&self.config.pools.upkeep, at.pos + HEADER_LEN as u64);
        let pieces = self.read_range(upkeep, handle, base, at.pos, to).await?;
        head_in(&pieces, 0).ok_or_else(|| Error::Corrupt {
            path: self.path(handle, base, Kind::Log).unwrap_or_default(),
            position: at.pos,
            offset: at.offset,
            what: "no batch header",
        })
    }

    /// The batches that the index has to see again after it was cut at `mark`.
    async fn batches_after_entry(
        &self,
        handle: LogHandle,
        base: Offset,
        mark: Mark,
    ) -> Result<Vec<IndexedBatch>> {
        let from = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            let segment = log.segment(base).ok_or(Error::Gone)?;
            let mut index = segment.index.clone();
            index.truncate(mark.pos, mark.offset);
            index.last_entry().map_or(0, |e| u64::from(e.position))
        };
        let mut at = Mark { offset: base, pos: from };
        let mut out = Vec::new();
        while at.pos < mark.pos {
            let head = self.head_of(handle, base, at).await?;
            out.push(IndexedBatch {
                last_offset: head.end().plus(-1),
                max_timestamp: head.max_timestamp,
                position: at.pos,
                len: head.len as u64,
            });
            at = Mark { offset: head.end(), pos: at.pos + head.len as u64 };
        }
        Ok(out)
    }

    /// Changes the state and queues the frame, in one go. Returns the segments
    /// that are no more. Waits for memory of journal groups, and for one block
    /// of the cold pool at worst: neither waits for a truncation.
    async fn cut(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
        mark: Mark,
        epoch: LeaderEpoch,
        tail: Option<(Floor, Slices)>,
        regrown: &[IndexedBatch],
    ) -> Result<Vec<Offset>> {
        loop {
            if let Some(dropped) = self.try_cut(handle, base, mark, epoch, &tail, regrown)? {
                return Ok(dropped);
            }
            let class = self.state.borrow().log(handle).map(super::state::Log::class);
            self.submit(class.ok_or(Error::Gone)?);
            self.env.sleep(std::time::Duration::from_millis(1)).await;
            self.check()?;
        }
    }

    fn try_cut(
        &self,
        handle: LogHandle,
        base: Offset,
        mark: Mark,
        epoch: LeaderEpoch,
        tail: &Option<(Floor, Slices)>,
        regrown: &[IndexedBatch],
    ) -> Result<Option<Vec<Offset>>> {
        let payload: Vec<&[u8]> =
            tail.iter().flat_map(|(_, pieces)| pieces.iter().map(|p| &**p)).collect();
        let len = payload.iter().map(|p| p.len()).sum();
        let pools = &self.config.pools;
        let mut dropped = Vec::new();
        let header = {
            let mut guard = self.state.borrow_mut();
            let state = &mut *guard;
            let class = state.log(handle).ok_or(Error::Gone)?.class();
            if !state.journals[class.index()].has_room(&pools.journal, len) {
                return Ok(None);
            }
            let log = state.log_mut(handle).ok_or(Error::Gone)?;
            let segment = log.segment_mut(base).ok_or(Error::Gone)?;
            // The tail pool may be full of what this very truncation drops.
            let take = || {
                let block = pools.tail.take(BLOCK as usize);
                block.or_else(|| pools.cold.take(BLOCK as usize))
            };
            if segment.truncate(mark, take).is_none() {
                return Ok(None);
            }
            segment.index.truncate(mark.pos, mark.offset);
            regrown.iter().for_each(|batch| segment.index.add(batch));
            while log.open.back().is_some_and(|s| s.base > base) {
                dropped.extend(log.open.pop_back().map(|s| s.base));
            }
            log.epochs.truncate_from(mark.offset);
            log.epochs.assign(epoch, mark.offset);
            log.round += 1;
            log.journal_durable = log.journal_durable.min(mark.offset);
            log.durable = log.durable.min(mark.offset);
            let mut header = FrameHeader { epoch, ..log.reset_frame() };
            if let Some((floor, _)) = tail {
                header.kind = FrameKind::Tail;
                header.base_offset = Offset(floor.boundary_offset);
                header.position = floor.pos;
                header.aux = floor.boundary_pos;
                log.active_mut().set_straddle(
                    Mark { offset: Offset(floor.boundary_offset), pos: floor.boundary_pos },
                    mark,
                );
                // Only down: what a checkpoint has as its floor is committed.
                if log.floor.segment > floor.segment
                    || log.floor.segment == floor.segment && log.floor.pos > floor.pos
                {
                    log.floor = *floor;
                }
            }
            header
        };
        let queued = self.queue_frame(handle, header, &payload);
        assert!(queued.is_ok(), "room was made for the frame");
        Ok(Some(dropped))
    }

    async fn remove_segments(&self, handle: LogHandle, bases: &[Offset]) -> Result<()> {
        if bases.is_empty() {
            return Ok(());
        }
        self.files.forget(handle, |base| !bases.contains(&base));
        let dir = {
            let state = self.state.borrow();
            state.log(handle).ok_or(Error::Gone)?.dir.clone()
        };
        for &base in bases {
            for kind in [Kind::Log, Kind::Index, Kind::TimeIndex] {
                let path = names::path(&dir, base, kind);
                match self.env.fs().remove_file(&path).await {
                    Ok(()) => {}
                    Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                    Err(e) => return Err(Error::io(&path, e)),
                }
            }
        }
        self.sync_dir(&dir).await
    }
}
