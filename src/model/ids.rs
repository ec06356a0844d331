//! Newtypes for every number that could be confused with another one.
//!
//! Shapes follow the Kafka protocol: offsets and timestamps are `i64`,
//! epochs and partition indexes `i32`, producer epochs `i16`.

use std::fmt;
use std::sync::Arc;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

number!(
    /// Position of a record in a partition; the first record is 0.
    Offset, i64
);
number!(
    /// Generation of a partition's leadership (KIP-101); -1 means none.
    LeaderEpoch, i32
);
number!(
    /// Index of a partition within its topic, from 0.
    PartitionIndex, i32
);
number!(
    /// Milliseconds since the Unix epoch; -1 means none.
    Timestamp, i64
);
number!(
    /// Idempotent or transactional producer (KIP-98); -1 means none.
    ProducerId, i64
);
number!(
    /// Generation of a producer id (KIP-98); -1 means none.
    ProducerEpoch, i16
);
number!(
    /// A server of the cluster.
    NodeId, i32
);
number!(
    /// A pinned thread of this process, from 0.
    ShardId, u16
);
number!(
    /// One incarnation of one partition's log. Allocated by the metadata log,
    /// never used twice, so that journal frames of a deleted partition cannot
    /// be mistaken for those of its successor.
    LogId, u64
);

impl LogId {
    /// The metadata log's, the only one that is known before any metadata is:
    /// partitions are numbered from the next one on.
    pub const METADATA: Self = Self(0);
}

impl Offset {
    /// The first offset of every log.
    pub const ZERO: Self = Self(0);

    /// The offset `count` records later.
    #[must_use]
    pub fn plus(self, count: i64) -> Self {
        Self(self.0 + count)
    }
}

impl LeaderEpoch {
    /// No epoch known, -1 on the wire.
    pub const NONE: Self = Self(-1);
}

impl Timestamp {
    /// No timestamp, -1 on the wire.
    pub const NONE: Self = Self(-1);
}

impl ProducerId {
    /// Not an idempotent producer, -1 on the wire.
    pub const NONE: Self = Self(-1);
}

impl ProducerEpoch {
    /// Not an idempotent producer, -1 on the wire.
    pub const NONE: Self = Self(-1);
}

/// A topic's incarnation (KIP-516): 128 random bits; all zero means none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct TopicId(pub [u8; 16]);

impl TopicId {
    /// No id, all zero on the wire.
    pub const NONE: Self = Self([0; 16]);

    /// Whether this is the all-zero id.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// A partition by topic name, for messages to people and for paths.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TopicPartition {
    /// Topic name, at most 249 bytes of `[a-zA-Z0-9._-]`.
    pub topic: Arc<str>,
    /// Index within the topic.
    pub partition: PartitionIndex,
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}
