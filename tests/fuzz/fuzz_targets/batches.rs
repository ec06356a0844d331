//! Any bytes as the records field of a produce request: they are refused or
//! valid, and what is valid can be read back, whichever way it was validated.
//!
//! The last byte of the input chooses the rules.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream::model::Timestamp;
use millstream::record::{
    BatchView, Compression, HEADER_LEN, ProduceRules, TargetCompression, TimestampType, Validator,
    batches, build,
};

const DECOMPRESSED_MAX: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_last() else { return };
    let mut bytes = input.to_vec();
    // A fuzzer does not guess checksums, nor lengths: mostly make them right.
    if choice & 1 == 0 && bytes.len() >= HEADER_LEN {
        let length = bytes.len() as i32 - 12;
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        build::reseal(&mut bytes);
    }
    read_stored(&bytes);

    let rules = ProduceRules {
        compacted: choice & 2 != 0,
        timestamp_type: if choice & 4 != 0 {
            TimestampType::LogAppendTime
        } else {
            TimestampType::CreateTime
        },
        timestamp_after_max_ms: i64::MAX,
        now: Timestamp(1_700_000_000_000),
        // Neither way may fail on size alone.
        max_message_bytes: 4 * DECOMPRESSED_MAX,
        decompressed_bytes_max: DECOMPRESSED_MAX,
        ..ProduceRules::default()
    };
    let as_sent = is_valid(&bytes, &rules);
    let target = Compression::ALL[usize::from(choice >> 3) % Compression::ALL.len()];
    let compression = TargetCompression::Codec(target);
    // Recompression walks decompressed bytes, the other way streams them.
    assert_eq!(as_sent, is_valid(&bytes, &ProduceRules { compression, ..rules }));
});

/// What a reader of a segment does, which trusts no more than the checksum.
fn read_stored(bytes: &[u8]) {
    for batch in batches(bytes).flatten() {
        let Ok(records) = batch.decompressed(DECOMPRESSED_MAX) else { continue };
        assert!(records.len() <= DECOMPRESSED_MAX.max(batch.length()));
        for record in batch.iter(&records).map_while(Result::ok) {
            assert_eq!(record.headers().count(), record.header_count());
        }
    }
}

fn is_valid(bytes: &[u8], rules: &ProduceRules) -> bool {
    let Ok(validated) = Validator::new().validate(bytes, rules) else { return false };
    let (batch, rest) = BatchView::parse(validated.bytes.resolve(bytes)).expect("a batch");
    assert_eq!(rest, 0);
    assert!(batch.verify_crc());
    assert_eq!(batch.summary(), Ok(validated.summary));
    let records = batch.decompressed(DECOMPRESSED_MAX).expect("as it was validated");
    let mut count = 0;
    for record in batch.iter(&records) {
        let record = record.expect("as it was validated");
        assert_eq!(record.offset_delta, count);
        assert!(!rules.compacted || record.key.is_some());
        assert!(batch.timestamp_of(&record) <= batch.max_timestamp());
        count += 1;
    }
    assert_eq!(count, batch.record_count());
    true
}
