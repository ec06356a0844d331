//! What readers and housekeeping leave each other: memory and descriptors.

use std::cell::Cell;
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
