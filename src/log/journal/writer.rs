//! What one journal is about to write, is writing and has written. A state
//! machine without I/O: `next_write` says what to write where, `finished` what
//! is durable now, in order.

use std::collections::VecDeque;

use super::files::JournalFile;
use super::frame::{FrameHeader, frame_len};
use super::group::{GROUP_ALIGN, GROUP_HEADER, GroupBuilder, Sealed};
use crate::io::{ChunkSlice, Pool};
use crate::log::checkpoint::Groups;
use crate::log::config::{BLOCK, DurabilityClass, GROUP_BYTES, JournalConfig};
use crate::log::set::LogHandle;
use crate::model::Offset;
use crate::model::planted::{Bug, armed};

/// A log's end that a group makes durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ack {
    pub(crate) handle: LogHandle,
    /// Truncations that the log had seen: older acknowledgements are void.
    pub(crate) round: u32,
    pub(crate) end: Offset,
    /// It says all that the log has above its floor: a `TAIL`.
    pub(crate) is_whole: bool,
}

struct Pending {
    builder: GroupBuilder,
    acks: Vec<Ack>,
    serial: u64,
}

struct Flight {
    number: u64,
    done: bool,
    acks: Vec<Ack>,
    serial: u64,
    bytes: u64,
}

/// A write to perform.
pub(crate) struct Write<F> {
    pub(crate) file: F,
    pub(crate) group: Sealed,
    pub(crate) pos: u64,
    pub(crate) number: u64,
}

/// Whether reclaim rests before it copies what it may have copied before.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Rest {
    #[default]
    None,
    Now,
    Over,
}

/// One journal of a shard.
pub(crate) struct Journal<F> {
    pub(crate) class: DurabilityClass,
    pub(crate) config: JournalConfig,
    pub(crate) active: Option<JournalFile<F>>,
    /// Empty files with a synced header.
    pub(crate) ready: VecDeque<JournalFile<F>>,
    /// Files that are full, oldest first.
    pub(crate) full: VecDeque<JournalFile<F>>,
    /// Bytes of all files, those being made included.
    pub(crate) total_bytes: u64,
    pub(crate) next_sequence: u64,
    pub(crate) next_slot: u64,
    /// A group waits for a file.
    pub(crate) stalled: bool,
    /// The last file that should have been made did not fit on the disk: as
    /// at the cap, until one does.
    pub(crate) cramped: bool,
    /// The disk had not even room for the file of a group that waits for one.
    pub(crate) refused: bool,
    open: Option<Pending>,
    queue: VecDeque<Pending>,
    in_flight: VecDeque<Flight>,
    /// Bytes of `queue` and `in_flight`.
    ahead_bytes: u64,
    ahead_max: u64,
    next_number: u64,
    previous_crc: u32,
    /// First group that a checkpoint written now would need.
    pub(crate) first_group: u64,
    /// One beyond the last group of class `os` that was synced.
    pub(crate) synced_end: u64,
    /// Serial of the last frame queued and of the last one durable.
    pub(crate) queued_serial: u64,
    pub(crate) durable_serial: u64,
    pub(crate) groups: u64,
    /// Files that reclaim has freed without coming to its aim.
    pub(crate) freed_in_vain: u32,
    pub(crate) rest: Rest,
    spare_acks: Vec<Vec<Ack>>,
}

impl<F: Clone> Journal<F> {
    /// `ahead_max`: bytes that may be ahead of an append.
    pub(crate) fn new(class: DurabilityClass, config: JournalConfig, ahead_max: u64) -> Self {
        Self {
            class,
            config,
            active: None,
            ready: VecDeque::new(),
            full: VecDeque::new(),
            total_bytes: 0,
            next_sequence: 1,
            next_slot: 0,
            stalled: false,
            cramped: false,
            refused: false,
            open: None,
            queue: VecDeque::new(),
            in_flight: VecDeque::new(),
            ahead_bytes: 0,
            ahead_max,
            next_number: 1,
            previous_crc: 0,
            first_group: 0,
            synced_end: 0,
            queued_serial: 0,
            durable_serial: 0,
            groups: 0,
            freed_in_vain: 0,
            rest: Rest::None,
            spare_acks: Vec::new(),
        }
    }

    /// Whether there is any file to write to.
    pub(crate) fn has_file(&self) -> bool {
        self.active.is_some() || !self.ready.is_empty()
    }

    /// Goes on after what recovery found: numbers never repeat.
    pub(crate) fn continue_after(&mut self, number: u64, crc: u32) {
        self.next_number = number + 1;
        self.previous_crc = crc;
    }

    /// One beyond the last group that was written, and all before it.
    pub(crate) fn written_end(&self) -> u64 {
        self.in_flight.front().map_or(self.next_number, |f| f.number)
    }

    /// What a checkpoint written now says about this journal.
    pub(crate) fn groups(&self) -> Groups {
        let written_end = self.written_end();
        let synced_end = match self.class {
            DurabilityClass::Disk => written_end,
            DurabilityClass::Os => self.synced_end,
        };
        Groups { first: self.first_group, synced_end, written_end }
    }

    /// Everything written before this process started is in the checkpoint.
    pub(crate) fn forget_before_run(&mut self) {
        let files = self.full.iter().chain(&self.active);
        self.first_group = files.filter_map(|f| f.first_number).min().unwrap_or(self.next_number);
    }

    /// The oldest file is about to be freed.
    pub(crate) fn forget_oldest(&mut self) {
        let files = self.full.iter().skip(1).chain(&self.active);
        self.first_group = files.filter_map(|f| f.first_number).min().unwrap_or(self.next_number);
    }

    /// Whether it can neither grow nor free anything: one file on a full disk.
    pub(crate) fn is_stuck(&self) -> bool {
        self.cramped && self.full.is_empty() && self.ready.is_empty()
    }

    /// Whether an append would have to wait behind too much: what is queued
    /// and in flight is the others'.
    pub(crate) fn is_crowded(&self) -> bool {
        let open = self.open.as_ref().filter(|p| !p.builder.is_empty());
        self.ahead_bytes + open.map_or(0, |p| p.builder.padded_len() as u64) >= self.ahead_max
    }

    /// Moves the open group to the queue, unless it is empty.
    fn close_open(&mut self) {
        if let Some(full) = self.open.take_if(|p| !p.builder.is_empty()) {
            self.ahead_bytes += full.builder.padded_len() as u64;
            self.queue.push_back(full);
        }
    }

    /// Whether an append with this payload may be queued: at the cap, the last
    /// half of a file's size is kept for reclaim, which has to write before it
    /// can free anything. What is queued counts as written.
    pub(crate) fn admits_append(&self, payload: usize) -> bool {
        let kept = self.config.file_bytes.min(self.total_bytes) / 2;
        self.left_after(payload).is_some_and(|left| left >= kept)
    }

    /// Bytes left, in files that are there or may be made, once everything that
    /// is queued and one more frame have been written; `None` when it does not
    /// fit. A group lies in one file, so the end of a file may stay empty.
    fn left_after(&self, payload: usize) -> Option<u64> {
        let growth = self.config.cap_bytes.saturating_sub(self.total_bytes);
        let to_make = if self.cramped { 0 } else { (growth / self.config.file_bytes) as usize };
        let made = std::iter::repeat_n(self.config.file_bytes - BLOCK, to_make);
        let mut next = self.ready.iter().map(JournalFile::room).chain(made);
        let mut room = self.active.as_ref().map_or(0, JournalFile::room);
        let mut place = |len: usize| {
            while room < len as u64 {
                room = next.next()?;
            }
            room -= len as u64;
            Some(())
        };
        for pending in &self.queue {
            place(pending.builder.padded_len())?;
        }
        match self.open.as_ref().filter(|p| !p.builder.is_empty()) {
            Some(open) if open.builder.fits(payload) => {
                place(open.builder.padded_len_with(payload))?;
            }
            open => {
                if let Some(open) = open {
                    place(open.builder.padded_len())?;
                }
                place((GROUP_HEADER + frame_len(payload)).next_multiple_of(GROUP_ALIGN))?;
            }
        }
        Some(room + next.sum::<u64>())
    }

    /// Whether a frame with this payload could be queued. Never when no file
    /// could hold its group.
    pub(crate) fn has_room(&mut self, pool: &Pool, payload: usize) -> bool {
        if self.open.as_ref().is_some_and(|p| p.builder.fits(payload)) {
            return true;
        }
        self.close_open();
        let need = GROUP_HEADER + frame_len(payload);
        if need.next_multiple_of(GROUP_ALIGN) as u64 > self.config.file_bytes - BLOCK {
            return false;
        }
        let chunk = if need <= GROUP_BYTES {
            pool.take(GROUP_BYTES).or_else(|| pool.take(need))
        } else {
            pool.take(need)
        };
        let Some(chunk) = chunk else { return false };
        self.open = Some(Pending {
            builder: GroupBuilder::new(chunk),
            acks: self.spare_acks.pop().unwrap_or_default(),
            serial: self.queued_serial,
        });
        true
    }

    /// Queues a frame that `has_room` had room for; returns its serial.
    pub(crate) fn push(&mut self, header: &FrameHeader, parts: &[&[u8]], ack: Ack) -> u64 {
        self.builder().push(header, parts);
        self.pushed(ack)
    }

    /// As `push`, of a batch that stays where it lies until it is written.
    pub(crate) fn push_from(
        &mut self,
        header: &FrameHeader,
        head: &[u8],
        payload: &[ChunkSlice],
        ack: Ack,
    ) -> u64 {
        self.builder().push_from(header, head, payload);
        self.pushed(ack)
    }

    fn builder(&mut self) -> &mut GroupBuilder {
        &mut self.open.as_mut().expect("has_room opened a group").builder
    }

    fn pushed(&mut self, ack: Ack) -> u64 {
        let pending = self.open.as_mut().expect("a frame was just added");
        self.queued_serial += 1;
        pending.serial = self.queued_serial;
        match pending.acks.last_mut() {
            Some(last) if last.handle == ack.handle && last.round == ack.round => {
                last.end = ack.end;
                last.is_whole |= ack.is_whole;
            }
            _ => pending.acks.push(ack),
        }
        self.queued_serial
    }

    /// Closes the open group, so that the next frame starts another.
    pub(crate) fn split(&mut self) {
        self.close_open();
    }

    /// Bytes of the group that is written next.
    fn next_len(&self) -> Option<u64> {
        let open = self.open.as_ref().filter(|p| !p.builder.is_empty());
        self.queue.front().or(open).map(|p| p.builder.padded_len() as u64)
    }

    /// Bytes of the group that waits for a file.
    pub(crate) fn stalled_bytes(&self) -> Option<u64> {
        self.next_len().filter(|_| self.stalled)
    }

    /// The next group to write, when one may start now.
    pub(crate) fn next_write(&mut self) -> Option<Write<F>> {
        if self.in_flight.len() >= self.config.in_flight {
            return None;
        }
        let len = self.next_len()?;
        if self.active.as_ref().is_none_or(|f| f.room() < len) && !self.switch(len) {
            self.stalled = true;
            return None;
        }
        self.stalled = false;
        if self.queue.is_empty() {
            self.close_open();
        }
        let pending = self.queue.pop_front()?;
        let file = self.active.as_mut().expect("switch put a file here");
        let number = self.next_number;
        self.next_number += 1;
        let group = pending.builder.seal(file.header.identity, number, self.previous_crc);
        self.previous_crc = group.crc;
        self.groups += 1;
        let pos = file.pos;
        file.first_number.get_or_insert(number);
        file.pos += group.len() as u64;
        for ack in &pending.acks {
            let end = file.logs.entry(ack.handle).or_insert(ack.end);
            *end = ack.end.max(*end);
            if ack.is_whole {
                // Nothing of it in older files counts once this is durable.
                for older in &mut self.full {
                    older.logs.remove(&ack.handle);
                }
            }
        }
        let write = Write { file: file.file.clone(), group, pos, number };
        self.in_flight.push_back(Flight {
            number,
            done: false,
            acks: pending.acks,
            serial: pending.serial,
            bytes: len,
        });
        Some(write)
    }

    fn switch(&mut self, len: u64) -> bool {
        // A small one may be too small.
        let Some(at) = self.ready.iter().position(|f| f.room() >= len) else { return false };
        let next = self.ready.remove(at);
        if let Some(old) = std::mem::replace(&mut self.active, next) {
            self.full.push_back(old);
        }
        true
    }

    /// A write has ended well. Hands out what is durable now, in group order.
    pub(crate) fn finished(&mut self, number: u64, mut acked: impl FnMut(Ack)) {
        let at = self.in_flight.iter().position(|f| f.number == number);
        let flight = &mut self.in_flight[at.expect("only groups in flight finish")];
        flight.done = true;
        if armed(Bug::AcknowledgementsOutOfOrder) {
            for ack in std::mem::take(&mut flight.acks) {
                acked(ack);
            }
        }
        while self.in_flight.front().is_some_and(|f| f.done) {
            let mut flight = self.in_flight.pop_front().expect("just looked at");
            self.durable_serial = flight.serial;
            self.ahead_bytes -= flight.bytes;
            for ack in flight.acks.drain(..) {
                acked(ack);
            }
            if self.spare_acks.len() < 8 {
                self.spare_acks.push(flight.acks);
            }
        }
    }

    /// Files that there may be.
    fn max_files(&self) -> usize {
        match self.cramped {
            true => self.full.len() + self.ready.len() + usize::from(self.active.is_some()),
            false => (self.config.cap_bytes / self.config.file_bytes).max(2) as usize,
        }
    }

    /// Files that reclaim should free now, by the design's half-full rule.
    pub(crate) fn wants_reclaim(&self) -> bool {
        !self.full.is_empty()
            && (self.full.len() >= (self.max_files() / 2).max(1)
                || self.stalled && !self.may_grow())
    }

    /// Notes that a file was freed.
    pub(crate) fn freed(&mut self) {
        self.freed_in_vain = if self.wants_reclaim() { self.freed_in_vain + 1 } else { 0 };
    }

    /// Files freed in vain beyond one life of each: what is in the oldest one
    /// may be what was copied there.
    pub(crate) fn rounds_in_vain(&self) -> Option<u32> {
        self.freed_in_vain.checked_sub(self.max_files() as u32)
    }

    /// Whether another file fits under the cap, and on the disk as far as known.
    pub(crate) fn may_grow(&self) -> bool {
        !self.cramped && self.is_below_cap()
    }

    fn is_below_cap(&self) -> bool {
        self.total_bytes + self.config.file_bytes <= self.config.cap_bytes
    }

    /// Whether another file should be made now: none waits, and the active one
    /// has been used. When a group finds no room even beyond the cap: what it
    /// holds may be what reclaim waits for. Appends alone never get so far.
    pub(crate) fn wants_file(&self) -> bool {
        let used = self.active.as_ref().is_none_or(|f| f.pos > BLOCK);
        let len = self.next_len().unwrap_or(0);
        self.stalled && !self.ready.iter().any(|f| f.room() >= len)
            || self.ready.is_empty() && used && self.is_below_cap()
    }

    /// Whether a freed file is one more than the cap allows.
    pub(crate) fn is_beyond_cap(&self) -> bool {
        self.total_bytes > self.config.cap_bytes
    }
}
