//! Rows of DescribeConfigs.

use super::key::Kind;

/// Where a value comes from, with Kafka's number for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i8)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum ConfigSource {
    Topic = 1,
    DynamicBroker = 2,
    DynamicDefaultBroker = 3,
    StaticBroker = 4,
    Default = 5,
}

/// One of the values that a key would have, were it not for those before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Synonym {
    /// The key that it is set by.
    pub name: &'static str,
    /// The value; none when sensitive.
    pub value: Option<String>,
    /// Where it comes from.
    pub source: ConfigSource,
}

/// One row: a key, and the value that holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedConfig {
    /// The key.
    pub name: &'static str,
    /// The value that holds; none when sensitive or without one.
    pub value: Option<String>,
    /// Whether it cannot change at run time.
    pub read_only: bool,
    /// Where the value comes from.
    pub source: ConfigSource,
    /// Whether the value must not be shown.
    pub is_sensitive: bool,
    /// The values it would have otherwise, its own first.
    pub synonyms: Vec<Synonym>,
    /// Type of the value.
    pub kind: Kind,
    /// What the key does.
    pub documentation: &'static str,
}
