//! The producing load: a closed loop over all connections in one thread.
//!
//! Every connection keeps its window full and goes round all partitions. Only
//! what is answered within the measured seconds counts; afterwards the window
//! is drained and the partitions' ends are compared with what was answered.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use millstream::model::Timestamp;

use crate::options::Produce;
use crate::plain::{ANSWER_MAX, Plain, Topic, connect};
use crate::poll::{Poll, Ready};
use crate::report::{Cpu, Latencies, Report};
use crate::stream::{Frames, Got};
use crate::template::{Acked, BatchShape, Templates, read_answer, read_echo};
use crate::{Result, process};

/// Most frames of one write.
const VECTORS_MAX: usize = 64;

/// Bytes of a connection's receive buffer; answers are short.
const ANSWERS_BYTES: usize = 16 << 10;

/// Longest wait for readiness: the clock is looked at as often.
const WAIT_MAX: Duration = Duration::from_millis(5);

/// Runs the load.
///
/// # Errors
/// Whatever the broker answers wrongly, and failures of the system.
pub(crate) fn run(options: &Produce) -> Result<Report> {
    if options.echo && options.acks == 0 {
        return Err("--echo answers everything; --acks 0 expects nothing".into());
    }
    process::pin(options.target.pin)?;
    process::need_files(u64::from(options.connections) + 64)?;
    let target = &options.target;
    let mut plain = None;
    let mut topic = Topic { name: target.topic.clone(), id: [0; 16] };
    let mut before = Vec::new();
    if !options.echo {
        let mut connection = Plain::connect(target.broker)?;
        topic = connection.topic(&target.topic, options.partitions, &options.topic_config)?;
        before = connection.ends(&topic, options.partitions)?;
        plain = Some(connection);
    }
    let shape =
        BatchShape { records: options.records_per_batch, record_bytes: options.record_bytes };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let now = Timestamp(i64::try_from(now.as_millis())?);
    let templates = Templates::new(&topic, options.partitions, shape, options.acks, now)?;
    let mut load = Load::new(options, &templates)?;
    let mut report = load.run()?;
    report.checked = match &mut plain {
        None => "order of answers".into(),
        Some(plain) => check_ends(plain, &topic, options, &before, &load.answered)?,
    };
    Ok(report)
}

/// The partitions must hold what was answered, and nothing else.
fn check_ends(
    plain: &mut Plain,
    topic: &Topic,
    options: &Produce,
    before: &[i64],
    answered: &[u64],
) -> Result<String> {
    let until = Instant::now() + ANSWER_MAX;
    loop {
        let ends = plain.ends(topic, options.partitions)?;
        let records = u64::from(options.records_per_batch);
        let wrong = (0..ends.len()).find(|&p| {
            ends[p] - before[p] != i64::try_from(answered[p] * records).unwrap_or(i64::MAX)
        });
        match wrong {
            None => {
                let total = answered.iter().sum::<u64>() * records;
                return Ok(format!(
                    "order of answers, ascending base offsets, {total} records in all at the end"
                ));
            }
            // Without answers the last requests may still be on their way.
            Some(_) if options.acks == 0 && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Some(p) => {
                let grown = ends[p] - before[p];
                let sent = answered[p] * records;
                return Err(format!(
                    "partition {p} grew by {grown} records, {sent} were acknowledged (is somebody \
                     else writing to {}?)",
                    topic.name
                )
                .into());
            }
        }
    }
}

/// One connection of the load.
struct Connection {
    stream: TcpStream,
    frames: Frames,
    /// Requests that are not written yet, by partition.
    unsent: VecDeque<i32>,
    /// Bytes of the first of them that are.
    written: usize,
    /// Requests without an answer, oldest first, and since when: those that
    /// are not written yet are the last of them.
    waiting: VecDeque<(i32, Instant)>,
    next_partition: i32,
    /// Last base offset of each partition.
    last_base: Vec<i64>,
    /// Room to write is being waited for.
    stuck: bool,
}

struct Load<'a> {
    options: &'a Produce,
    templates: &'a Templates,
    connections: Vec<Connection>,
    poll: Poll,
    latencies: Latencies,
    /// Answers, by partition, over the whole run.
    answered: Vec<u64>,
    /// Answers within the measured time.
    counted: u64,
    counting: bool,
    queueing: bool,
    queued: u64,
}

impl<'a> Load<'a> {
    fn new(options: &'a Produce, templates: &'a Templates) -> Result<Self> {
        let partitions = templates.frames.len();
        let poll = Poll::new()?;
        let mut connections = Vec::new();
        for number in 0..options.connections {
            let stream = connect(options.target.broker)?;
            stream.set_nonblocking(true)?;
            poll.add(number as usize, &stream)?;
            connections.push(Connection {
                stream,
                frames: Frames::new(ANSWERS_BYTES),
                unsent: VecDeque::new(),
                written: 0,
                waiting: VecDeque::new(),
                // Spread, so that they do not all hit the same one at a time.
                next_partition: i32::try_from(
                    u64::from(number) * partitions as u64 / u64::from(options.connections),
                )?,
                last_base: vec![-1; partitions],
                stuck: false,
            });
        }
        Ok(Self {
            options,
            templates,
            connections,
            poll,
            latencies: Latencies::new(),
            answered: vec![0; partitions],
            counted: 0,
            counting: false,
            queueing: true,
            queued: 0,
        })
    }

    fn run(&mut self) -> Result<Report> {
        let pid = self.options.target.broker_pid;
        let start = Instant::now();
        let counts_from = start + Duration::from_secs_f64(self.options.warmup);
        let mut counted_since = (start, Cpu::now(pid)?);
        for number in 0..self.connections.len() {
            self.serve(number, start)?;
        }
        let mut ready = Vec::new();
        let (elapsed, cpu) = loop {
            let now = Instant::now();
            if !self.counting && now >= counts_from {
                counted_since = (now, Cpu::now(pid)?);
                self.counting = true;
            }
            let spent = now - counted_since.0;
            let enough = self.counting && spent.as_secs_f64() >= self.options.seconds;
            if enough || (!self.queueing && self.idle()) {
                break (spent, Cpu::now(pid)?.since(counted_since.1));
            }
            self.round(&mut ready)?;
        };
        let (counted, latencies) =
            (self.counted, std::mem::replace(&mut self.latencies, Latencies::new()));
        self.drain(&mut ready)?;
        Ok(Report {
            requests: counted,
            records: counted * u64::from(self.options.records_per_batch),
            bytes: counted * self.templates.batch_bytes as u64,
            elapsed,
            latencies,
            cpu,
            checked: String::new(),
        })
    }

    fn round(&mut self, ready: &mut Vec<Ready>) -> Result<()> {
        ready.clear();
        self.poll.wait(WAIT_MAX, ready)?;
        let now = Instant::now();
        for ready in ready.iter() {
            if ready.readable {
                self.receive(ready.number, now)?;
            }
            if ready.readable || ready.writable {
                self.serve(ready.number, now)?;
            }
        }
        Ok(())
    }

    fn idle(&self) -> bool {
        self.connections.iter().all(|c| c.waiting.is_empty())
    }

    fn drain(&mut self, ready: &mut Vec<Ready>) -> Result<()> {
        self.queueing = false;
        let until = Instant::now() + ANSWER_MAX;
        while !self.idle() {
            if Instant::now() > until {
                return Err(format!("no answer for {ANSWER_MAX:?}").into());
            }
            self.round(ready)?;
        }
        Ok(())
    }

    /// Fills the window and writes what the socket takes.
    fn serve(&mut self, number: usize, now: Instant) -> Result<()> {
        self.fill_window(number, now);
        loop {
            let connection = &mut self.connections[number];
            let written = connection.write(self.templates)?;
            if written == 0 {
                break;
            }
            if self.options.acks == 0 {
                self.forget_written(number);
                self.fill_window(number, now);
            }
        }
        let connection = &mut self.connections[number];
        let stuck = !connection.unsent.is_empty();
        if stuck != connection.stuck {
            connection.stuck = stuck;
            self.poll.set_writing(number, &connection.stream, stuck)?;
        }
        Ok(())
    }

    fn fill_window(&mut self, number: usize, now: Instant) {
        let connection = &mut self.connections[number];
        let partitions = self.templates.frames.len() as i32;
        while self.queueing && connection.waiting.len() < self.options.in_flight as usize {
            let partition = connection.next_partition;
            connection.next_partition = (partition + 1) % partitions;
            connection.unsent.push_back(partition);
            connection.waiting.push_back((partition, now));
            self.queued += 1;
            self.queueing = self.options.requests.is_none_or(|max| self.queued < max);
        }
    }

    /// Without answers, a request is done when it is written.
    fn forget_written(&mut self, number: usize) {
        let now = Instant::now();
        let connection = &mut self.connections[number];
        while connection.waiting.len() > connection.unsent.len() {
            let (partition, since) = connection.waiting.pop_front().expect("it is longer");
            self.answered[partition as usize] += 1;
            if self.counting {
                self.counted += 1;
                self.latencies.add(now - since);
            }
        }
    }

    fn receive(&mut self, number: usize, now: Instant) -> Result<()> {
        let connection = &mut self.connections[number];
        if connection.frames.fill(&connection.stream)? == Got::End {
            return Err("the broker closed a connection (its log says why)".into());
        }
        while let Some(frame) = connection.frames.next()? {
            let acked = if self.options.echo { read_echo(frame)? } else { read_answer(frame)? };
            let (partition, since) =
                connection.waiting.pop_front().ok_or("an answer to no request")?;
            check(acked, partition, self.options.echo, &mut connection.last_base)?;
            self.answered[partition as usize] += 1;
            if self.counting {
                self.counted += 1;
                self.latencies.add(now - since);
            }
        }
        Ok(())
    }
}

/// An answer must be a success, for the oldest request, and ascend.
fn check(acked: Acked, partition: i32, echo: bool, last_base: &mut [i64]) -> Result<()> {
    if acked.partition != partition {
        return Err(
            format!("answer for partition {} instead of {partition}", acked.partition).into()
        );
    }
    if acked.error_code != 0 {
        return Err(format!("partition {partition}: error {}", acked.error_code).into());
    }
    let last = &mut last_base[partition as usize];
    if !echo && acked.base_offset <= *last {
        return Err(format!("partition {partition}: {} after {last}", acked.base_offset).into());
    }
    *last = acked.base_offset;
    Ok(())
}

impl Connection {
    /// One write; returns the bytes taken, 0 when there is nothing to write
    /// or no room.
    fn write(&mut self, templates: &Templates) -> Result<usize> {
        if self.unsent.is_empty() {
            return Ok(0);
        }
        let mut slices = [IoSlice::new(&[]); VECTORS_MAX];
        let mut count = 0;
        for (slice, partition) in slices.iter_mut().zip(&self.unsent) {
            let skip = if count == 0 { self.written } else { 0 };
            *slice = IoSlice::new(&templates.frames[*partition as usize][skip..]);
            count += 1;
        }
        let taken = match self.stream.write_vectored(&slices[..count]) {
            Ok(taken) => taken,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(e) => return Err(e.into()),
        };
        self.written += taken;
        while let Some(partition) = self.unsent.front() {
            let length = templates.frames[*partition as usize].len();
            if self.written < length {
                break;
            }
            self.written -= length;
            self.unsent.pop_front();
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_answers_are_refused() {
        let acked =
            |partition, error_code, base_offset| Acked { partition, error_code, base_offset };
        let mut last = vec![-1, -1];
        check(acked(0, 0, 0), 0, false, &mut last).unwrap();
        check(acked(1, 0, 0), 1, false, &mut last).unwrap();
        check(acked(0, 0, 5), 0, false, &mut last).unwrap();
        assert!(check(acked(0, 0, 5), 0, false, &mut last).is_err(), "an offset twice");
        assert!(check(acked(1, 0, 9), 0, false, &mut last).is_err(), "another partition");
        assert!(check(acked(0, 7, 9), 0, false, &mut last).is_err(), "an error");
        assert!(check(acked(0, 0, -1), 0, true, &mut last).is_ok(), "echo has no offsets");
    }
}
