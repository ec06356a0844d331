//! The log on a real disk: append with group commit for 1, 8 and 64 closed-loop
//! producers in both classes, hot and cold reads. One element is one
//! acknowledged batch (or one read). `MILLSTREAM_BENCH_DIR` names the directory
//! (default: the target directory, since /tmp may be memory).
#![allow(clippy::disallowed_methods, missing_docs)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use millstream::io::Pool;
use millstream::io::glommio::GlommioEnv;
use millstream::io::ring::RingConfig;
use millstream::log::{
    DurabilityClass, KnownLog, LogConfig, LogHandle, LogPools, LogSet, LogSetConfig, ReadOutcome,
};
use millstream::model::{LeaderEpoch, LogId, Offset, PartitionIndex, ShardId, Timestamp, TopicId};
use millstream::record::{BatchBuilder, BatchView, Compression, NewRecord};
use millstream::shard::runtime::{Runtime, RuntimeConfig, launch};

type Set = LogSet<GlommioEnv>;

fn directory() -> tempfile::TempDir {
    let base = std::env::var_os("MILLSTREAM_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    tempfile::Builder::new().prefix("millstream-bench").tempdir_in(base).unwrap()
}

fn batch(size: usize) -> Vec<u8> {
    let value = vec![b'v'; size];
    let mut builder = BatchBuilder::new(Compression::None);
    builder.push(&NewRecord {
        timestamp: Timestamp(1),
        key: None,
        value: Some(&value),
        headers: &[],
    });
    builder.build().unwrap()
}

async fn open(runtime: &Runtime, dir: PathBuf, class: DurabilityClass) -> (Set, LogHandle) {
    let pool = |name, mib: usize| Pool::new(name, mib << 20).unwrap();
    let pools = LogPools {
        tail: pool("tail", 64),
        journal: pool("journal", 8),
        cold: pool("cold", 32),
        upkeep: pool("upkeep", 8),
    };
    let known = KnownLog {
        log_id: LogId(1),
        topic: Arc::from("bench"),
        partition: PartitionIndex(0),
        topic_id: TopicId([1; 16]),
        class,
        epoch_to_start: None,
        config: LogConfig::default(),
    };
    let config = LogSetConfig::new(dir, ShardId(0), pools);
    let (set, found) = LogSet::recover(runtime.env().clone(), config, &[known]).await.unwrap();
    (set, found[0].handle)
}

/// Appends `count` batches and returns when all are durable and committed.
async fn append(runtime: &Runtime, set: &Set, handle: LogHandle, batch: &[u8], count: usize) {
    use millstream::io::Env as _;
    let summary = BatchView::parse(batch).unwrap().0.summary().unwrap();
    let mut progress = Vec::new();
    let mut left = count;
    let mut end = set.bounds(handle).unwrap().2;
    loop {
        while left > 0 {
            match set.append(handle, batch, &summary, end, LeaderEpoch(1)) {
                Ok(done) => end = done.end_offset,
                Err(_) => break,
            }
            left -= 1;
        }
        set.flush();
        set.drain_durable(&mut progress);
        for (handle, offset) in progress.drain(..) {
            set.set_high_watermark(handle, offset);
        }
        if left == 0 && set.bounds(handle).unwrap().1 == end {
            return;
        }
        runtime.env().pause().await;
    }
}

/// Runs `work` on a shard of its own and returns the time it reports.
fn on_shard<F>(work: impl FnOnce(Runtime, PathBuf) -> F + Send + 'static) -> Duration
where
    F: Future<Output = Duration> + 'static,
{
    let dir = directory();
    let path = dir.path().to_path_buf();
    let config = RuntimeConfig {
        shard: 0,
        core: None,
        ring: RingConfig::default(),
        receive_pool: Pool::new("receive", 32 << 20).unwrap(),
    };
    let main = move |runtime: Runtime| async move {
        let inner = runtime.clone();
        runtime.drive(work(inner, path)).await
    };
    launch(config, main).unwrap().join().unwrap()
}

fn appends(c: &mut Criterion) {
    let mut group = c.benchmark_group("journal/append+flush 1 KiB");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    for class in DurabilityClass::ALL {
        for producers in [1usize, 8, 64] {
            group.throughput(Throughput::Elements(producers as u64));
            group.bench_function(BenchmarkId::new(class.name(), producers), |b| {
                b.iter_custom(|rounds| {
                    on_shard(move |runtime, dir| async move {
                        let (set, handle) = open(&runtime, dir, class).await;
                        let batch = batch(1000);
                        append(&runtime, &set, handle, &batch, producers).await;
                        let start = Instant::now();
                        for _ in 0..rounds {
                            append(&runtime, &set, handle, &batch, producers).await;
                        }
                        let elapsed = start.elapsed();
                        set.close().await.unwrap();
                        elapsed
                    })
                });
            });
        }
    }
    group.finish();
}

fn reads(c: &mut Criterion) {
    let mut group = c.benchmark_group("log/read 1 MiB");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Bytes(1 << 20));
    for cold in [false, true] {
        let name = if cold { "cold" } else { "hot" };
        group.bench_function(name, |b| {
            b.iter_custom(|rounds| {
                on_shard(move |runtime, dir| async move {
                    // A log larger than the tail pool is cold at its start.
                    let (set, handle) = open(&runtime, dir, DurabilityClass::Os).await;
                    let batch = batch(16 << 10);
                    for _ in 0..96 {
                        append(&runtime, &set, handle, &batch, 64).await;
                    }
                    let (_, _, end) = set.bounds(handle).unwrap();
                    let first = if cold { 0 } else { end.0 - 1000 };
                    let start = Instant::now();
                    let mut at = first;
                    for _ in 0..rounds {
                        let outcome = set.read(handle, Offset(at), end, 1 << 20, true);
                        let bytes = match outcome {
                            ReadOutcome::Hot(slices) => slices,
                            ReadOutcome::Cold(read) => set.read_cold(read).await.unwrap(),
                            other => panic!("{other:?}"),
                        };
                        assert!(!bytes.is_empty());
                        at = if at + 200 > first + 900 { first } else { at + 64 };
                    }
                    let elapsed = start.elapsed();
                    set.close().await.unwrap();
                    elapsed
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, appends, reads);
criterion_main!(benches);
