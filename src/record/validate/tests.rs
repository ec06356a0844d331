//! One test per line of the Kafka checklist that this layer answers for.

use super::*;
use crate::model::{LeaderEpoch, Offset};
use crate::record::{BatchBuilder, HEADER_LEN, NewRecord, batches, build, patch_base};

const NOW: i64 = 1_700_000_000_000;

fn rules() -> ProduceRules {
    ProduceRules { now: Timestamp(NOW), ..ProduceRules::default() }
}

fn record(key: Option<&'static [u8]>, timestamp: i64) -> NewRecord<'static> {
    NewRecord { timestamp: Timestamp(timestamp), key, value: Some(b"value"), headers: &[] }
}

fn builder(codec: Compression) -> BatchBuilder {
    BatchBuilder::new(codec).record(&record(Some(b"k"), NOW)).record(&record(Some(b"k"), NOW - 5))
}

fn batch() -> Vec<u8> {
    builder(Compression::None).build().unwrap()
}

#[track_caller]
fn assert_rejected(bytes: &[u8], rules: &ProduceRules, code: ErrorCode, says: &str) -> Rejected {
    let rejected = validate_produce(bytes, rules).expect_err(says);
    assert_eq!(rejected.code, code, "{rejected}");
    assert!(rejected.message.contains(says), "{rejected}");
    rejected
}

/// Line 27.
#[test]
fn exactly_one_batch_of_format_2() {
    let invalid = ErrorCode::InvalidRecord;
    let one = batch();
    assert!(validate_produce(&one, &rules()).is_ok());
    assert_rejected(b"", &rules(), invalid, "no batch");
    assert_rejected(&one.repeat(2), &rules(), invalid, "exactly one batch");
    assert_rejected(&[&one[..], b"x"].concat(), &rules(), invalid, "1 bytes after the first");
    for cut in 1..one.len() {
        assert_rejected(&one[..cut], &rules(), invalid, "bytes");
    }
    for magic in [0, 1] {
        let old = builder(Compression::None).raw_magic(magic).build().unwrap();
        assert_rejected(&old, &rules(), invalid, "magic");
    }
    for magic in [3, 127, -1] {
        let odd = builder(Compression::None).raw_magic(magic).build().unwrap();
        assert_rejected(&odd, &rules(), ErrorCode::CorruptMessage, "magic");
    }
    for length in [i32::MIN, -1, 0, 48] {
        let mut short = one.clone();
        short[8..12].copy_from_slice(&length.to_be_bytes());
        assert_rejected(&short, &rules(), ErrorCode::CorruptMessage, "length field");
    }
    let mut endless = one;
    endless[8..12].copy_from_slice(&i32::MAX.to_be_bytes());
    assert_rejected(&endless, &rules(), invalid, "2147483659");
}

/// Line 27: zstd is newer than the requests before version 7.
#[test]
fn zstd_needs_version_7() {
    let bytes = builder(Compression::Zstd).build().unwrap();
    assert!(validate_produce(&bytes, &rules()).is_ok());
    let old = ProduceRules { allow_zstd: false, ..rules() };
    assert_rejected(&bytes, &old, ErrorCode::UnsupportedCompressionType, "version 7");
    for codec in &Compression::ALL[..4] {
        assert!(validate_produce(&builder(*codec).build().unwrap(), &old).is_ok());
    }
    for id in 5..8 {
        let odd = builder(Compression::None).raw_attributes(id).build().unwrap();
        assert_rejected(&odd, &rules(), ErrorCode::UnsupportedCompressionType, "compression");
    }
}

/// Line 28.
#[test]
fn header_fields_that_no_client_may_send() {
    let invalid = ErrorCode::InvalidRecord;
    let base = builder(Compression::None);
    let producer = |id, epoch, sequence| {
        base.clone().producer(ProducerId(id), ProducerEpoch(epoch), sequence).build().unwrap()
    };
    let cases = [
        (base.clone().base_offset(Offset(1)), "base offset is 1"),
        (base.clone().record_count(0).last_offset_delta(-1), "record count is 0"),
        (base.clone().record_count(-3).last_offset_delta(-4), "record count is -3"),
        (base.clone().record_count(3), "last offset delta 1 with 3"),
        (base.clone().last_offset_delta(5), "last offset delta 5 with 2"),
        (base.clone().record_count(i32::MIN).last_offset_delta(i32::MAX), "record count"),
        (base.clone().control_batch(true), "control batch"),
        (base.clone().transactional(true), "without a producer id"),
    ];
    for (case, says) in cases {
        assert_rejected(&case.build().unwrap(), &rules(), invalid, says);
    }
    assert_rejected(&producer(9, 0, -1), &rules(), invalid, "base sequence -1");
    assert_rejected(&producer(9, -1, 0), &rules(), invalid, "epoch -1");
    assert!(validate_produce(&producer(9, 0, i32::MAX), &rules()).is_ok());
    assert!(validate_produce(&producer(-1, -1, -1), &rules()).is_ok());
    let transactional = base.producer(ProducerId(9), ProducerEpoch(1), 0).transactional(true);
    let validated = validate_produce(&transactional.build().unwrap(), &rules()).unwrap();
    assert!(validated.summary.is_transactional);
}

/// Line 29.
#[test]
fn any_flipped_bit_under_the_checksum() {
    let bytes = batch();
    for at in 17..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert_rejected(&flipped, &rules(), ErrorCode::CorruptMessage, "CRC");
        }
    }
}

/// Line 30.
#[test]
fn batches_above_the_limits() {
    for codec in Compression::ALL {
        let bytes = builder(codec).build().unwrap();
        let exact =
            ProduceRules { max_message_bytes: bytes.len(), segment_bytes: bytes.len(), ..rules() };
        assert!(validate_produce(&bytes, &exact).is_ok());
        let small = ProduceRules { max_message_bytes: bytes.len() - 1, ..exact };
        assert_rejected(&bytes, &small, ErrorCode::MessageTooLarge, "max.message.bytes");
        let small = ProduceRules { segment_bytes: bytes.len() - 1, ..exact };
        assert_rejected(&bytes, &small, ErrorCode::RecordListTooLarge, "segment.bytes");
    }
}

/// Line 31: count, deltas and lengths, in place and compressed.
#[test]
fn records_that_contradict_their_header_or_themselves() {
    // The two records of the builder take 13 bytes each.
    let raw = |bytes: &'static [u8]| {
        move |builder: &mut BatchBuilder| {
            builder.push_raw(bytes);
        }
    };
    type Damage = Box<dyn Fn(&mut BatchBuilder)>;
    let cases: Vec<(Damage, i32, &str)> = vec![
        (Box::new(|_| ()), 3, "record 2, byte 26 of the records: the bytes end"),
        (Box::new(|_| ()), 1, "bytes are left after the last record"),
        (Box::new(|b| b.push_at(3, &record(None, NOW))), 3, "offset delta is 3"),
        (Box::new(|b| b.push_at(-1, &record(None, NOW))), 3, "offset delta is -1"),
        (Box::new(raw(&[1])), 3, "record length is -1"),
        (Box::new(raw(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x01])), 3, "varint"),
        (Box::new(raw(&[14, 0, 0, 4, 1, 1, 0])), 3, ""),
        (Box::new(raw(&[14, 0, 0, 4, 1, 1, 0, 0])), 3, "disagree by 1 bytes"),
        (Box::new(raw(&[10, 0, 0, 4, 1, 1, 0])), 3, "disagree by -1 bytes"),
        (Box::new(raw(&[12, 0, 0, 4, 1, 1, 1])), 3, "header count is -1"),
        (Box::new(raw(&[14, 0, 0, 4, 1, 1, 2, 0])), 3, "header count is 1"),
        (Box::new(raw(&[16, 0, 0, 4, 1, 1, 2, 1, 1])), 3, "header has key length -1"),
        (Box::new(raw(&[14, 0, 0, 4, 1, 0xfe, 1, 0])), 3, ""),
        (Box::new(raw(&[12, 0, 0, 4, 1, 1, 0, 0])), 3, "bytes are left"),
    ];
    for codec in Compression::ALL {
        for (index, (damage, count, says)) in cases.iter().enumerate() {
            let mut builder = builder(codec);
            damage(&mut builder);
            let bytes = builder.record_count(*count).last_offset_delta(count - 1).build().unwrap();
            for compression in
                [TargetCompression::Producer, TargetCompression::Codec(Compression::Gzip)]
            {
                let rules = ProduceRules { compression, ..rules() };
                let rejected = validate_produce(&bytes, &rules).expect_err(says);
                assert_eq!(rejected.code, ErrorCode::InvalidRecord, "case {index}: {rejected}");
                assert!(rejected.message.contains(says), "case {index}: {rejected}");
            }
            let view = BatchView::parse(&bytes).unwrap().0;
            let records = view.decompressed(1 << 20).unwrap();
            let read: Result<Vec<_>, _> = view.iter(&records).collect();
            // A reader of stored batches has no opinion on offset deltas.
            assert_eq!(read.is_ok(), says.contains("offset delta"), "case {index}");
        }
    }
}

/// Line 31: a small batch that grows without end is stopped at the limit.
#[test]
fn decompression_is_bounded() {
    let value = vec![0; 8 << 20];
    for codec in &Compression::ALL[1..] {
        let bomb = BatchBuilder::new(*codec)
            .record(&NewRecord { value: Some(&value), ..NewRecord::default() })
            .build()
            .unwrap();
        assert!(bomb.len() < 500_000);
        let rules = |decompressed_bytes_max| ProduceRules { decompressed_bytes_max, ..rules() };
        assert!(validate_produce(&bomb, &rules(9 << 20)).is_ok(), "{codec}");
        let limit = rules(1 << 20);
        assert_rejected(&bomb, &limit, ErrorCode::MessageTooLarge, "limit of 1048576");
        let recompress = ProduceRules {
            compression: TargetCompression::Codec(Compression::None),
            max_message_bytes: 2 << 20,
            ..limit
        };
        assert_rejected(&bomb, &recompress, ErrorCode::MessageTooLarge, "limit of 1048576");
    }
}

/// Line 31: compressed bytes that their format does not allow.
#[test]
fn garbage_that_claims_to_be_compressed() {
    for codec in &Compression::ALL[1..] {
        for garbage in [&b""[..], b"x", b"garbage garbage garbage garbage", &[0xff; 64]] {
            let bytes = builder(*codec).build_from(garbage);
            assert_rejected(&bytes, &rules(), ErrorCode::InvalidRecord, "");
        }
    }
}

/// Line 32.
#[test]
fn compacted_topics_need_keys() {
    let compacted = ProduceRules { compacted: true, ..rules() };
    for codec in Compression::ALL {
        assert!(validate_produce(&builder(codec).build().unwrap(), &compacted).is_ok());
        let bytes = builder(codec)
            .record(&record(None, NOW))
            .record(&record(Some(b""), NOW))
            .record(&record(None, NOW))
            .build()
            .unwrap();
        assert!(validate_produce(&bytes, &rules()).is_ok());
        let rejected = assert_rejected(&bytes, &compacted, ErrorCode::InvalidRecord, "2 of 5");
        let indexes: Vec<_> = rejected.record_errors.iter().map(|(index, _)| *index).collect();
        assert_eq!(indexes, [2, 4]);
        assert!(rejected.record_errors[0].1.contains("without a key"));
    }
}

/// Line 32: a batch full of faults does not make a response full of them.
#[test]
fn record_errors_are_bounded() {
    let mut builder = BatchBuilder::new(Compression::None);
    for _ in 0..10_000 {
        builder.push(&record(None, NOW));
    }
    let compacted = ProduceRules { compacted: true, ..rules() };
    let bytes = builder.build().unwrap();
    let rejected = assert_rejected(&bytes, &compacted, ErrorCode::InvalidRecord, "10000 of 10000");
    assert_eq!(rejected.record_errors.len(), RECORD_ERRORS_MAX);
}

/// Line 33.
#[test]
fn timestamps_out_of_range() {
    let narrow =
        ProduceRules { timestamp_before_max_ms: 100, timestamp_after_max_ms: 10, ..rules() };
    let at = |timestamp| {
        let bytes = builder(Compression::None).record(&record(None, timestamp)).build().unwrap();
        validate_produce(&bytes, &narrow)
    };
    for good in [NOW, NOW - 100, NOW + 10, -1] {
        assert!(at(good).is_ok(), "{good}");
    }
    for bad in [NOW - 101, NOW + 11, 0, -2, i64::MAX, i64::MIN] {
        let rejected = at(bad).unwrap_err();
        assert_eq!(rejected.code, ErrorCode::InvalidTimestamp, "{bad}");
        assert_eq!(rejected.record_errors[0].0, 2);
        assert!(rejected.record_errors[0].1.contains(&bad.to_string()));
    }
    // Under LogAppendTime the producer's timestamps do not matter.
    let append_time = ProduceRules { timestamp_type: TimestampType::LogAppendTime, ..narrow };
    let bytes = builder(Compression::None).record(&record(None, 0)).build().unwrap();
    assert!(validate_produce(&bytes, &append_time).is_ok());
}

/// Line 33: the broker alone says LogAppendTime.
#[test]
fn producers_do_not_set_the_append_time_bit() {
    let bytes = builder(Compression::None).log_append_time(Timestamp(NOW)).build().unwrap();
    for timestamp_type in [TimestampType::CreateTime, TimestampType::LogAppendTime] {
        let rules = ProduceRules { timestamp_type, ..rules() };
        assert_rejected(&bytes, &rules, ErrorCode::InvalidTimestamp, "LogAppendTime");
    }
}

/// Line 34.
#[test]
fn append_time_replaces_the_timestamps() {
    let rules = ProduceRules {
        timestamp_type: TimestampType::LogAppendTime,
        now: Timestamp(NOW + 77),
        ..rules()
    };
    for codec in Compression::ALL {
        let original = builder(codec).build().unwrap();
        let validated = validate_produce(&original, &rules).unwrap();
        assert_eq!(validated.log_append_time, Timestamp(NOW + 77));
        let view = BatchView::parse(validated.bytes.resolve(&original)).unwrap().0;
        assert!(view.verify_crc());
        assert_eq!(view.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(view.max_timestamp(), Timestamp(NOW + 77));
        assert_eq!(view.compression(), Ok(codec));
        assert_eq!(validated.summary, view.summary().unwrap());
        let records = view.decompressed(1000).unwrap();
        for record in view.iter(&records) {
            assert_eq!(view.timestamp_of(&record.unwrap()), Timestamp(NOW + 77));
        }
        let mut patched = original.clone();
        crate::record::patch_log_append_time(&mut patched, Timestamp(NOW + 77));
        assert_eq!(validated.bytes, FinalBytes::Rewritten(patched));
    }
}

/// Line 34: a maximum that is not that of the records is corrected, as Kafka
/// does, because the time index would believe it.
#[test]
fn a_wrong_maximum_is_corrected() {
    for codec in Compression::ALL {
        for wrong in [-1, 0, NOW - 1, NOW + 1, i64::MAX] {
            let bytes = builder(codec).max_timestamp(Timestamp(wrong)).build().unwrap();
            let validated = validate_produce(&bytes, &rules()).unwrap();
            assert_eq!(validated.log_append_time, Timestamp::NONE);
            assert_eq!(validated.summary.max_timestamp, Timestamp(NOW));
            assert_eq!(validated.bytes.resolve(&bytes), builder(codec).build().unwrap());
        }
    }
}

/// Line 35.
#[test]
fn offset_and_epoch_lie_outside_of_the_checksum() {
    let mut bytes = batch();
    patch_base(&mut bytes, Offset(i64::MAX - 1), LeaderEpoch(9));
    let view = BatchView::parse(&bytes).unwrap().0;
    assert!(view.verify_crc());
    assert_eq!(view.last_offset(), Offset(i64::MAX));
    assert_eq!(view.leader_epoch(), LeaderEpoch(9));
}

/// Line 36.
#[test]
fn recompression_and_its_new_size() {
    let mut large = BatchBuilder::new(Compression::None);
    for _ in 0..1000 {
        large.push(&record(Some(b"key"), NOW));
    }
    let plain = large.build().unwrap();
    for codec in &Compression::ALL[1..] {
        let to = |codec| ProduceRules { compression: TargetCompression::Codec(codec), ..rules() };
        let packed = validate_produce(&plain, &to(*codec)).unwrap();
        let packed_bytes = packed.bytes.resolve(&plain);
        assert!(packed_bytes.len() < plain.len() / 2);
        assert_eq!(packed.summary.compression, *codec);
        assert_eq!(packed.summary.size, packed_bytes.len());
        // And back: the same bytes, unless that is too large now.
        let back = validate_produce(packed_bytes, &to(Compression::None)).unwrap();
        assert_eq!(back.bytes, FinalBytes::Rewritten(plain.clone()));
        let tight = ProduceRules { max_message_bytes: plain.len() - 1, ..to(Compression::None) };
        assert_rejected(packed_bytes, &tight, ErrorCode::MessageTooLarge, "max.message.bytes");
        let append_time =
            ProduceRules { timestamp_type: TimestampType::LogAppendTime, ..to(*codec) };
        let both = validate_produce(&plain, &append_time).unwrap();
        let view = BatchView::parse(both.bytes.resolve(&plain)).unwrap().0;
        assert!(view.verify_crc());
        assert_eq!(view.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(view.compression(), Ok(*codec));
    }
}

/// A batch with one value of `len` zeros.
fn zeros(codec: Compression, len: usize) -> Vec<u8> {
    let value = vec![0; len];
    let record = NewRecord { timestamp: Timestamp(NOW), value: Some(&value), ..Default::default() };
    BatchBuilder::new(codec).record(&record).build().unwrap()
}

/// Line 36: what will not fit is not decompressed to its end.
#[test]
fn making_a_batch_anew_stops_where_it_becomes_too_large() {
    let spent = |bytes: &[u8], rules: &ProduceRules, says: &str| {
        let mut validator = Validator::new();
        validator.begin(1 << 30);
        let rejected = validator.validate(bytes, rules).expect_err(says);
        assert!(rejected.message.contains(says), "{rejected}");
        (rejected.code, (1 << 30) - validator.budget())
    };
    let to = |codec| ProduceRules { compression: TargetCompression::Codec(codec), ..rules() };
    let plain = to(Compression::None);
    for codec in &Compression::ALL[1..] {
        let bytes = zeros(*codec, 8 << 20);
        let fits = plain.max_message_bytes - HEADER_LEN;
        let (code, opened) = spent(&bytes, &plain, "max.message.bytes, 1048588");
        assert_eq!(code, ErrorCode::MessageTooLarge);
        assert!(opened <= fits + 1, "{codec}: {opened} bytes");
        let small = ProduceRules { segment_bytes: 1 << 20, ..plain };
        let (code, _) = spent(&bytes, &small, "segment.bytes, 1048576");
        assert_eq!(code, ErrorCode::RecordListTooLarge);
    }
    // Out of a bomb comes something small, but slowly.
    for (target, most) in [
        (Compression::Gzip, REMADE_GZIP_BYTES_MAX),
        (Compression::Lz4, REMADE_BYTES_MAX),
        (Compression::Snappy, REMADE_BYTES_MAX),
    ] {
        let bytes = zeros(Compression::Zstd, most + 1);
        let (code, opened) = spent(&bytes, &to(target), &format!("more than {most} bytes"));
        assert_eq!((code, opened), (ErrorCode::MessageTooLarge, most + 1));
        let tight = ProduceRules { decompressed_bytes_max: 1 << 20, ..to(target) };
        let (_, opened) = spent(&bytes, &tight, "limit of 1048576");
        assert_eq!(opened, (1 << 20) + 1);
    }
    let large = zeros(Compression::None, REMADE_GZIP_BYTES_MAX);
    let rules = ProduceRules { max_message_bytes: 64 << 20, ..to(Compression::Gzip) };
    spent(&large, &rules, "compression.type be producer");
}

#[test]
fn a_batch_below_the_limits_is_made_anew() {
    let to = |codec| ProduceRules { compression: TargetCompression::Codec(codec), ..rules() };
    let bytes = zeros(Compression::Zstd, 15 << 20);
    let made = validate_produce(&bytes, &to(Compression::Gzip)).unwrap();
    assert_eq!(made.summary.compression, Compression::Gzip);
    assert!(made.summary.size < 100_000);
}

#[test]
fn one_validator_serves_many_batches() {
    let mut validator = Validator::new();
    for round in 0..3 {
        for codec in Compression::ALL {
            let good = builder(codec).build().unwrap();
            let bad = builder(codec).build_from(b"not compressed like that");
            assert!(validator.validate(&good, &rules()).is_ok(), "{codec} {round}");
            assert!(validator.validate(&bad, &rules()).is_err(), "{codec} {round}");
        }
    }
}

#[test]
fn iteration_over_batches_stops_at_the_first_bad_one() {
    let one = batch();
    let mut two = one.repeat(2);
    assert_eq!(batches(&two).filter(Result::is_ok).count(), 2);
    two.pop();
    let kinds: Vec<_> = batches(&two).map(|batch| batch.is_ok()).collect();
    assert_eq!(kinds, [true, false]);
    two[16] = 1;
    build::reseal(&mut two[..one.len()]);
    let kinds: Vec<_> = batches(&two).map(|batch| batch.is_ok()).collect();
    assert_eq!(kinds, [false]);
    assert_eq!(BatchView::parse(&one).unwrap().0.records(), &one[HEADER_LEN..]);
}
