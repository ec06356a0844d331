//! Write-behind: whole blocks below the high watermark go from the tail chunks
//! to the segment; segments that have rolled are closed. And the bypass: large
//! data goes to the segment at once, with an `EXTENT` frame instead of `DATA`.

use std::rc::Rc;

use smallvec::SmallVec;

use super::config::DurabilityClass;
use super::error::{Error, FatalReason, Result};
use super::journal::frame::{FrameHeader, FrameKind};
use super::segment::tail::{Mark, block_of};
use super::set::LogHandle;
use super::state::{BypassFlight, Shared};
use crate::io::{ChunkSlice, Env, Task as _};
use crate::model::Offset;
use crate::model::planted::{Bug, armed};

enum Step {
    Close(Offset),
    Write { base: Offset, from: u64, to: u64 },
    Partial { base: Offset, from: u64, to: u64 },
}

impl<E: Env> Shared<E> {
    /// Starts the write-behind task unless it runs.
    pub(crate) fn kick_behind(self: &Rc<Self>) {
        {
            let mut state = self.state.borrow_mut();
            if state.behind_running || state.behind.is_empty() || state.fatal.is_some() {
                return;
            }
            state.behind_running = true;
        }
        let shared = self.clone();
        self.env.spawn(async move { shared.run_behind().await }).detach();
    }

    async fn run_behind(self: Rc<Self>) {
        loop {
            let next = {
                let mut state = self.state.borrow_mut();
                let next = state.behind.pop_front();
                match next {
                    Some((handle, _)) => {
                        if let Some(log) = state.log_mut(handle) {
                            log.behind_queued = false;
                        }
                    }
                    None => state.behind_running = false,
                }
                next
            };
            let Some((handle, evict)) = next else { return };
            let done = self.write_behind_of_many(handle, evict).await;
            match done.map_err(|error| error.or_fatal(FatalReason::SegmentWrite)) {
                Ok(()) => {}
                // Whatever it had waited for.
                Err(Error::Gone) => self.state.borrow_mut().space_found(),
                Err(Error::NoMemory(_)) => {
                    self.env.sleep(std::time::Duration::from_millis(1)).await;
                    self.state.borrow_mut().queue_behind(handle, evict);
                }
                Err(error @ (Error::NoSpace { .. } | Error::Io { .. })) => {
                    tracing::warn!(%error, "write-behind waits");
                    self.wait_for_space(&error).await;
                    let mut state = self.state.borrow_mut();
                    match state.log(handle) {
                        Some(_) => state.queue_behind(handle, evict),
                        // Deleted meanwhile.
                        None => state.space_found(),
                    }
                }
                Err(error) => self.poison_by(&error),
            }
            if self.is_poisoned() {
                self.state.borrow_mut().behind_running = false;
                return;
            }
            self.wake();
        }
    }

    /// Marks a log busy once no other task writes its segments.
    pub(crate) async fn claim(&self, handle: LogHandle) -> Result<()> {
        self.signal
            .wait(|| {
                let mut state = self.state.borrow_mut();
                if state.fatal.is_some() {
                    return Some(());
                }
                let Some(log) = state.log_mut(handle) else { return Some(()) };
                (!std::mem::replace(&mut log.segment_busy, true)).then_some(())
            })
            .await;
        self.check()?;
        self.state.borrow().log(handle).map(|_| ()).ok_or(Error::Gone)
    }

    pub(crate) fn release(&self, handle: LogHandle) {
        if let Some(log) = self.state.borrow_mut().log_mut(handle) {
            log.segment_busy = false;
        }
        self.signal.notify();
    }

    /// As `write_behind`, but passes over a log that is being truncated, which
    /// is queued again at the end: others must not wait for a truncation.
    async fn write_behind_of_many(self: &Rc<Self>, handle: LogHandle, evict: bool) -> Result<()> {
        let claimed = self
            .signal
            .wait(|| {
                let mut state = self.state.borrow_mut();
                let fatal = state.fatal.is_some();
                let log = state.log_mut(handle).filter(|l| !l.truncating && !fatal);
                let Some(log) = log else { return Some(false) };
                (!std::mem::replace(&mut log.segment_busy, true)).then_some(true)
            })
            .await;
        if claimed {
            return self.write_behind_and_release(handle, evict).await;
        }
        self.check()?;
        self.state.borrow().log(handle).map(|_| ()).ok_or(Error::Gone)
    }

    /// Writes behind what may be written behind; with `evict` also the partial
    /// last block, so that the log needs no memory.
    pub(crate) async fn write_behind(
        self: &Rc<Self>,
        handle: LogHandle,
        evict: bool,
    ) -> Result<()> {
        self.claim(handle).await?;
        self.write_behind_and_release(handle, evict).await
    }

    async fn write_behind_and_release(
        self: &Rc<Self>,
        handle: LogHandle,
        evict: bool,
    ) -> Result<()> {
        let result = self.write_behind_claimed(handle, evict).await;
        self.release(handle);
        let result = self.gone_or(handle, result);
        if result.is_ok() {
            self.state.borrow_mut().space_found();
        }
        result
    }

    pub(crate) async fn write_behind_claimed(
        self: &Rc<Self>,
        handle: LogHandle,
        evict: bool,
    ) -> Result<()> {
        while let Some(step) = self.next_step(handle, evict)? {
            match step {
                Step::Close(base) => self.close_segment(handle, base).await?,
                Step::Write { base, from, to } => {
                    self.write_blocks(handle, base, from, to).await?;
                    let mut state = self.state.borrow_mut();
                    let log = state.log_mut(handle).ok_or(Error::Gone)?;
                    let segment = log.segment_mut(base).ok_or(Error::Gone)?;
                    segment.advance_written(to);
                }
                Step::Partial { base, from, to } => {
                    self.write_blocks(handle, base, from, to).await?;
                    let mut state = self.state.borrow_mut();
                    let log = state.log_mut(handle).ok_or(Error::Gone)?;
                    let segment = log.segment_mut(base).ok_or(Error::Gone)?;
                    segment.partial = to;
                    return Ok(());
                }
            }
            if self.env.slice_over() {
                self.env.pause().await;
            }
        }
        Ok(())
    }

    fn next_step(&self, handle: LogHandle, evict: bool) -> Result<Option<Step>> {
        let state = self.state.borrow();
        let log = state.log(handle).ok_or(Error::Gone)?;
        let watermark = log.high_watermark;
        let segment = log.open.front().expect("a log always has an active segment");
        let base = segment.base;
        if log.open.len() > 1 && watermark >= segment.end_offset {
            return Ok(Some(Step::Close(base)));
        }
        let from = segment.written;
        let to = block_of(segment.position_below(watermark, from));
        if to > from {
            return Ok(Some(Step::Write { base, from, to }));
        }
        let end = segment.end_pos;
        let missing = segment.partial < end && end > from;
        if evict && log.open.len() == 1 && watermark >= segment.end_offset && missing {
            return Ok(Some(Step::Partial { base, from, to: end }));
        }
        Ok(None)
    }

    /// Starts the bypass of every log that waits for one and may.
    pub(crate) fn start_bypasses(self: &Rc<Self>) {
        let waiting = {
            let mut state = self.state.borrow_mut();
            if state.bypassing.is_empty() || state.fatal.is_some() {
                return;
            }
            std::mem::take(&mut state.bypassing)
        };
        for handle in waiting {
            if !self.start_bypass(handle) {
                self.state.borrow_mut().bypassing.push(handle);
            }
        }
    }

    /// `false` when it has to wait: for the log's segment or for memory.
    fn start_bypass(self: &Rc<Self>, handle: LogHandle) -> bool {
        let Some((header, rest, from, class)) = self.extent(handle) else { return true };
        {
            let state = self.state.borrow();
            let Some(log) = state.log(handle) else { return true };
            if log.segment_busy || log.bypass_flight.is_some() {
                return false;
            }
        }
        let parts: Vec<&[u8]> = rest.iter().map(|p| &**p).collect();
        if self.queue_frame(handle, header, &parts).is_err() {
            return false;
        }
        let to = header.position + header.aux;
        {
            let mut state = self.state.borrow_mut();
            let Some(log) = state.log_mut(handle) else { return true };
            log.bypass_from = None;
            log.segment_busy = true;
            let bytes = std::mem::take(&mut log.bypass_waits);
            log.bypass_flight = Some(BypassFlight { start: header.base_offset, bytes });
        }
        let shared = self.clone();
        self.env
            .spawn(async move {
                shared.bypass(handle, header.segment, (from, to), class).await;
                shared.start_bypasses();
                DurabilityClass::ALL.into_iter().for_each(|c| shared.submit(c));
            })
            .detach();
        true
    }

    /// The frame that vouches for what waits, its unaligned rest, and where the
    /// segment write begins.
    #[allow(clippy::type_complexity, reason = "one caller")]
    fn extent(
        &self,
        handle: LogHandle,
    ) -> Option<(FrameHeader, SmallVec<[ChunkSlice; 4]>, u64, DurabilityClass)> {
        let state = self.state.borrow();
        let log = state.log(handle)?;
        let start: Mark = log.bypass_from?;
        let segment = log.active();
        let aligned = block_of(segment.end_pos).max(start.pos);
        let mut vouched: SmallVec<[ChunkSlice; 4]> = SmallVec::new();
        segment.slices(start.pos, aligned, &mut vouched);
        let mut crc = crc32fast::Hasher::new();
        vouched.iter().for_each(|piece| crc.update(piece));
        let mut rest = SmallVec::new();
        segment.slices(aligned, segment.end_pos, &mut rest);
        let header = FrameHeader {
            base_offset: start.offset,
            end_offset: segment.end_offset,
            segment: segment.base,
            position: start.pos,
            aux: aligned - start.pos,
            segment_crc: crc.finalize(),
            ..FrameHeader::bare(FrameKind::Extent, log.known.log_id, segment.epoch_at(start.pos))
        };
        Some((header, rest, segment.written, log.class()))
    }

    async fn bypass(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
        (from, to): (u64, u64),
        class: DurabilityClass,
    ) {
        if armed(Bug::AcknowledgeOnExtentAlone) {
            let mut state = self.state.borrow_mut();
            let flight = state.log_mut(handle).and_then(|log| log.bypass_flight.take());
            state.bypass_bytes -= flight.map_or(0, |f| f.bytes);
        }
        loop {
            let done = self.bypass_once(handle, base, (from, to), class).await;
            match done.map_err(|error| error.or_fatal(FatalReason::SegmentWrite)) {
                Ok(()) => break,
                Err(Error::Gone) => return,
                Err(error @ Error::Fatal { .. }) => {
                    self.poison_by(&error);
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "a large append waits");
                    if !self.wait_unless_leaving(handle, &error).await {
                        self.state.borrow_mut().space_found();
                        self.release(handle);
                        return;
                    }
                }
            }
        }
        {
            let mut state = self.state.borrow_mut();
            state.space_found();
            if let Some(log) = state.log_mut(handle) {
                let flight = log.bypass_flight.take();
                log.segment_busy = false;
                if let Some(segment) = log.segment_mut(base) {
                    segment.advance_written(block_of(to));
                }
                state.bypass_bytes -= flight.map_or(0, |f| f.bytes);
            }
            state.report(handle);
        }
        self.wake();
    }

    async fn bypass_once(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
        (from, to): (u64, u64),
        class: DurabilityClass,
    ) -> Result<()> {
        let file = self.write_blocks(handle, base, from, block_of(to)).await?;
        match class {
            DurabilityClass::Disk => self.sync_bypass(&file).await,
            DurabilityClass::Os => Ok(()),
        }
    }

    async fn sync_bypass(&self, file: &super::state::FileOf<E>) -> Result<()> {
        use crate::io::File as _;
        let result = file.sync_data().await;
        result.map_err(|e| Error::fatal(FatalReason::Sync, file.path(), &e))
    }
}
