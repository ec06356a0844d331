//! Tasks and clocks of the simulated machine, and the environment handle.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

use super::fs::SimFs;
use super::world::{Timer, World};
use crate::io::env::{Env, Task};

pub(super) type TaskId = u64;

/// Wakers must be `Send`, hence the mutex; there is one thread all the same.
pub(super) struct TaskWaker {
    id: TaskId,
    queued: AtomicBool,
    ready: Arc<Mutex<Vec<TaskId>>>,
}

impl TaskWaker {
    pub(super) fn new(id: TaskId, ready: Arc<Mutex<Vec<TaskId>>>) -> Self {
        Self { id, queued: AtomicBool::new(false), ready }
    }

    pub(super) fn wake_up(&self) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
        }
    }

    /// It left the ready list; the next wake queues it again.
    pub(super) fn taken(&self) {
        self.queued.store(false, Ordering::Relaxed);
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_up();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_up();
    }
}

pub(super) struct TaskSlot {
    pub(super) node: usize,
    pub(super) future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    pub(super) waker: Arc<TaskWaker>,
    pub(super) cancelled: bool,
}

/// Handle of a task; its drop cancels the task at its next await.
pub struct SimTask {
    world: Rc<World>,
    id: TaskId,
    detached: bool,
}

impl Task for SimTask {
    fn detach(mut self) {
        self.detached = true;
    }
}

impl Drop for SimTask {
    fn drop(&mut self) {
        if self.detached {
            return;
        }
        if let Ok(mut inner) = self.world.inner.try_borrow_mut()
            && let Some(slot) = inner.tasks.get_mut(&self.id)
        {
            slot.cancelled = true;
            slot.waker.wake_up();
        }
    }
}

/// One shard's view of a simulated machine.
#[derive(Clone)]
pub struct SimEnv {
    world: Rc<World>,
    node: usize,
    incarnation: u64,
    fs: SimFs,
}

struct Sleep {
    world: Rc<World>,
    node: usize,
    after: Duration,
    timer: Option<Rc<Timer>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(timer) = &self.timer {
            if timer.done.get() {
                return Poll::Ready(());
            }
            *timer.waker.borrow_mut() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let timer = Rc::new(Timer {
            done: Cell::new(false),
            waker: RefCell::new(Some(cx.waker().clone())),
        });
        self.timer = Some(timer.clone());
        let (node, after) = (self.node, self.after);
        self.world.inner.borrow_mut().add_timer(node, after, timer);
        Poll::Pending
    }
}

impl SimEnv {
    pub(super) fn new(world: Rc<World>, node: usize) -> Self {
        let incarnation = world.inner.borrow().nodes[node].incarnation;
        let fs = SimFs::new(world.clone(), node, incarnation);
        Self { world, node, incarnation, fs }
    }

    /// The errors that this node's disk has given out by plan or rate since its
    /// faults were last cleared.
    #[must_use]
    pub fn fault_hits(&self) -> Vec<super::Hit> {
        self.world.inner.borrow().nodes[self.node].faults.hits().to_vec()
    }

    fn alive(&self) -> bool {
        self.world.inner.borrow().nodes[self.node].incarnation == self.incarnation
    }
}

impl Env for SimEnv {
    type Fs = SimFs;
    type Task = SimTask;

    fn fs(&self) -> &SimFs {
        &self.fs
    }

    fn monotonic(&self) -> Duration {
        self.world.inner.borrow().now
    }

    fn wall_ms(&self) -> i64 {
        let inner = self.world.inner.borrow();
        inner.wall_ms + inner.now.as_millis() as i64
    }

    fn random(&self) -> u64 {
        self.world.inner.borrow_mut().rng.next_u64()
    }

    fn spawn(&self, future: impl Future<Output = ()> + 'static) -> SimTask {
        let mut inner = self.world.inner.borrow_mut();
        let id = inner.next_task;
        inner.next_task += 1;
        let waker = Arc::new(TaskWaker::new(id, self.world.ready.clone()));
        let eager = inner.knobs.eager_spawn;
        let at_once = inner.rng.chance(eager);
        let dead = inner.nodes[self.node].incarnation != self.incarnation;
        if !dead {
            let future: Pin<Box<dyn Future<Output = ()>>> = Box::pin(future);
            let slot = TaskSlot {
                node: self.node,
                future: Some(future),
                waker: waker.clone(),
                cancelled: false,
            };
            inner.tasks.insert(id, slot);
        }
        drop(inner);
        let task = SimTask { world: self.world.clone(), id, detached: dead };
        if at_once {
            self.world.poll_task(id);
        } else if !dead {
            waker.wake_up();
        }
        task
    }

    fn sleep(&self, after: Duration) -> impl Future<Output = ()> + 'static {
        Sleep { world: self.world.clone(), node: self.node, after, timer: None }
    }

    fn slice_over(&self) -> bool {
        let mut inner = self.world.inner.borrow_mut();
        let per_mille = inner.knobs.slice_over;
        inner.rng.chance(per_mille)
    }

    fn pause(&self) -> impl Future<Output = ()> + 'static {
        debug_assert!(self.alive(), "a dead incarnation pauses");
        self.sleep(Duration::from_nanos(200))
    }
}
