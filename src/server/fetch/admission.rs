//! How many partitions the fetches of a shard may name together, which bounds
//! what they hold: about 400 bytes each. Whoever finds no room waits with its
//! frame unread, first come first served, and the fetches that wait longest for
//! data are answered early to make room.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use crate::shard::Place;

/// How long a fetch that was told to answer counts as room that comes: it may
/// stand behind another of its connection, or behind a reader that is slow.
const LEAVES_WITHIN: Duration = Duration::from_millis(10);

/// Time between two warnings that there is no room.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Counts the partitions of all fetches in flight on a shard.
pub(in crate::server) struct Admission(Rc<Inner>);

struct Inner {
    max: usize,
    held: Cell<usize>,
    next: Cell<u64>,
    /// Who waits for room, by number.
    queue: RefCell<VecDeque<u64>>,
    /// Who waits for data, by number, and what that holds.
    parked: RefCell<BTreeMap<u64, (Place, usize)>>,
    /// Who was told to answer, when, and what that will give back.
    leaving: RefCell<BTreeMap<u64, (Duration, usize)>>,
    warned_at: Cell<Option<Duration>>,
}

impl Admission {
    /// Room for `max` partitions (`millstream.fetch.partitions.max`).
    pub(in crate::server) fn new(max: usize) -> Self {
        Self(Rc::new(Inner {
            max,
            held: Cell::new(0),
            next: Cell::new(0),
            queue: RefCell::default(),
            parked: RefCell::default(),
            leaving: RefCell::default(),
            warned_at: Cell::new(None),
        }))
    }

    /// A fetch of so many partitions, which has no room yet.
    pub(super) fn ask(&self, partitions: usize) -> Permit {
        let number = self.0.next.get();
        self.0.next.set(number + 1);
        // A request for more than all would wait for ever.
        let partitions = partitions.min(self.0.max);
        Permit { inner: self.0.clone(), number, partitions, stand: Stand::New }
    }

    /// Partitions of the fetches that have room.
    #[cfg(test)]
    pub(in crate::server) fn held(&self) -> usize {
        self.0.held.get()
    }
}

impl Inner {
    /// Tells parked fetches to answer, oldest first, until enough comes.
    fn make_room(&self, lacking: usize, now: Duration, mut hurry: impl FnMut(Place)) {
        let mut leaving = self.leaving.borrow_mut();
        let mut parked = self.parked.borrow_mut();
        let soon = |(told, _): &&(Duration, usize)| *told + LEAVES_WITHIN > now;
        let mut comes = leaving.values().filter(soon).map(|(_, partitions)| partitions).sum();
        while lacking > comes
            && let Some((number, (place, partitions))) = parked.pop_first()
        {
            leaving.insert(number, (now, partitions));
            comes += partitions;
            hurry(place);
        }
    }

    fn warn(&self, now: Duration) {
        if self.warned_at.get().is_none_or(|at| at + WARN_EVERY <= now) {
            self.warned_at.set(Some(now));
            let max = self.max;
            tracing::warn!(
                "fetches wait for each other: together they name more than {max} partitions; \
                 raise millstream.fetch.partitions.max"
            );
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stand {
    New,
    Queued,
    Admitted,
}

/// One fetch's room, until this is dropped.
pub(super) struct Permit {
    inner: Rc<Inner>,
    number: u64,
    partitions: usize,
    stand: Stand,
}

impl Permit {
    /// Partitions that the fetch may name.
    pub(super) fn partitions(&self) -> usize {
        self.partitions
    }

    /// Whether the fetch waits for room.
    pub(super) fn is_queued(&self) -> bool {
        self.stand == Stand::Queued
    }

    /// Whether the fetch has room, at monotonic time `now`. If not, it is to ask
    /// again, and `hurry` gets those who wait for data and are to answer now.
    pub(super) fn admit(&mut self, now: Duration, hurry: impl FnMut(Place)) -> bool {
        if self.stand == Stand::Admitted {
            return true;
        }
        let inner = &*self.inner;
        let mut queue = inner.queue.borrow_mut();
        let is_next = queue.front().is_none_or(|first| *first == self.number);
        let wanted = inner.held.get() + self.partitions;
        if self.partitions == 0 || is_next && wanted <= inner.max {
            inner.held.set(wanted);
            if self.stand == Stand::Queued {
                queue.pop_front();
            }
            self.stand = Stand::Admitted;
            return true;
        }
        if self.stand == Stand::New {
            queue.push_back(self.number);
            self.stand = Stand::Queued;
            inner.warn(now);
        }
        if is_next {
            inner.make_room(wanted - inner.max, now, hurry);
        }
        false
    }

    /// The fetch waits for data.
    pub(super) fn park(&self, place: Place) {
        self.inner.parked.borrow_mut().insert(self.number, (place, self.partitions));
    }

    /// It no longer does.
    pub(super) fn unpark(&self) {
        self.inner.parked.borrow_mut().remove(&self.number);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        match self.stand {
            Stand::New => {}
            Stand::Queued => {
                self.inner.queue.borrow_mut().retain(|number| *number != self.number);
            }
            Stand::Admitted => {
                self.inner.held.set(self.inner.held.get() - self.partitions);
                self.inner.leaving.borrow_mut().remove(&self.number);
                self.unpark();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::ring::ConnId;
    use crate::shard::ReplySeq;

    fn place(conn: u32) -> Place {
        Place { conn: ConnId::numbered(conn), seq: ReplySeq(0) }
    }

    fn admit_at(permit: &mut Permit, ms: u64) -> (bool, Vec<Place>) {
        let mut hurried = Vec::new();
        (permit.admit(Duration::from_millis(ms), |place| hurried.push(place)), hurried)
    }

    fn admit(permit: &mut Permit) -> (bool, Vec<Place>) {
        admit_at(permit, 0)
    }

    #[test]
    fn who_waits_for_room_comes_in_order_and_is_made_room_for() {
        let admission = Admission::new(10);
        let mut parked: Vec<_> = (0..3).map(|_| admission.ask(3)).collect();
        for (number, permit) in (0..).zip(&mut parked) {
            assert!(admit(permit).0);
            permit.park(place(number));
        }
        let (mut large, mut small) = (admission.ask(6), admission.ask(1));
        assert_eq!(admit(&mut large), (false, vec![place(0), place(1)]), "the oldest, and enough");
        assert_eq!(admit(&mut large), (false, vec![]), "once");
        assert_eq!(admit(&mut small), (false, vec![]), "although there is room");
        assert!(admit(&mut admission.ask(0)).0, "this one needs none");
        parked.drain(..2);
        assert!(admit(&mut large).0 && admit(&mut small).0);
        assert_eq!(admission.held(), 10);
        // Who is gone holds nothing, wherever it was.
        let (mut first, mut second) = (admission.ask(2), admission.ask(2));
        assert_eq!(admit(&mut first), (false, vec![place(2)]));
        assert!(!admit(&mut second).0);
        drop((first, parked));
        assert!(admit(&mut second).0);
        drop((second, large, small));
        assert_eq!(admission.held(), 0);
    }

    #[test]
    fn a_request_for_all_waits_for_all() {
        let admission = Admission::new(10);
        let (mut one, mut all) = (admission.ask(1), admission.ask(11));
        assert!(admit(&mut one).0);
        one.park(place(0));
        one.unpark();
        assert_eq!(admit(&mut all), (false, vec![]), "it answers already");
        drop(one);
        assert!(admit(&mut all).0);
    }

    #[test]
    fn who_was_told_and_does_not_leave_is_not_counted_on() {
        let admission = Admission::new(10);
        let mut parked: Vec<_> = (0..3).map(|_| admission.ask(3)).collect();
        for (number, permit) in (0..).zip(&mut parked) {
            assert!(admit(permit).0);
            permit.park(place(number));
        }
        let mut next = admission.ask(2);
        assert_eq!(admit_at(&mut next, 100), (false, vec![place(0)]));
        assert_eq!(admit_at(&mut next, 105), (false, vec![]));
        assert_eq!(admit_at(&mut next, 110), (false, vec![place(1)]), "another");
        parked.remove(1);
        assert!(admit_at(&mut next, 111).0);
        drop((next, parked));
        assert_eq!(admission.held(), 0);
    }
}
