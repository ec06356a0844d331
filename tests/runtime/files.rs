//! Files on the ring.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use millstream::io::chunk::PAGE;
use millstream::io::glommio::GlommioEnv;
use millstream::io::{ChunkSlice, Env as _, File as _, FileSystem as _, OpenMode, Pool};

use super::shard;

/// Runs `test` on a shard with a directory on a disk and a pool.
fn with_files<Fut: Future<Output = ()>>(
    test: impl FnOnce(GlommioEnv, PathBuf, Pool) -> Fut + Send + 'static,
) {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().to_owned();
    let pool = Pool::new("files", 16 << 20).unwrap();
    let inside = pool.clone();
    let running = shard(move |runtime| async move {
        let env = runtime.env().clone();
        runtime.drive(test(env, path, inside)).await;
    });
    running.join().unwrap();
    assert_eq!(pool.used(), 0);
}

fn filled(pool: &Pool, len: usize, seed: usize) -> ChunkSlice {
    let mut chunk = pool.take(len).unwrap();
    chunk.set_len(len);
    chunk.filled_mut().iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 7 + seed) as u8);
    chunk.freeze()
}

#[test]
fn what_was_written_is_read_directly_and_buffered() {
    for mode in [OpenMode::DIRECT, OpenMode::DIRECT_SYNC, OpenMode::BUFFERED] {
        with_files(move |env, dir, pool| async move {
            let path = dir.join("file");
            let file = env.fs().open(&path, mode).await.unwrap();
            assert_eq!(file.path(), &path);
            // More than one part, and not a whole number of them.
            let data = filled(&pool, 2 * (1 << 20) + 3 * PAGE, 1);
            file.write_at(data.clone(), PAGE as u64).await.unwrap();
            file.sync_data().await.unwrap();
            let (read, chunk) = file.read_at(pool.take(data.len()).unwrap(), PAGE as u64).await;
            assert_eq!(read.unwrap(), data.len());
            assert!(chunk[..] == data[..]);
            // Across the end of the file.
            let (read, chunk) = file.read_at(chunk, data.len() as u64).await;
            assert_eq!((read.unwrap(), chunk.len()), (PAGE, PAGE));
            assert!(chunk[..] == data[data.len() - PAGE..]);
            // An end that is not on the block grid.
            file.set_len(PAGE as u64 + 100).await.unwrap();
            let (read, chunk) = file.read_at(chunk, PAGE as u64).await;
            assert_eq!(read.unwrap(), 100);
            let (read, _) = file.read_at(chunk, 1 << 30).await;
            assert_eq!(read.unwrap(), 0);
            file.allocate(0..1 << 20).await.unwrap();
            assert_eq!(env.fs().len(&path).await.unwrap(), 1 << 20);
        });
    }
}

#[test]
fn a_write_now_is_there_at_once() {
    with_files(|env, dir, pool| async move {
        let file = env.fs().open(&dir.join("ring"), OpenMode::BUFFERED).await.unwrap();
        file.write_now(b"hello", 3).unwrap();
        assert_eq!(env.fs().read(&dir.join("ring")).await.unwrap(), b"\0\0\0hello");
        drop(pool);
    });
}

#[test]
fn dropped_operations_finish_with_their_memory() {
    with_files(|env, dir, pool| async move {
        let file = env.fs().open(&dir.join("file"), OpenMode::DIRECT).await.unwrap();
        for n in 0..64 {
            // Queued, and nobody waits.
            drop(file.write_at(filled(&pool, 16 * PAGE, n), (n * 16 * PAGE) as u64));
            drop(file.read_at(pool.take(PAGE).unwrap(), 0));
        }
        assert_eq!(pool.used(), 64 * 17 * PAGE, "the ring keeps all of it");
        while pool.used() > 0 {
            env.pause().await;
            file.sync_data().await.unwrap();
        }
        for n in 0..64 {
            let chunk = pool.take(16 * PAGE).unwrap();
            let (read, chunk) = file.read_at(chunk, (n * 16 * PAGE) as u64).await;
            assert_eq!(read.unwrap(), 16 * PAGE);
            assert!(chunk[..] == filled(&pool, 16 * PAGE, n)[..], "write {n} is incomplete");
        }
    });
}

#[test]
fn directories_and_small_files() {
    with_files(|env, dir, pool| async move {
        let fs = env.fs();
        let deep = dir.join("a/b");
        fs.create_dir_all(&deep).await.unwrap();
        fs.create_dir_all(&deep).await.unwrap();
        fs.write(&deep.join("x.tmp"), b"one".to_vec()).await.unwrap();
        fs.rename(&deep.join("x.tmp"), &deep.join("x")).await.unwrap();
        fs.sync_dir(&deep).await.unwrap();
        fs.sync_fs(&deep).await.unwrap();
        assert_eq!(fs.read(&deep.join("x")).await.unwrap(), b"one");
        let entries = fs.read_dir(&deep).await.unwrap();
        assert_eq!((entries.len(), entries[0].name.as_str(), entries[0].len), (1, "x", 3));
        let exclusive = OpenMode { exclusive: true, ..OpenMode::DIRECT };
        let again = fs.open(&deep.join("x"), exclusive).await;
        assert_eq!(again.err().unwrap().kind(), ErrorKind::AlreadyExists);
        fs.remove_file(&deep.join("x")).await.unwrap();
        fs.remove_dir(&deep).await.unwrap();
        let gone = fs.len(Path::new(&deep)).await.unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        drop(pool);
    });
}

#[test]
fn errors_of_the_disk_come_back() {
    with_files(|env, dir, pool| async move {
        let path = dir.join("file");
        env.fs().write(&path, vec![0; PAGE]).await.unwrap();
        let file = env.fs().open(&path, OpenMode::READ).await.unwrap();
        let refused = file.write_at(filled(&pool, PAGE, 0), 0).await.unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EBADF));
        let (unaligned, _) = file.read_at(pool.take(PAGE).unwrap(), 1).await;
        assert_eq!(unaligned.unwrap_err().raw_os_error(), Some(libc::EINVAL));
    });
}
