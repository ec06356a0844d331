//! Tests of the tail of an open segment.

use proptest::prelude::*;

use super::*;
use crate::record::HEADER_LEN as H;

fn batch(base: i64, count: i32, len: usize) -> ([u8; H], Vec<u8>) {
    let mut head = [0u8; H];
    head[0..8].copy_from_slice(&base.to_be_bytes());
    head[8..12].copy_from_slice(&(len as i32 - 12).to_be_bytes());
    head[16] = 2;
    head[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    (head, vec![base as u8; len - H])
}

fn push(tail: &mut OpenSegment, pool: &Pool, count: i32, len: usize) -> Vec<u8> {
    let base = tail.end_offset;
    let (head, rest) = batch(base.0, count, len);
    let chunks = tail.reserve(len, pool, 1..=1 << 16).unwrap();
    let incoming = Incoming {
        head: &head,
        rest: &rest,
        base,
        end: base.plus(i64::from(count)),
        max_timestamp: Timestamp(1),
    };
    tail.append(&incoming, chunks);
    [&head[..], &rest].concat()
}

fn read(tail: &OpenSegment, from: u64, to: u64) -> Vec<u8> {
    let mut pieces = SmallVec::new();
    tail.slices(from, to, &mut pieces);
    pieces.iter().flat_map(|p| p.to_vec()).collect()
}

proptest! {
    #[test]
    fn bytes_boundaries_and_truncation(
        batches in proptest::collection::vec((1i32..9, H..12_000), 1..60),
        cut in 0usize..60,
        drops in 0usize..6,
    ) {
        let pool = Pool::new("t", 8 << 20).unwrap();
        let mut tail = OpenSegment::new(Offset(7), 4096);
        let mut all = Vec::new();
        let mut marks = vec![tail.end()];
        for (count, len) in &batches {
            all.extend(push(&mut tail, &pool, *count, *len));
            marks.push(tail.end());
        }
        prop_assert_eq!(tail.end_pos as usize, all.len());
        prop_assert!(read(&tail, 0, tail.end_pos) == all);
        for pair in marks.windows(2) {
            for offset in pair[0].offset.0..pair[1].offset.0 {
                prop_assert_eq!(tail.find(Offset(offset)), Some(pair[0]));
            }
            prop_assert_eq!(tail.boundary(marks[0], pair[1].offset, u64::MAX), pair[1]);
            prop_assert_eq!(tail.boundary(marks[0], Offset(i64::MAX), pair[1].pos), pair[1]);
            prop_assert_eq!(tail.boundary(marks[0], Offset(i64::MAX), pair[1].pos - 1), pair[0]);
        }
        let to = marks[cut.min(marks.len() - 1)];
        tail.truncate(to, || pool.take(BLOCK as usize)).unwrap();
        all.truncate(to.pos as usize);
        prop_assert!(read(&tail, 0, tail.end_pos) == all);
        all.extend(push(&mut tail, &pool, 3, 5000));
        prop_assert!(read(&tail, 0, tail.end_pos) == all);
        tail.advance_written(block_of(tail.end_pos));
        for _ in 0..drops {
            tail.drop_oldest();
        }
        let head = tail.head();
        prop_assert!(read(&tail, head, tail.end_pos) == all[head as usize..]);
        all.extend(push(&mut tail, &pool, 1, 9000));
        let head = tail.head();
        prop_assert!(read(&tail, head, tail.end_pos) == all[head as usize..]);
    }
}

#[test]
fn an_idle_log_gives_its_memory_back() {
    let pool = Pool::new("t", 1 << 20).unwrap();
    let mut tail = OpenSegment::new(Offset(0), 4096);
    push(&mut tail, &pool, 1, 100);
    assert_eq!(tail.memory(), 4096);
    assert_eq!(tail.drop_oldest(), 0, "the bytes are nowhere else yet");
    tail.partial = tail.end_pos;
    assert_eq!(tail.drop_oldest(), 4096);
    assert_eq!(pool.used(), 0);
    push(&mut tail, &pool, 1, 100);
    assert_eq!(tail.head(), 100);
    assert_eq!(tail.find(Offset(1)), Some(Mark { offset: Offset(1), pos: 100 }));
    assert_eq!(tail.find(Offset(0)), None);
}

/// What a give-back of blocks must leave: a start has its last block in the
/// file only, and so has a log whose memory went, or whose end was cut.
#[test]
fn a_partial_block_counts_as_in_the_file() {
    let end = Mark { offset: Offset(3), pos: 5000 };
    let straddle = (Mark { offset: Offset(2), pos: 4000 }, end);
    let mut segment =
        OpenSegment::resume(end, straddle, Offset(0), IndexBuilder::new(Offset(0), 4096));
    assert_eq!((segment.written, segment.blocks_in_file()), (4096, 8192));
    segment.allocated = 16 << 10;
    assert_eq!(segment.blocks_in_file(), 16 << 10);
    segment.truncate(Mark { offset: Offset(2), pos: 4000 }, || None).unwrap();
    assert_eq!((segment.written, segment.blocks_in_file()), (0, 4096));
}
