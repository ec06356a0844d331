//! The keys of the protocol and their versions. Generated: see `mod.rs`.

use crate::wire::api::{ApiFacts, ApiVersionRange};

/// An API that the codec knows; the number is its key on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(i16)]
pub enum ApiKey {
    Produce = 0,
    Fetch = 1,
    ListOffsets = 2,
    Metadata = 3,
    OffsetCommit = 8,
    OffsetFetch = 9,
    FindCoordinator = 10,
    JoinGroup = 11,
    Heartbeat = 12,
    LeaveGroup = 13,
    SyncGroup = 14,
    DescribeGroups = 15,
    ListGroups = 16,
    ApiVersions = 18,
    CreateTopics = 19,
    DeleteTopics = 20,
    InitProducerId = 22,
    OffsetForLeaderEpoch = 23,
    DescribeConfigs = 32,
    CreatePartitions = 37,
    DeleteGroups = 42,
    DescribeCluster = 60,
    DescribeTopicPartitions = 75,
}

impl ApiKey {
    /// Every known API, lowest key first.
    pub const ALL: &[ApiFacts] = &[
        ApiFacts {
            key: Self::Produce,
            name: "Produce",
            known: ApiVersionRange { min: 3, max: 13 },
            served: Some(ApiVersionRange { min: 3, max: 13 }),
            advertised: Some(ApiVersionRange { min: 0, max: 13 }),
            flexible_from: 9,
        },
        ApiFacts {
            key: Self::Fetch,
            name: "Fetch",
            known: ApiVersionRange { min: 4, max: 18 },
            served: Some(ApiVersionRange { min: 4, max: 17 }),
            advertised: Some(ApiVersionRange { min: 4, max: 17 }),
            flexible_from: 12,
        },
        ApiFacts {
            key: Self::ListOffsets,
            name: "ListOffsets",
            known: ApiVersionRange { min: 1, max: 11 },
            served: Some(ApiVersionRange { min: 1, max: 11 }),
            advertised: Some(ApiVersionRange { min: 1, max: 11 }),
            flexible_from: 6,
        },
        ApiFacts {
            key: Self::Metadata,
            name: "Metadata",
            known: ApiVersionRange { min: 0, max: 13 },
            served: Some(ApiVersionRange { min: 0, max: 13 }),
            advertised: Some(ApiVersionRange { min: 0, max: 13 }),
            flexible_from: 9,
        },
        ApiFacts {
            key: Self::OffsetCommit,
            name: "OffsetCommit",
            known: ApiVersionRange { min: 2, max: 10 },
            served: None,
            advertised: None,
            flexible_from: 8,
        },
        ApiFacts {
            key: Self::OffsetFetch,
            name: "OffsetFetch",
            known: ApiVersionRange { min: 1, max: 10 },
            served: None,
            advertised: None,
            flexible_from: 6,
        },
        ApiFacts {
            key: Self::FindCoordinator,
            name: "FindCoordinator",
            known: ApiVersionRange { min: 0, max: 6 },
            served: Some(ApiVersionRange { min: 0, max: 6 }),
            advertised: Some(ApiVersionRange { min: 0, max: 6 }),
            flexible_from: 3,
        },
        ApiFacts {
            key: Self::JoinGroup,
            name: "JoinGroup",
            known: ApiVersionRange { min: 0, max: 9 },
            served: None,
            advertised: None,
            flexible_from: 6,
        },
        ApiFacts {
            key: Self::Heartbeat,
            name: "Heartbeat",
            known: ApiVersionRange { min: 0, max: 4 },
            served: None,
            advertised: None,
            flexible_from: 4,
        },
        ApiFacts {
            key: Self::LeaveGroup,
            name: "LeaveGroup",
            known: ApiVersionRange { min: 0, max: 5 },
            served: None,
            advertised: None,
            flexible_from: 4,
        },
        ApiFacts {
            key: Self::SyncGroup,
            name: "SyncGroup",
            known: ApiVersionRange { min: 0, max: 5 },
            served: None,
            advertised: None,
            flexible_from: 4,
        },
        ApiFacts {
            key: Self::DescribeGroups,
            name: "DescribeGroups",
            known: ApiVersionRange { min: 0, max: 6 },
            served: None,
            advertised: None,
            flexible_from: 5,
        },
        ApiFacts {
            key: Self::ListGroups,
            name: "ListGroups",
            known: ApiVersionRange { min: 0, max: 5 },
            served: None,
            advertised: None,
            flexible_from: 3,
        },
        ApiFacts {
            key: Self::ApiVersions,
            name: "ApiVersions",
            known: ApiVersionRange { min: 0, max: 5 },
            served: Some(ApiVersionRange { min: 0, max: 5 }),
            advertised: Some(ApiVersionRange { min: 0, max: 5 }),
            flexible_from: 3,
        },
        ApiFacts {
            key: Self::CreateTopics,
            name: "CreateTopics",
            known: ApiVersionRange { min: 2, max: 7 },
            served: Some(ApiVersionRange { min: 2, max: 7 }),
            advertised: Some(ApiVersionRange { min: 2, max: 7 }),
            flexible_from: 5,
        },
        ApiFacts {
            key: Self::DeleteTopics,
            name: "DeleteTopics",
            known: ApiVersionRange { min: 1, max: 6 },
            served: Some(ApiVersionRange { min: 1, max: 6 }),
            advertised: Some(ApiVersionRange { min: 1, max: 6 }),
            flexible_from: 4,
        },
        ApiFacts {
            key: Self::InitProducerId,
            name: "InitProducerId",
            known: ApiVersionRange { min: 0, max: 6 },
            served: Some(ApiVersionRange { min: 0, max: 5 }),
            advertised: Some(ApiVersionRange { min: 0, max: 5 }),
            flexible_from: 2,
        },
        ApiFacts {
            key: Self::OffsetForLeaderEpoch,
            name: "OffsetForLeaderEpoch",
            known: ApiVersionRange { min: 2, max: 4 },
            served: Some(ApiVersionRange { min: 2, max: 4 }),
            advertised: Some(ApiVersionRange { min: 2, max: 4 }),
            flexible_from: 4,
        },
        ApiFacts {
            key: Self::DescribeConfigs,
            name: "DescribeConfigs",
            known: ApiVersionRange { min: 1, max: 4 },
            served: Some(ApiVersionRange { min: 1, max: 4 }),
            advertised: Some(ApiVersionRange { min: 1, max: 4 }),
            flexible_from: 4,
        },
        ApiFacts {
            key: Self::CreatePartitions,
            name: "CreatePartitions",
            known: ApiVersionRange { min: 0, max: 3 },
            served: Some(ApiVersionRange { min: 0, max: 3 }),
            advertised: Some(ApiVersionRange { min: 0, max: 3 }),
            flexible_from: 2,
        },
        ApiFacts {
            key: Self::DeleteGroups,
            name: "DeleteGroups",
            known: ApiVersionRange { min: 0, max: 3 },
            served: None,
            advertised: None,
            flexible_from: 2,
        },
        ApiFacts {
            key: Self::DescribeCluster,
            name: "DescribeCluster",
            known: ApiVersionRange { min: 0, max: 2 },
            served: Some(ApiVersionRange { min: 0, max: 2 }),
            advertised: Some(ApiVersionRange { min: 0, max: 2 }),
            flexible_from: 0,
        },
        ApiFacts {
            key: Self::DescribeTopicPartitions,
            name: "DescribeTopicPartitions",
            known: ApiVersionRange { min: 0, max: 0 },
            served: Some(ApiVersionRange { min: 0, max: 0 }),
            advertised: Some(ApiVersionRange { min: 0, max: 0 }),
            flexible_from: 0,
        },
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// The API with this key, when the codec knows it.
    #[must_use]
    pub const fn from_code(code: i16) -> Option<Self> {
        Some(match code {
            0 => Self::Produce,
            1 => Self::Fetch,
            2 => Self::ListOffsets,
            3 => Self::Metadata,
            8 => Self::OffsetCommit,
            9 => Self::OffsetFetch,
            10 => Self::FindCoordinator,
            11 => Self::JoinGroup,
            12 => Self::Heartbeat,
            13 => Self::LeaveGroup,
            14 => Self::SyncGroup,
            15 => Self::DescribeGroups,
            16 => Self::ListGroups,
            18 => Self::ApiVersions,
            19 => Self::CreateTopics,
            20 => Self::DeleteTopics,
            22 => Self::InitProducerId,
            23 => Self::OffsetForLeaderEpoch,
            32 => Self::DescribeConfigs,
            37 => Self::CreatePartitions,
            42 => Self::DeleteGroups,
            60 => Self::DescribeCluster,
            75 => Self::DescribeTopicPartitions,
            _ => return None,
        })
    }

    /// What the schema says about it.
    #[inline]
    #[must_use]
    pub const fn facts(self) -> &'static ApiFacts {
        match self {
            Self::Produce => &Self::ALL[0],
            Self::Fetch => &Self::ALL[1],
            Self::ListOffsets => &Self::ALL[2],
            Self::Metadata => &Self::ALL[3],
            Self::OffsetCommit => &Self::ALL[4],
            Self::OffsetFetch => &Self::ALL[5],
            Self::FindCoordinator => &Self::ALL[6],
            Self::JoinGroup => &Self::ALL[7],
            Self::Heartbeat => &Self::ALL[8],
            Self::LeaveGroup => &Self::ALL[9],
            Self::SyncGroup => &Self::ALL[10],
            Self::DescribeGroups => &Self::ALL[11],
            Self::ListGroups => &Self::ALL[12],
            Self::ApiVersions => &Self::ALL[13],
            Self::CreateTopics => &Self::ALL[14],
            Self::DeleteTopics => &Self::ALL[15],
            Self::InitProducerId => &Self::ALL[16],
            Self::OffsetForLeaderEpoch => &Self::ALL[17],
            Self::DescribeConfigs => &Self::ALL[18],
            Self::CreatePartitions => &Self::ALL[19],
            Self::DeleteGroups => &Self::ALL[20],
            Self::DescribeCluster => &Self::ALL[21],
            Self::DescribeTopicPartitions => &Self::ALL[22],
        }
    }
}
