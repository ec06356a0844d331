//! A queue of deadlines with cancellation, for one owner on one shard.
//!
//! Time comes in as an argument. Equal deadlines come out in the order in
//! which they went in.

use std::collections::BTreeMap;
use std::time::Duration;

/// Names one pending deadline, for cancelling it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DeadlineKey {
    at: Duration,
    number: u64,
}

/// Pending deadlines, each carrying a `T`.
#[derive(Debug)]
pub struct Deadlines<T> {
    pending: BTreeMap<DeadlineKey, T>,
    next_number: u64,
}

impl<T> Default for Deadlines<T> {
    fn default() -> Self {
        Self { pending: BTreeMap::new(), next_number: 0 }
    }
}

impl<T> Deadlines<T> {
    /// Adds a deadline at monotonic time `at`.
    pub fn insert(&mut self, at: Duration, value: T) -> DeadlineKey {
        let key = DeadlineKey { at, number: self.next_number };
        self.next_number += 1;
        self.pending.insert(key, value);
        key
    }

    /// Takes a deadline back; `None` when it has passed already.
    pub fn cancel(&mut self, key: DeadlineKey) -> Option<T> {
        self.pending.remove(&key)
    }

    /// The earliest pending deadline.
    #[must_use]
    pub fn next(&self) -> Option<Duration> {
        self.pending.first_key_value().map(|(key, _)| key.at)
    }

    /// Removes and returns the earliest deadline when it is not after `now`.
    pub fn pop_due(&mut self, now: Duration) -> Option<T> {
        let entry = self.pending.first_entry()?;
        (entry.key().at <= now).then(|| entry.remove())
    }

    /// Number of pending deadlines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether none is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn come_out_in_order_and_can_be_cancelled() {
        let mut deadlines = Deadlines::default();
        let at = Duration::from_millis;
        let _ = deadlines.insert(at(5), "b");
        let first = deadlines.insert(at(3), "a");
        let _ = deadlines.insert(at(5), "c");
        assert_eq!(deadlines.next(), Some(at(3)));
        assert_eq!(deadlines.cancel(first), Some("a"));
        assert_eq!(deadlines.cancel(first), None);
        assert_eq!(deadlines.pop_due(at(4)), None);
        assert_eq!(deadlines.pop_due(at(5)), Some("b"));
        assert_eq!(deadlines.pop_due(at(5)), Some("c"));
        assert!(deadlines.is_empty());
    }
}
