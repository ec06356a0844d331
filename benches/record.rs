//! Record batches: did the checksum, the validation or the iteration regress?
//!
//! `cargo bench --bench record`. Figures with machine and kernel are in
//! `docs/performance.md`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use millstream::model::Timestamp;
use millstream::record::{
    BatchBuilder, BatchView, Compression, NewRecord, ProduceRules, TargetCompression,
    TimestampType, Validator, crc32c,
};

const NOW: i64 = 1_700_000_000_000;

/// A batch of `count` records with a short key and a value of 100 bytes that
/// compresses like log lines do.
fn batch(codec: Compression, count: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new(codec);
    for index in 0..count {
        let key = format!("key-{:06}", index * 7919 % 1000);
        let mut value = format!(
            "ts={} level=info user={} path=/items/{} took={}us ",
            NOW + index as i64,
            index * 31337 % 5000,
            index * 271 % 997,
            index * 53 % 1999
        );
        value.extend(std::iter::repeat_n('x', 100 - value.len().min(100)));
        builder.push(&NewRecord {
            timestamp: Timestamp(NOW + index as i64),
            key: Some(key.as_bytes()),
            value: Some(value.as_bytes()),
            headers: &[],
        });
    }
    builder.build().expect("a compressor for every codec")
}

fn rules() -> ProduceRules {
    ProduceRules { now: Timestamp(NOW), ..ProduceRules::default() }
}

fn checksum(c: &mut Criterion) {
    let mut group = c.benchmark_group("crc32c");
    let bytes: Vec<u8> =
        (0..1u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for len in [100, 1 << 10, 56_000, 1 << 20] {
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_with_input(BenchmarkId::from_parameter(len), &bytes[..len], |b, bytes| {
            b.iter(|| crc32c(black_box(bytes)));
        });
    }
    group.finish();
}

fn header(c: &mut Criterion) {
    let bytes = batch(Compression::None, 10);
    c.bench_function("header/parse and summary", |b| {
        b.iter(|| BatchView::parse(black_box(&bytes)).map(|(view, _)| view.summary()));
    });
}

fn validate(c: &mut Criterion) {
    let mut group = c.benchmark_group("validate");
    let mut validator = Validator::new();
    let mut case = |name: String, bytes: &[u8], count: u64, rules: ProduceRules| {
        group.throughput(Throughput::Elements(count));
        group.bench_function(name, |b| {
            b.iter(|| validator.validate(black_box(bytes), &rules).expect("valid"));
        });
    };
    for count in [1, 10, 100, 500] {
        let bytes = batch(Compression::None, count);
        case(format!("none/{count}"), &bytes, count as u64, rules());
    }
    let bytes = batch(Compression::None, 500);
    let append_time = ProduceRules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
    case("none/500 to append time".to_owned(), &bytes, 500, append_time);
    for codec in &Compression::ALL[1..] {
        let bytes = batch(*codec, 500);
        case(format!("{codec}/500"), &bytes, 500, rules());
    }
    for codec in &Compression::ALL[1..] {
        let bytes = batch(Compression::None, 500);
        let rules = ProduceRules { compression: TargetCompression::Codec(*codec), ..rules() };
        case(format!("none to {codec}/500"), &bytes, 500, rules);
    }
    group.finish();
}

fn iterate(c: &mut Criterion) {
    let mut group = c.benchmark_group("iterate");
    for count in [10, 500] {
        let bytes = batch(Compression::None, count);
        let view = BatchView::parse(&bytes).expect("built above").0;
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("none/{count}"), |b| {
            b.iter(|| {
                let records = black_box(&view).records();
                view.iter(records)
                    .map(|record| record.expect("built above").value.map_or(0, <[u8]>::len))
                    .sum::<usize>()
            });
        });
    }
    group.finish();
}

fn build(c: &mut Criterion) {
    let mut group = c.benchmark_group("build");
    group.throughput(Throughput::Elements(500));
    for codec in Compression::ALL {
        group.bench_function(format!("{codec}/500"), |b| b.iter(|| batch(black_box(codec), 500)));
    }
    group.finish();
}

criterion_group!(benches, checksum, header, validate, iterate, build);
criterion_main!(benches);
