//! Which versions of which API exist, are served and are advertised.
//!
//! The numbers come from the schema through [`super::generated::ApiKey`];
//! this file only answers questions about them. An API is advertised when
//! its schema says `served`, so that nothing is announced that does not work.

use super::generated::ApiKey;

/// A closed range of versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApiVersionRange {
    /// The lowest version.
    pub min: i16,
    /// The highest version.
    pub max: i16,
}

impl ApiVersionRange {
    /// Whether `version` lies within.
    #[must_use]
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// Every version, lowest first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = i16> {
        self.min..=self.max
    }
}

/// One API's facts, as its schema file states them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApiFacts {
    /// The API.
    pub key: ApiKey,
    /// Its name in Kafka's documentation.
    pub name: &'static str,
    /// Versions that the codec reads and writes.
    pub known: ApiVersionRange,
    /// Versions that this broker answers; `None` when it does not serve the API.
    pub served: Option<ApiVersionRange>,
    /// Versions that ApiVersions announces. Differs from `served` for Produce
    /// alone: clients gate features on 0 being in it (KAFKA-18659).
    pub advertised: Option<ApiVersionRange>,
    /// First version with tagged fields and compact lengths (KIP-482).
    pub flexible_from: i16,
}

/// Judgement of the (key, version) of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionCheck {
    /// This broker answers it.
    Served,
    /// ApiVersions at an unknown version: answered with a version 0 body and
    /// UNSUPPORTED_VERSION, without parsing the request (checklist 12).
    ApiVersionsFallback,
    /// The connection is closed (checklist 2).
    Refused,
}

impl ApiKey {
    /// Versions that the codec reads and writes.
    #[must_use]
    pub fn known_versions(self) -> ApiVersionRange {
        self.facts().known
    }

    /// Versions that this broker answers; `None` when it does not serve the API.
    #[must_use]
    pub fn served_versions(self) -> Option<ApiVersionRange> {
        self.facts().served
    }

    /// Versions that ApiVersions announces; `None` when it is silent about the API.
    #[must_use]
    pub fn advertised_versions(self) -> Option<ApiVersionRange> {
        self.facts().advertised
    }

    /// Whether `version` has tagged fields and compact lengths (KIP-482).
    #[inline]
    #[must_use]
    pub fn is_flexible(self, version: i16) -> bool {
        version >= self.facts().flexible_from
    }

    /// Version of the request header in front of a body of `version`.
    #[inline]
    #[must_use]
    pub fn request_header_version(self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// Version of the response header in front of a body of `version`. Always
    /// 0 for ApiVersions, whose client may not know what we speak (KIP-511).
    #[inline]
    #[must_use]
    pub fn response_header_version(self, version: i16) -> i16 {
        i16::from(self != Self::ApiVersions && self.is_flexible(version))
    }

    /// What to do with a request of this API at `version`.
    #[must_use]
    pub fn check_version(self, version: i16) -> VersionCheck {
        match self.served_versions() {
            Some(served) if served.contains(version) => VersionCheck::Served,
            _ if self == Self::ApiVersions => VersionCheck::ApiVersionsFallback,
            _ => VersionCheck::Refused,
        }
    }

    /// Every API that this broker announces, with the announced versions.
    pub fn advertised() -> impl Iterator<Item = (Self, ApiVersionRange)> {
        Self::ALL.iter().filter_map(|facts| Some((facts.key, facts.advertised?)))
    }
}
