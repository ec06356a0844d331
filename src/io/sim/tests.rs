//! The simulated machine judged by itself: what must survive does in every
//! seed, what may be lost is lost in some, and a seed decides everything.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::*;
use crate::io::chunk::{ChunkSlice, PAGE, Pool};
use crate::io::env::{Env, File, FileSystem, OpenMode, Task};

const SEEDS: u64 = 200;

fn pool() -> Pool {
    Pool::new("sim-test", 64 * PAGE).unwrap()
}

fn pages(pool: &Pool, count: usize, byte: u8) -> ChunkSlice {
    let mut chunk = pool.take(count * PAGE).unwrap();
    chunk.extend(&vec![byte; count * PAGE]);
    chunk.freeze()
}

fn content(sim: &Sim, path: &str) -> Option<Vec<u8>> {
    sim.files(NodeIndex(0)).into_iter().find(|(p, _)| p == Path::new(path)).map(|(_, b)| b)
}

/// Runs `work` on a fresh world for each seed, crashes it, and counts in how
/// many of them `lost` holds afterwards.
fn count_after_crash(
    kind: Crash,
    work: impl AsyncFn(&SimEnv, &Pool),
    lost: impl Fn(&Sim) -> bool,
) -> u64 {
    let mut count = 0;
    for seed in 0..SEEDS {
        let pool = pool();
        let sim = Sim::new(seed);
        let env = sim.env();
        sim.run_until(work(&env, &pool));
        drop(env);
        let (sim, _) = sim.crash(kind);
        count += u64::from(lost(&sim));
    }
    count
}

async fn fresh(env: &SimEnv, name: &str, mode: OpenMode) -> SimFile {
    let file = env.fs().open(Path::new(name), mode).await.unwrap();
    env.fs().sync_dir(Path::new("/")).await.unwrap();
    file
}

#[test]
fn unsynced_writes_are_lost_torn_and_kept() {
    let (mut kept, mut lost, mut torn) = (0, 0, 0);
    for seed in 0..SEEDS {
        let pool = pool();
        let sim = Sim::new(seed);
        let env = sim.env();
        sim.run_until(async {
            let file = fresh(&env, "/a", OpenMode::DIRECT).await;
            file.write_at(pages(&pool, 2, 1), 0).await.unwrap();
            file.sync_data().await.unwrap();
            file.write_at(pages(&pool, 2, 2), 0).await.unwrap();
        });
        let (sim, report) = sim.crash(Crash::Power);
        assert_eq!(report.writes.len(), 1);
        let bytes = content(&sim, "/a").unwrap();
        assert_eq!(bytes.len(), 2 * PAGE);
        let mut fresh = 0;
        for sector in bytes.chunks(512) {
            assert!(sector.iter().all(|b| *b == sector[0]), "a sector is never torn");
            assert!(sector[0] == 1 || sector[0] == 2);
            fresh += usize::from(sector[0] == 2);
        }
        match fresh {
            0 => lost += 1,
            16 => kept += 1,
            _ => torn += 1,
        }
    }
    assert!(lost > 20 && kept > 20 && torn > 20, "{lost} lost, {kept} kept, {torn} torn");
}

#[test]
fn synced_data_is_never_lost() {
    let work = async |env: &SimEnv, pool: &Pool| {
        let file = fresh(env, "/a", OpenMode::DIRECT).await;
        file.write_at(pages(pool, 3, 7), 0).await.unwrap();
        file.sync_data().await.unwrap();
    };
    let intact = |sim: &Sim| content(sim, "/a").is_some_and(|b| b == vec![7; 3 * PAGE]);
    assert_eq!(count_after_crash(Crash::Power, work, intact), SEEDS);
}

#[test]
fn a_synchronous_write_keeps_itself_and_its_length_but_nothing_else() {
    let work = async |env: &SimEnv, pool: &Pool| {
        let loose = fresh(env, "/loose", OpenMode::DIRECT).await;
        loose.write_at(pages(pool, 1, 1), 0).await.unwrap();
        let file = fresh(env, "/a", OpenMode::DIRECT).await;
        file.write_at(pages(pool, 1, 1), 0).await.unwrap();
        let sync = env.fs().open(Path::new("/a"), OpenMode::DIRECT_SYNC).await.unwrap();
        sync.write_at(pages(pool, 1, 2), PAGE as u64).await.unwrap();
    };
    let own = |sim: &Sim| {
        content(sim, "/a").is_some_and(|b| b.len() == 2 * PAGE && b[PAGE..] == vec![2; PAGE])
    };
    assert_eq!(count_after_crash(Crash::Power, work, own), SEEDS);
    let hole = |sim: &Sim| content(sim, "/a").is_some_and(|b| b[..PAGE] != vec![1; PAGE]);
    assert!(count_after_crash(Crash::Power, work, hole) > 20, "earlier writes stay unsynced");
    let other = |sim: &Sim| content(sim, "/loose").is_none_or(|b| b != vec![1; PAGE]);
    assert!(count_after_crash(Crash::Power, work, other) > 20, "other files stay unsynced");
}

#[test]
fn names_survive_only_with_their_directory() {
    let rename = async |env: &SimEnv, pool: &Pool| {
        let file = fresh(env, "/new", OpenMode::DIRECT).await;
        file.write_at(pages(pool, 1, 3), 0).await.unwrap();
        file.sync_data().await.unwrap();
        env.fs().rename(Path::new("/new"), Path::new("/name")).await.unwrap();
    };
    let old = |sim: &Sim| content(sim, "/new").is_some() && content(sim, "/name").is_none();
    let new = |sim: &Sim| content(sim, "/name").is_some() && content(sim, "/new").is_none();
    let lost = count_after_crash(Crash::Power, rename, old);
    let kept = count_after_crash(Crash::Power, rename, new);
    assert_eq!(lost + kept, SEEDS, "a rename is atomic");
    assert!(lost > 20 && kept > 20, "{lost} lost, {kept} kept");
    let synced = async |env: &SimEnv, pool: &Pool| {
        rename(env, pool).await;
        env.fs().sync_dir(Path::new("/")).await.unwrap();
    };
    assert_eq!(count_after_crash(Crash::Power, synced, new), SEEDS);

    let create = async |env: &SimEnv, pool: &Pool| {
        env.fs().create_dir_all(Path::new("/d")).await.unwrap();
        env.fs().sync_dir(Path::new("/")).await.unwrap();
        let file = env.fs().open(Path::new("/d/a"), OpenMode::DIRECT).await.unwrap();
        file.write_at(pages(pool, 1, 3), 0).await.unwrap();
        file.sync_data().await.unwrap();
    };
    let gone = |sim: &Sim| content(sim, "/d/a").is_none();
    assert!(count_after_crash(Crash::Power, create, gone) > 20);
    assert_eq!(count_after_crash(Crash::Process, create, gone), 0);

    let unlink = async |env: &SimEnv, pool: &Pool| {
        synced(env, pool).await;
        env.fs().remove_file(Path::new("/name")).await.unwrap();
    };
    let back = |sim: &Sim| content(sim, "/name").is_some_and(|b| b == vec![3; PAGE]);
    let count = count_after_crash(Crash::Power, unlink, back);
    assert!(count > 20 && count < SEEDS - 20, "{count}");
}

#[test]
fn syncfs_keeps_everything() {
    let work = async |env: &SimEnv, pool: &Pool| {
        env.fs().create_dir_all(Path::new("/x/y")).await.unwrap();
        let file = env.fs().open(Path::new("/x/y/a"), OpenMode::DIRECT).await.unwrap();
        file.write_at(pages(pool, 1, 3), 0).await.unwrap();
        env.fs().sync_fs(Path::new("/")).await.unwrap();
    };
    let intact = |sim: &Sim| content(sim, "/x/y/a").is_some_and(|b| b == vec![3; PAGE]);
    assert_eq!(count_after_crash(Crash::Power, work, intact), SEEDS);
}

#[test]
fn the_page_cache_survives_the_process_and_not_the_power() {
    let work = async |env: &SimEnv, _: &Pool| {
        let file = fresh(env, "/ring", OpenMode::BUFFERED).await;
        file.write_now(b"hello", 3).unwrap();
    };
    let there = |sim: &Sim| content(sim, "/ring").is_some_and(|b| b == b"\0\0\0hello");
    assert_eq!(count_after_crash(Crash::Process, work, there), SEEDS);
    assert!(count_after_crash(Crash::Power, work, there) < SEEDS - 20);
}

#[test]
fn the_process_may_die_within_an_inline_write() {
    let (mut whole, mut part) = (0, 0);
    for seed in 0..SEEDS {
        let sim = Sim::new(seed);
        let env = sim.env();
        let file = sim.run_until(fresh(&env, "/ring", OpenMode::BUFFERED));
        sim.crash_after(Some(1));
        let ended = sim.run(async { file.write_now(&[1; 100], 0).unwrap() });
        drop(file);
        let (sim, _) = sim.crash(Crash::Process);
        let len = content(&sim, "/ring").unwrap().len();
        assert!(len == 100 || ended == Err(Stop::CrashPoint));
        whole += u64::from(ended.is_ok());
        part += u64::from(len < 100);
    }
    assert!(whole > 20 && part > 20, "{whole} whole, {part} part");
}

#[test]
fn a_process_crash_does_not_make_anything_durable() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let sim = Sim::new(seed);
        let env = sim.env();
        sim.run_until(async {
            fresh(&env, "/ring", OpenMode::BUFFERED).await.write_now(b"hello", 0).unwrap();
        });
        let (sim, _) = sim.crash(Crash::Process);
        assert_eq!(content(&sim, "/ring").unwrap(), b"hello");
        let (sim, _) = sim.crash(Crash::Power);
        lost += u64::from(content(&sim, "/ring").unwrap() != b"hello");
    }
    assert!(lost > 20);
}

#[test]
fn an_unsynced_cut_may_be_undone_and_its_bytes_never_mix() {
    let mut undone = 0;
    for seed in 0..SEEDS {
        let pool = pool();
        let sim = Sim::new(seed);
        let env = sim.env();
        sim.run_until(async {
            let file = fresh(&env, "/a", OpenMode::DIRECT).await;
            file.write_at(pages(&pool, 2, 1), 0).await.unwrap();
            file.sync_data().await.unwrap();
            file.set_len(PAGE as u64).await.unwrap();
            file.write_at(pages(&pool, 1, 2), PAGE as u64).await.unwrap();
        });
        let (sim, _) = sim.crash(Crash::Power);
        let bytes = content(&sim, "/a").unwrap();
        assert_eq!(bytes[..PAGE], vec![1; PAGE]);
        if bytes.len() > PAGE && bytes[PAGE] == 1 {
            undone += 1;
            assert_eq!(bytes, vec![1; 2 * PAGE], "old blocks are old throughout");
        }
    }
    assert!(undone > 20);
}

#[test]
fn writes_in_flight_meet_every_fate() {
    let (mut kept, mut lost, mut torn) = (0, 0, 0);
    for seed in 0..SEEDS {
        let pool = pool();
        let sim = Sim::new(seed);
        let env = sim.env();
        sim.run_until(async {
            let file = fresh(&env, "/a", OpenMode::DIRECT_SYNC).await;
            file.write_at(pages(&pool, 2, 1), 0).await.unwrap();
            drop(file.write_at(pages(&pool, 2, 2), 0));
        });
        let (sim, report) = sim.crash(Crash::Process);
        assert!(report.writes.iter().all(|w| w.in_flight));
        let bytes = content(&sim, "/a").unwrap();
        match bytes.chunks(512).filter(|s| s[0] == 2).count() {
            0 => lost += 1,
            16 => kept += 1,
            _ => torn += 1,
        }
    }
    assert!(lost > 20 && kept > 20 && torn > 20, "{lost} lost, {kept} kept, {torn} torn");
}

#[test]
fn direct_io_wants_alignment() {
    let pool = pool();
    let sim = Sim::new(1);
    let env = sim.env();
    sim.run_until(async {
        let file = fresh(&env, "/a", OpenMode::DIRECT).await;
        let data = pages(&pool, 2, 1);
        let einval = Some(libc::EINVAL);
        assert_eq!(file.write_at(data.clone(), 512).await.unwrap_err().raw_os_error(), einval);
        let short = data.slice(0..100);
        assert_eq!(file.write_at(short, 0).await.unwrap_err().raw_os_error(), einval);
        let shifted = data.slice(512..512 + PAGE);
        assert_eq!(file.write_at(shifted, 0).await.unwrap_err().raw_os_error(), einval);
        assert_eq!(file.write_now(b"x", 0).unwrap_err().raw_os_error(), einval);
        let buf = pool.take(PAGE).unwrap();
        assert_eq!(file.read_at(buf, 512).await.0.unwrap_err().raw_os_error(), einval);
        file.write_at(data, 0).await.unwrap();
        let (n, buf) = file.read_at(pool.take(4 * PAGE).unwrap(), PAGE as u64).await;
        assert_eq!((n.unwrap(), buf.len()), (PAGE, PAGE));
        let only = env.fs().open(Path::new("/a"), OpenMode::READ).await.unwrap();
        let refused = only.write_at(pages(&pool, 1, 1), 0).await;
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EBADF));
    });
}

#[test]
fn faults_strike_as_planned() {
    let pool = pool();
    let sim = Sim::new(1);
    let env = sim.env();
    let node = NodeIndex(0);
    sim.run_until(async {
        let file = fresh(&env, "/a", OpenMode::DIRECT).await;
        sim.faults(node, |f| f.plan(FaultOp::Write, "/a", 1, libc::EIO));
        file.write_at(pages(&pool, 1, 1), 0).await.unwrap();
        let eio = file.write_at(pages(&pool, 1, 1), 0).await;
        assert_eq!(eio.unwrap_err().raw_os_error(), Some(libc::EIO));
        file.write_at(pages(&pool, 1, 1), 0).await.unwrap();
        sim.faults(node, |f| f.set_capacity(Some(PAGE as u64)));
        file.write_at(pages(&pool, 1, 2), 0).await.unwrap();
        let full = file.write_at(pages(&pool, 1, 2), PAGE as u64).await;
        assert_eq!(full.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
        let full = file.allocate(0..2 * PAGE as u64).await;
        assert_eq!(full.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
        sim.faults(node, |f| f.set_capacity(None));
        sim.faults(node, |f| f.plan(FaultOp::Allocate, "/a", 0, libc::ENOSPC));
        let refused = file.allocate(0..9 * PAGE as u64).await;
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(sim.faults(node, |f| f.injected_in(FaultOp::Allocate)), 1);
        file.set_len(PAGE as u64).await.unwrap();
        sim.faults(node, |f| f.set_open_limit(Some(1)));
        let path = Path::new("/b");
        let many = env.fs().open(path, OpenMode::DIRECT).await;
        assert_eq!(many.err().and_then(|e| e.raw_os_error()), Some(libc::EMFILE));
        drop(file);
        env.fs().open(path, OpenMode::DIRECT).await.unwrap();
        sim.faults(node, Faults::clear);
        sim.flip_bit(node, Path::new("/a"), 9, 1).unwrap();
    });
    assert_eq!(content(&sim, "/a").unwrap()[8..11], [2, 0, 2]);
    assert_eq!(sim.faults(node, |f| f.injected()), 2);
}

#[test]
fn a_failed_fsync_is_not_made_good_by_the_next() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let pool = pool();
        let sim = Sim::new(seed);
        let env = sim.env();
        sim.faults(NodeIndex(0), |f| f.plan(FaultOp::Sync, "/a", 0, libc::EIO));
        sim.run_until(async {
            let file = fresh(&env, "/a", OpenMode::DIRECT).await;
            file.write_at(pages(&pool, 1, 1), 0).await.unwrap();
            assert!(file.sync_data().await.is_err());
            file.sync_data().await.unwrap();
        });
        let (sim, _) = sim.crash(Crash::Power);
        lost += u64::from(content(&sim, "/a").unwrap() != vec![1; PAGE]);
    }
    assert!(lost > 20);
}

/// Four tasks that sleep, write and log; the order of their log and the hash.
fn busy(seed: u64) -> (Vec<u64>, u64) {
    let pool = pool();
    let sim = Sim::new(seed);
    let env = sim.env();
    let order = Rc::new(RefCell::new(Vec::new()));
    sim.run_until(async {
        let file = fresh(&env, "/a", OpenMode::DIRECT).await;
        for task in 0..4_u64 {
            let (inner, file, pool, order) =
                (env.clone(), file.clone(), pool.clone(), order.clone());
            env.spawn(async move {
                for _ in 0..3 {
                    if inner.slice_over() {
                        inner.pause().await;
                    }
                    inner.sleep(Duration::from_micros(inner.random() % 100)).await;
                    let write = file.write_at(pages(&pool, 1, task as u8), task * PAGE as u64);
                    write.await.unwrap();
                    order.borrow_mut().push(task);
                }
            })
            .detach();
        }
        while order.borrow().len() < 12 {
            env.sleep(Duration::from_millis(1)).await;
        }
    });
    let order = order.borrow().clone();
    (order, sim.trace_hash())
}

#[test]
fn a_seed_decides_everything() {
    let mut orders = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let first = busy(seed);
        assert_eq!(first, busy(seed), "seed {seed} ran in two ways");
        orders.insert(first.0);
    }
    assert!(orders.len() > 40, "only {} different orders in 50 seeds", orders.len());
}

#[test]
fn handles_cancel_and_crashes_end_tasks() {
    let sim = Sim::new(3);
    let env = sim.env();
    let ticks = Rc::new(RefCell::new(0));
    let counter = ticks.clone();
    let (inner, outer) = (env.clone(), env.clone());
    let task = env.spawn(async move {
        loop {
            inner.sleep(Duration::from_millis(1)).await;
            *counter.borrow_mut() += 1;
        }
    });
    sim.run_until(outer.sleep(Duration::from_millis(10)));
    drop(task);
    sim.run_until(outer.sleep(Duration::from_millis(10)));
    let seen = *ticks.borrow();
    assert!((5..=11).contains(&seen), "{seen}");
    assert_eq!(sim.tasks(), 0);
    let inner = env.clone();
    env.spawn(async move { inner.sleep(Duration::from_secs(1)).await }).detach();
    assert_eq!(sim.run(std::future::pending::<()>()), Err(Stop::Deadlock));
    sim.crash_after(Some(5));
    let looping = async {
        loop {
            env.sleep(Duration::from_millis(1)).await;
        }
    };
    assert_eq!(sim.run::<()>(looping), Err(Stop::CrashPoint));
    let inner = env.clone();
    env.spawn(async move { inner.sleep(Duration::from_secs(1)).await }).detach();
    let (sim, _) = sim.crash(Crash::Process);
    assert_eq!(sim.tasks(), 0);
    assert!(!sim.step());
}

#[test]
#[should_panic(expected = "from a task")]
fn panics_of_tasks_surface() {
    let sim = Sim::new(3);
    let env = sim.env();
    env.spawn(async { panic!("from a task") }).detach();
    sim.run_until(env.sleep(Duration::from_secs(1)));
}

#[test]
fn nodes_share_time_and_nothing_else() {
    let pool = pool();
    let sim = Sim::new(5);
    let other = sim.add_node();
    let (a, b) = (sim.env(), sim.env_of(other));
    sim.run_until(async {
        for env in [&a, &b] {
            let file = fresh(env, "/a", OpenMode::DIRECT_SYNC).await;
            file.write_at(pages(&pool, 1, 1), 0).await.unwrap();
        }
        assert_eq!(a.monotonic(), b.monotonic());
    });
    let _ = sim.crash_node(other, Crash::Power);
    sim.run_until(async {
        let file = a.fs().open(Path::new("/a"), OpenMode::READ).await.unwrap();
        assert_eq!(file.read_at(pool.take(PAGE).unwrap(), 0).await.0.unwrap(), PAGE);
        let b = sim.env_of(other);
        assert_eq!(b.fs().len(Path::new("/a")).await.unwrap(), PAGE as u64);
    });
}
