//! Reads of the running log against the model.

use std::rc::Rc;

use millstream::log::{Error, ReadOutcome, Recovered, Slices};
use millstream::model::{LogId, Offset, Timestamp};
use millstream::partition::producer_batch;
use millstream::partition::producers::ProducerStates;
use millstream::record::BatchView;

use crate::driver::Shard;
use crate::model::{Batch, Chain};

fn join(slices: &Slices) -> Vec<u8> {
    slices.iter().flat_map(|slice| slice.iter().copied()).collect()
}

/// One fetch: where, up to where, and how much.
#[derive(Clone, Copy, Debug)]
struct Fetch {
    from: i64,
    upper: i64,
    max_bytes: usize,
    at_least_one: bool,
}

impl Fetch {
    /// Whether `bytes` are a right answer: whole batches, contiguous, the first
    /// the one that holds `from`, all below the bounds.
    fn judge(&self, chain: &Chain, bytes: &[u8]) {
        let first = chain.iter().position(|b| b.end > self.from);
        let first = first.unwrap_or_else(|| panic!("{self:?} got bytes past the end"));
        let mut rest = bytes;
        let mut count = 0;
        for batch in &chain[first..] {
            if rest.is_empty() {
                break;
            }
            assert!(batch.end <= self.upper, "{self:?} got the batch at {}", batch.base);
            rest = rest.strip_prefix(&batch.bytes[..]).unwrap_or_else(|| {
                let found =
                    BatchView::parse(rest).map(|(b, _)| (b.base_offset(), b.leader_epoch()));
                panic!("{self:?} got {found:?} in place of {}..{}", batch.base, batch.end)
            });
            count += 1;
        }
        assert!(rest.is_empty(), "{self:?} got {} bytes past the end", rest.len());
        let first_is_too_large = chain[first].bytes.len() > self.max_bytes;
        if count == 0 {
            assert!(!self.at_least_one && first_is_too_large, "{self:?} got nothing");
        } else if bytes.len() > self.max_bytes {
            assert!(count == 1 && self.at_least_one, "{self:?} got {} bytes", bytes.len());
        }
    }
}

impl Shard {
    fn chain(&self, id: LogId) -> Option<Chain> {
        self.shared.model.borrow().logs.get(&id).map(|log| log.live.clone())
    }

    /// A fetch at a random place.
    pub(crate) async fn read_somewhere(&self, id: LogId) {
        let Some(chain) = self.chain(id) else { return };
        let (handle, offsets) = {
            let parts = self.parts.borrow();
            let part = parts.get(&id).expect("the caller has just seen it");
            (part.handle, *part.machine.offsets())
        };
        let start = offsets.log_start.0;
        let span = (offsets.log_end.0 - start + 3) as u64;
        let committed = self.shared.chance(800);
        let fetch = Fetch {
            from: start - 1 + self.shared.below(span) as i64,
            upper: if committed { offsets.high_watermark.0 } else { offsets.log_end.0 },
            max_bytes: [1, 1000, 50_000, 1 << 20][self.shared.index(4)],
            at_least_one: self.shared.chance(700),
        };
        let Fetch { from, upper, max_bytes, at_least_one } = fetch;
        let outcome = self.set.read(handle, Offset(from), Offset(upper), max_bytes, at_least_one);
        let available = chain.iter().any(|b| b.end > from && b.end <= upper);
        match outcome {
            ReadOutcome::Hot(slices) => {
                self.shared.events.borrow_mut().hot_reads += 1;
                fetch.judge(&chain, &join(&slices));
            }
            ReadOutcome::Empty => {
                let small = chain.iter().find(|b| b.end > from);
                let small = small.is_some_and(|b| !at_least_one && b.bytes.len() > max_bytes);
                assert!(!available || small, "{fetch:?} of log {id} got nothing: {offsets:?}");
            }
            ReadOutcome::OutOfRange => {
                assert!(from < start || from > offsets.log_end.0, "{fetch:?} out of {offsets:?}");
            }
            ReadOutcome::Cold(cold) => {
                self.shared.events.borrow_mut().cold_reads += 1;
                let answer = self.set.read_cold(cold).await;
                let still = self.chain(id).is_some_and(|now| is_prefix(&now, &chain, upper));
                let moved = self.log_start(id).is_none_or(|start| start > from);
                match answer {
                    Ok(slices) if still => fetch.judge(&chain, &join(&slices)),
                    Ok(_) => {}
                    Err(Error::Gone | Error::OutOfRange(_)) if !still || moved => {}
                    Err(Error::NoMemory(_)) => {}
                    Err(error) if self.allowed(&error) => {}
                    Err(error) if self.rotten(id, from, &error) => {}
                    Err(error) => panic!("{fetch:?} of log {id}: {error}"),
                }
            }
        }
    }

    fn log_start(&self, id: LogId) -> Option<i64> {
        self.parts.borrow().get(&id).map(|p| p.machine.offsets().log_start.0)
    }

    /// Everything from the log start to the end, in fetches of random size.
    pub(crate) async fn read_all(&self, id: LogId, start: i64, end: i64) -> Option<Vec<u8>> {
        let handle = self.parts.borrow().get(&id)?.handle;
        let mut all = Vec::new();
        let mut at = start;
        while at < end {
            let max = [1, 5_000, 100_000, 1 << 20][self.shared.index(4)];
            let bytes = match self.set.read(handle, Offset(at), Offset(end), max, true) {
                ReadOutcome::Hot(slices) => join(&slices),
                ReadOutcome::Cold(cold) => match self.set.read_cold(cold).await {
                    Ok(slices) => join(&slices),
                    Err(error) if self.allowed(&error) => return None,
                    // What has rotted counts as what it was.
                    Err(error) if self.rotten(id, at, &error) => {
                        let chain = self.chain(id)?;
                        let batch = chain.iter().find(|b| b.end > at).expect("it is damaged");
                        all.extend(&batch.bytes);
                        at = batch.end;
                        continue;
                    }
                    Err(error) => panic!("log {id} at {at} of {start}..{end}: {error}"),
                },
                other => panic!("log {id} at {at} of {start}..{end}: {other:?}"),
            };
            assert!(!bytes.is_empty(), "log {id} at {at} of {start}..{end}: nothing");
            for batch in millstream::record::batches(&bytes) {
                let batch = batch.unwrap_or_else(|e| panic!("log {id} at {at}: {e:?}"));
                assert!(batch.verify_crc(), "log {id}: batch at {} is torn", batch.base_offset());
                let last = batch.last_offset().0;
                assert!(last >= at, "log {id}: batch at {} comes twice", batch.base_offset());
                at = last + 1;
            }
            all.extend(bytes);
        }
        Some(all)
    }

    /// Epochs and timestamps, asked and looked up by hand.
    pub(crate) async fn check_lookups(&self, id: LogId, count: usize) {
        for _ in 0..count {
            let (handle, offsets, epoch) = {
                let parts = self.parts.borrow();
                let Some(part) = parts.get(&id).filter(|p| !p.busy) else { return };
                (part.handle, *part.machine.offsets(), part.machine.epoch())
            };
            let (start, upper) = (offsets.log_start.0, offsets.high_watermark.0);
            let Some(chain) = self.chain(id) else { return };
            let readable: Vec<&Rc<Batch>> =
                chain.iter().filter(|b| b.end > start && b.end <= upper).collect();
            let latest = self.set.latest_epoch(handle).map(|e| e.epoch);
            assert_eq!(latest, Some(epoch), "log {id}: its latest epoch");
            if readable.is_empty() {
                return;
            }
            let batch = readable[self.shared.index(readable.len())];
            let found = self.set.end_of_epoch(handle, batch.epoch).map(|(e, o)| (e, o.0));
            let wanted = self.shared.model.borrow().logs[&id].end_of_epoch(batch.epoch);
            assert_eq!(found, Some((batch.epoch, wanted)), "log {id}: end of epoch");
            let around = batch.stamps[self.shared.index(batch.stamps.len())];
            let stamp = around + self.shared.below(3) as i64 - 1;
            let wanted = self.shared.model.borrow().logs[&id].by_timestamp(start, upper, stamp);
            let answer =
                self.set.offset_for_timestamp(handle, Timestamp(stamp), Offset(upper)).await;
            let moved = self.log_start(id) != Some(start);
            match answer {
                Ok(_) if moved => {}
                Ok(found) => {
                    let found = found.map(|t| (t.offset.0, t.timestamp.0, t.epoch));
                    assert_eq!(
                        found, wanted,
                        "log {id}: first record from {stamp} on, {start}..{upper}"
                    );
                }
                Err(Error::NoMemory(_)) => {}
                Err(Error::Gone | Error::OutOfRange(_)) if moved => {}
                Err(error) if self.allowed(&error) => {}
                Err(error) => {
                    let model = self.shared.model.borrow();
                    let log = &model.logs[&id];
                    // It begins again when the log start moves meanwhile.
                    let told = (start..=self.log_start(id).unwrap_or(start)).any(|from| {
                        let wanted = log.by_timestamp(from, upper, stamp);
                        let to = wanted.map_or(upper, |(offset, _, _)| offset + 1);
                        let mut damages = log.damages.iter();
                        damages.any(|d| d.lies_within(from, to) && d.is_named_by(&error))
                    });
                    assert!(told, "log {id}: timestamp {stamp}: {error}");
                }
            }
        }
    }
}

fn is_prefix(now: &Chain, then: &Chain, upper: i64) -> bool {
    then.iter()
        .filter(|b| b.end <= upper)
        .zip(now.iter().map(Some).chain(std::iter::repeat(None)))
        .all(|(a, b)| b.is_some_and(|b| Rc::ptr_eq(a, b)))
}

/// Producer state from what recovery handed over.
pub(crate) fn producers_of(recovered: &Recovered) -> ProducerStates {
    let mut states = match &recovered.snapshot {
        Some((_, bytes)) => ProducerStates::from_snapshot(bytes)
            .unwrap_or_else(|e| panic!("log {}: {e}", recovered.log_id)),
        None => ProducerStates::default(),
    };
    for batch in &recovered.batches_after {
        if let Some(producer) = producer_batch(&batch.summary, batch.base_offset) {
            states.apply(&producer);
        }
    }
    states
}
