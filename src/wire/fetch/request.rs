//! The Fetch request as a view over its frame.
//!
//! Checked as a whole before the first partition is handed out; the
//! iterators afterwards cannot fail and never allocate.

use std::borrow::Cow;

use crate::wire::error::WireError;
use crate::wire::generated::ApiKey;
use crate::wire::generated::fetch::{
    FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState,
};
use crate::wire::message::Message;
use crate::wire::reader::Reader;
use crate::wire::topic_ref::TopicRef;

const CHECKED: &str = "the view was read to its end when it was made";

/// A Fetch request over the frame that holds it, checked to its end.
#[derive(Clone, Debug)]
pub struct FetchView<'a> {
    /// Version of the body.
    pub version: i16,
    /// The follower that asks, or -1 for a consumer, at any version.
    pub replica_id: i32,
    /// How long to wait for `min_bytes`, in milliseconds.
    pub max_wait_ms: i32,
    /// Bytes worth waiting for.
    pub min_bytes: i32,
    /// Most record bytes of the whole response, but for a first batch.
    pub max_bytes: i32,
    /// 0 read uncommitted, 1 read committed.
    pub isolation_level: i8,
    /// Fetch session (KIP-227), 0 for none.
    pub session_id: i32,
    /// Epoch of the session, -1 for none.
    pub session_epoch: i32,
    /// Where the consumer is (KIP-392), empty when it does not say.
    pub rack_id: Cow<'a, str>,
    /// Number of topics.
    pub topic_count: usize,
    /// Number of partitions of all topics together.
    pub partition_count: usize,
    /// Number of topics to take out of the session.
    pub forgotten_count: usize,
    /// Number of partitions to take out of the session, of all topics together.
    pub forgotten_partition_count: usize,
    topics: Reader<'a>,
    forgotten: Reader<'a>,
}

fn null(field: &'static str, version: i16) -> WireError {
    WireError::UnexpectedNull { field, version }
}

impl<'a> FetchView<'a> {
    /// Checks the whole body, to the reader's last byte.
    pub fn parse(mut reader: Reader<'a>, version: i16) -> Result<Self, WireError> {
        FetchRequest::check_version(version)?;
        let flexible = ApiKey::Fetch.is_flexible(version);
        let r = &mut reader;
        let replica_id = if version <= 14 { r.int32()? } else { -1 };
        let (max_wait_ms, min_bytes, max_bytes) = (r.int32()?, r.int32()?, r.int32()?);
        let isolation_level = r.int8()?;
        let (session_id, session_epoch) =
            if version >= 7 { (r.int32()?, r.int32()?) } else { (0, -1) };
        let topic_count = r
            .array_len(flexible, FetchTopic::SIZE_MIN)?
            .ok_or(null("FetchRequest.topics", version))?;
        let topics = r.clone();
        let mut partition_count = 0;
        for _ in 0..topic_count {
            let topic = FetchTopicView::read(r, flexible, version)?;
            partition_count += topic.partition_count;
            topic.skip_rest(r)?;
        }
        let forgotten_count = if version >= 7 {
            r.array_len(flexible, ForgottenTopic::SIZE_MIN)?
                .ok_or(null("FetchRequest.forgotten_topics_data", version))?
        } else {
            0
        };
        let forgotten = r.clone();
        let mut forgotten_partition_count = 0;
        for _ in 0..forgotten_count {
            forgotten_partition_count += ForgottenView::read(r, flexible, version)?.count;
        }
        let rack_id = if version >= 11 {
            r.str_lossy(flexible)?.ok_or(null("FetchRequest.rack_id", version))?
        } else {
            Cow::Borrowed("")
        };
        let mut view = Self {
            version,
            replica_id,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            rack_id,
            topic_count,
            partition_count,
            forgotten_count,
            forgotten_partition_count,
            topics,
            forgotten,
        };
        if flexible {
            view.read_tags(r)?;
        }
        reader.finish()?;
        Ok(view)
    }

    fn read_tags(&mut self, reader: &mut Reader<'a>) -> Result<(), WireError> {
        reader.tagged_fields(|tag, reader| {
            match tag {
                // The cluster id is the controller quorum's concern.
                0 => drop(reader.str_bytes(true)?),
                1 if self.version >= 15 => {
                    self.replica_id = ReplicaState::read(reader, self.version)?.replica_id;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })
    }

    /// The topics in the order of the request.
    pub fn topics(&self) -> impl Iterator<Item = FetchTopicView<'a>> + use<'a> {
        let mut reader = self.topics.clone();
        let (flexible, version) = (ApiKey::Fetch.is_flexible(self.version), self.version);
        let last = self.topic_count.saturating_sub(1);
        (0..self.topic_count).map(move |index| {
            let topic = FetchTopicView::read(&mut reader, flexible, version).expect(CHECKED);
            // What follows the last topic was checked and is of no use here.
            if index < last {
                topic.skip_rest(&mut reader).expect(CHECKED);
            }
            topic
        })
    }

    /// The topics to take out of the session (KIP-227).
    pub fn forgotten(&self) -> impl Iterator<Item = ForgottenView<'a>> + use<'a> {
        let mut reader = self.forgotten.clone();
        let (flexible, version) = (ApiKey::Fetch.is_flexible(self.version), self.version);
        (0..self.forgotten_count)
            .map(move |_| ForgottenView::read(&mut reader, flexible, version).expect(CHECKED))
    }
}

/// Goes through a checked request once, and can stop anywhere to go on later,
/// when the same frame is shown again: first the partitions that are wanted,
/// topic by topic, then those to take out of the session.
#[derive(Clone, Debug)]
pub struct FetchWalk<'a> {
    reader: Reader<'a>,
    flexible: bool,
    at: FetchPlace,
}

/// Where a [`FetchWalk`] stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FetchPlace {
    version: i16,
    /// Bytes of the frame before it.
    position: usize,
    /// The partitions now are those to take out.
    forgetting: bool,
    topics_left: usize,
    forgotten_left: usize,
    partitions_left: usize,
    /// A topic's end has not been read yet.
    in_topic: bool,
}

/// A step of a [`FetchWalk`].
#[derive(Clone, PartialEq, Debug)]
pub enum FetchStep<'a> {
    /// The partitions that follow are of this topic.
    Topic(TopicRef<'a>),
    /// A partition that is wanted.
    Wanted(FetchPartition),
    /// A partition that leaves the session.
    Forgotten(i32),
}

impl<'a> FetchView<'a> {
    /// A walk from the first topic.
    #[must_use]
    pub fn walk(&self) -> FetchWalk<'a> {
        let at = FetchPlace {
            version: self.version,
            position: self.topics.position(),
            forgetting: false,
            topics_left: self.topic_count,
            forgotten_left: self.forgotten_count,
            partitions_left: 0,
            in_topic: false,
        };
        let flexible = ApiKey::Fetch.is_flexible(self.version);
        FetchWalk { reader: self.topics.clone(), flexible, at }
    }
}

impl<'a> FetchWalk<'a> {
    /// Goes on in `frame`, the bytes that the view's reader was made of. They
    /// were checked then; others make this panic.
    #[must_use]
    pub fn resume(frame: &'a [u8], at: FetchPlace) -> Self {
        let mut reader = Reader::new(frame);
        reader.skip(at.position).expect(CHECKED);
        Self { reader, flexible: ApiKey::Fetch.is_flexible(at.version), at }
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> FetchPlace {
        FetchPlace { position: self.reader.position(), ..self.at }
    }

    fn topic(&mut self) -> Result<TopicRef<'a>, WireError> {
        let (flexible, version) = (self.flexible, self.at.version);
        let r = &mut self.reader;
        let (field, least) = if self.at.forgetting {
            ("ForgottenTopic.topic", 4)
        } else {
            ("FetchTopic.topic", FetchPartition::SIZE_MIN)
        };
        let topic = TopicRef::read(r, flexible, version, field)?;
        self.at.partitions_left = r.array_len(flexible, least)?.unwrap_or_default();
        self.at.in_topic = true;
        Ok(topic)
    }
}

impl<'a> Iterator for FetchWalk<'a> {
    type Item = FetchStep<'a>;

    fn next(&mut self) -> Option<FetchStep<'a>> {
        if let Some(left) = self.at.partitions_left.checked_sub(1) {
            self.at.partitions_left = left;
            let (r, version) = (&mut self.reader, self.at.version);
            return Some(if self.at.forgetting {
                FetchStep::Forgotten(r.int32().expect(CHECKED))
            } else {
                FetchStep::Wanted(FetchPartition::read(r, version).expect(CHECKED))
            });
        }
        if std::mem::take(&mut self.at.in_topic) && self.flexible {
            self.reader.skip_tagged_fields().expect(CHECKED);
        }
        if let Some(left) = self.at.topics_left.checked_sub(1) {
            self.at.topics_left = left;
            return Some(FetchStep::Topic(self.topic().expect(CHECKED)));
        }
        self.at.forgotten_left = self.at.forgotten_left.checked_sub(1)?;
        if !std::mem::replace(&mut self.at.forgetting, true) {
            self.reader.array_len(self.flexible, ForgottenTopic::SIZE_MIN).expect(CHECKED);
        }
        Some(FetchStep::Topic(self.topic().expect(CHECKED)))
    }
}

/// One topic of a request.
#[derive(Clone, Debug)]
pub struct FetchTopicView<'a> {
    /// Name or id.
    pub topic: TopicRef<'a>,
    /// Number of partitions that follow.
    pub partition_count: usize,
    partitions: Reader<'a>,
    flexible: bool,
    version: i16,
}

impl<'a> FetchTopicView<'a> {
    fn read(reader: &mut Reader<'a>, flexible: bool, version: i16) -> Result<Self, WireError> {
        let topic = TopicRef::read(reader, flexible, version, "FetchTopic.topic")?;
        let partition_count = reader
            .array_len(flexible, FetchPartition::SIZE_MIN)?
            .ok_or(null("FetchTopic.partitions", version))?;
        Ok(Self { topic, partition_count, partitions: reader.clone(), flexible, version })
    }

    /// Moves `reader`, which stands before the first partition, behind the topic.
    fn skip_rest(&self, reader: &mut Reader<'a>) -> Result<(), WireError> {
        for _ in 0..self.partition_count {
            FetchPartition::read(reader, self.version)?;
        }
        if self.flexible { reader.skip_tagged_fields() } else { Ok(()) }
    }

    /// The partitions in the order of the request; plain numbers, nothing owned.
    pub fn partitions(&self) -> impl Iterator<Item = FetchPartition> + use<'a> {
        let mut reader = self.partitions.clone();
        let version = self.version;
        (0..self.partition_count)
            .map(move |_| FetchPartition::read(&mut reader, version).expect(CHECKED))
    }
}

/// One topic, some of whose partitions leave the session.
#[derive(Clone, Debug)]
pub struct ForgottenView<'a> {
    /// Name or id.
    pub topic: TopicRef<'a>,
    indexes: Reader<'a>,
    count: usize,
}

impl<'a> ForgottenView<'a> {
    fn read(reader: &mut Reader<'a>, flexible: bool, version: i16) -> Result<Self, WireError> {
        let topic = TopicRef::read(reader, flexible, version, "ForgottenTopic.topic")?;
        let count =
            reader.array_len(flexible, 4)?.ok_or(null("ForgottenTopic.partitions", version))?;
        let indexes = reader.clone();
        reader.skip(4 * count)?;
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(Self { topic, indexes, count })
    }

    /// Indexes of the partitions.
    pub fn partitions(&self) -> impl Iterator<Item = i32> + use<'a> {
        let mut reader = self.indexes.clone();
        (0..self.count).map(move |_| reader.int32().expect(CHECKED))
    }
}
