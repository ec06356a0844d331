//! Broken frames: Kafka's own bytes, mutated. No panic, and no allocation
//! over the frame limit, counted by the allocator of this test binary.
//!
//! 1,000,000 frames; `MILLSTREAM_MUTATIONS=N` for another number, and
//! `MILLSTREAM_MUTATION_SEED=N` to replay from the seed that a failure names.
#![allow(unsafe_code)]

#[path = "wire/dispatch.rs"]
mod dispatch;
#[allow(dead_code, reason = "each test binary uses a part of it")]
#[path = "wire/random.rs"]
mod random;
#[allow(dead_code, reason = "each test binary uses a part of it")]
#[path = "wire/schema.rs"]
mod schema;
#[path = "wire/vectors.rs"]
mod vectors;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::Bytes;
use dispatch::Role;
use millstream::wire::fetch::{FetchStep, FetchWalk};
use millstream::wire::frame::{self, Split};
use millstream::wire::{
    ApiKey, FetchView, ProduceView, ProduceWalk, Reader, RequestHeader, ResponseHeader, WireError,
    Writer,
};
use random::Random;

/// Limit of this test's frames, and budget of its readers, in bytes.
const FRAME_LIMIT: usize = 64 * 1024;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Counts what this thread allocates.
struct Counting;

fn allocated(size: usize) {
    // A thread that is being torn down has no counters any more.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + size);
        PEAK.try_with(|peak| peak.set(peak.get().max(live.get())))
    });
}

fn freed(size: usize) {
    let _ = LIVE.try_with(|live| live.set(live.get().saturating_sub(size)));
}

// SAFETY: every call goes to the system allocator unchanged; the counters are
// thread-local cells of integers, which neither allocate nor unwind.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: the pointer came from `System` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        freed(layout.size());
        allocated(size);
        // SAFETY: as for `dealloc`, and the caller's promise about `size` is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `work` and returns its largest allocation and the most it held at once.
fn measured(work: impl FnOnce()) -> (usize, usize) {
    let before = LIVE.get();
    LARGEST.set(0);
    PEAK.set(before);
    work();
    (LARGEST.get(), PEAK.get() - before)
}

/// A frame as it would come from a socket.
struct Frame {
    key: ApiKey,
    role: Role,
    version: i16,
    bytes: Vec<u8>,
}

fn frames() -> Vec<Frame> {
    vectors::messages()
        .into_iter()
        .map(|vector| {
            let mut bytes = vec![0; frame::LENGTH_BYTES];
            let mut writer = Writer::new(&mut bytes);
            match vector.role {
                Role::Request => {
                    let header = RequestHeader {
                        key: vector.key,
                        version: vector.version,
                        correlation_id: 77,
                        client_id: Some("mutant".into()),
                    };
                    header.write(&mut writer).expect("a short client id");
                }
                Role::Response => {
                    ResponseHeader { correlation_id: 77 }.write(
                        &mut writer,
                        vector.key,
                        vector.version,
                    );
                }
            }
            bytes.extend_from_slice(&vector.bytes);
            frame::end_response(&mut bytes, 0, 0).expect("small frames");
            Frame { key: vector.key, role: vector.role, version: vector.version, bytes }
        })
        .collect()
}

const NASTY: [&[u8]; 9] = [
    &[0x7f, 0xff, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0xff],
    &[0x80, 0, 0, 0],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    &[0x7f, 0xff],
    &[0x80, 0x00],
    &[0x00],
    &[0xfe],
];

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..1 + random.below(3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.remove(at)),
            4 => bytes.insert(at, random.next() as u8),
            5 => {
                let nasty = NASTY[random.below(NASTY.len())];
                for (place, byte) in bytes[at..].iter_mut().zip(nasty) {
                    *place = *byte;
                }
            }
            _ => {
                let end = at + random.below(bytes.len() - at).min(64);
                let copied = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, copied);
            }
        }
    }
}

/// Walks as the broker does, stopped before every step.
fn walk_produce(view: &ProduceView<'_>, frame: &[u8]) {
    let (mut walk, mut partitions) = (view.walk(), 0);
    loop {
        walk = ProduceWalk::resume(frame, walk.place());
        if walk.next_partition().is_some() {
            partitions += 1;
        } else if walk.next_topic().is_none() {
            break;
        }
    }
    assert!(walk.is_done() && partitions == view.partition_count);
}

/// As `walk_produce`.
fn walk_fetch(view: &FetchView<'_>, frame: &[u8]) {
    let (mut walk, mut topics, mut wanted, mut forgotten) = (view.walk(), 0, 0, 0);
    loop {
        walk = FetchWalk::resume(frame, walk.place());
        match walk.next() {
            Some(FetchStep::Topic(_)) => topics += 1,
            Some(FetchStep::Wanted(_)) => wanted += 1,
            Some(FetchStep::Forgotten(_)) => forgotten += 1,
            None => break,
        }
    }
    assert_eq!(topics, view.topic_count + view.forgotten_count);
    assert_eq!((wanted, forgotten), (view.partition_count, view.forgotten_partition_count));
}

/// What a broker does with bytes from a socket, to the end of the codec.
fn request(bytes: &Bytes) -> Result<(), WireError> {
    let Split::Whole { length } = frame::split(bytes, FRAME_LIMIT)? else { return Ok(()) };
    let frame = bytes.slice(frame::LENGTH_BYTES..frame::LENGTH_BYTES + length);
    let mut reader = Reader::of_bytes(&frame).with_budget(FRAME_LIMIT);
    let header = RequestHeader::read(&mut reader)?;
    match header.key {
        ApiKey::Produce => {
            if let Ok(view) = ProduceView::parse(reader.clone(), header.version) {
                let count = view.topics().map(|topic| topic.partitions().count()).sum::<usize>();
                assert_eq!(count, view.partition_count);
                walk_produce(&view, &frame);
            }
        }
        ApiKey::Fetch => {
            if let Ok(view) = FetchView::parse(reader.clone(), header.version) {
                let count = view.topics().map(|topic| topic.partitions().count()).sum::<usize>();
                assert_eq!(count, view.partition_count);
                assert_eq!(view.forgotten().count(), view.forgotten_count);
                walk_fetch(&view, &frame);
            }
        }
        _ => {}
    }
    dispatch::decode(header.key, Role::Request, header.version, reader)
}

/// What a client does.
fn response(bytes: &Bytes, key: ApiKey, version: i16) -> Result<(), WireError> {
    let Split::Whole { length } = frame::split(bytes, FRAME_LIMIT)? else { return Ok(()) };
    let frame = bytes.slice(frame::LENGTH_BYTES..frame::LENGTH_BYTES + length);
    let mut reader = Reader::of_bytes(&frame).with_budget(FRAME_LIMIT);
    ResponseHeader::read(&mut reader, key, version)?;
    dispatch::decode(key, Role::Response, version, reader)
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn mutated_frames_neither_panic_nor_allocate_much() {
    let frames = frames();
    let count = variable("MILLSTREAM_MUTATIONS", 1_000_000);
    let first = variable("MILLSTREAM_MUTATION_SEED", 0);
    let (mut whole, mut refused, mut largest, mut peak) = (0u64, 0u64, 0, 0);
    for seed in first..first + count {
        let mut random = Random(seed);
        let chosen = &frames[random.below(frames.len())];
        let mut bytes = chosen.bytes.clone();
        // Half of them keep a right length, so that the damage reaches the codec.
        if random.below(2) == 0 {
            mutate(&mut random, &mut bytes);
        } else {
            let mut body = bytes.split_off(frame::LENGTH_BYTES);
            mutate(&mut random, &mut body);
            bytes.extend_from_slice(&body);
            frame::end_response(&mut bytes, 0, 0).expect("small frames");
        }
        let bytes = Bytes::from(bytes);
        let used = measured(|| {
            let outcome = match chosen.role {
                Role::Request => request(&bytes),
                Role::Response => response(&bytes, chosen.key, chosen.version),
            };
            *(if outcome.is_ok() { &mut whole } else { &mut refused }) += 1;
        });
        (largest, peak) = (used.0.max(largest), used.1.max(peak));
        assert!(used.0 <= FRAME_LIMIT, "seed {seed}: one allocation of {} bytes", used.0);
        // Arrays within the budget, plus strings, whose substitutes triple bad bytes.
        let strings = 3 * bytes.len() + 4096;
        assert!(used.1 <= FRAME_LIMIT + strings, "seed {seed}: {} bytes at once", used.1);
    }
    eprintln!(
        "{count} frames: {whole} read, {refused} refused; largest allocation {largest} bytes, \
         most at once {peak} bytes"
    );
    if count >= 100_000 {
        assert!(refused > count / 4 && whole > count / 20, "the mutations miss the codec");
    }
}

#[test]
fn a_frame_of_empty_elements_stays_within_the_budget() {
    // Metadata version 12: many topics of the least size, which is far smaller than in memory.
    let (count, id_and_null_name) = (2000, [[0u8; 16].as_slice(), &[0, 0]].concat());
    let mut body = Vec::new();
    let mut writer = Writer::new(&mut body);
    writer.array_len(Some(count), true).expect("a small count");
    for _ in 0..count {
        writer.raw(&id_and_null_name);
    }
    writer.raw(&[1, 0, 0]);
    let decode = |budget: usize| {
        let reader = Reader::new(&body).with_budget(budget);
        let mut outcome = Ok(());
        let used = measured(|| {
            outcome = dispatch::decode(ApiKey::Metadata, Role::Request, 12, reader);
        });
        (outcome, used.1)
    };
    let (within, used) = decode(FRAME_LIMIT * 4);
    assert_eq!(within, Ok(()));
    assert!(used > FRAME_LIMIT, "{used}");
    let (over, used) = decode(FRAME_LIMIT);
    assert!(matches!(over, Err(WireError::OverBudget { .. })), "{over:?}");
    assert_eq!(used, 0);
}

#[test]
fn the_frame_that_aborts_the_oracle_is_refused() {
    let metadata_1 = [0x7f, 0xff, 0xff, 0xff];
    let mut outcome = Ok(());
    let used = measured(|| {
        let reader = Reader::new(&metadata_1);
        outcome = dispatch::decode(ApiKey::Metadata, Role::Request, 1, reader);
    });
    assert_eq!(outcome, Err(WireError::ArrayTooLong { count: 0x7fff_ffff, remaining: 0 }));
    assert_eq!(used, (0, 0));
}
