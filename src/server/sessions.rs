//! Incremental fetch sessions (KIP-227): what a consumer fetches, remembered
//! between its requests, so that it names only what changed and hears only of
//! what changed.
//!
//! Owner: the shard of the connection. A session belongs to no connection; a
//! client that comes back with its id and epoch goes on.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;

use crate::model::limits::PARTITIONS_PER_DATA_REQUEST_MAX;
use crate::model::{ErrorCode, TopicId};
use crate::wire::generated::fetch::FetchPartition;
use crate::wire::topic_ref::TopicRef;

/// A topic as the session's requests name it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum TopicKey {
    Name(Arc<str>),
    Id(TopicId),
}

impl TopicKey {
    pub(super) fn of(topic: &TopicRef<'_>) -> Self {
        match topic {
            TopicRef::Name(name) => Self::Name((&**name).into()),
            TopicRef::Id(id) => Self::Id(*id),
        }
    }

    /// For the response.
    pub(super) fn reference(&self) -> TopicRef<'_> {
        match self {
            Self::Name(name) => TopicRef::Name((&**name).into()),
            Self::Id(id) => TopicRef::Id(*id),
        }
    }
}

/// One partition and what is wanted of it.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) topic: TopicKey,
    pub(super) partition: FetchPartition,
}

/// What the consumer was told last about a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Told {
    pub(super) high_watermark: i64,
    pub(super) log_start: i64,
}

struct Cached {
    wanted: Wanted,
    told: Option<Told>,
}

struct Session {
    /// Partitions that its first request names, until it has named them.
    announced: usize,
    /// Epoch that the next request must have.
    next_epoch: i32,
    by_id: bool,
    /// Next use, for eviction.
    used: u64,
    next_order: u64,
    /// In the order in which partitions are served.
    partitions: BTreeMap<u64, Cached>,
    order: AHashMap<(TopicKey, i32), u64>,
}

impl Session {
    fn new(by_id: bool, announced: usize) -> Self {
        Self {
            announced,
            next_epoch: 1,
            by_id,
            used: 0,
            next_order: 0,
            partitions: BTreeMap::new(),
            order: AHashMap::new(),
        }
    }

    /// Partitions that it holds, or will.
    fn weight(&self) -> usize {
        self.partitions.len().max(self.announced)
    }

    fn put(&mut self, wanted: Wanted) {
        if self.order.capacity() == 0 {
            // At once: to grow a large table takes longer than a slice.
            self.order.reserve(self.announced);
        }
        let key = (wanted.topic.clone(), wanted.partition.partition);
        if let Some(at) = self.order.get(&key) {
            let cached = self.partitions.get_mut(at).expect("order and partitions agree");
            cached.wanted = wanted;
            return;
        }
        self.order.insert(key, self.next_order);
        self.partitions.insert(self.next_order, Cached { wanted, told: None });
        self.next_order += 1;
    }

    fn forget(&mut self, topic: &TopicKey, index: i32) {
        if let Some(at) = self.order.remove(&(topic.clone(), index)) {
            self.partitions.remove(&at);
        }
        // What is counted is what is held.
        let few = self.partitions.len().max(16);
        if self.order.capacity() > 8 * few {
            self.order.shrink_to(2 * few);
        }
    }
}

/// How a request uses sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SessionUse {
    /// For the response: 0 is none.
    pub(super) id: i32,
    /// Only what changed is answered.
    pub(super) incremental: bool,
}

impl SessionUse {
    pub(super) const NONE: Self = Self { id: 0, incremental: false };
}

/// What a request says about its session.
pub(super) struct SessionRequest {
    pub(super) id: i32,
    pub(super) epoch: i32,
    pub(super) by_id: bool,
    /// Partitions that it names.
    pub(super) names: usize,
    /// For a new session's id.
    pub(super) random: u64,
}

/// What the sessions of a shard may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionLimits {
    /// How many (`max.incremental.fetch.session.cache.slots`).
    pub(super) sessions: usize,
    /// Partitions of all together (`millstream.fetch.partitions.max`).
    pub(super) partitions: usize,
}

/// The sessions of one shard.
pub(super) struct FetchSessions {
    sessions: AHashMap<i32, Session>,
    limits: SessionLimits,
    /// Partitions of all sessions.
    partitions: usize,
    clock: u64,
}

/// Epoch of a request without a session.
const EPOCH_FINAL: i32 = -1;
/// Epoch of a request that asks for a new session.
const EPOCH_INITIAL: i32 = 0;

impl FetchSessions {
    /// No sessions yet.
    pub(super) fn new(limits: SessionLimits) -> Self {
        Self { sessions: AHashMap::new(), limits, partitions: 0, clock: 0 }
    }

    /// Partitions of a session.
    pub(super) fn partitions(&self, id: i32) -> usize {
        self.sessions.get(&id).map_or(0, |session| session.partitions.len())
    }

    fn remove(&mut self, id: i32) {
        if let Some(session) = self.sessions.remove(&id) {
            self.partitions -= session.weight();
        }
    }

    /// Sessions now.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Begins a request. What it names follows by `put` and `forget`, and after
    /// that `end`; an incremental one then fetches what `next` says.
    ///
    /// # Errors
    /// The error code of the whole response (checklist 54).
    pub(super) fn begin(&mut self, request: &SessionRequest) -> Result<SessionUse, ErrorCode> {
        match request.epoch {
            EPOCH_FINAL => {
                self.remove(request.id);
                Ok(SessionUse::NONE)
            }
            EPOCH_INITIAL => {
                self.remove(request.id);
                Ok(SessionUse { id: self.open(request), incremental: false })
            }
            _ => self.go_on(request),
        }
    }

    /// A new session, or 0 when there is no room or nothing to remember.
    fn open(&mut self, request: &SessionRequest) -> i32 {
        if request.names == 0 || !self.make_room(request.names) {
            return 0;
        }
        let mut id = (request.random & 0x7fff_ffff) as i32;
        while id == 0 || self.sessions.contains_key(&id) {
            id = (id.wrapping_add(1)) & 0x7fff_ffff;
        }
        let mut session = Session::new(request.by_id, request.names);
        self.partitions += request.names;
        self.clock += 1;
        session.used = self.clock;
        self.sessions.insert(id, session);
        id
    }

    /// Whether there is room for one more session of so many partitions. For
    /// it sessions go that were used longest ago, if they have not been used
    /// while as many requests came as there are slots.
    fn make_room(&mut self, names: usize) -> bool {
        while self.sessions.len() >= self.limits.sessions
            || self.partitions + names > self.limits.partitions
        {
            let oldest = self.sessions.iter().min_by_key(|(_, session)| session.used);
            let Some((&id, session)) = oldest else { return false };
            if self.clock - session.used <= self.limits.sessions as u64 {
                return false;
            }
            self.remove(id);
        }
        true
    }

    fn go_on(&mut self, request: &SessionRequest) -> Result<SessionUse, ErrorCode> {
        let Some(session) = self.sessions.get_mut(&request.id) else {
            return Err(ErrorCode::FetchSessionIdNotFound);
        };
        if session.next_epoch != request.epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.by_id != request.by_id {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        session.next_epoch = if request.epoch == i32::MAX { 1 } else { request.epoch + 1 };
        self.clock += 1;
        session.used = self.clock;
        Ok(SessionUse { id: request.id, incremental: true })
    }

    /// Adds a partition, or changes what is wanted of it. A session for which
    /// there is no more room ends.
    pub(super) fn put(&mut self, id: i32, wanted: Wanted) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let before = session.weight();
        session.put(wanted);
        self.partitions += session.weight() - before;
        if self.partitions > self.limits.partitions {
            self.remove(id);
        }
    }

    /// Takes a partition out.
    pub(super) fn forget(&mut self, id: i32, topic: &TopicKey, index: i32) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let before = session.weight();
        session.forget(topic, index);
        self.partitions -= before - session.weight();
    }

    /// A request has named all that it names; whether its session still is.
    /// One without partitions is closed.
    ///
    /// # Errors
    /// `FetchSessionIdNotFound` when it is gone, or too large.
    pub(super) fn end(&mut self, id: i32) -> Result<bool, ErrorCode> {
        let Some(session) = self.sessions.get_mut(&id) else {
            return Err(ErrorCode::FetchSessionIdNotFound);
        };
        let before = session.weight();
        session.announced = 0;
        let count = session.weight();
        self.partitions -= before - count;
        if count > 0 && count <= PARTITIONS_PER_DATA_REQUEST_MAX {
            return Ok(true);
        }
        self.remove(id);
        if count == 0 { Ok(false) } else { Err(ErrorCode::FetchSessionIdNotFound) }
    }

    /// The first partition at or after this place of the order, and its place.
    pub(super) fn next(&self, id: i32, from: u64) -> Option<(u64, Wanted)> {
        let (at, cached) = self.sessions.get(&id)?.partitions.range(from..).next()?;
        Some((*at, cached.wanted.clone()))
    }

    /// Notes what a response says of a partition; whether that is news.
    /// Partitions with records go to the end of the order, so that all are
    /// served in turn.
    pub(super) fn tell(
        &mut self,
        id: i32,
        topic: &TopicKey,
        index: i32,
        told: Told,
        has_records: bool,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else { return true };
        let key = (topic.clone(), index);
        let Some(&at) = session.order.get(&key) else { return true };
        let cached = session.partitions.get_mut(&at).expect("order and partitions agree");
        let news = cached.told.replace(told) != Some(told);
        if has_records {
            let cached = session.partitions.remove(&at).expect("it was there");
            session.partitions.insert(session.next_order, cached);
            session.order.insert(key, session.next_order);
            session.next_order += 1;
        }
        news || has_records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(sessions: usize, partitions: usize) -> FetchSessions {
        FetchSessions::new(SessionLimits { sessions, partitions })
    }

    fn wanted(topic: &str, index: i32, offset: i64) -> Wanted {
        let partition =
            FetchPartition { partition: index, fetch_offset: offset, ..FetchPartition::default() };
        Wanted { topic: TopicKey::Name(topic.into()), partition }
    }

    fn begin(
        sessions: &mut FetchSessions,
        (id, epoch): (i32, i32),
        wanted: Vec<Wanted>,
        forgotten: Vec<(TopicKey, i32)>,
    ) -> Result<(SessionUse, Vec<Wanted>), ErrorCode> {
        let names = wanted.len();
        let request = SessionRequest { id, epoch, by_id: false, names, random: 7 };
        let used = sessions.begin(&request)?;
        for wanted in &wanted {
            sessions.put(used.id, wanted.clone());
        }
        for (topic, index) in forgotten {
            sessions.forget(used.id, &topic, index);
        }
        if used.id == 0 {
            return Ok((used, wanted));
        }
        if !sessions.end(used.id)? {
            return Ok((SessionUse::NONE, Vec::new()));
        }
        let mut all = Vec::new();
        let mut from = 0;
        while let Some((at, wanted)) = sessions.next(used.id, from) {
            all.push(wanted);
            from = at + 1;
        }
        Ok((used, all))
    }

    #[test]
    fn c54_a_session_remembers_changes_and_forgets() {
        let mut sessions = limited(10, 1_000_000);
        let (first, all) =
            begin(&mut sessions, (0, 0), vec![wanted("a", 0, 5), wanted("a", 1, 6)], vec![])
                .unwrap();
        assert!(first.id > 0 && !first.incremental);
        assert_eq!(all.len(), 2);
        let (next, all) =
            begin(&mut sessions, (first.id, 1), vec![wanted("a", 1, 9)], vec![]).unwrap();
        assert!(next.incremental);
        assert_eq!(all.iter().map(|w| w.partition.fetch_offset).collect::<Vec<_>>(), [5, 9]);
        let gone = vec![(TopicKey::Name("a".into()), 0)];
        let (_, all) = begin(&mut sessions, (first.id, 2), vec![], gone).unwrap();
        assert_eq!(all.len(), 1);
        let gone = vec![(TopicKey::Name("a".into()), 1)];
        let (closed, all) = begin(&mut sessions, (first.id, 3), vec![], gone).unwrap();
        assert_eq!((closed, all.len()), (SessionUse::NONE, 0));
        assert_eq!(sessions.len(), 0);
    }

    #[test]
    fn c54_unknown_ids_and_wrong_epochs() {
        let mut sessions = limited(10, 1_000_000);
        let error = begin(&mut sessions, (99, 1), vec![], vec![]).unwrap_err();
        assert_eq!(error, ErrorCode::FetchSessionIdNotFound);
        let (first, _) = begin(&mut sessions, (0, 0), vec![wanted("a", 0, 0)], vec![]).unwrap();
        let error = begin(&mut sessions, (first.id, 2), vec![], vec![]).unwrap_err();
        assert_eq!(error, ErrorCode::InvalidFetchSessionEpoch);
        let by_id = SessionRequest { id: first.id, epoch: 1, by_id: true, names: 0, random: 0 };
        assert_eq!(sessions.begin(&by_id).unwrap_err(), ErrorCode::FetchSessionTopicIdError);
        let (none, _) = begin(&mut sessions, (first.id, -1), vec![], vec![]).unwrap();
        assert_eq!(none, SessionUse::NONE);
        assert_eq!(sessions.len(), 0, "the final epoch closes");
    }

    #[test]
    fn c54_a_session_over_the_limit_or_gone_is_not_found() {
        let mut sessions = limited(1, 1_000_000);
        let (session, _) = begin(&mut sessions, (0, 0), vec![wanted("a", 0, 0)], vec![]).unwrap();
        let more = (0..=PARTITIONS_PER_DATA_REQUEST_MAX as i32).map(|index| wanted("b", index, 0));
        let error = begin(&mut sessions, (session.id, 1), more.collect(), vec![]).unwrap_err();
        assert_eq!(error, ErrorCode::FetchSessionIdNotFound);
        assert_eq!(sessions.len(), 0);
        assert_eq!(sessions.end(session.id), Err(ErrorCode::FetchSessionIdNotFound));
        assert!(sessions.next(session.id, 0).is_none());
    }

    #[test]
    fn c54_a_full_cache_answers_without_a_session() {
        let mut sessions = limited(1, 1_000_000);
        let (first, _) = begin(&mut sessions, (0, 0), vec![wanted("a", 0, 0)], vec![]).unwrap();
        let (second, _) = begin(&mut sessions, (0, 0), vec![wanted("b", 0, 0)], vec![]).unwrap();
        assert!(first.id > 0);
        assert_eq!(second.id, 0);
    }

    #[test]
    fn c54_only_news_is_told_and_served_partitions_wait_their_turn() {
        let mut sessions = limited(1, 1_000_000);
        let both = vec![wanted("a", 0, 0), wanted("a", 1, 0)];
        let (session, _) = begin(&mut sessions, (0, 0), both, vec![]).unwrap();
        let topic = TopicKey::Name("a".into());
        let told = Told { high_watermark: 3, log_start: 0 };
        assert!(sessions.tell(session.id, &topic, 0, told, true));
        assert!(!sessions.tell(session.id, &topic, 0, told, false), "nothing new");
        let later = Told { high_watermark: 4, log_start: 0 };
        assert!(sessions.tell(session.id, &topic, 0, later, false));
        let (_, all) = begin(&mut sessions, (session.id, 1), vec![], vec![]).unwrap();
        assert_eq!(all.iter().map(|w| w.partition.partition).collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn c54_sessions_hold_no_more_partitions_together_than_they_may() {
        let mut sessions = limited(3, 5);
        let three = |topic| (0..3).map(|index| wanted(topic, index, 0)).collect::<Vec<_>>();
        let (first, _) = begin(&mut sessions, (0, 0), three("a"), vec![]).unwrap();
        assert!(first.id > 0);
        let (none, all) = begin(&mut sessions, (0, 0), three("b"), vec![]).unwrap();
        assert_eq!((none, all.len()), (SessionUse::NONE, 3), "served without a session");
        // One that grows beyond it ends; its client begins anew.
        let error = begin(&mut sessions, (first.id, 1), three("c"), vec![]).unwrap_err();
        assert_eq!(error, ErrorCode::FetchSessionIdNotFound);
        assert_eq!((sessions.len(), sessions.partitions), (0, 0));
        let (first, _) = begin(&mut sessions, (0, 0), three("a"), vec![]).unwrap();
        let gone = vec![(TopicKey::Name("a".into()), 0)];
        begin(&mut sessions, (first.id, 1), vec![], gone).unwrap();
        let (second, _) = begin(&mut sessions, (0, 0), three("b"), vec![]).unwrap();
        assert!(second.id > 0, "what was forgotten counts no more");
        // Sessions that nobody has used for long make room.
        for epoch in 1..=4 {
            begin(&mut sessions, (second.id, epoch), vec![], vec![]).unwrap();
        }
        let (third, _) = begin(&mut sessions, (0, 0), vec![wanted("c", 0, 0)], vec![]).unwrap();
        assert_eq!(third.id, first.id, "it is free again");
        assert_eq!((sessions.len(), sessions.partitions), (2, 4));
    }

    #[test]
    fn c54_what_a_session_announces_counts_and_what_it_forgot_does_not() {
        let mut sessions = limited(3, 1500);
        let open = |sessions: &mut FetchSessions, names| {
            let request = SessionRequest { id: 0, epoch: 0, by_id: false, names, random: 7 };
            sessions.begin(&request).unwrap().id
        };
        let first = open(&mut sessions, 1000);
        assert_eq!(open(&mut sessions, 1000), 0, "both together are too many");
        for index in 0..1000 {
            sessions.put(first, wanted("a", index, 0));
        }
        assert_eq!((sessions.end(first), sessions.partitions), (Ok(true), 1000));
        let topic = TopicKey::Name("a".into());
        (0..999).for_each(|index| sessions.forget(first, &topic, index));
        assert_eq!(sessions.partitions, 1);
        assert!(sessions.sessions[&first].order.capacity() < 200, "its table is small again");
        // One that names less than it announced.
        let second = open(&mut sessions, 500);
        sessions.put(second, wanted("b", 0, 0));
        assert_eq!((sessions.end(second), sessions.partitions), (Ok(true), 2));
    }
}
