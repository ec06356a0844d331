//! The Fetch response as a plan of pieces.

use std::ops::Range;

use crate::model::ErrorCode;
use crate::wire::error::WireError;
use crate::wire::generated::ApiKey;
use crate::wire::generated::fetch::{
    AbortedTransaction, EpochEndOffset, FetchResponse, LeaderIdAndEpoch, NodeEndpoint,
};
use crate::wire::message::Message;
use crate::wire::topic_ref::TopicRef;
use crate::wire::writer::{Writer, uvarint_size};

/// One stretch of a response, to be sent in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// These bytes of the scratch vector.
    Head(Range<usize>),
    /// The caller's record bytes with this number.
    Records(usize),
}

/// Record bytes that the caller holds and will send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordsRef {
    /// The caller's number for them, repeated in [`Piece::Records`].
    pub number: usize,
    /// Their length in bytes, which the response announces.
    pub length: usize,
}

/// Everything about one partition of a response but the record bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct FetchOutcome<'a> {
    /// Index of the partition.
    pub partition_index: i32,
    /// Success or the reason against it.
    pub error_code: ErrorCode,
    /// End of the committed records.
    pub high_watermark: i64,
    /// End of the records of decided transactions, or -1.
    pub last_stable_offset: i64,
    /// First offset that the log still has, or -1. From version 5.
    pub log_start_offset: i64,
    /// Where the follower's or consumer's log parts from ours (KIP-595). From version 12.
    pub diverging_epoch: Option<EpochEndOffset>,
    /// Who leads (KIP-951); a hint, silently dropped below version 12.
    pub current_leader: Option<LeaderIdAndEpoch>,
    /// Aborted transactions within the records; null unless read committed.
    pub aborted_transactions: Option<&'a [AbortedTransaction]>,
    /// Replica to read from instead (KIP-392), or -1. From version 11.
    pub preferred_read_replica: i32,
    /// The records; `None` is null, and an empty slice is length 0.
    pub records: Option<RecordsRef>,
}

impl FetchOutcome<'_> {
    /// A failure without details, and with no records.
    #[must_use]
    pub fn failed(partition_index: i32, error_code: ErrorCode) -> Self {
        Self {
            partition_index,
            error_code,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: None,
            current_leader: None,
            aborted_transactions: None,
            preferred_read_replica: -1,
            records: Some(RecordsRef { number: 0, length: 0 }),
        }
    }
}

/// Plans a Fetch response part by part.
///
/// Calls are as for [`ProduceResponseWriter`](crate::wire::ProduceResponseWriter).
/// What is in the scratch vector before (length, header) becomes part of the
/// first piece.
#[derive(Debug)]
pub struct FetchResponsePlan<'s> {
    scratch: &'s mut Vec<u8>,
    pieces: &'s mut Vec<Piece>,
    state: PlanState,
}

/// How far a [`FetchResponsePlan`] is; a plan may be put aside and gone on with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanState {
    planned: usize,
    record_bytes: usize,
    version: i16,
    flexible: bool,
    topics_left: usize,
    partitions_left: usize,
    topic_open: bool,
}

/// The fields of a response outside its topics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FetchResponseTop {
    /// How long the client is muted, in milliseconds.
    pub throttle_time_ms: i32,
    /// Error of the session or of the whole request. From version 7.
    pub error_code: ErrorCode,
    /// The session to go on with, or 0. From version 7.
    pub session_id: i32,
    /// Number of topics that follow.
    pub topic_count: usize,
}

impl<'s> FetchResponsePlan<'s> {
    /// Starts a body of `version`, appending to `scratch` and `pieces`.
    pub fn new(
        scratch: &'s mut Vec<u8>,
        pieces: &'s mut Vec<Piece>,
        version: i16,
        top: FetchResponseTop,
    ) -> Result<Self, WireError> {
        FetchResponse::check_version(version)?;
        let flexible = ApiKey::Fetch.is_flexible(version);
        let mut writer = Writer::new(scratch);
        writer.int32(top.throttle_time_ms);
        if version >= 7 {
            writer.int16(top.error_code.code());
            writer.int32(top.session_id);
        } else if top.session_id != 0 {
            let field = "FetchResponse.session_id";
            return Err(WireError::FieldNotInVersion { field, version });
        }
        writer.array_len(Some(top.topic_count), flexible)?;
        let state = PlanState {
            planned: 0,
            record_bytes: 0,
            version,
            flexible,
            topics_left: top.topic_count,
            partitions_left: 0,
            topic_open: false,
        };
        Ok(Self { scratch, pieces, state })
    }

    /// Puts the plan aside.
    #[must_use]
    pub fn pause(self) -> PlanState {
        self.state
    }

    /// Goes on with a plan that was put aside, over the same vectors.
    pub fn resume(scratch: &'s mut Vec<u8>, pieces: &'s mut Vec<Piece>, state: PlanState) -> Self {
        Self { scratch, pieces, state }
    }

    /// Starts a topic with `partition_count` outcomes.
    pub fn topic(&mut self, topic: &TopicRef<'_>, partition_count: usize) -> Result<(), WireError> {
        self.close_topic();
        assert!(self.state.topics_left > 0, "more topics than announced");
        self.state.topics_left -= 1;
        self.state.partitions_left = partition_count;
        self.state.topic_open = true;
        let mut writer = Writer::new(self.scratch);
        topic.write(
            &mut writer,
            self.state.flexible,
            self.state.version,
            "FetchableTopicResponse.topic",
        )?;
        writer.array_len(Some(partition_count), self.state.flexible)
    }

    fn close_topic(&mut self) {
        assert_eq!(self.state.partitions_left, 0, "fewer partitions than announced");
        if self.state.topic_open && self.state.flexible {
            self.scratch.push(0);
        }
        self.state.topic_open = false;
    }

    /// Plans one partition: its head, its records, its tagged fields.
    pub fn partition(&mut self, outcome: &FetchOutcome<'_>) -> Result<(), WireError> {
        assert!(self.state.partitions_left > 0, "more partitions than announced");
        self.state.partitions_left -= 1;
        let (flexible, version) = (self.state.flexible, self.state.version);
        let refuse = |field| Err(WireError::FieldNotInVersion { field, version });
        let mut writer = Writer::new(self.scratch);
        writer.int32(outcome.partition_index);
        writer.int16(outcome.error_code.code());
        writer.int64(outcome.high_watermark);
        writer.int64(outcome.last_stable_offset);
        if version >= 5 {
            writer.int64(outcome.log_start_offset);
        }
        writer.array_len(outcome.aborted_transactions.map(<[_]>::len), flexible)?;
        for aborted in outcome.aborted_transactions.unwrap_or_default() {
            aborted.write(&mut writer, version)?;
        }
        if version >= 11 {
            writer.int32(outcome.preferred_read_replica);
        } else if outcome.preferred_read_replica != -1 {
            return refuse("PartitionData.preferred_read_replica");
        }
        if version < 12 && outcome.diverging_epoch.is_some() {
            return refuse("PartitionData.diverging_epoch");
        }
        writer.bytes_len(outcome.records.map(|records| records.length), flexible)?;
        if let Some(records) = outcome.records.filter(|records| records.length > 0) {
            self.pieces.push(Piece::Head(self.state.planned..self.scratch.len()));
            self.pieces.push(Piece::Records(records.number));
            self.state.planned = self.scratch.len();
            self.state.record_bytes += records.length;
        }
        if flexible {
            self.partition_tags(outcome)?;
        }
        Ok(())
    }

    fn partition_tags(&mut self, outcome: &FetchOutcome<'_>) -> Result<(), WireError> {
        let version = self.state.version;
        let diverging =
            outcome.diverging_epoch.as_ref().filter(|epoch| **epoch != EpochEndOffset::default());
        let leader = outcome
            .current_leader
            .as_ref()
            .filter(|leader| **leader != LeaderIdAndEpoch::default());
        let mut writer = Writer::new(self.scratch);
        writer.uvarint(u32::from(diverging.is_some()) + u32::from(leader.is_some()));
        if let Some(epoch) = diverging {
            writer.tag(0, epoch.size(version))?;
            epoch.write(&mut writer, version)?;
        }
        if let Some(leader) = leader {
            writer.tag(1, leader.size(version))?;
            leader.write(&mut writer, version)?;
        }
        Ok(())
    }

    /// Ends the body and returns the number of record bytes, which the frame
    /// length must count besides the scratch vector. `node_endpoints` are
    /// where hinted leaders live (KIP-951): silently dropped below version 16.
    pub fn finish(mut self, node_endpoints: &[NodeEndpoint]) -> Result<usize, WireError> {
        self.close_topic();
        assert_eq!(self.state.topics_left, 0, "fewer topics than announced");
        if self.state.flexible {
            self.endpoints(node_endpoints)?;
        }
        if self.state.planned < self.scratch.len() {
            self.pieces.push(Piece::Head(self.state.planned..self.scratch.len()));
        }
        Ok(self.state.record_bytes)
    }

    fn endpoints(&mut self, nodes: &[NodeEndpoint]) -> Result<(), WireError> {
        let version = self.state.version;
        let mut writer = Writer::new(self.scratch);
        if version < 16 || nodes.is_empty() {
            writer.uvarint(0);
            return Ok(());
        }
        let count = u32::try_from(nodes.len() + 1).map_err(|_| WireError::TooLong(nodes.len()))?;
        let size = uvarint_size(count) + nodes.iter().map(|node| node.size(version)).sum::<usize>();
        writer.uvarint(1);
        writer.tag(0, size)?;
        writer.uvarint(count);
        for node in nodes {
            node.write(&mut writer, version)?;
        }
        Ok(())
    }
}
