//! Tests of scanning journals and of replay.

use proptest::prelude::*;

use super::super::frame::FrameHeader;
use super::super::group::GroupBuilder;
use super::*;
use crate::io::Pool;
use crate::model::LogId;

const FILE: FileIdentity = FileIdentity { sequence: 4, salt: 99 };

fn tail_frame(payload: &[u8]) -> FrameHeader {
    FrameHeader {
        payload_crc: crc32fast::hash(payload),
        payload_len: payload.len() as u32,
        ..FrameHeader::bare(FrameKind::Tail, LogId(1), LeaderEpoch(1))
    }
}

fn groups(sizes: &[usize]) -> (Vec<u8>, Vec<usize>) {
    let pool = Pool::new("t", 4 << 20).unwrap();
    let (mut bytes, mut starts, mut crc) = (Vec::new(), Vec::new(), 7);
    for (i, size) in sizes.iter().enumerate() {
        let mut builder = GroupBuilder::new(pool.take(64 * 1024).unwrap());
        let payload = vec![i as u8; *size];
        builder.push(&tail_frame(&payload), &[&payload]);
        let group = builder.seal(FILE, 10 + i as u64, crc);
        crc = group.crc;
        starts.push(bytes.len());
        bytes.extend_from_slice(group.whole());
    }
    (bytes, starts)
}

proptest! {
    #[test]
    fn a_payload_written_from_where_it_lies_makes_the_same_group(
        sizes in proptest::collection::vec((0usize..9000, any::<bool>(), 0usize..9000), 1..8),
    ) {
        let pool = Pool::new("t", 4 << 20).unwrap();
        let new = || GroupBuilder::new(pool.take(256 * 1024).unwrap());
        let (mut copied, mut mixed) = (new(), new());
        for (i, (size, copy, cut)) in sizes.into_iter().enumerate() {
            let mut chunk = pool.take(size).unwrap();
            chunk.extend(&vec![i as u8 + 1; size]);
            let payload = chunk.freeze();
            let header = tail_frame(&payload);
            prop_assert_eq!(copied.fits(size), mixed.fits(size));
            let expected = (copied.padded_len_with(size), mixed.padded_len_with(size));
            copied.push(&header, &[&payload]);
            if copy {
                mixed.push(&header, &[&payload]);
            } else {
                let cut = cut.min(size);
                let pieces = [payload.slice(0..cut), payload.slice(cut..size)];
                mixed.push_from(&header, &[], &pieces);
            }
            prop_assert_eq!((copied.padded_len(), mixed.padded_len()), expected);
            prop_assert_eq!(copied.padded_len(), mixed.padded_len());
        }
        let (copied, mixed) = (copied.seal(FILE, 10, 7), mixed.seal(FILE, 10, 7));
        prop_assert_eq!(copied.crc, mixed.crc);
        prop_assert_eq!(mixed.len(), copied.len());
        let parts: Vec<u8> = mixed.parts().flatten().copied().collect();
        prop_assert!(parts == copied.whole()[..]);
    }
}

fn count(bytes: &[u8]) -> usize {
    let mut n = 0;
    let mut chain = Chain { last: Some((9, 7)) };
    let stop = scan(bytes, true, FILE, &mut 0, &mut chain, |_, _, _| n += 1);
    assert_eq!(stop, Stop::Bad);
    n
}

proptest! {
    #[test]
    fn damage_ends_the_scan_at_the_damaged_group(
        sizes in proptest::collection::vec(0usize..9000, 1..8),
        at in any::<prop::sample::Index>(), flip in 1u8..,
    ) {
        let (bytes, starts) = groups(&sizes);
        prop_assert_eq!(count(&bytes), sizes.len());
        let mut bad = bytes.clone();
        let at = at.index(bytes.len());
        bad[at] ^= flip;
        let group = starts.partition_point(|s| *s <= at) - 1;
        let used = 64 + 80 + sizes[group].next_multiple_of(8);
        let n = count(&bad);
        if at - starts[group] < 64 + 80 + sizes[group] {
            // Reserved bytes of a header are covered, too.
            prop_assert_eq!(n, group, "byte {} of {}", at - starts[group], used);
        } else {
            prop_assert_eq!(n, sizes.len(), "padding does not matter");
        }
    }

    #[test]
    fn truncation_and_garbage_never_panic(
        sizes in proptest::collection::vec(0usize..5000, 1..5),
        cut in any::<prop::sample::Index>(),
        garbage in proptest::collection::vec(any::<u8>(), 0..8192),
    ) {
        let (mut bytes, starts) = groups(&sizes);
        let cut = cut.index(bytes.len());
        bytes.truncate(cut);
        let whole = starts
            .iter()
            .zip(&sizes)
            .filter(|(s, n)| *s + 64 + 80 + n.next_multiple_of(8) <= cut)
            .count();
        prop_assert_eq!(count(&bytes), whole);
        let _ = count(&garbage);
        bytes.extend(garbage);
        let _ = count(&bytes);
    }
}

#[test]
fn a_stale_life_of_the_file_does_not_count() {
    let (bytes, _) = groups(&[10, 20]);
    let other = FileIdentity { salt: 98, ..FILE };
    let mut chain = Chain { last: Some((9, 7)) };
    let stop = scan(&bytes, true, other, &mut 0, &mut chain, |_, _, _| panic!("stale"));
    assert_eq!(stop, Stop::Bad);
}

#[test]
fn a_hole_that_no_crash_leaves_is_seen() {
    let (mut bytes, starts) = groups(&[1, 1, 1, 1, 1, 1]);
    bytes[starts[1] + 20] ^= 1;
    assert_eq!(beyond_flight(&bytes, FILE, starts[1], 11), Some(15));
    let shorter = &bytes[..starts[5]];
    assert_eq!(beyond_flight(shorter, FILE, starts[1], 11), None);
}

fn data(base: i64, pos: u64, len: u32) -> FrameHeader {
    FrameHeader {
        base_offset: Offset(base),
        end_offset: Offset(base + 10),
        position: pos,
        payload_len: len,
        ..FrameHeader::bare(FrameKind::Data, LogId(1), LeaderEpoch(1))
    }
}

fn reset(to: i64, pos: u64) -> FrameHeader {
    FrameHeader {
        base_offset: Offset(to),
        end_offset: Offset(to),
        position: pos,
        ..FrameHeader::bare(FrameKind::Reset, LogId(1), LeaderEpoch(2))
    }
}

#[test]
fn frames_count_only_at_the_end_of_their_moment() {
    let mut r = Replay::new(Floor::start_of(0));
    r.apply(&data(0, 0, 100), 0, 0);
    r.apply(&data(20, 200, 100), 0, 0);
    assert_eq!(r.end, Mark { offset: Offset(10), pos: 100 }, "a gap is no end");
    r.apply(&data(10, 100, 50), 0, 0);
    r.apply(&data(10, 100, 70), 0, 0);
    assert_eq!(r.end.pos, 150, "the second one came too late");
    r.apply(&reset(10, 100), 0, 0);
    r.apply(&data(10, 100, 70), 0, 0);
    assert_eq!(r.end, Mark { offset: Offset(20), pos: 170 });
    assert_eq!(r.epoch, LeaderEpoch(2));
    r.apply(&reset(0, 0), 0, 0);
    assert_eq!((r.end.offset, r.pieces.len()), (Offset(0), 0));
}

#[test]
fn a_tail_replaces_what_is_above_its_floor() {
    let floor = Floor { segment: 7, pos: 4096, boundary_pos: 4000, boundary_offset: 40 };
    let mut r = Replay::new(floor);
    let tail = |pos: u64, boundary: i64, end: i64| FrameHeader {
        base_offset: Offset(boundary),
        end_offset: Offset(end),
        segment: Offset(7),
        position: pos,
        aux: pos.saturating_sub(96),
        payload_len: 500,
        ..FrameHeader::bare(FrameKind::Tail, LogId(1), LeaderEpoch(3))
    };
    let closed = FrameHeader { segment: Offset(0), ..tail(0, 0, 10) };
    r.apply(&closed, 0, 0);
    assert_eq!(r.end.offset, Offset(40), "in a closed segment");
    r.apply(&tail(4096, 40, 60), 0, 0);
    assert_eq!(r.end, Mark { offset: Offset(60), pos: 4596 });
    let next = FrameHeader { segment: Offset(7), ..data(60, 4596, 10) };
    r.apply(&next, 0, 0);
    assert!(r.end.offset > Offset(60));
    r.apply(&tail(8192, 65, 66), 0, 0);
    assert_eq!(r.end, Mark { offset: Offset(66), pos: 8692 });
    assert_eq!(r.floor.pos, 8192);
    assert_eq!(r.pieces.len(), 1);
    r.apply(&tail(4096, 40, 50), 0, 0);
    assert_eq!(r.end, Mark { offset: Offset(50), pos: 4596 }, "a truncation lowers the floor");
    r.apply(&closed, 0, 0);
    assert_eq!((r.floor, r.end.offset), (floor, Offset(40)), "what it had before the floor rose");
    assert!(r.pieces.is_empty());
}

#[test]
fn a_cut_goes_back_to_what_is_left() {
    let mut r = Replay::new(Floor::start_of(0));
    for i in 0..3 {
        r.apply(&data(i * 10, i as u64 * 100, 100), 0, 0);
    }
    let mut rolled = data(30, 0, 50);
    rolled.segment = Offset(30);
    r.apply(&rolled, 0, 0);
    assert_eq!((r.segment, r.end.pos), (Offset(30), 50));
    r.cut(3);
    assert_eq!((r.segment, r.end), (Offset(0), Mark { offset: Offset(30), pos: 300 }));
    r.cut(0);
    assert_eq!(r.end, Mark { offset: Offset(0), pos: 0 });
}
