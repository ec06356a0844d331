//! Replies of one connection, in request order.
//!
//! A request takes a place when it is accepted; its answer may be known at
//! once or later, and in any order; answers leave in the order of places
//! (KAFKA-SEMANTICS 4). Owned by the connection's shard.

use std::collections::VecDeque;

/// Place of a request among all requests of its connection, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReplySeq(pub u64);

/// Places that have not left yet, oldest first.
#[derive(Debug)]
pub struct ReplyQueue<P> {
    first: u64,
    places: VecDeque<P>,
}

impl<P> Default for ReplyQueue<P> {
    fn default() -> Self {
        Self { first: 0, places: VecDeque::new() }
    }
}

impl<P> ReplyQueue<P> {
    /// The place that the next `push` will take.
    #[must_use]
    pub fn next_seq(&self) -> ReplySeq {
        ReplySeq(self.first + self.places.len() as u64)
    }

    /// The oldest place that has not left.
    #[must_use]
    pub fn first_seq(&self) -> ReplySeq {
        ReplySeq(self.first)
    }

    /// Takes the next place.
    pub fn push(&mut self, pending: P) -> ReplySeq {
        let seq = self.next_seq();
        self.places.push_back(pending);
        seq
    }

    /// What waits at a place; `None` when it has left.
    pub fn get_mut(&mut self, seq: ReplySeq) -> Option<&mut P> {
        let index = usize::try_from(seq.0.checked_sub(self.first)?).ok()?;
        self.places.get_mut(index)
    }

    /// The oldest place.
    #[must_use]
    pub fn front(&self) -> Option<&P> {
        self.places.front()
    }

    /// All places, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        self.places.iter()
    }

    /// Removes the oldest place.
    pub fn pop(&mut self) -> Option<P> {
        let pending = self.places.pop_front()?;
        self.first += 1;
        Some(pending)
    }

    /// Removes the newest place; the next `push` takes it again.
    pub fn pop_last(&mut self) -> Option<(ReplySeq, P)> {
        let pending = self.places.pop_back()?;
        Some((self.next_seq(), pending))
    }

    /// Requests in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether nothing is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c4_places_keep_their_order_and_late_answers_find_theirs() {
        let mut queue = ReplyQueue::default();
        let a = queue.push("a");
        let b = queue.push("b");
        *queue.get_mut(b).unwrap() = "B";
        assert_eq!(queue.pop(), Some("a"));
        assert!(queue.get_mut(a).is_none(), "a place that has left is gone");
        assert_eq!(queue.get_mut(b), Some(&mut "B"));
        assert_eq!(queue.next_seq(), ReplySeq(2));
        assert_eq!(queue.pop(), Some("B"));
        assert!(queue.is_empty());
        let (c, d) = (queue.push("c"), queue.push("d"));
        assert_eq!(queue.pop_last(), Some((d, "d")));
        assert_eq!(queue.front(), Some(&"c"));
        assert_eq!(queue.pop_last(), Some((c, "c")));
        assert_eq!(queue.next_seq(), c);
        assert!(queue.get_mut(ReplySeq(99)).is_none());
    }
}
