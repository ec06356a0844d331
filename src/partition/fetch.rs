//! What readers may see: fetch bounds, epoch checks, ListOffsets bounds.

use super::machine::{Effects, Partition};
use super::replicator::Replicator;
use super::waiters::{FetchToken, Interest};
use crate::model::{ErrorCode, LeaderEpoch, Offset, Timestamp};

/// Which records a consumer may see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    /// Everything committed by replication.
    ReadUncommitted,
    /// And decided by its transaction.
    ReadCommitted,
}

impl Isolation {
    /// From the request field: 1 is committed, everything else is not.
    #[must_use]
    pub fn from_wire(level: i8) -> Self {
        if level == 1 { Self::ReadCommitted } else { Self::ReadUncommitted }
    }
}

/// What a fetch at one offset may read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FetchBounds {
    /// Batches that begin below `upper`.
    Readable {
        /// First offset that must not be returned.
        upper: Offset,
    },
    /// Nothing yet: wait, or answer empty.
    Wait,
}

/// What a ListOffsets request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffsetSpec {
    /// -1.
    Latest,
    /// -2.
    Earliest,
    /// -3 (KIP-734).
    MaxTimestamp,
    /// -4 (KIP-405).
    EarliestLocal,
    /// -5 (KIP-1005).
    LastTiered,
    /// -6 (KIP-1023).
    EarliestPendingUpload,
    /// A point in time.
    At(Timestamp),
}

impl OffsetSpec {
    /// From the request's timestamp at the request's version.
    ///
    /// # Errors
    /// `UnsupportedVersion` for a special value that this version has not, or
    /// that nobody has.
    pub fn from_wire(timestamp: i64, version: i16) -> Result<Self, ErrorCode> {
        let (since, spec) = match timestamp {
            0.. => return Ok(Self::At(Timestamp(timestamp))),
            -1 => (0, Self::Latest),
            -2 => (0, Self::Earliest),
            -3 => (7, Self::MaxTimestamp),
            -4 => (8, Self::EarliestLocal),
            -5 => (9, Self::LastTiered),
            -6 => (11, Self::EarliestPendingUpload),
            _ => return Err(ErrorCode::UnsupportedVersion),
        };
        if version < since { Err(ErrorCode::UnsupportedVersion) } else { Ok(spec) }
    }
}

/// An answer to ListOffsets, or what the log must be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListOffset {
    /// This offset, with timestamp -1.
    Bound(Offset),
    /// Nothing to name: offset -1 and timestamp -1, no error.
    Nothing,
    /// The first record below `upper` that is not older.
    Search {
        /// Point in time.
        at: Timestamp,
        /// First offset that must not be returned.
        upper: Offset,
    },
    /// The record below `upper` with the largest timestamp.
    SearchMax {
        /// First offset that must not be returned.
        upper: Offset,
    },
}

impl<R: Replicator> Partition<R> {
    /// Compares a client's idea of the leader epoch with ours (KIP-320).
    ///
    /// # Errors
    /// `FencedLeaderEpoch` when the client's is older, `UnknownLeaderEpoch`
    /// when it is newer, `NotLeaderOrFollower` when nobody leads here.
    pub fn check_epoch(&self, current_leader_epoch: LeaderEpoch) -> Result<(), ErrorCode> {
        if current_leader_epoch != LeaderEpoch::NONE {
            if current_leader_epoch < self.epoch() {
                return Err(ErrorCode::FencedLeaderEpoch);
            }
            if current_leader_epoch > self.epoch() {
                return Err(ErrorCode::UnknownLeaderEpoch);
            }
        }
        if self.is_leader() { Ok(()) } else { Err(ErrorCode::NotLeaderOrFollower) }
    }

    /// First offset that a reader must not see.
    #[must_use]
    pub fn upper_bound(&self, isolation: Isolation) -> Offset {
        match isolation {
            Isolation::ReadUncommitted => self.offsets().high_watermark,
            Isolation::ReadCommitted => self.offsets().last_stable,
        }
    }

    /// What a fetch at `offset` may read.
    ///
    /// # Errors
    /// `OffsetOutOfRange` below the log start or beyond the log end.
    pub fn fetch_bounds(
        &self,
        offset: Offset,
        isolation: Isolation,
    ) -> Result<FetchBounds, ErrorCode> {
        let offsets = self.offsets();
        if offset < offsets.log_start || offset > offsets.log_end {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        let upper = self.upper_bound(isolation);
        Ok(if offset < upper { FetchBounds::Readable { upper } } else { FetchBounds::Wait })
    }

    /// Where the fetcher's log parts from ours: `None` when it does not
    /// (KIP-595). `last_fetched` is the epoch of the last batch that it has,
    /// `known` what the log's epoch cache says of it (`EpochCache::end_of`).
    ///
    /// # Errors
    /// `OffsetOutOfRange` when the epoch is unknown or the offset is below
    /// the log start.
    pub fn diverging_epoch(
        &self,
        last_fetched: LeaderEpoch,
        offset: Offset,
        known: Option<(LeaderEpoch, Offset)>,
    ) -> Result<Option<(LeaderEpoch, Offset)>, ErrorCode> {
        if last_fetched == LeaderEpoch::NONE {
            return Ok(None);
        }
        let (epoch, end) = known.ok_or(ErrorCode::OffsetOutOfRange)?;
        if offset < self.offsets().log_start {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        Ok((epoch < last_fetched || end < offset).then_some((epoch, end)))
    }

    /// Resolves a ListOffsets request as far as bounds decide it.
    ///
    /// # Errors
    /// `OffsetNotAvailable` while the high watermark is behind the start of
    /// this leadership (older versions say `LeaderNotAvailable`).
    pub fn list_offset(
        &self,
        spec: OffsetSpec,
        isolation: Isolation,
    ) -> Result<ListOffset, ErrorCode> {
        let upper = self.upper_bound(isolation);
        let behind = self.offsets().high_watermark < self.epoch_start();
        Ok(match spec {
            OffsetSpec::Earliest | OffsetSpec::EarliestLocal => {
                ListOffset::Bound(self.offsets().log_start)
            }
            OffsetSpec::LastTiered | OffsetSpec::EarliestPendingUpload => ListOffset::Nothing,
            OffsetSpec::Latest | OffsetSpec::MaxTimestamp | OffsetSpec::At(_) if behind => {
                return Err(ErrorCode::OffsetNotAvailable);
            }
            OffsetSpec::Latest => ListOffset::Bound(upper),
            OffsetSpec::MaxTimestamp => ListOffset::SearchMax { upper },
            OffsetSpec::At(at) => ListOffset::Search { at, upper },
        })
    }

    /// Bytes, counted from the machine's birth, that a fetch at `offset` has
    /// seen: what its isolation shows, or what lies below its offset.
    #[must_use]
    pub fn seen_bytes(&self, offset: Offset, isolation: Isolation) -> u64 {
        self.growth.start(offset, isolation == Isolation::ReadCommitted)
    }

    /// Reports, as [`Wake`](super::Wake)s, what becomes visible beyond `seen`
    /// bytes, and anything else that changes what the fetch would answer; until
    /// one says that the registration is over. What is due already comes at once.
    pub fn wait_for_data(
        &mut self,
        token: FetchToken,
        seen: u64,
        isolation: Isolation,
        interest: Interest,
        effects: &mut Effects,
    ) {
        let committed = isolation == Isolation::ReadCommitted;
        self.waiters.register(token, seen, committed, interest);
        if self.is_leader() {
            self.waiters.advance(&self.growth, &mut effects.wake);
        } else {
            self.waiters.wake_all(&mut effects.wake);
        }
    }

    /// Ends a registration; whether it was still there.
    pub fn cancel_wait(&mut self, token: FetchToken) -> bool {
        self.waiters.cancel(token)
    }
}
