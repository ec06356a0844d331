//! Record batches against foreign encoders, and against damage.
//!
//! `record/vectors.txt` comes from Kafka's own classes (`record/Vectors.java`
//! says how); the crate `kafka-protocol` is the second opinion.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records as oracle;
use millstream::model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Timestamp};
use millstream::record::{
    BatchBuilder, BatchView, Compression, ControlType, FinalBytes, NewRecord, ProduceRules, Record,
    TargetCompression, TimestampType, Validator, batches, build, patch_base, validate_produce,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::fmt::Write as _;

const LIMIT: usize = 16 << 20;

fn hex(bytes: Option<&[u8]>) -> String {
    bytes.map_or("-".to_owned(), |bytes| {
        bytes.iter().fold("x".to_owned(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.strip_prefix('x').expect("hexadecimal starts with x").as_bytes();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// A batch in the form in which `Vectors.java` prints what it reads.
fn describe(batch: &BatchView<'_>) -> Vec<String> {
    let kind = match batch.timestamp_type() {
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    };
    let mut lines = vec![format!(
        "header {} {} {} {} {kind} {} {} {} {} {} {} {} {}",
        batch.base_offset(),
        batch.last_offset(),
        batch.leader_epoch(),
        batch.compression().unwrap(),
        batch.is_transactional(),
        batch.is_control(),
        batch.max_timestamp(),
        batch.producer_id(),
        batch.producer_epoch(),
        batch.base_sequence(),
        batch.record_count(),
        batch.crc()
    )];
    let records = batch.decompressed(LIMIT).unwrap();
    for record in batch.iter(&records) {
        let record = record.unwrap();
        let mut line = format!(
            "record {} {} {} {}",
            batch.offset_of(&record),
            batch.timestamp_of(&record),
            hex(record.key),
            hex(record.value)
        );
        for header in record.headers() {
            write!(line, " {}={}", hex(Some(header.key)), hex(header.value)).unwrap();
        }
        lines.push(line);
    }
    lines
}

struct Vector {
    name: &'static str,
    bytes: Vec<u8>,
    lines: Vec<&'static str>,
}

fn vectors() -> Vec<Vector> {
    let mut vectors: Vec<Vector> = Vec::new();
    for line in include_str!("record/vectors.txt").lines() {
        match line.split_once(' ').unwrap() {
            ("vector", name) => vectors.push(Vector { name, bytes: Vec::new(), lines: Vec::new() }),
            ("bytes", bytes) => vectors.last_mut().unwrap().bytes = unhex(bytes),
            _ => vectors.last_mut().unwrap().lines.push(line),
        }
    }
    assert_eq!(vectors.len(), 25, "the file is whole");
    vectors
}

fn vector(name: &str) -> Vector {
    vectors().into_iter().find(|vector| vector.name == name).expect("such a vector")
}

#[test]
fn kafkas_batches_read_as_kafka_reads_them() {
    for vector in vectors() {
        let (batch, rest) = BatchView::parse(&vector.bytes).unwrap();
        assert_eq!(rest, 0);
        assert!(batch.verify_crc(), "{}", vector.name);
        if !vector.lines.is_empty() {
            assert_eq!(describe(&batch), vector.lines, "{}", vector.name);
        }
    }
}

fn text_value(index: usize) -> String {
    format!("line {index}{}", " of the text ".repeat(1 + index % 9))
}

#[test]
fn kafkas_full_batches_of_every_codec_and_level() {
    let names = ["gzip", "snappy", "lz4", "zstd", "gzip-level-9", "lz4-level-17", "zstd-level-22"];
    for name in names {
        let vector = vector(&format!("text-{name}"));
        let validated = validate_produce(&vector.bytes, &rules()).unwrap();
        assert_eq!(validated.bytes, FinalBytes::Original, "{name}");
        let batch = BatchView::parse(&vector.bytes).unwrap().0;
        let records = batch.decompressed(LIMIT).unwrap();
        let mut count = 0;
        for (index, record) in batch.iter(&records).enumerate() {
            let record = record.unwrap();
            assert_eq!(batch.timestamp_of(&record).0, 1_700_000_000_000 + index as i64);
            assert_eq!(record.key, Some(format!("key-{}", index % 10).as_bytes()));
            assert_eq!(record.value, Some(text_value(index).as_bytes()));
            count += 1;
        }
        assert_eq!(count, 1000, "{name}");
    }
}

/// A builder with what `Vectors.java` puts into its mixed batches.
fn mixed(compression: Compression) -> BatchBuilder {
    let large: Vec<u8> = (0..300).map(|i| (i * 7) as u8).collect();
    let headers: [(&[u8], Option<&[u8]>); 5] = [
        (b"twice", Some(b"one")),
        (b"twice", Some(b"two")),
        (b"", Some(b"")),
        (b"null", None),
        ("\u{fc}ml\u{e4}ut \u{1f600}".as_bytes(), Some(&[0, 0xff, 0x80])),
    ];
    type Row<'a> = (i64, Option<&'a [u8]>, Option<&'a [u8]>, &'a [(&'a [u8], Option<&'a [u8]>)]);
    let rows: [Row<'_>; 6] = [
        (1_700_000_000_000, Some(b"key"), Some(b"value"), &[]),
        (1_700_000_000_250, None, Some(b"no key"), &[]),
        (1_699_999_999_000, Some(b"tombstone"), None, &[]),
        (1_700_000_000_001, Some(b""), Some(b""), &[]),
        (1_700_000_000_002, None, None, &headers),
        (1_700_000_003_600, Some(&large), Some(&large), &[]),
    ];
    let mut builder = BatchBuilder::new(compression);
    for (timestamp, key, value, headers) in rows {
        builder.push(&NewRecord { timestamp: Timestamp(timestamp), key, value, headers });
    }
    builder
}

#[test]
fn the_builder_writes_kafkas_bytes() {
    let now = Timestamp(1_700_000_000_500);
    let plain = mixed(Compression::None);
    assert_eq!(plain.clone().build().unwrap(), vector("mixed-none").bytes);
    let producer = (ProducerId(4711), ProducerEpoch(3));
    let idempotent = plain.clone().producer(producer.0, producer.1, 42);
    assert_eq!(idempotent.build().unwrap(), vector("idempotent-none").bytes);
    let append_time = plain.log_append_time(now);
    assert_eq!(append_time.build().unwrap(), vector("append-time-none").bytes);
    let base = Timestamp(1_700_000_000_000);
    for (kind, name) in [(ControlType::Commit, "commit"), (ControlType::Abort, "abort")] {
        let marker = BatchBuilder::control(kind, producer, 9, base)
            .base_offset(Offset(17))
            .leader_epoch(LeaderEpoch(5));
        assert_eq!(marker.build().unwrap(), vector(&format!("marker-{name}")).bytes, "{name}");
    }
    let record = |timestamp, value| NewRecord {
        timestamp: Timestamp(timestamp),
        key: Some(b"k"),
        value: Some(value),
        headers: &[],
    };
    let transactional = BatchBuilder::new(Compression::None)
        .producer(ProducerId(1 << 40), ProducerEpoch(i16::MAX), i32::MAX)
        .transactional(true)
        .record(&record(-1, b"v"))
        .record(&record(5, b"w"));
    let bytes = transactional.build().unwrap();
    assert_eq!(bytes, vector("transactional").bytes);
    assert_eq!(BatchView::parse(&bytes).unwrap().0.summary().unwrap().last_sequence(), 0);
}

/// Rules under which the vectors are valid: their clock, no other limits.
fn rules() -> ProduceRules {
    ProduceRules { now: Timestamp(1_700_000_000_500), ..ProduceRules::default() }
}

#[test]
fn kafkas_batches_pass_unchanged_or_recompressed() {
    let mut validator = Validator::new();
    for source in Compression::ALL {
        for prefix in ["mixed", "idempotent"] {
            let original = vector(&format!("{prefix}-{source}")).bytes;
            let validated = validator.validate(&original, &rules()).unwrap();
            assert_eq!(validated.bytes, FinalBytes::Original);
            assert_eq!(validated.log_append_time, Timestamp::NONE);
            for target in Compression::ALL {
                let rules =
                    ProduceRules { compression: TargetCompression::Codec(target), ..rules() };
                let validated = validator.validate(&original, &rules).unwrap();
                let bytes = validated.bytes.resolve(&original);
                let batch = BatchView::parse(bytes).unwrap().0;
                assert!(batch.verify_crc());
                assert_eq!(validated.summary, batch.summary().unwrap());
                assert_eq!(validated.summary.compression, target);
                assert_eq!(validated.bytes == FinalBytes::Original, source == target);
                let before = describe(&BatchView::parse(&original).unwrap().0);
                assert_eq!(describe(&batch)[1..], before[1..], "{source} to {target}");
            }
        }
    }
}

/// What one record is, owned.
type Row = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>);

fn row() -> impl Strategy<Value = Row> {
    let bytes = || vec(any::<u8>(), 0..90);
    let timestamp = prop_oneof![any::<i64>(), 1_700_000_000_000..1_700_000_100_000i64];
    let headers = vec((vec(any::<u8>(), 0..6), option::of(vec(any::<u8>(), 0..20))), 0..4);
    (timestamp, option::of(bytes()), option::of(bytes()), headers)
}

fn push_rows(builder: &mut BatchBuilder, rows: &[Row]) {
    for (timestamp, key, value, headers) in rows {
        let headers: Vec<_> =
            headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
        builder.push(&NewRecord {
            timestamp: Timestamp(*timestamp),
            key: key.as_deref(),
            value: value.as_deref(),
            headers: &headers,
        });
    }
}

fn owned(timestamp: Timestamp, record: &Record<'_>) -> Row {
    let headers = record
        .headers()
        .map(|header| (header.key.to_vec(), header.value.map(<[u8]>::to_vec)))
        .collect();
    (timestamp.0, record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec), headers)
}

proptest! {
    /// Any records come back, from any compression, at any offset.
    #[test]
    fn what_is_built_is_read(
        rows in vec(row(), 1..40), id in 0u8..5, offset: i64, epoch: i32, copies in 1usize..4,
    ) {
        let mut builder = BatchBuilder::new(Compression::from_id(id).unwrap());
        push_rows(&mut builder, &rows);
        let mut bytes = builder.build().unwrap();
        patch_base(&mut bytes, Offset(offset), LeaderEpoch(epoch));
        let many = bytes.repeat(copies);
        let mut seen = 0;
        for batch in batches(&many) {
            let batch = batch.unwrap();
            prop_assert!(batch.verify_crc());
            prop_assert_eq!(batch.base_offset(), Offset(offset));
            prop_assert_eq!(batch.leader_epoch(), LeaderEpoch(epoch));
            let records = batch.decompressed(LIMIT).unwrap();
            let read: Vec<Row> = batch
                .iter(&records)
                .map(|record| record.unwrap())
                .map(|record| owned(batch.timestamp_of(&record), &record))
                .collect();
            prop_assert_eq!(&read, &rows);
            seen += 1;
        }
        prop_assert_eq!(seen, copies);
    }

    /// The oracle reads what we write. (It keeps one header per key, and its
    /// keys are text, so the headers here are such.)
    #[test]
    fn the_oracle_reads_ours(rows in vec(row(), 1..30), id in 0u8..5, producer in 0..i64::MAX) {
        let rows: Vec<Row> = rows
            .into_iter()
            .map(|(timestamp, key, value, headers)| {
                let headers = headers.into_iter().enumerate();
                let headers = headers.map(|(i, (_, value))| (format!("h{i}").into_bytes(), value));
                // Far timestamps would overflow the oracle's arithmetic.
                (timestamp >> 2, key, value, headers.collect())
            })
            .collect();
        let mut builder = BatchBuilder::new(Compression::from_id(id).unwrap())
            .base_offset(Offset(1000))
            .producer(ProducerId(producer), ProducerEpoch(7), 5);
        push_rows(&mut builder, &rows);
        let mut bytes = Bytes::from(builder.build().unwrap());
        let sets = oracle::RecordBatchDecoder::decode_all(&mut bytes).unwrap();
        prop_assert_eq!(sets.len(), 1);
        prop_assert_eq!(sets[0].records.len(), rows.len());
        for (index, (record, row)) in sets[0].records.iter().zip(&rows).enumerate() {
            prop_assert_eq!(record.offset, 1000 + index as i64);
            prop_assert_eq!(record.sequence, 5 + index as i32);
            prop_assert_eq!(record.producer_id, producer);
            prop_assert_eq!(record.timestamp, row.0);
            prop_assert_eq!(record.key.as_deref(), row.1.as_deref());
            prop_assert_eq!(record.value.as_deref(), row.2.as_deref());
            let headers: Vec<_> = record
                .headers
                .iter()
                .map(|(key, value)| (key.as_bytes().to_vec(), value.as_ref().map(|v| v.to_vec())))
                .collect();
            prop_assert_eq!(&headers, &row.3);
        }
    }

    /// We read, and accept, what the oracle writes.
    #[test]
    fn ours_reads_the_oracles(rows in vec(row(), 1..30), id in 0u8..5) {
        let rows: Vec<Row> =
            rows.into_iter().map(|(t, k, v, _)| (t >> 2, k, v, Vec::new())).collect();
        let records: Vec<oracle::Record> = rows
            .iter()
            .enumerate()
            .map(|(index, (timestamp, key, value, _))| oracle::Record {
                transactional: false,
                control: false,
                delete_horizon: false,
                partition_leader_epoch: -1,
                producer_id: -1,
                producer_epoch: -1,
                timestamp_type: oracle::TimestampType::Creation,
                offset: index as i64,
                // The oracle starts a batch where offset and sequence part.
                sequence: index as i32,
                timestamp: *timestamp,
                key: key.clone().map(Bytes::from),
                value: value.clone().map(Bytes::from),
                headers: [(StrBytes::from_static_str("h"), Some(Bytes::from_static(b"v")))]
                    .into_iter()
                    .collect(),
            })
            .collect();
        let compression = match id {
            0 => oracle::Compression::None,
            1 => oracle::Compression::Gzip,
            2 => oracle::Compression::Snappy,
            3 => oracle::Compression::Lz4,
            _ => oracle::Compression::Zstd,
        };
        let options = oracle::RecordEncodeOptions { version: 2, compression };
        let mut bytes = BytesMut::new();
        oracle::RecordBatchEncoder::encode(&mut bytes, &records, &options).unwrap();
        let far = ProduceRules { timestamp_after_max_ms: i64::MAX, ..rules() };
        let validated = validate_produce(&bytes, &far);
        prop_assert!(validated.is_ok(), "{validated:?}");
        let batch = BatchView::parse(&bytes).unwrap().0;
        prop_assert_eq!(batch.compression().unwrap().id(), id);
        let records = batch.decompressed(LIMIT).unwrap();
        let read: Vec<Row> = batch
            .iter(&records)
            .map(|record| record.unwrap())
            .map(|record| owned(batch.timestamp_of(&record), &record))
            .collect();
        for (read, row) in read.iter().zip(&rows) {
            prop_assert_eq!((&read.0, &read.1, &read.2), (&row.0, &row.1, &row.2));
            prop_assert_eq!(&read.3, &[(b"h".to_vec(), Some(b"v".to_vec()))]);
        }
        prop_assert_eq!(read.len(), rows.len());
    }

    /// Noise is refused or valid, and never more than that.
    #[test]
    fn noise_never_panics(mut bytes in vec(any::<u8>(), 0..400), looks_right: bool) {
        if looks_right && bytes.len() >= 61 {
            let length = bytes.len() as i32 - 12;
            bytes[..8].fill(0);
            bytes[8..12].copy_from_slice(&length.to_be_bytes());
            bytes[16] = 2;
            build::reseal(&mut bytes);
        }
        read_everything(&mut Validator::new(), &bytes);
    }
}

/// Uses every reader on `bytes`; what passes validation must be readable.
fn read_everything(validator: &mut Validator, bytes: &[u8]) {
    let limit = 1 << 20;
    for batch in batches(bytes).flatten() {
        let Ok(records) = batch.decompressed(limit) else { continue };
        assert!(records.len() <= limit.max(batch.length()));
        let read = batch.iter(&records).map_while(Result::ok);
        let fields: usize = read
            .map(|record| {
                record.headers().map(|header| header.key.len()).sum::<usize>()
                    + record.key.map_or(0, <[u8]>::len)
                    + record.value.map_or(0, <[u8]>::len)
            })
            .sum();
        assert!(fields <= records.len());
    }
    let targets = [TargetCompression::Producer, TargetCompression::Codec(Compression::Lz4)];
    let verdicts = targets.map(|compression| {
        let rules = ProduceRules {
            compression,
            decompressed_bytes_max: limit,
            timestamp_after_max_ms: i64::MAX,
            ..rules()
        };
        let Ok(validated) = validator.validate(bytes, &rules) else { return false };
        let batch = BatchView::parse(validated.bytes.resolve(bytes)).unwrap().0;
        assert!(batch.verify_crc());
        let records = batch.decompressed(limit).unwrap();
        let read: Vec<_> = batch.iter(&records).map(|record| record.unwrap()).collect();
        assert_eq!(read.len(), batch.record_count() as usize);
        true
    });
    assert_eq!(verdicts[0], verdicts[1], "the streaming walk and the other one disagree");
}

/// Every vector, damaged in every way that a few bytes allow, with a checksum
/// that is right again, so that the damage reaches the code behind it.
#[test]
fn damaged_batches_never_panic() {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    let mut validator = Validator::new();
    for (seed, vector) in vectors().into_iter().enumerate() {
        let mut rng = StdRng::seed_from_u64(seed as u64);
        let rounds = if vector.bytes.len() < 4096 { 4000 } else { 40 };
        for _ in 0..rounds {
            let mut bytes = vector.bytes.clone();
            for _ in 0..rng.random_range(1..4) {
                // The first bytes of header and records decide the most.
                let bound = if rng.random() { bytes.len() } else { bytes.len().min(140) };
                let at = rng.random_range(0..bound);
                match rng.random_range(0..4) {
                    0 => bytes[at] = rng.random(),
                    1 => bytes[at] ^= 1 << rng.random_range(0..8),
                    2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.random_range(0..5)],
                    _ if at > 61 => {
                        bytes.remove(at);
                        let length = bytes.len() as i32 - 12;
                        bytes[8..12].copy_from_slice(&length.to_be_bytes());
                    }
                    _ => bytes.truncate(at.max(61)),
                }
            }
            if bytes.len() >= 61 {
                build::reseal(&mut bytes);
            }
            read_everything(&mut validator, &bytes);
        }
    }
}
