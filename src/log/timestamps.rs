//! Offsets by timestamp: the segment by its largest timestamp, the place in it
//! by the time index, the record by reading. Answers exactly what a scan of
//! all records would: the first with a timestamp of at least the wanted one.

use std::borrow::Cow;
use std::rc::Rc;

use super::error::{Error, Result};
use super::scan::Walk;
use super::segment::index::{TIME_ENTRY, TimeEntry};
use super::segment::names::Kind;
use super::segment::tail::Mark;
use super::set::{ColdRead, LogHandle, ReadOutcome, Slices, TimestampOffset};
use super::state::{ClosedSegment, Shared, State};
use crate::io::Env;
use crate::model::limits::DECOMPRESSED_BYTES_MAX;
use crate::model::{Offset, Timestamp};
use crate::record::{BatchView, RecordIter, decompress};

/// Bytes looked at at once.
const STEP_BYTES: usize = 256 * 1024;

/// The largest timestamp of a segment that cannot be read: it is looked at
/// whatever is asked for, and no age ends it.
const UNKNOWN: Timestamp = Timestamp(i64::MAX);

impl<E: Env> Shared<E> {
    /// See `LogSet::offset_for_timestamp`.
    pub(crate) async fn offset_for_timestamp(
        self: &Rc<Self>,
        handle: LogHandle,
        timestamp: Timestamp,
        upper: Offset,
    ) -> Result<Option<TimestampOffset>> {
        let (start, segments) = self.segments_by_time(handle)?;
        for (base, end, largest) in segments {
            if end <= start {
                continue;
            }
            let largest = match largest {
                Some(largest) => largest,
                None => self.load_largest(handle, base).await?,
            };
            if largest < timestamp {
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
    /// timestamp if that is known, oldest first.
    #[allow(clippy::type_complexity, reason = "one caller")]
    fn segments_by_time(
        &self,
        handle: LogHandle,
    ) -> Result<(Offset, Vec<(Offset, Offset, Option<Timestamp>)>)> {
        let state = self.state.borrow();
        let log = state.log(handle).ok_or(Error::Gone)?;
        let closed = log.closed.iter().map(|(base, s)| (*base, s.end, s.max_timestamp));
        let open = log.open.iter();
        let open = open.map(|s| (s.base, s.end_offset, Some(s.index.max_timestamp())));
        Ok((log.log_start, closed.chain(open).collect()))
    }

    /// Largest timestamp of a closed segment: that of its time index's last entry,
    /// or of a batch behind that entry's. The file may lack entries at its end, or
    /// all of them, and then too little would be believed.
    pub(crate) async fn load_largest(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
    ) -> Result<Timestamp> {
        let look = |state: &State<E>| {
            let log = state.log(handle).ok_or(Error::Gone)?;
            Ok(log.closed.get(&base).map(|segment| (*segment, log.round)))
        };
        let Some((segment, round)) = look(&self.state.borrow())? else { return Ok(UNKNOWN) };
        let found = self.largest_of(handle, base, segment).await;
        // Retention or a truncation may have taken it meanwhile.
        let same = look(&self.state.borrow())?
            .is_some_and(|(now, r)| (now.len, now.end, r) == (segment.len, segment.end, round));
        let largest = match found {
            Ok(largest) => Some(largest),
            // The next look may find more; what was said is not said again.
            Err(error @ (Error::Io { .. } | Error::Unreadable { .. } | Error::Corrupt { .. })) => {
                if same && !segment.told_unreadable {
                    tracing::warn!(
                        "{error}: the age of this segment is not known until it can be read"
                    );
                }
                None
            }
            Err(error) => return Err(error),
        };
        if !same {
            return Ok(UNKNOWN);
        }
        if let Some(log) = self.state.borrow_mut().log_mut(handle)
            && let Some(segment) = log.closed.get_mut(&base)
        {
            segment.max_timestamp = largest;
            segment.told_unreadable |= largest.is_none();
        }
        Ok(largest.unwrap_or(UNKNOWN))
    }

    async fn largest_of(
        self: &Rc<Self>,
        handle: LogHandle,
        base: Offset,
        segment: ClosedSegment,
    ) -> Result<Timestamp> {
        let (mut largest, from) = match self.time_entry(handle, base, None, |_| true).await? {
            Found::Entry(entry, after) => (entry.timestamp, after),
            Found::BatchUnreadable(error) => return Err(error),
            // Of records without a timestamp there is no entry either.
            found => {
                if !segment.told_unreadable {
                    self.warn_of(handle, base, &found)?;
                }
                (Timestamp::NONE, Mark { offset: base, pos: 0 })
            }
        };
        if from.pos >= segment.len {
            return Ok(largest);
        }
        let file = self.segment_file(handle, base).await?;
        let pool = &self.config.pools.cold;
        let walk = Walk::new(&self.env, &file, pool, from, segment.len);
        let mut walk = walk.reading(STEP_BYTES as u64);
        while let Some((head, _)) = walk.peek().await? {
            largest = largest.max(head.max_timestamp);
            walk.skip(&head);
        }
        Ok(largest)
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
        self.warn_of(handle, base, &found)?;
        Ok(match found {
            Found::Entry(_, after) => after.offset,
            _ => base,
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
            Err(error @ Error::Io { .. }) => return Ok(Found::Unreadable(error)),
            Err(error) => return Err(error),
        };
        match self.batch_of_time(handle, base, entry).await {
            Ok(Some(after)) => Ok(Found::Entry(entry, after)),
            Ok(None) => Ok(Found::Damaged(entry)),
            Err(error @ (Error::Io { .. } | Error::Unreadable { .. })) => {
                Ok(Found::BatchUnreadable(error))
            }
            Err(error) => Err(error),
        }
    }

    fn warn_of(&self, handle: LogHandle, base: Offset, found: &Found) -> Result<()> {
        match found {
            Found::Entry(..) | Found::Nothing => {}
            Found::Damaged(entry) => {
                let path = self.path(handle, base, Kind::TimeIndex)?;
                tracing::warn!(path = %path.display(), ?entry, "a time index entry names no batch");
            }
            Found::Unreadable(error) => tracing::warn!(%error, "a time index cannot be read"),
            Found::BatchUnreadable(error) => {
                tracing::warn!(%error, "the batch of a time index entry cannot be read");
            }
        }
        Ok(())
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
    /// An entry, and the boundary behind its batch.
    Entry(TimeEntry, Mark),
    Nothing,
    /// An entry that no batch confirms.
    Damaged(TimeEntry),
    /// This time it could not be read.
    Unreadable(Error),
    /// The batch that would confirm it could not be read.
    BatchUnreadable(Error),
}

/// Consecutive pieces as one slice, copied only when there are several.
fn joined(pieces: &Slices) -> Cow<'_, [u8]> {
    match pieces.as_slice() {
        [one] => Cow::Borrowed(one),
        many => Cow::Owned(many.iter().flat_map(|p| p.iter().copied()).collect()),
    }
}
