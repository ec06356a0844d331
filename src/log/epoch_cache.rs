//! Which leader epoch started at which offset (KIP-101), as Kafka keeps it in
//! `leader-epoch-checkpoint`. Pure.

use std::fmt::Write as _;

use crate::model::{LeaderEpoch, Offset};

/// Start of a leader epoch in a log (KIP-101).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochEntry {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// The first offset that it may have written.
    pub start: Offset,
}

/// All epochs of a log, both numbers strictly ascending.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EpochCache(Vec<EpochEntry>);

impl EpochCache {
    /// The entries, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[EpochEntry] {
        &self.0
    }

    /// The newest epoch.
    #[must_use]
    pub fn latest(&self) -> Option<EpochEntry> {
        self.0.last().copied()
    }

    /// The epoch of the record at `offset`, or of the one that will be there;
    /// `None` before all that is known.
    #[must_use]
    pub fn at(&self, offset: Offset) -> Option<LeaderEpoch> {
        Some(self.0.iter().rev().find(|entry| entry.start <= offset)?.epoch)
    }

    /// Notes that `epoch` starts at `start`; entries that contradict it go. The
    /// same or an older epoch changes nothing.
    pub fn assign(&mut self, epoch: LeaderEpoch, start: Offset) {
        if epoch.0 < 0 || self.0.last().is_some_and(|last| last.epoch >= epoch) {
            return;
        }
        while self.0.last().is_some_and(|last| last.start >= start) {
            self.0.pop();
        }
        self.0.push(EpochEntry { epoch, start });
    }

    /// Forgets epochs that started at or after `end`.
    pub fn truncate_from(&mut self, end: Offset) {
        while self.0.last().is_some_and(|last| last.start >= end) {
            self.0.pop();
        }
    }

    /// Forgets epochs that ended at or before `start`; the one that is in
    /// force there starts there.
    pub fn truncate_before(&mut self, start: Offset) {
        let keep = self.0.iter().rposition(|e| e.start <= start).unwrap_or(0);
        self.0.drain(..keep);
        if let Some(first) = self.0.first_mut() {
            first.start = first.start.max(start);
        }
    }

    /// The largest epoch at or below `requested` and the offset where it ends;
    /// `log_end` for the latest. `None` when nothing is known about it.
    #[must_use]
    pub fn end_of(&self, requested: LeaderEpoch, log_end: Offset) -> Option<(LeaderEpoch, Offset)> {
        let latest = self.latest()?;
        if requested == latest.epoch {
            return Some((requested, log_end));
        }
        if requested.0 < 0 || requested > latest.epoch {
            return None;
        }
        let next = self.0.iter().position(|e| e.epoch > requested)?;
        let end = self.0[next].start;
        match next.checked_sub(1) {
            Some(at) => Some((self.0[at].epoch, end)),
            // Older than all that is known: Kafka answers with the request's
            // own epoch and the start of the first one.
            None => Some((requested, end)),
        }
    }

    /// The text of Kafka's `leader-epoch-checkpoint`: version, count, entries.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = format!("0\n{}\n", self.0.len());
        for entry in &self.0 {
            let _ = writeln!(out, "{} {}", entry.epoch, entry.start);
        }
        out
    }

    /// Reads what `to_text` or Kafka wrote.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != "0" {
            return None;
        }
        let count: usize = lines.next()?.parse().ok()?;
        let mut cache = Self::default();
        for line in lines.by_ref().take(count) {
            let (epoch, start) = line.split_once(' ')?;
            cache.assign(LeaderEpoch(epoch.parse().ok()?), Offset(start.parse().ok()?));
        }
        (cache.0.len() == count).then_some(cache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(entries: &[(i32, i64)]) -> EpochCache {
        let mut cache = EpochCache::default();
        for &(epoch, start) in entries {
            cache.assign(LeaderEpoch(epoch), Offset(start));
        }
        cache
    }

    #[test]
    fn ends_as_kip_320_says() {
        let c = cache(&[(2, 0), (4, 10), (5, 20)]);
        let end = |e| c.end_of(LeaderEpoch(e), Offset(33)).map(|(e, o)| (e.0, o.0));
        assert_eq!(end(5), Some((5, 33)));
        assert_eq!(end(4), Some((4, 20)));
        assert_eq!(end(3), Some((2, 10)));
        assert_eq!(end(2), Some((2, 10)));
        assert_eq!(end(1), Some((1, 0)));
        assert_eq!(end(6), None);
        assert_eq!(end(-1), None);
        assert_eq!(EpochCache::default().end_of(LeaderEpoch(0), Offset(1)), None);
    }

    #[test]
    fn an_epoch_that_wrote_nothing_gives_way() {
        let c = cache(&[(1, 0), (2, 10), (3, 10)]);
        assert_eq!(c.entries().len(), 2);
        assert_eq!(c.latest().unwrap().epoch, LeaderEpoch(3));
        let mut c = cache(&[(1, 0), (2, 10), (3, 20)]);
        c.truncate_from(Offset(10));
        assert_eq!(c, cache(&[(1, 0)]));
        let mut c = cache(&[(1, 0), (2, 10), (3, 20)]);
        c.truncate_before(Offset(15));
        assert_eq!(c, cache(&[(2, 15), (3, 20)]));
        let at = |offset| c.at(Offset(offset)).map(|epoch| epoch.0);
        assert_eq!([at(14), at(15), at(19), at(20)], [None, Some(2), Some(2), Some(3)]);
    }

    #[test]
    fn text_is_kafkas() {
        let c = cache(&[(0, 0), (3, 17)]);
        assert_eq!(c.to_text(), "0\n2\n0 0\n3 17\n");
        assert_eq!(EpochCache::from_text(&c.to_text()), Some(c));
        assert_eq!(EpochCache::from_text("1\n0\n"), None);
        assert_eq!(EpochCache::from_text("0\n2\n0 0\n"), None);
    }
}
