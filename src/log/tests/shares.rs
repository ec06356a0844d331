//! What readers and housekeeping leave each other: memory and descriptors.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::*;
use crate::io::{Env as _, FileSystem as _, Task as _};
use crate::log::files_lru::FilesLru;

#[test]
fn readers_that_hold_all_their_memory_do_not_stop_housekeeping() {
    let sim = Sim::new(3);
    let env = sim.env();
    sim.run_until(async {
        env.fs().create_dir_all(Path::new("/data")).await.unwrap();
        env.fs().sync_dir(Path::new("/")).await.unwrap();
        let config = config();
        let (cap, cold) = (config.disk.cap_bytes, config.pools.cold.clone());
        let class = DurabilityClass::Disk;
        let (set, mut found) = LogSet::recover(env.clone(), config, &[known(class)]).await.unwrap();
        let handle = found.remove(0).handle;
        let _readers = cold.take(cold.limit()).expect("nothing else uses it");
        // More than twice what the journal holds: files are made, segments
        // written and closed, journals reclaimed.
        let bytes = batch(&[(1, 50_000)], Compression::None);
        let (view, _) = BatchView::parse(&bytes).unwrap();
        let summary = view.summary().unwrap();
        let (mut appended, mut waits) = (0, 0);
        while appended * (bytes.len() as u64) < 2 * cap {
            let (_, durable, base) = set.bounds(handle).unwrap();
            set.flush();
            commit(&set);
            if base.0 - durable.0 < 8
                && set.append(handle, &bytes, &summary, base, LeaderEpoch(1)).is_ok()
            {
                (appended, waits) = (appended + 1, 0);
                continue;
            }
            waits += 1;
            assert!(waits < 10_000, "housekeeping stands still after {appended} batches");
            env.sleep(Duration::from_micros(100)).await;
        }
        until_durable(&env, &set, handle).await;
    });
}

#[test]
fn logs_that_share_their_memory_are_written_in_large_pieces() {
    let sim = Sim::new(4);
    let env = sim.env();
    sim.run_until(async {
        env.fs().create_dir_all(Path::new("/data")).await.unwrap();
        env.fs().sync_dir(Path::new("/")).await.unwrap();
        let settings = LogSetConfig { write_behind_bytes: 1 << 20, ..config() };
        let all: Vec<_> = (0..4)
            .map(|index| KnownLog {
                log_id: LogId(7 + index),
                partition: PartitionIndex(i32::try_from(index).unwrap()),
                config: LogConfig { segment_bytes: 1 << 30, ..LogConfig::default() },
                ..known(DurabilityClass::Os)
            })
            .collect();
        let (set, found) = LogSet::recover(env.clone(), settings, &all).await.unwrap();
        let bytes = batch(&[(1, 50_000)], Compression::None);
        let round = async || {
            for log in &found {
                append(&env, &set, log.handle, &bytes).await;
            }
        };
        // Small chunks are for logs that begin.
        for _ in 0..100 {
            round().await;
        }
        sim.keep_trace();
        for _ in 0..200 {
            round().await;
        }
    });
    let writes = sim.trace().into_iter().filter(|line| line.contains("submit write"));
    let lengths = writes.filter(|line| line.contains(".log ")).map(|line| {
        let (_, len) = line.rsplit_once(' ').unwrap();
        len.parse::<usize>().unwrap()
    });
    let lengths: Vec<_> = lengths.collect();
    let small = lengths.iter().filter(|len| **len < 32 * 1024).count();
    let all = lengths.len();
    assert!(all > 20 && small * 4 < all, "{small} of {all} writes are small");
}

#[test]
fn reads_of_clients_use_a_bounded_number_of_files() {
    let sim = Sim::new(5);
    let env = sim.env();
    sim.run_until(async {
        let files: Rc<FilesLru<()>> = Rc::new(FilesLru::new(16));
        let (now, most, done) =
            (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        for _ in 0..40 {
            let (env, files) = (env.clone(), files.clone());
            let (now, most, done) = (now.clone(), most.clone(), done.clone());
            let task = env.clone().spawn(async move {
                let _reading = files.begin_read().await;
                now.set(now.get() + 1);
                most.set(most.get().max(now.get()));
                env.sleep(Duration::from_micros(300)).await;
                now.set(now.get() - 1);
                done.set(done.get() + 1);
            });
            task.detach();
        }
        while done.get() < 40 {
            env.sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(most.get(), 4, "a quarter of the files that are kept open");
    });
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll<F: Future>(future: Pin<&mut F>, wakes: &Arc<Wakes>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(wakes.clone())))
}

/// A turn goes to the read that has waited longest, past those that gave up,
/// and wakes no other; a newcomer does not get in before it.
#[test]
fn reads_of_clients_take_turns_in_order() {
    let files: FilesLru<()> = FilesLru::new(4);
    let wakes: [Arc<Wakes>; 5] = Default::default();
    let woken = || wakes.each_ref().map(|wakes| wakes.0.load(Ordering::Relaxed));
    let Poll::Ready(reading) = poll(pin!(files.begin_read()), &wakes[0]) else {
        panic!("one may read")
    };
    let mut first = pin!(files.begin_read());
    let mut gives_up = Box::pin(files.begin_read());
    let mut leaves_late = Box::pin(files.begin_read());
    let mut newcomer = pin!(files.begin_read());
    assert!(poll(first.as_mut(), &wakes[1]).is_pending());
    assert!(poll(gives_up.as_mut(), &wakes[2]).is_pending());
    assert!(poll(leaves_late.as_mut(), &wakes[3]).is_pending());
    assert_eq!(woken(), [0, 0, 0, 0, 0]);
    drop(reading);
    assert_eq!(woken(), [0, 1, 0, 0, 0], "one turn, one wake");
    assert!(poll(newcomer.as_mut(), &wakes[4]).is_pending(), "the turn was given already");
    let Poll::Ready(reading) = poll(first.as_mut(), &wakes[1]) else { panic!("it is its turn") };
    drop(gives_up);
    drop(reading);
    assert_eq!(woken(), [0, 1, 0, 1, 0], "past the one that gave up");
    drop(leaves_late);
    assert_eq!(woken(), [0, 1, 0, 1, 1], "its turn is not lost");
    assert!(poll(newcomer.as_mut(), &wakes[4]).is_ready());
    assert!(poll(pin!(files.begin_read()), &wakes[0]).is_ready(), "and comes back");
}
