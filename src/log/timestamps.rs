//! Offsets by timestamp: the segment by its largest timestamp, the place in it
//! by the time index, the record by reading. Answers exactly what a scan of
//! all records would: the first with a timestamp of at least the wanted one.

use std::borrow::Cow;
use std::rc::Rc;

use super::error::{Error, Result};
use super::segment::index::{TIME_ENTRY, TimeEntry};
use super::segment::names::Kind;
use super::set::{ColdRead, LogHandle, ReadOutcome, Slices, TimestampOffset};
use super::state::Shared;
use crate::io::Env;
use crate::model::limits::DECOMPRESSED_BYTES_MAX;
use crate::model::{Offset, Timestamp};
use crate::record::{BatchView, RecordIter, decompress};

/// Bytes looked at at once.
const STEP_BYTES: usize = 256 * 1024;

impl<E: Env> Shared<E> {
    /// See `LogSet::offset_for_timestamp`.
    pub(crate) async fn offset_for_timestamp(
        self: &Rc<Self>,
        handle: LogHandle,
        timestamp: Timestamp,
        upper: Offset,
    ) -> Result<Option<TimestampOffset>> {
        let (start, segments) = self.segments_by_time(handle).await?;
        for (base, end, largest) in segments {
            if largest < timestamp || end <= start {
                continue;
            }
            let from = self.skip_older(handle, base, timestamp).await?.max(start);
            let mut at = from;
            while at < end.min(upper) {
                let read =
                    ColdRead { handle, from: at, upper, max_bytes: STEP_BYTES, at_least_one: true };
                let pieces = match self.read(read) {
                    ReadOutcome::Hot(pieces) => pieces,
                    ReadOutcome::Cold(read) => self.read_cold(read).await?,
                    ReadOutcome::Empty | ReadOutcome::OutOfRange => return Ok(None),
                };
                if pieces.is_empty() {
                    return Ok(None);
                }
                let bytes = joined(&pieces);
                let mut rest: &[u8] = &bytes;
                while let Ok((batch, left)) = BatchView::parse(rest) {
                    if batch.max_timestamp() >= timestamp {
                        let found = self.first_record(handle, base, &batch, timestamp, start)?;
                        if found.is_some() {
                            return Ok(found);
                        }
                    }
                    at = batch.last_offset().plus(1);
                    rest = &rest[rest.len() - left..];
                }
                if self.env.slice_over() {
                    self.env.pause().await;
                }
            }
        }
        Ok(None)
    }

    /// First readable offset, and each segment with its end and its largest
    /// timestamp, oldest first.
    async fn segments_by_time(
        self: &Rc<Self>,
        handle: LogHandle,
    ) -> Result<(Offset, Vec<(Offset, Offset, Timestamp)>)> {
        let (start, closed, open) = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            let closed: Vec<_> = log.closed.iter().map(|(base, s)| (*base, *s)).collect();
            let open: Vec<_> =
                log.open.iter().map(|s| (s.base, s.end_offset, s.index.max_timestamp())).collect();
            (log.log_start, closed, open)
        };
        let mut out = Vec::with_capacity(closed.len() + open.len());
        for (base, segment) in closed {
            let largest = match segment.max_timestamp {
                Some(largest) => largest,
                None => self.load_largest(handle, base).await?,
            };
            out.push((base, segment.end, largest));
        }
        out.extend(open);
        Ok((start, out))
    }

    /// Largest timestamp of a closed segment: the last entry of its time index.
    /// Without one that can be believed the segment is looked at whatever is
    /// asked for, and no age ends it.
    pub(crate) async fn load_largest(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
    ) -> Result<Timestamp> {
        let unknown = Timestamp(i64::MAX);
        let found = match self.time_entry(handle, base, None, |_| true).await? {
            Found::Entry(entry) => Some(entry.timestamp),
            // Of records without a timestamp there is no entry, and none when
            // the file is missing or was cut.
            Found::Nothing | Found::Damaged => None,
            // The next look may find more.
            Found::Unreadable => return Ok(unknown),
        };
        if let Some(log) = self.state.borrow_mut().log_mut(handle)
            && let Some(segment) = log.closed.get_mut(&base)
        {
            let empty = if segment.len == 0 { Timestamp::NONE } else { unknown };
            let largest = found.unwrap_or(empty);
            segment.max_timestamp = Some(largest);
            return Ok(largest);
        }
        Ok(found.unwrap_or(unknown))
    }

    /// The offset up to which the time index says that all is older.
    async fn skip_older(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
        timestamp: Timestamp,
    ) -> Result<Offset> {
        let flushed = {
            let state = self.state.borrow();
            let log = state.log(handle).ok_or(Error::Gone)?;
            match log.segment(base) {
                Some(open) => {
                    let pending = open.index.pending_times();
                    let n = pending.partition_point(|e| e.timestamp < timestamp);
                    if let Some(n) = n.checked_sub(1) {
                        return Ok(base.plus(i64::from(pending[n].relative) + 1));
                    }
                    Some(open.index.flushed().1)
                }
                None => None,
            }
        };
        let found = self.time_entry(handle, base, flushed, |e| e.timestamp < timestamp).await?;
        Ok(match found {
            Found::Entry(entry) => base.plus(i64::from(entry.relative) + 1),
            Found::Nothing | Found::Damaged | Found::Unreadable => base,
        })
    }

    /// The last entry of a time index for which `before` holds, if its batch
    /// confirms it.
    async fn time_entry(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
        entries: Option<u64>,
        before: impl Fn(TimeEntry) -> bool,
    ) -> Result<Found> {
        let before = |bytes: &[u8]| before(TimeEntry::decode(bytes));
        let found =
            self.search_index(handle, base, Kind::TimeIndex, TIME_ENTRY, entries, before).await;
        let entry = match found {
            Ok(Some(bytes)) => TimeEntry::decode(&bytes),
            Ok(None) => return Ok(Found::Nothing),
            Err(error @ Error::Io { .. }) => {
                tracing::warn!(%error, "a time index cannot be read");
                return Ok(Found::Unreadable);
            }
            Err(error) => return Err(error),
        };
        match self.is_time_of_batch(handle, base, entry).await {
            Ok(true) => return Ok(Found::Entry(entry)),
            Ok(false) => {}
            Err(error @ (Error::Io { .. } | Error::Unreadable { .. })) => {
                tracing::warn!(%error, "the batch of a time index entry cannot be read");
                return Ok(Found::Unreadable);
            }
            Err(error) => return Err(error),
        }
        let path = self.path(handle, base, Kind::TimeIndex)?;
        tracing::warn!(path = %path.display(), ?entry, "a time index entry names no batch");
        Ok(Found::Damaged)
    }

    fn first_record(
        &self,
        handle: LogHandle,
        base: Offset,
        batch: &BatchView<'_>,
        timestamp: Timestamp,
        start: Offset,
    ) -> Result<Option<TimestampOffset>> {
        let corrupt = |what| Error::Corrupt {
            path: self.path(handle, base, Kind::Log).unwrap_or_default(),
            position: 0,
            offset: batch.base_offset(),
            what,
        };
        let codec = batch.compression().map_err(|_| corrupt("an unknown compression"))?;
        let records = decompress(codec, batch.records(), DECOMPRESSED_BYTES_MAX)
            .map_err(|_| corrupt("records that do not decompress"))?;
        let append_time = batch.timestamp_type() == crate::record::TimestampType::LogAppendTime;
        for record in RecordIter::new(&records, batch.record_count()) {
            let record = record.map_err(|_| corrupt("a record that does not parse"))?;
            let own = if append_time {
                batch.max_timestamp()
            } else {
                Timestamp(batch.base_timestamp().0 + record.timestamp_delta)
            };
            let offset = batch.base_offset().plus(i64::from(record.offset_delta));
            if own >= timestamp && offset >= start {
                let state = self.state.borrow();
                let log = state.log(handle).ok_or(Error::Gone)?;
                let epoch = log.epochs.at(offset).ok_or(Error::OutOfRange(offset))?;
                return Ok(Some(TimestampOffset { offset, timestamp: own, epoch }));
            }
        }
        Ok(None)
    }
}

/// What a time index says.
enum Found {
    Entry(TimeEntry),
    Nothing,
    /// Nothing that could be believed.
    Damaged,
    /// This time it could not be read.
    Unreadable,
}

/// Consecutive pieces as one slice, copied only when there are several.
fn joined(pieces: &Slices) -> Cow<'_, [u8]> {
    match pieces.as_slice() {
        [one] => Cow::Borrowed(one),
        many => Cow::Owned(many.iter().flat_map(|p| p.iter().copied()).collect()),
    }
}
