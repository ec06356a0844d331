//! A condition that tasks of one shard wait for. Spurious wakes are allowed;
//! each waiter checks its own condition.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Wakes everything that waits. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct Signal(Rc<RefCell<Vec<Waker>>>);

impl Signal {
    /// Wakes all waiters to look again.
    pub(crate) fn notify(&self) {
        let wakers = std::mem::take(&mut *self.0.borrow_mut());
        for waker in wakers {
            waker.wake();
        }
    }

    /// Completes when `ready` answers something; asked now and after each
    /// `notify`.
    pub(crate) async fn wait<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        poll_fn(|cx| {
            if let Some(value) = ready() {
                return Poll::Ready(value);
            }
            let mut wakers = self.0.borrow_mut();
            if !wakers.iter().any(|w| w.will_wake(cx.waker())) {
                wakers.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}
