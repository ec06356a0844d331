//! One file: what its readers see, what is durable, and the ordered changes
//! between the two.
//!
//! Invariants: `current` equals `durable` with every pending change applied in
//! order; changes of the length survive a power cut as a prefix (they go
//! through a file system's journal), sectors survive or not one by one.

use super::super::Rng;
use super::image::Image;
use super::{Fate, SECTOR};

pub(super) enum Change {
    /// Whole sectors as they stood after the write; `live` says which of them
    /// no later durable write has replaced.
    Sectors {
        first: u64,
        data: Vec<u8>,
        live: Vec<bool>,
    },
    Len {
        len: u64,
        shrink: bool,
    },
}

pub(super) struct Pending {
    seq: u64,
    change: Change,
}

#[derive(Default)]
pub(super) struct FileNode {
    pub(super) current: Image,
    durable: Image,
    pending: Vec<Pending>,
    /// Ranges that cannot be read any more.
    bad: Vec<std::ops::Range<u64>>,
}

fn sector_span(pos: u64, len: usize) -> (u64, usize) {
    let first = pos / SECTOR as u64 * SECTOR as u64;
    let end = (pos + len as u64).next_multiple_of(SECTOR as u64);
    (first, (end - first) as usize)
}

impl FileNode {
    /// A write that completed. `durable` is what O_DSYNC adds: these bytes and
    /// the metadata that reading them needs, nothing else.
    pub(super) fn write(&mut self, seq: u64, pos: u64, data: &[u8], durable: bool) {
        let end = pos + data.len() as u64;
        let grows = end > self.current.len;
        self.current.write(pos, data);
        if grows {
            self.current.len = end;
        }
        let (first, len) = sector_span(pos, data.len());
        let mut sectors = vec![0; len];
        self.current.read(first, &mut sectors);
        if durable {
            let needs_len = grows || end > self.durable.len || self.has_shrink_at_or_below(end);
            if grows {
                self.pending.push(Pending { seq, change: Change::Len { len: end, shrink: false } });
            }
            if needs_len {
                self.persist_len(seq);
            }
            self.supersede(first, len);
            self.durable.write(first, &sectors);
        } else {
            let live = vec![true; len / SECTOR];
            self.pending
                .push(Pending { seq, change: Change::Sectors { first, data: sectors, live } });
            if grows {
                self.pending.push(Pending { seq, change: Change::Len { len: end, shrink: false } });
            }
        }
    }

    /// A change of the length that completed.
    pub(super) fn set_len(&mut self, seq: u64, len: u64) {
        let shrink = len < self.current.len;
        if len != self.current.len {
            self.current.set_len(len);
            self.pending.push(Pending { seq, change: Change::Len { len, shrink } });
        }
    }

    /// fsync of everything that completed up to `seq`.
    pub(super) fn sync(&mut self, seq: u64) {
        let (now, later) =
            std::mem::take(&mut self.pending).into_iter().partition(|p| p.seq <= seq);
        self.pending = later;
        for Pending { change, .. } in now {
            match change {
                Change::Len { len, .. } => self.durable.set_len(len),
                Change::Sectors { first, data, live } => {
                    for (i, _) in live.iter().enumerate().filter(|(_, live)| **live) {
                        let at = i * SECTOR;
                        self.durable.write(first + at as u64, &data[at..at + SECTOR]);
                    }
                }
            }
        }
        if self.pending.is_empty() {
            self.durable.trim();
        }
    }

    /// A failed fsync: the kernel forgets that some of these pages were dirty,
    /// so that no later fsync will write them.
    pub(super) fn sync_failed(&mut self, seq: u64, rng: &mut Rng) {
        for p in self.pending.iter_mut().filter(|p| p.seq <= seq) {
            if let Change::Sectors { live, .. } = &mut p.change
                && rng.chance(500)
            {
                live.fill(false);
            }
        }
    }

    /// The power went: each unsynced sector is kept or not. Says how many
    /// writes were kept, dropped and torn through `report`.
    pub(super) fn power_cut(&mut self, rng: &mut Rng, mut report: impl FnMut(u64, usize, Fate)) {
        let changes_of_len =
            self.pending.iter().filter(|p| matches!(p.change, Change::Len { .. })).count() as u64;
        let mut kept_len = rng.within(0..=changes_of_len);
        // Sectors written after a cut that was lost lie in blocks that the
        // surviving metadata does not know.
        let mut floor = u64::MAX;
        for Pending { change, .. } in std::mem::take(&mut self.pending) {
            match change {
                Change::Len { len, .. } if kept_len > 0 => {
                    kept_len -= 1;
                    self.durable.set_len(len);
                }
                Change::Len { len, shrink } => {
                    if shrink {
                        floor = floor.min(len);
                    }
                }
                Change::Sectors { first, data, live } => {
                    let fate = Fate::choose(rng);
                    report(first, data.len(), fate);
                    for (i, _) in live.iter().enumerate().filter(|(_, live)| **live) {
                        let at = i * SECTOR;
                        if first + (at as u64) < floor && fate.keeps_sector(rng) {
                            self.durable.write(first + at as u64, &data[at..at + SECTOR]);
                        }
                    }
                }
            }
        }
        self.durable.trim();
        self.current = self.durable.clone();
    }

    /// Flips one bit, durably: rot.
    pub(super) fn flip(&mut self, pos: u64, bit: u8) {
        for image in [&mut self.current, &mut self.durable] {
            let mut byte = [0];
            image.read(pos, &mut byte);
            byte[0] ^= 1 << (bit % 8);
            image.write(pos, &byte);
        }
    }

    /// Makes a range unreadable for good.
    pub(super) fn spoil(&mut self, range: std::ops::Range<u64>) {
        self.bad.push(range);
    }

    pub(super) fn is_bad(&self, range: &std::ops::Range<u64>) -> bool {
        self.bad.iter().any(|bad| bad.start < range.end && range.start < bad.end)
    }

    pub(super) fn is_clean(&self) -> bool {
        self.pending.is_empty()
    }

    fn has_shrink_at_or_below(&self, end: u64) -> bool {
        self.pending
            .iter()
            .any(|p| matches!(p.change, Change::Len { len, shrink: true } if len < end))
    }

    /// Makes all changes of the length durable, and drops what earlier
    /// pending sectors held beyond a cut.
    fn persist_len(&mut self, seq: u64) {
        let mut cut = u64::MAX;
        let mut kept = Vec::new();
        let pending = std::mem::take(&mut self.pending);
        // From the newest back: each sector meets only the cuts after it.
        for mut p in pending.into_iter().rev() {
            match &mut p.change {
                Change::Len { len, shrink } if p.seq <= seq => {
                    if *shrink {
                        cut = cut.min(*len);
                    }
                    kept.push(p);
                }
                Change::Len { .. } => kept.push(p),
                Change::Sectors { first, data, live } => {
                    for (i, live) in live.iter_mut().enumerate() {
                        let start = *first + (i * SECTOR) as u64;
                        if start >= cut {
                            *live = false;
                        } else if start + SECTOR as u64 > cut {
                            let from = i * SECTOR + (cut - start) as usize;
                            data[from..(i + 1) * SECTOR].fill(0);
                        }
                    }
                    kept.push(p);
                }
            }
        }
        kept.reverse();
        for p in kept {
            match p.change {
                Change::Len { len, .. } if p.seq <= seq => self.durable.set_len(len),
                _ => self.pending.push(p),
            }
        }
    }

    fn supersede(&mut self, first: u64, len: usize) {
        let end = first + len as u64;
        for p in &mut self.pending {
            if let Change::Sectors { first: at, live, .. } = &mut p.change {
                for (i, live) in live.iter_mut().enumerate() {
                    let start = *at + (i * SECTOR) as u64;
                    if start >= first && start < end {
                        *live = false;
                    }
                }
            }
        }
        self.pending.retain(|p| match &p.change {
            Change::Sectors { live, .. } => live.iter().any(|l| *l),
            Change::Len { .. } => true,
        });
    }
}
