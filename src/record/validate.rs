//! Whether a produced batch may be appended, and the bytes to append.
//!
//! The checks are those that Kafka spreads over `ProduceRequest`, `UnifiedLog`
//! and `LogValidator`, cheapest first; each refusal has Kafka's error code and
//! names the field. What depends on the partition (leader epoch, sequences,
//! producer state) is the partition's business.
//!
//! Stricter than Kafka in four points, each of which no known client meets:
//! offset deltas must be 0, 1, 2 and so on; nothing may follow the batch; a
//! transactional batch needs a producer id, and a producer id an epoch; the
//! LogAppendTime bit is refused whatever the topic's timestamp type.

use crate::model::limits::{DECOMPRESSED_BYTES_MAX, REMADE_BYTES_MAX, REMADE_GZIP_BYTES_MAX};
use crate::model::{ErrorCode, ProducerEpoch, ProducerId, Timestamp};

use super::codec::{self, Compression, Contexts};
use super::error::Error;
use super::header::{self, BatchSummary, BatchView, HEADER_LEN, TimestampType};
use super::walk::{Checks, REFUSED_MAX, Refusal, Streamed, WINDOW_LEN, Walked, walk_in_place};

/// Refused records that a [`Rejected`] names one by one.
pub const RECORD_ERRORS_MAX: usize = REFUSED_MAX;

/// The topic's `compression.type`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TargetCompression {
    /// As the producer sent it, whatever that is.
    #[default]
    Producer,
    /// This one, recompressing where a producer chose another.
    Codec(Compression),
}

/// What a topic and a request ask of a produced batch.
#[derive(Clone, Copy, Debug)]
pub struct ProduceRules {
    /// `max.message.bytes`: the largest batch, in bytes.
    pub max_message_bytes: usize,
    /// `segment.bytes`: a batch must fit into one segment.
    pub segment_bytes: usize,
    /// `compression.type`.
    pub compression: TargetCompression,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far in the past a record may be.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far in the future.
    pub timestamp_after_max_ms: i64,
    /// Whether `cleanup.policy` has `compact`: then every record needs a key.
    pub compacted: bool,
    /// The request's version is 7 or later (KIP-110).
    pub allow_zstd: bool,
    /// Most bytes that the records may have when decompressed. More than 1 GiB
    /// counts as 1 GiB, because a batch has to stay below 2.
    pub decompressed_bytes_max: usize,
    /// The broker's clock.
    pub now: Timestamp,
}

impl Default for ProduceRules {
    /// Kafka's defaults; 64 MiB decompressed; the clock at 0.
    fn default() -> Self {
        Self {
            max_message_bytes: 1_048_588,
            segment_bytes: 1 << 30,
            compression: TargetCompression::Producer,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            compacted: false,
            allow_zstd: true,
            decompressed_bytes_max: 64 << 20,
            now: Timestamp(0),
        }
    }
}

/// A batch that may be appended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Validated {
    /// What to append; base offset and leader epoch are still the producer's.
    pub bytes: FinalBytes,
    /// The header of the final bytes.
    pub summary: BatchSummary,
    /// For the response: the append time under LogAppendTime, else
    /// [`Timestamp::NONE`].
    pub log_append_time: Timestamp,
}

/// The bytes to append.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FinalBytes {
    /// Those that the producer sent.
    Original,
    /// These, because the topic's configuration changed them.
    Rewritten(Vec<u8>),
}

impl FinalBytes {
    /// The bytes, given those that were validated.
    #[must_use]
    pub fn resolve<'a>(&'a self, original: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Original => original,
            Self::Rewritten(bytes) => bytes,
        }
    }
}

/// A batch that may not be appended, with what its producer should be told.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {message}", code.name())]
pub struct Rejected {
    /// The partition's error code.
    pub code: ErrorCode,
    /// What is wrong, and where.
    pub message: String,
    /// Index in the batch and fault of single records, the first
    /// [`RECORD_ERRORS_MAX`] of them (KIP-467).
    pub record_errors: Vec<(i32, String)>,
}

impl Rejected {
    #[cold]
    fn new(code: ErrorCode, message: String) -> Self {
        Self { code, message, record_errors: Vec::new() }
    }
}

impl From<Error> for Rejected {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::LengthTooSmall { .. } => ErrorCode::CorruptMessage,
            // Kafka reads formats 0 and 1 but takes them from no producer.
            Error::UnsupportedMagic { magic: 0 | 1 } => ErrorCode::InvalidRecord,
            Error::UnsupportedMagic { .. } => ErrorCode::CorruptMessage,
            Error::UnknownCompression { .. } => ErrorCode::UnsupportedCompressionType,
            // Clients split a batch on this code, which is the remedy.
            Error::DecompressedTooLarge { .. } | Error::CompressedTooLarge { .. } => {
                ErrorCode::MessageTooLarge
            }
            Error::Compress { .. } => ErrorCode::UnknownServerError,
            // The checksum was right: this is what the producer meant, so a
            // retriable code would make it try forever.
            Error::Incomplete { .. } | Error::Decompress { .. } | Error::Record { .. } => {
                ErrorCode::InvalidRecord
            }
        };
        Self::new(code, error.to_string())
    }
}

/// Validates batches one after the other, with scratch memory that is used
/// again: about 200 KiB once a compressed batch has come by. One per core.
pub struct Validator {
    contexts: Contexts,
    window: Vec<u8>,
    /// Bytes that may still be decompressed before the next `begin`.
    budget: usize,
}

impl Default for Validator {
    fn default() -> Self {
        Self { contexts: Contexts::default(), window: Vec::new(), budget: usize::MAX }
    }
}

impl Validator {
    /// Without any memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a request, whose batches together may have `budget` bytes when
    /// decompressed: without it many small bombs make a large one.
    pub fn begin(&mut self, budget: usize) {
        self.budget = budget;
    }

    /// What is left of the budget, to begin with when the request goes on.
    #[must_use]
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// Checks `batch`, the whole records field of one partition, and says what
    /// to append.
    ///
    /// # Errors
    /// [`Rejected`], with code, message and the records at fault.
    pub fn validate(&mut self, batch: &[u8], rules: &ProduceRules) -> Result<Validated, Rejected> {
        let view = parse_only_batch(batch)?;
        check_size(view.length(), rules)?;
        check_crc(&view)?;
        let source = check_header(&view, rules)?;
        let target = match rules.compression {
            TargetCompression::Producer => source,
            TargetCompression::Codec(codec) => codec,
        };
        let checks = checks(&view, rules);
        let limit = rules.decompressed_bytes_max.min(DECOMPRESSED_BYTES_MAX).min(self.budget);
        let (walked, mut rewritten) = if source == target {
            let walked = self.walk(source, &view, &checks, limit)?;
            refuse_records(&walked, &checks)?;
            (walked, None)
        } else {
            let codecs = (source, target);
            let (walked, bytes) = self.recompress(codecs, &view, &checks, limit, rules)?;
            (walked, Some(bytes))
        };

        let (max_timestamp, log_append_time) = match rules.timestamp_type {
            TimestampType::CreateTime => (Timestamp(walked.max_timestamp), Timestamp::NONE),
            TimestampType::LogAppendTime => (rules.now, rules.now),
        };
        let is_create_time = rules.timestamp_type == TimestampType::CreateTime;
        if !is_create_time || view.max_timestamp() != max_timestamp {
            let bytes = rewritten.get_or_insert_with(|| batch.to_vec());
            header::patch_max_timestamp(bytes, rules.timestamp_type, max_timestamp);
        }
        let Some(bytes) = rewritten else {
            let summary = view.summary()?;
            return Ok(Validated { bytes: FinalBytes::Original, summary, log_append_time });
        };
        check_size(bytes.len(), rules)?;
        let summary = BatchView::parse(&bytes)?.0.summary()?;
        Ok(Validated { bytes: FinalBytes::Rewritten(bytes), summary, log_append_time })
    }

    fn walk(
        &mut self,
        source: Compression,
        view: &BatchView<'_>,
        checks: &Checks,
        limit: usize,
    ) -> Result<Walked, Error> {
        if source == Compression::None {
            return walk_in_place(view.records(), checks);
        }
        self.window.resize(WINDOW_LEN, 0);
        let reader = self.contexts.decoder(source, view.records(), limit);
        let streamed = Streamed::new(reader, source, limit, &mut self.window);
        let (walked, bytes) = streamed.walk(checks);
        self.budget = self.budget.saturating_sub(bytes);
        walked
    }

    fn recompress(
        &mut self,
        (source, target): (Compression, Compression),
        view: &BatchView<'_>,
        checks: &Checks,
        limit: usize,
        rules: &ProduceRules,
    ) -> Result<(Walked, Vec<u8>), Rejected> {
        let fits = rules.max_message_bytes.min(rules.segment_bytes).saturating_sub(HEADER_LEN);
        let most = remade_bytes_max(target);
        let limit = match target {
            // As long as it is, it will be.
            Compression::None => limit.min(most).min(fits),
            _ => limit.min(most),
        };
        let too_large = || {
            if target == Compression::None && limit == fits {
                return Some(grows_too_large(target, rules));
            }
            (limit == most).then(|| remade_too_large(target, most))
        };
        let mut made = Vec::new();
        let records = if source == Compression::None {
            self.budget = self.budget.saturating_sub(view.records().len());
            if view.records().len() > limit
                && let Some(rejected) = too_large()
            {
                return Err(rejected);
            }
            view.records()
        } else {
            let contexts = &mut self.contexts;
            let read = codec::decompress_with(contexts, source, view.records(), limit, &mut made);
            self.budget = self.budget.saturating_sub(made.len());
            read.map_err(|error| match error {
                Error::DecompressedTooLarge { .. } => too_large().unwrap_or_else(|| error.into()),
                error => error.into(),
            })?;
            &made
        };
        let walked = walk_in_place(records, checks)?;
        refuse_records(&walked, checks)?;
        if target == Compression::None {
            return Ok((walked, header::with_records(view, target, records)));
        }
        let packed =
            codec::compress_within(target, records, fits).map_err(|error| match error {
                Error::CompressedTooLarge { .. } => grows_too_large(target, rules),
                error => error.into(),
            })?;
        Ok((walked, header::with_records(view, target, &packed)))
    }
}

/// [`Validator::validate`] with scratch memory of its own, for those who
/// validate once.
///
/// # Errors
/// [`Rejected`], with code, message and the records at fault.
pub fn validate_produce(batch: &[u8], rules: &ProduceRules) -> Result<Validated, Rejected> {
    Validator::new().validate(batch, rules)
}

fn invalid(message: String) -> Rejected {
    Rejected::new(ErrorCode::InvalidRecord, message)
}

fn parse_only_batch(bytes: &[u8]) -> Result<BatchView<'_>, Rejected> {
    if bytes.is_empty() {
        return Err(invalid("no batch where one is required".to_owned()));
    }
    let (view, rest_len) = BatchView::parse(bytes)?;
    if rest_len != 0 {
        return Err(invalid(format!(
            "{rest_len} bytes after the first batch of {} bytes, exactly one batch is required",
            view.length()
        )));
    }
    let base_offset = view.base_offset().0;
    if base_offset != 0 {
        return Err(invalid(format!("base offset is {base_offset}, must be 0")));
    }
    Ok(view)
}

fn check_size(size: usize, rules: &ProduceRules) -> Result<(), Rejected> {
    if size > rules.max_message_bytes {
        let message = format!(
            "batch of {size} bytes is larger than max.message.bytes, {}",
            rules.max_message_bytes
        );
        return Err(Rejected::new(ErrorCode::MessageTooLarge, message));
    }
    if size > rules.segment_bytes {
        let message =
            format!("batch of {size} bytes is larger than segment.bytes, {}", rules.segment_bytes);
        return Err(Rejected::new(ErrorCode::RecordListTooLarge, message));
    }
    Ok(())
}

/// Most decompressed bytes of a batch that is made anew.
const fn remade_bytes_max(target: Compression) -> usize {
    match target {
        Compression::Gzip => REMADE_GZIP_BYTES_MAX,
        _ => REMADE_BYTES_MAX,
    }
}

/// Making a batch anew was stopped: it will be larger than [`check_size`]
/// allows.
fn grows_too_large(target: Compression, rules: &ProduceRules) -> Rejected {
    let (code, name, limit) = if rules.max_message_bytes <= rules.segment_bytes {
        (ErrorCode::MessageTooLarge, "max.message.bytes", rules.max_message_bytes)
    } else {
        (ErrorCode::RecordListTooLarge, "segment.bytes", rules.segment_bytes)
    };
    let message = format!("batch becomes larger than {name}, {limit}, with compression {target}");
    Rejected::new(code, message)
}

fn remade_too_large(target: Compression, most: usize) -> Rejected {
    let message = format!(
        "batch has more than {most} bytes when decompressed, the most that is made anew with \
         compression {target}: send smaller batches, or let compression.type be producer"
    );
    Rejected::new(ErrorCode::MessageTooLarge, message)
}

fn check_crc(view: &BatchView<'_>) -> Result<(), Rejected> {
    let (carried, computed) = (view.crc(), view.compute_crc());
    if carried != computed {
        let message = format!("batch carries CRC {carried:#010x}, its bytes have {computed:#010x}");
        return Err(Rejected::new(ErrorCode::CorruptMessage, message));
    }
    Ok(())
}

fn check_header(view: &BatchView<'_>, rules: &ProduceRules) -> Result<Compression, Rejected> {
    let compression = view.compression()?;
    if compression == Compression::Zstd && !rules.allow_zstd {
        let message = "zstd needs a produce request of version 7 or later".to_owned();
        return Err(Rejected::new(ErrorCode::UnsupportedCompressionType, message));
    }
    if view.timestamp_type() == TimestampType::LogAppendTime {
        let message = "batch says LogAppendTime, which only a broker may set".to_owned();
        return Err(Rejected::new(ErrorCode::InvalidTimestamp, message));
    }
    if view.is_control() {
        return Err(invalid("control batch from a client".to_owned()));
    }
    let (count, last_delta) = (view.record_count(), view.last_offset_delta());
    if count <= 0 {
        return Err(invalid(format!("record count is {count}")));
    }
    // Widened: i32::MAX + 1 would be a valid count of no batch.
    if i64::from(last_delta) + 1 != i64::from(count) {
        return Err(invalid(format!("last offset delta {last_delta} with {count} records")));
    }
    let (producer, epoch) = (view.producer_id(), view.producer_epoch());
    let sequence = view.base_sequence();
    if producer > ProducerId::NONE && (sequence < 0 || epoch <= ProducerEpoch::NONE) {
        let message =
            format!("producer id {producer} with epoch {epoch} and base sequence {sequence}");
        return Err(invalid(message));
    }
    if view.is_transactional() && producer <= ProducerId::NONE {
        return Err(invalid("transactional batch without a producer id".to_owned()));
    }
    Ok(compression)
}

fn checks(view: &BatchView<'_>, rules: &ProduceRules) -> Checks {
    let (timestamp_min, timestamp_max) = match rules.timestamp_type {
        TimestampType::CreateTime => (
            rules.now.0.saturating_sub(rules.timestamp_before_max_ms),
            rules.now.0.saturating_add(rules.timestamp_after_max_ms),
        ),
        // Whatever they are, they will not be kept.
        TimestampType::LogAppendTime => (i64::MIN, i64::MAX),
    };
    Checks {
        count: view.record_count(),
        base_timestamp: view.base_timestamp().0,
        key_required: rules.compacted,
        timestamp_min,
        timestamp_max,
    }
}

fn refuse_records(walked: &Walked, checks: &Checks) -> Result<(), Rejected> {
    if walked.refused_count == 0 {
        return Ok(());
    }
    let describe = |why: &Refusal| match why {
        Refusal::NullKey => "a compacted topic takes no record without a key".to_owned(),
        Refusal::Timestamp(timestamp) => format!(
            "timestamp {timestamp} is outside of {} to {}",
            checks.timestamp_min, checks.timestamp_max
        ),
    };
    let record_errors: Vec<_> =
        walked.refused.iter().map(|(index, why)| (*index, describe(why))).collect();
    let is_timestamp = |why: &Refusal| matches!(why, Refusal::Timestamp(_));
    let code = if walked.refused.iter().any(|(_, why)| is_timestamp(why)) {
        ErrorCode::InvalidTimestamp
    } else {
        ErrorCode::InvalidRecord
    };
    let (first, why) = &record_errors[0];
    let message = format!(
        "{} of {} records refused, first record {first}: {why}",
        walked.refused_count, checks.count
    );
    Err(Rejected { code, message, record_errors })
}

#[cfg(test)]
mod tests;
