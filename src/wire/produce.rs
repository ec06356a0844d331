//! Produce without copies: a view of the request that borrows names and
//! record bytes from the frame, and a writer for the response.
//!
//! The view is checked as a whole before the first partition is handed out,
//! so that a body that is broken at its end has no effect (checklist 3); the
//! iterators afterwards cannot fail and never allocate. The record bytes are
//! not looked at: that is the `record` layer's work.

use std::borrow::Cow;

use super::error::WireError;
use super::generated::ApiKey;
use super::generated::produce::{
    NodeEndpoint, PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};
use super::message::Message;
use super::reader::Reader;
use super::topic_ref::TopicRef;
use super::writer::{Writer, uvarint_size};
use crate::model::ErrorCode;

const CHECKED: &str = "the view was read to its end when it was made";

/// A Produce request over the frame that holds it.
#[derive(Clone, Debug)]
pub struct ProduceView<'a> {
    /// Version of the body.
    pub version: i16,
    /// Set by transactional producers (KIP-98).
    pub transactional_id: Option<Cow<'a, str>>,
    /// 0, 1 or -1 (all); other numbers are the handler's to refuse.
    pub acks: i16,
    /// How long an acks=all append may wait, in milliseconds.
    pub timeout_ms: i32,
    /// Number of topics, which may repeat.
    pub topic_count: usize,
    /// Number of partitions of all topics together.
    pub partition_count: usize,
    /// Number of record bytes of all partitions together.
    pub record_bytes: usize,
    topics: Reader<'a>,
}

impl<'a> ProduceView<'a> {
    /// Checks the whole body, to the reader's last byte.
    pub fn parse(mut reader: Reader<'a>, version: i16) -> Result<Self, WireError> {
        ProduceRequest::check_version(version)?;
        let flexible = ApiKey::Produce.is_flexible(version);
        let transactional_id = reader.str_lossy(flexible)?;
        let acks = reader.int16()?;
        let timeout_ms = reader.int32()?;
        let topic_count = reader
            .array_len(flexible, TopicProduceData::SIZE_MIN)?
            .ok_or(WireError::UnexpectedNull { field: "ProduceRequest.topic_data", version })?;
        let mut view = Self {
            version,
            transactional_id,
            acks,
            timeout_ms,
            topic_count,
            partition_count: 0,
            record_bytes: 0,
            topics: reader.clone(),
        };
        for _ in 0..topic_count {
            let topic = ProduceTopic::read(&mut reader, flexible, version)?;
            view.partition_count += topic.partition_count;
            for _ in 0..topic.partition_count {
                let partition = ProducePartition::read(&mut reader, flexible)?;
                view.record_bytes += partition.records.map_or(0, <[u8]>::len);
            }
            if flexible {
                reader.skip_tagged_fields()?;
            }
        }
        if flexible {
            reader.skip_tagged_fields()?;
        }
        reader.finish()?;
        Ok(view)
    }

    /// The topics in the order of the request.
    #[must_use]
    pub fn topics(&self) -> ProduceTopics<'a> {
        ProduceTopics {
            reader: self.topics.clone(),
            left: self.topic_count,
            flexible: ApiKey::Produce.is_flexible(self.version),
            version: self.version,
        }
    }
}

/// Iterator over the topics of a request.
#[derive(Clone, Debug)]
pub struct ProduceTopics<'a> {
    reader: Reader<'a>,
    left: usize,
    flexible: bool,
    version: i16,
}

impl<'a> Iterator for ProduceTopics<'a> {
    type Item = ProduceTopic<'a>;

    fn next(&mut self) -> Option<ProduceTopic<'a>> {
        self.left = self.left.checked_sub(1)?;
        let topic =
            ProduceTopic::read(&mut self.reader, self.flexible, self.version).expect(CHECKED);
        // What follows the last topic was checked and is of no use here.
        if self.left > 0 {
            for _ in 0..topic.partition_count {
                ProducePartition::read(&mut self.reader, self.flexible).expect(CHECKED);
            }
            if self.flexible {
                self.reader.skip_tagged_fields().expect(CHECKED);
            }
        }
        Some(topic)
    }
}

/// One topic of a request.
#[derive(Clone, Debug)]
pub struct ProduceTopic<'a> {
    /// Name or id.
    pub topic: TopicRef<'a>,
    /// Number of partitions that follow; an index may repeat.
    pub partition_count: usize,
    partitions: Reader<'a>,
    flexible: bool,
}

impl<'a> ProduceTopic<'a> {
    #[inline]
    fn read(reader: &mut Reader<'a>, flexible: bool, version: i16) -> Result<Self, WireError> {
        let topic = TopicRef::read(reader, flexible, version, "TopicProduceData.name")?;
        let partition_count = reader.array_len(flexible, PartitionProduceData::SIZE_MIN)?.ok_or(
            WireError::UnexpectedNull { field: "TopicProduceData.partition_data", version },
        )?;
        Ok(Self { topic, partition_count, partitions: reader.clone(), flexible })
    }

    /// The partitions in the order of the request.
    pub fn partitions(&self) -> impl Iterator<Item = ProducePartition<'a>> + use<'a> {
        let mut reader = self.partitions.clone();
        let flexible = self.flexible;
        (0..self.partition_count)
            .map(move |_| ProducePartition::read(&mut reader, flexible).expect(CHECKED))
    }
}

/// One partition of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducePartition<'a> {
    /// Index of the partition.
    pub index: i32,
    /// The record batches as sent; `None` is null.
    pub records: Option<&'a [u8]>,
    /// Where `records` starts, counted from the start of the reader's bytes.
    pub records_at: usize,
}

impl<'a> ProducePartition<'a> {
    #[inline]
    fn read(reader: &mut Reader<'a>, flexible: bool) -> Result<Self, WireError> {
        let index = reader.int32()?;
        let records = reader.byte_slice(flexible)?;
        let records_at = reader.position() - records.map_or(0, <[u8]>::len);
        if flexible {
            reader.skip_tagged_fields()?;
        }
        Ok(Self { index, records, records_at })
    }
}

/// Goes through a checked request once, and can stop at any partition to go
/// on later, when the same frame is shown again.
#[derive(Clone, Debug)]
pub struct ProduceWalk<'a> {
    reader: Reader<'a>,
    flexible: bool,
    at: ProducePlace,
}

/// Where a [`ProduceWalk`] stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducePlace {
    version: i16,
    /// Bytes of the frame before it.
    position: usize,
    topics_left: usize,
    partitions_left: usize,
    /// A topic's end has not been read yet.
    in_topic: bool,
}

impl<'a> ProduceView<'a> {
    /// A walk from the first topic.
    #[must_use]
    pub fn walk(&self) -> ProduceWalk<'a> {
        let at = ProducePlace {
            version: self.version,
            position: self.topics.position(),
            topics_left: self.topic_count,
            partitions_left: 0,
            in_topic: false,
        };
        let flexible = ApiKey::Produce.is_flexible(self.version);
        ProduceWalk { reader: self.topics.clone(), flexible, at }
    }
}

impl<'a> ProduceWalk<'a> {
    /// Goes on in `frame`, the bytes that the view's reader was made of. They
    /// were checked then; others make this panic.
    #[must_use]
    pub fn resume(frame: &'a [u8], at: ProducePlace) -> Self {
        let mut reader = Reader::new(frame);
        reader.skip(at.position).expect(CHECKED);
        Self { reader, flexible: ApiKey::Produce.is_flexible(at.version), at }
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> ProducePlace {
        ProducePlace { position: self.reader.position(), ..self.at }
    }

    /// Whether every partition was taken.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.at.topics_left == 0 && self.at.partitions_left == 0
    }

    /// The next topic and how many partitions follow; all those of the former
    /// one must have been taken.
    pub fn next_topic(&mut self) -> Option<(TopicRef<'a>, usize)> {
        assert_eq!(self.at.partitions_left, 0, "partitions of the former topic are left");
        if std::mem::take(&mut self.at.in_topic) && self.flexible {
            self.reader.skip_tagged_fields().expect(CHECKED);
        }
        self.at.topics_left = self.at.topics_left.checked_sub(1)?;
        let topic = ProduceTopic::read(&mut self.reader, self.flexible, self.at.version);
        let topic = topic.expect(CHECKED);
        self.at.in_topic = true;
        self.at.partitions_left = topic.partition_count;
        Some((topic.topic, topic.partition_count))
    }

    /// The next partition of the topic.
    pub fn next_partition(&mut self) -> Option<ProducePartition<'a>> {
        self.at.partitions_left = self.at.partitions_left.checked_sub(1)?;
        Some(ProducePartition::read(&mut self.reader, self.flexible).expect(CHECKED))
    }
}

/// What became of one partition's batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProduceOutcome<'a> {
    /// Index of the partition.
    pub index: i32,
    /// Success or the reason against it.
    pub error_code: ErrorCode,
    /// Offset of the first record, -1 on an error.
    pub base_offset: i64,
    /// The broker's time in milliseconds under LogAppendTime, else -1.
    pub log_append_time_ms: i64,
    /// First offset that the log still has, or -1. From version 5.
    pub log_start_offset: i64,
    /// Records to blame, by index in the batch, with the reason. From version 8.
    pub record_errors: &'a [(i32, String)],
    /// Reason for people. From version 8.
    pub error_message: Option<&'a str>,
    /// Who leads, as (node, epoch), with NOT_LEADER_OR_FOLLOWER (KIP-951).
    /// A hint: silently dropped below version 10.
    pub current_leader: Option<(i32, i32)>,
}

impl ProduceOutcome<'_> {
    /// A failure without details.
    #[must_use]
    pub fn failed(index: i32, error_code: ErrorCode) -> Self {
        Self {
            index,
            error_code,
            base_offset: -1,
            log_append_time_ms: -1,
            log_start_offset: -1,
            record_errors: &[],
            error_message: None,
            current_leader: None,
        }
    }
}

/// Writes a Produce response part by part, without an owned message.
///
/// Calls: [`topic`](Self::topic) and then as many [`partition`](Self::partition)
/// as it announced, for each topic announced to [`new`](Self::new); then
/// [`finish`](Self::finish). A miscount is a bug and panics.
#[derive(Debug)]
pub struct ProduceResponseWriter<'w, 'o> {
    writer: &'w mut Writer<'o>,
    version: i16,
    flexible: bool,
    topics_left: usize,
    partitions_left: usize,
    topic_open: bool,
}

impl<'w, 'o> ProduceResponseWriter<'w, 'o> {
    /// Starts a body of `version` with `topic_count` topics.
    pub fn new(
        writer: &'w mut Writer<'o>,
        version: i16,
        topic_count: usize,
    ) -> Result<Self, WireError> {
        ProduceResponse::check_version(version)?;
        let flexible = ApiKey::Produce.is_flexible(version);
        writer.array_len(Some(topic_count), flexible)?;
        Ok(Self {
            writer,
            version,
            flexible,
            topics_left: topic_count,
            partitions_left: 0,
            topic_open: false,
        })
    }

    /// Starts a topic with `partition_count` outcomes.
    pub fn topic(&mut self, topic: &TopicRef<'_>, partition_count: usize) -> Result<(), WireError> {
        self.close_topic();
        assert!(self.topics_left > 0, "more topics than announced");
        self.topics_left -= 1;
        self.partitions_left = partition_count;
        self.topic_open = true;
        topic.write(self.writer, self.flexible, self.version, "TopicProduceResponse.name")?;
        self.writer.array_len(Some(partition_count), self.flexible)
    }

    fn close_topic(&mut self) {
        assert_eq!(self.partitions_left, 0, "fewer partitions than announced");
        if self.topic_open && self.flexible {
            self.writer.uvarint(0);
        }
        self.topic_open = false;
    }

    /// Writes one outcome of the topic.
    pub fn partition(&mut self, outcome: &ProduceOutcome<'_>) -> Result<(), WireError> {
        assert!(self.partitions_left > 0, "more partitions than announced");
        self.partitions_left -= 1;
        let (writer, flexible, version) = (&mut *self.writer, self.flexible, self.version);
        writer.int32(outcome.index);
        writer.int16(outcome.error_code.code());
        writer.int64(outcome.base_offset);
        writer.int64(outcome.log_append_time_ms);
        if version >= 5 {
            writer.int64(outcome.log_start_offset);
        }
        if version >= 8 {
            writer.array_len(Some(outcome.record_errors.len()), flexible)?;
            for (index, message) in outcome.record_errors {
                writer.int32(*index);
                writer.nullable_string(Some(message), flexible)?;
                if flexible {
                    writer.uvarint(0);
                }
            }
            writer.nullable_string(outcome.error_message, flexible)?;
        }
        if flexible {
            match outcome.current_leader.filter(|leader| version >= 10 && *leader != (-1, -1)) {
                None => writer.uvarint(0),
                Some((node_id, leader_epoch)) => {
                    writer.uvarint(1);
                    writer.tag(0, 9)?;
                    writer.int32(node_id);
                    writer.int32(leader_epoch);
                    writer.uvarint(0);
                }
            }
        }
        Ok(())
    }

    /// Ends the body. `node_endpoints` are where the leaders named in hints
    /// live (KIP-951): silently dropped below version 10.
    pub fn finish(
        mut self,
        throttle_time_ms: i32,
        node_endpoints: &[NodeEndpoint],
    ) -> Result<(), WireError> {
        self.close_topic();
        assert_eq!(self.topics_left, 0, "fewer topics than announced");
        self.writer.int32(throttle_time_ms);
        if !self.flexible {
            return Ok(());
        }
        if self.version < 10 || node_endpoints.is_empty() {
            self.writer.uvarint(0);
            return Ok(());
        }
        let count = u32::try_from(node_endpoints.len() + 1)
            .map_err(|_| WireError::TooLong(node_endpoints.len()))?;
        let elements: usize = node_endpoints.iter().map(|node| node.size(self.version)).sum();
        self.writer.uvarint(1);
        self.writer.tag(0, uvarint_size(count) + elements)?;
        self.writer.uvarint(count);
        for node in node_endpoints {
            node.write(self.writer, self.version)?;
        }
        Ok(())
    }
}
