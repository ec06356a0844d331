//! What must be true: every log as a list of batches, with what was promised.
//!
//! A crash may leave any prefix of a list that covers the promise. While a
//! truncation is not known to be durable the list before it is possible too.

use std::collections::BTreeMap;
use std::rc::Rc;

use millstream::io::sim::Crash;
use millstream::log::{DurabilityClass, KnownLog};
use millstream::model::{LeaderEpoch, LogId, Offset, ProducerId};
use millstream::partition::producers::ProducerStates;
use millstream::partition::{Acks, producer_batch};
use millstream::record::BatchSummary;

use crate::damage::Damage;

/// One batch as it was appended.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) token: u64,
    pub(crate) acks: Acks,
    pub(crate) base: i64,
    pub(crate) end: i64,
    pub(crate) epoch: LeaderEpoch,
    /// With base offset and epoch in place.
    pub(crate) bytes: Vec<u8>,
    pub(crate) summary: BatchSummary,
    pub(crate) stamps: Vec<i64>,
}

pub(crate) type Chain = Vec<Rc<Batch>>;

pub(crate) fn chain_end(chain: &Chain) -> i64 {
    chain.last().map_or(0, |b| b.end)
}

/// One incarnation of one partition.
#[derive(Debug)]
pub(crate) struct LogModel {
    pub(crate) known: KnownLog,
    /// What the log holds now.
    pub(crate) live: Chain,
    /// What it may hold after a crash instead: lists before truncations that
    /// are not known to be durable.
    pub(crate) others: Vec<Chain>,
    /// Every list that a truncation ended, for logs without durability.
    past: Vec<Chain>,
    /// Offset of the latest truncation that is not known to be durable.
    unconfirmed: Option<i64>,
    /// Everything below was promised.
    pub(crate) must: i64,
    /// End of the last batch acknowledged: with acks=all, with acks=1.
    acked: [i64; 2],
    /// The log start may be anything between.
    pub(crate) start: (i64, i64),
    /// A power cut met this log although it promised nothing against one.
    weak: bool,
    /// Everything below survives a power cut whatever the class: a start ended
    /// here and no journal of class `os` has been used again since, or the log
    /// was stopped cleanly here.
    floor: i64,
    /// The last thing that happened to it was a clean stop.
    pub(crate) closed: bool,
    /// Truncations since the last start.
    pub(crate) truncations: u64,
    /// Whether recovery has met this log before.
    pub(crate) recovered: bool,
    /// Rot in its closed segments.
    pub(crate) damages: Vec<Damage>,
    /// A start had to read batches of producers that have rotted.
    pub(crate) producers_unknown: bool,
}

impl LogModel {
    pub(crate) fn new(known: KnownLog) -> Self {
        Self {
            known,
            live: Vec::new(),
            others: Vec::new(),
            past: Vec::new(),
            unconfirmed: None,
            must: 0,
            acked: [0; 2],
            start: (0, 0),
            weak: false,
            floor: 0,
            closed: false,
            truncations: 0,
            recovered: false,
            damages: Vec::new(),
            producers_unknown: false,
        }
    }

    pub(crate) fn name(&self) -> String {
        format!("{} (log {}, {:?})", self.known.dir_name(), self.known.log_id, self.known.class)
    }

    pub(crate) fn end(&self) -> i64 {
        chain_end(&self.live)
    }

    pub(crate) fn push(&mut self, batch: Rc<Batch>) {
        assert_eq!(batch.base, self.end(), "{}: not the next offset", self.name());
        self.live.push(batch);
    }

    /// The log said that everything below `upto` is durable.
    pub(crate) fn durable(&mut self, upto: i64) {
        assert!(upto <= self.end(), "{}: durable {upto} past {}", self.name(), self.end());
        self.must = self.must.max(upto);
        if self.unconfirmed.is_some_and(|to| upto > to) {
            self.unconfirmed = None;
            self.others.clear();
        }
    }

    /// A producer was told that its batch is in.
    pub(crate) fn acknowledged(&mut self, token: u64, base: i64) {
        let batch = self.live.iter().find(|b| b.token == token);
        let batch = batch.unwrap_or_else(|| panic!("{}: {token} is not in it", self.name()));
        assert_eq!(batch.base, base, "{}: acknowledged at another offset", self.name());
        let (end, kind) = (batch.end, usize::from(batch.acks == Acks::Leader));
        assert!(end > self.acked[kind], "{}: acknowledged out of order", self.name());
        self.acked[kind] = end;
        self.must = self.must.max(end);
    }

    pub(crate) fn truncate(&mut self, to: i64) {
        assert!(to >= self.must, "the test truncates what was promised");
        self.others.push(self.live.clone());
        self.past.push(self.live.clone());
        self.live.retain(|b| b.end <= to);
        assert_eq!(self.end(), to, "the test truncates inside a batch");
        self.unconfirmed = Some(to);
        self.truncations += 1;
    }

    /// A clean stop ended: everything is in segments.
    pub(crate) fn closed(&mut self) {
        self.must = self.end();
        self.floor = self.end();
        self.others.clear();
        self.start.0 = self.start.1;
        self.closed = true;
    }

    /// Journal files of class `os` that the last start made have been used
    /// again or deleted: what they held may not be on the medium elsewhere.
    pub(crate) fn recycled(&mut self) {
        if !self.closed {
            self.floor = 0;
        }
    }

    pub(crate) fn crashed(&mut self, kind: Crash) {
        if kind == Crash::Power && self.known.class == DurabilityClass::Os {
            self.weak = true;
        }
    }

    /// A start found the log to end at `end` and to begin at `start`, with
    /// everything durable: what it may hold from now on.
    pub(crate) fn restarted(&mut self, start: i64, end: i64) {
        if self.weak {
            self.must = self.floor;
            self.others.append(&mut self.past);
        }
        let name = self.name();
        if self.closed {
            assert_eq!(end, self.end(), "{name}: closed cleanly, and ends elsewhere");
        }
        assert!(end >= self.must, "{name}: {} was promised, it ends at {end}", self.must);
        assert!(
            self.start.0 <= start && start <= self.start.1 || self.weak,
            "{name}: starts at {start}, not within {:?}",
            self.start
        );
        let mut possible: Vec<Chain> = std::iter::once(std::mem::take(&mut self.live))
            .chain(self.others.drain(..))
            .filter_map(|mut chain| {
                chain.retain(|b| b.end <= end);
                (chain_end(&chain) == end).then_some(chain)
            })
            .collect();
        assert!(!possible.is_empty(), "{name}: no batch ends at {end}");
        self.live = possible.remove(0);
        self.others = possible;
        self.must = end;
        self.acked = [end; 2];
        self.floor = end;
        self.closed = false;
        self.start = (start, start);
        self.weak = false;
        self.past.clear();
        self.unconfirmed = None;
        self.truncations = 0;
        self.recovered = true;
    }

    /// Settles which list it is, by the bytes from the first batch on that
    /// holds `from`.
    pub(crate) fn content_is(&mut self, from: i64, bytes: &[u8]) {
        let matches = |chain: &Chain| {
            let mut rest = bytes;
            for batch in chain.iter().filter(|b| b.end > from) {
                match rest.strip_prefix(&batch.bytes[..]) {
                    Some(tail) => rest = tail,
                    None => return false,
                }
            }
            rest.is_empty()
        };
        let chains = std::iter::once(&self.live).chain(&self.others);
        let fit = chains.into_iter().find(|chain| matches(chain)).cloned();
        match fit {
            Some(chain) => self.live = chain,
            None => panic!(
                "{}: what it holds from {from} on is no list that it may hold: {}",
                self.name(),
                self.difference(from, bytes)
            ),
        }
        self.others.clear();
    }

    fn difference(&self, from: i64, bytes: &[u8]) -> String {
        let found: Vec<_> = millstream::record::batches(bytes)
            .map(|b| {
                b.map_or((-1, -1, -1), |b| {
                    (b.base_offset().0, b.last_offset().0, b.leader_epoch().0)
                })
            })
            .collect();
        let wanted: Vec<_> = self
            .live
            .iter()
            .filter(|b| b.end > from)
            .map(|b| (b.base, b.end - 1, b.epoch.0))
            .collect();
        format!("found {found:?}, wanted {wanted:?}")
    }

    /// Producer state is what the list says, but for older batches than the
    /// newest, which a snapshot does not hold; of a producer all of whose
    /// batches are before the log start, it may also know nothing. Both are so
    /// in Kafka.
    pub(crate) fn producers_are(&self, found: &ProducerStates) {
        if self.producers_unknown {
            return;
        }
        let wanted = self.producers();
        for producer in (0..3).map(|i| ProducerId(self.known.log_id.0 as i64 * 10 + i)) {
            let state = |s: &ProducerStates| {
                s.get(producer).map(|e| (e.epoch, e.batches().to_vec())).unwrap_or_default()
            };
            let ((epoch, batches), (wanted_epoch, wanted)) = (state(found), state(&wanted));
            let forgotten = batches.is_empty() && self.is_forgotten(producer);
            let complete = batches.is_empty() == wanted.is_empty()
                && epoch == wanted_epoch
                && wanted.ends_with(&batches);
            assert!(
                forgotten || complete,
                "{}: state of {producer} is {epoch:?} {batches:?}, the log says {wanted_epoch:?} {wanted:?}",
                self.name(),
            );
        }
    }

    /// Whether no whole batch of a producer was left when the log last started.
    pub(crate) fn is_forgotten(&self, producer: ProducerId) -> bool {
        self.latest_of(producer).is_none_or(|b| b.base < self.start.0)
    }

    /// Producer state as the list alone says it.
    fn producers(&self) -> ProducerStates {
        let mut states = ProducerStates::default();
        for batch in &self.live {
            if let Some(producer) = producer_batch(&batch.summary, Offset(batch.base)) {
                states.apply(&producer);
            }
        }
        states
    }

    /// Where an epoch that has batches ends.
    pub(crate) fn end_of_epoch(&self, epoch: LeaderEpoch) -> i64 {
        self.live.iter().find(|b| b.epoch > epoch).map_or(self.end(), |b| b.base)
    }

    /// The latest batch of a producer.
    pub(crate) fn latest_of(&self, producer: ProducerId) -> Option<&Rc<Batch>> {
        self.live.iter().rev().find(|b| b.summary.producer_id == producer)
    }

    /// The first record below `upper` with at least this timestamp, by looking
    /// at each: offset, timestamp, epoch.
    pub(crate) fn by_timestamp(
        &self,
        from: i64,
        upper: i64,
        wanted: i64,
    ) -> Option<(i64, i64, LeaderEpoch)> {
        self.live
            .iter()
            .flat_map(|b| {
                b.stamps.iter().enumerate().map(move |(i, ts)| (b.base + i as i64, *ts, b.epoch))
            })
            .find(|(offset, ts, _)| *offset >= from && *offset < upper && *ts >= wanted)
    }
}

/// Everything that the metadata log would know, and what was promised.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) logs: BTreeMap<LogId, LogModel>,
    pub(crate) next_log: u64,
    pub(crate) next_epoch: i32,
    pub(crate) next_token: u64,
}

impl Model {
    pub(crate) fn new_epoch(&mut self) -> LeaderEpoch {
        self.next_epoch += 1;
        LeaderEpoch(self.next_epoch)
    }

    pub(crate) fn new_token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    pub(crate) fn log(&mut self, id: LogId) -> &mut LogModel {
        self.logs.get_mut(&id).expect("the test asks for logs that it made")
    }

    pub(crate) fn crashed(&mut self, kind: Crash) {
        for log in self.logs.values_mut() {
            log.crashed(kind);
        }
    }
}
