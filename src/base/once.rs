//! A value that one task of a shard waits for and another gives, once.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Debug)]
enum State<T> {
    Waiting(Option<Waker>),
    Given(T),
    /// The giver is gone, or the value was taken.
    Over,
}

/// Gives the value. Dropped without giving, the receiver gets `None`.
#[derive(Debug)]
pub struct Giver<T>(Rc<RefCell<State<T>>>);

/// Waits for the value.
#[derive(Debug)]
pub struct Receiver<T>(Rc<RefCell<State<T>>>);

/// A giver and its receiver.
#[must_use]
pub fn once<T>() -> (Giver<T>, Receiver<T>) {
    let state = Rc::new(RefCell::new(State::Waiting(None)));
    (Giver(state.clone()), Receiver(state))
}

fn change<T>(cell: &RefCell<State<T>>, new: State<T>) {
    let old = std::mem::replace(&mut *cell.borrow_mut(), new);
    if let State::Waiting(Some(waker)) = old {
        waker.wake();
    }
}

impl<T> Giver<T> {
    /// Gives the value and wakes the receiver.
    pub fn give(self, value: T) {
        change(&self.0, State::Given(value));
    }

    /// Whether the receiver is still there.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        Rc::strong_count(&self.0) > 1
    }
}

impl<T> Drop for Giver<T> {
    fn drop(&mut self) {
        if self.is_awaited() && matches!(*self.0.borrow(), State::Waiting(_)) {
            change(&self.0, State::Over);
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.borrow_mut();
        if let State::Waiting(waker) = &mut *state {
            *waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        match std::mem::replace(&mut *state, State::Over) {
            State::Given(value) => Poll::Ready(Some(value)),
            State::Over | State::Waiting(_) => Poll::Ready(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, poll_once};

    #[test]
    fn gives_once_and_says_when_nothing_comes() {
        let (giver, mut receiver) = once();
        assert_eq!(block_on(poll_once(&mut receiver)), None, "still waiting");
        assert!(giver.is_awaited());
        giver.give(7);
        assert_eq!(block_on(receiver), Some(7));
        let (giver, receiver) = once::<u8>();
        drop(giver);
        assert_eq!(block_on(receiver), None);
        let (giver, receiver) = once::<u8>();
        drop(receiver);
        assert!(!giver.is_awaited());
    }
}
