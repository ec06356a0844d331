//! What readers and housekeeping leave each other: memory and descriptors.

use std::cell::Cell;
use std::time::Duration;

use super::*;
use crate::io::{Env as _, FileSystem as _, Task as _};
use crate::log::files_lru::FilesLru;

#[test]
fn debug_variants() {
    for hold in [false, true] {
        for bytes in [900, 20_000, 50_000] {
            println!(
                "hold {hold} bytes {bytes}: {:?}",
                std::panic::catch_unwind(|| housekeeping(hold, bytes)).is_ok()
            );
        }
    }
}

#[test]
fn readers_that_hold_all_their_memory_do_not_stop_housekeeping() {
    housekeeping(true, 50_000);
}

fn housekeeping(hold: bool, size: usize) {
    let sim = Sim::new(3);
    let env = sim.env();
    sim.run_until(async {
        env.fs().create_dir_all(Path::new("/data")).await.unwrap();
        env.fs().sync_dir(Path::new("/")).await.unwrap();
        let config = config();
        let (cap, cold) = (config.disk.cap_bytes, config.pools.cold.clone());
        let class = DurabilityClass::Disk;
        let pools = config.pools.clone();
        let (set, mut found) = LogSet::recover(env.clone(), config, &[known(class)]).await.unwrap();
        let handle = found.remove(0).handle;
        let _readers = if hold { cold.take(cold.limit()) } else { None };
        let all = pools;
        // More than twice what the journal holds: files are made, segments
        // written and closed, journals reclaimed.
        let bytes = batch(&[(1, size)], Compression::None);
        let (view, _) = BatchView::parse(&bytes).unwrap();
        let summary = view.summary().unwrap();
        let (mut appended, mut waits) = (0, 0);
        while appended * (bytes.len() as u64) < 2 * cap {
            let base = set.bounds(handle).unwrap().2;
            let done = set.append(handle, &bytes, &summary, base, LeaderEpoch(1));
            set.flush();
            commit(&set);
            match done {
                Ok(_) => (appended, waits) = (appended + 1, 0),
                Err(AppendError::Full) => {
                    waits += 1;
                    assert!(
                        waits < 10_000,
                        "housekeeping stands still after {appended} batches: {all:?} {:?}",
                        set.bounds(handle)
                    );
                    env.sleep(Duration::from_millis(1)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
        until_durable(&env, &set, handle).await;
    });
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
                let _reading = files.begin_read(&env).await;
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
