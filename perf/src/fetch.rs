//! The reading load: blocking connections, a thread each, that read their
//! partitions from offset 0 to the end found at the start.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use millstream::record::BatchView;
use millstream::wire::frame::write_request;
use millstream::wire::generated::fetch::{FetchPartition, FetchRequest, FetchTopic};
use millstream::wire::{ApiKey, Reader, ResponseHeader};

use crate::options::Fetch;
use crate::plain::{ANSWER_MAX, CLIENT_ID, Plain, Topic, connect};
use crate::report::{Cpu, Latencies, Report};
use crate::stream::{Frames, Got};
use crate::{Result, process};

const FETCH_VERSION: i16 = 16;
/// Longest wait of the broker for data, in milliseconds.
const WAIT_MS: i32 = 500;
/// Bytes from a batch's start to the end of its length field.
const BATCH_PREFIX: usize = 12;

/// Runs the load.
///
/// # Errors
/// Whatever the broker answers wrongly, and failures of the system.
pub(crate) fn run(options: &Fetch) -> Result<Report> {
    process::pin(options.target.pin)?;
    let mut plain = Plain::connect(options.target.broker)?;
    let topic = plain.topic(&options.target.topic, options.partitions, &[])?;
    let ends = plain.ends(&topic, options.partitions)?;
    if ends.iter().all(|end| *end == 0) {
        return Err(format!("topic {} has no records to read", topic.name).into());
    }
    let cpu_before = Cpu::now(options.target.broker_pid)?;
    let start = Instant::now();
    let until = start + Duration::from_secs_f64(options.seconds);
    let readers: Vec<_> = (0..options.connections)
        .map(|number| Assigned::new(number, options, &topic, &ends))
        .filter(|assigned| !assigned.ends.is_empty())
        .map(|assigned| std::thread::spawn(move || assigned.read(until)))
        .collect();
    let mut total = Totals::default();
    let mut latencies = Latencies::new();
    for reader in readers {
        let (totals, more) = reader.join().map_err(|_| "a reader panicked")??;
        total.add(totals);
        latencies.merge(&more);
    }
    let elapsed = start.elapsed();
    let cpu = Cpu::now(options.target.broker_pid)?.since(cpu_before);
    let sums = if options.verify { ", checksums" } else { "" };
    Ok(Report {
        requests: total.requests,
        records: total.records,
        bytes: total.bytes,
        elapsed,
        latencies,
        cpu,
        checked: format!(
            "{} whole passes over {} records, offsets without a gap{sums}",
            total.passes,
            ends.iter().sum::<i64>()
        ),
    })
}

#[derive(Clone, Copy, Default)]
struct Totals {
    requests: u64,
    records: u64,
    bytes: u64,
    /// The least of all connections.
    passes: u64,
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.passes = if self.requests == 0 { other.passes } else { self.passes.min(other.passes) };
        self.requests += other.requests;
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

/// What one connection reads.
struct Assigned {
    options: Fetch,
    topic: Topic,
    /// Partitions and their ends.
    ends: Vec<(i32, i64)>,
}

impl Assigned {
    fn new(number: u32, options: &Fetch, topic: &Topic, ends: &[i64]) -> Self {
        let ends = (0..).zip(ends.iter().copied()).filter(|(partition, end)| {
            i64::from(*partition) % i64::from(options.connections) == i64::from(number) && *end > 0
        });
        Self { options: options.clone(), topic: topic.clone(), ends: ends.collect() }
    }

    /// Reads everything, again until `until`.
    fn read(self, until: Instant) -> Result<(Totals, Latencies)> {
        let mut reading = Reading {
            stream: connect(self.options.target.broker)?,
            frames: Frames::new(1 << 20),
            request: Vec::new(),
            totals: Totals::default(),
            latencies: Latencies::new(),
        };
        reading.stream.set_read_timeout(Some(ANSWER_MAX))?;
        loop {
            let mut left: Vec<Part> =
                self.ends.iter().map(|&(index, end)| Part { index, next: 0, end }).collect();
            while !left.is_empty() {
                reading.one(&self, &mut left)?;
                left.retain(|part| part.next < part.end);
                // Every partition is the first in its turn.
                if !left.is_empty() {
                    left.rotate_left(1);
                }
            }
            reading.totals.passes += 1;
            if Instant::now() >= until {
                return Ok((reading.totals, reading.latencies));
            }
        }
    }
}

/// How far one partition is read.
struct Part {
    index: i32,
    next: i64,
    end: i64,
}

struct Reading {
    stream: TcpStream,
    frames: Frames,
    request: Vec<u8>,
    totals: Totals,
    latencies: Latencies,
}

impl Reading {
    /// One request and its answer.
    fn one(&mut self, assigned: &Assigned, left: &mut [Part]) -> Result<()> {
        self.request.clear();
        let request = request(assigned, left);
        let id = i32::try_from(self.totals.requests % 0x7fff_ffff)?;
        write_request(&mut self.request, FETCH_VERSION, id, Some(CLIENT_ID), &request)?;
        let sent = Instant::now();
        self.stream.write_all(&self.request)?;
        loop {
            if let Some(frame) = self.frames.next()? {
                self.latencies.add(sent.elapsed());
                self.totals.requests += 1;
                let before: i64 = left.iter().map(|part| part.next).sum();
                let bytes = take_answer(frame, id, left, assigned.options.verify)?;
                let after: i64 = left.iter().map(|part| part.next).sum();
                self.totals.bytes += bytes;
                self.totals.records += u64::try_from(after - before)?;
                return Ok(());
            }
            if self.frames.fill(&self.stream)? == Got::End {
                return Err("the broker closed a connection (its log says why)".into());
            }
        }
    }
}

fn request(assigned: &Assigned, left: &[Part]) -> FetchRequest {
    let partitions = left.iter().map(|part| FetchPartition {
        partition: part.index,
        fetch_offset: part.next,
        partition_max_bytes: assigned.options.partition_bytes,
        ..Default::default()
    });
    let topic = FetchTopic {
        topic_id: assigned.topic.id,
        partitions: partitions.collect(),
        ..Default::default()
    };
    FetchRequest {
        max_wait_ms: WAIT_MS,
        min_bytes: 1,
        max_bytes: assigned.options.max_bytes,
        topics: vec![topic],
        ..Default::default()
    }
}

/// Moves the partitions on by an answer; returns its record bytes.
fn take_answer(frame: &[u8], id: i32, left: &mut [Part], verify: bool) -> Result<u64> {
    let mut reader = Reader::new(frame);
    let header = ResponseHeader::read(&mut reader, ApiKey::Fetch, FETCH_VERSION)?;
    if header.correlation_id != id {
        return Err(format!("answer {} to request {id}", header.correlation_id).into());
    }
    reader.int32()?;
    let error = reader.int16()?;
    if error != 0 {
        return Err(format!("fetch: error {error}").into());
    }
    reader.int32()?;
    let mut bytes = 0;
    for _ in 1..reader.uvarint()? {
        reader.skip(16)?;
        for _ in 1..reader.uvarint()? {
            bytes += take_partition(&mut reader, left, verify)?;
        }
        reader.skip_tagged_fields()?;
    }
    Ok(bytes)
}

fn take_partition(reader: &mut Reader<'_>, left: &mut [Part], verify: bool) -> Result<u64> {
    let index = reader.int32()?;
    let error = reader.int16()?;
    // High watermark, last stable offset, log start.
    reader.skip(24)?;
    for _ in 1..reader.uvarint()? {
        reader.skip(16)?;
        reader.skip_tagged_fields()?;
    }
    reader.int32()?;
    let records = reader.byte_slice(true)?.unwrap_or_default();
    reader.skip_tagged_fields()?;
    if error != 0 {
        return Err(format!("partition {index}: error {error}").into());
    }
    let part = left
        .iter_mut()
        .find(|part| part.index == index)
        .ok_or_else(|| format!("partition {index} was not asked for"))?;
    take_batches(records, part, verify)?;
    Ok(records.len() as u64)
}

/// Moves a partition on by whole batches; the last may be cut off.
fn take_batches(mut records: &[u8], part: &mut Part, verify: bool) -> Result<()> {
    while let Some(prefix) = records.first_chunk::<BATCH_PREFIX>() {
        let length = i32::from_be_bytes([prefix[8], prefix[9], prefix[10], prefix[11]]);
        if usize::try_from(length)? > records.len() - BATCH_PREFIX {
            break;
        }
        let (batch, rest) = BatchView::parse(records)?;
        if batch.base_offset().0 != part.next {
            let (found, index) = (batch.base_offset().0, part.index);
            return Err(format!("partition {index}: offset {found} after {}", part.next).into());
        }
        if batch.record_count() != batch.last_offset_delta() + 1 {
            return Err(
                format!("partition {}: a batch with holes at {}", part.index, part.next).into()
            );
        }
        if verify && !batch.verify_crc() {
            return Err(format!("partition {}: bad checksum at {}", part.index, part.next).into());
        }
        part.next = batch.last_offset().0 + 1;
        records = &records[records.len() - rest..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::BatchShape;
    use millstream::model::{LeaderEpoch, Offset, Timestamp};
    use millstream::record::patch_base;
    use millstream::wire::frame::write_response;
    use millstream::wire::generated::fetch::{
        FetchResponse, FetchableTopicResponse, PartitionData,
    };

    fn batches(bases: &[i64]) -> Vec<u8> {
        let shape = BatchShape { records: 3, record_bytes: 20 };
        let batch = shape.batch(Timestamp(5)).unwrap();
        let at = |base: &i64| {
            let mut batch = batch.clone();
            patch_base(&mut batch, Offset(*base), LeaderEpoch(1));
            batch
        };
        bases.iter().flat_map(at).collect()
    }

    fn answer(records: Vec<u8>) -> Vec<u8> {
        let data = PartitionData {
            partition_index: 4,
            records: Some(records.into()),
            ..Default::default()
        };
        let topic = FetchableTopicResponse { partitions: vec![data], ..Default::default() };
        let response = FetchResponse { responses: vec![topic], ..Default::default() };
        let mut frame = Vec::new();
        write_response(&mut frame, FETCH_VERSION, 9, &response).unwrap();
        frame.split_off(4)
    }

    fn part() -> Part {
        Part { index: 4, next: 0, end: 100 }
    }

    #[test]
    fn batches_that_follow_each_other_are_counted() {
        let records = batches(&[0, 3, 6]);
        let mut left = [part()];
        let bytes = take_answer(&answer(records.clone()), 9, &mut left, true).unwrap();
        assert_eq!((left[0].next, bytes), (9, records.len() as u64));
        let mut left = [part()];
        let cut = records[..records.len() - 1].to_vec();
        take_answer(&answer(cut), 9, &mut left, true).unwrap();
        assert_eq!(left[0].next, 6, "a batch that is cut off comes again");
    }

    #[test]
    fn gaps_repeats_and_bad_bytes_are_refused() {
        for bases in [&[0, 6][..], &[0, 0], &[3]] {
            assert!(take_answer(&answer(batches(bases)), 9, &mut [part()], false).is_err());
        }
        assert!(take_answer(&answer(batches(&[0])), 8, &mut [part()], false).is_err(), "the id");
        let mut records = batches(&[0]);
        *records.last_mut().unwrap() ^= 1;
        assert!(take_answer(&answer(records.clone()), 9, &mut [part()], true).is_err());
        assert!(take_answer(&answer(records), 9, &mut [part()], false).is_ok());
    }
}
