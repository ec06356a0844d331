//! Rows of DescribeConfigs.

use std::collections::BTreeMap;

use super::broker_key;
use super::key::{Key, Kind};
use super::store::{BrokerConfig, all_broker_keys, all_topic_keys};

/// Where a value comes from, with Kafka's number for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i8)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum ConfigSource {
    Topic = 1,
    StaticBroker = 4,
    Default = 5,
}

/// One of the values that a key would have, were it not for those before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Synonym {
    /// The key that it is set by.
    pub name: &'static str,
    /// The value, in that key's unit; none when sensitive.
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
    /// The values it has or would have otherwise, the one that holds first.
    pub synonyms: Vec<Synonym>,
    /// Type of the value.
    pub kind: Kind,
    /// What the key does.
    pub documentation: &'static str,
}

impl BrokerConfig {
    /// Rows for a topic with these configs of its own, sorted by name.
    #[must_use]
    pub fn describe_topic(&self, own: &BTreeMap<String, String>) -> Vec<DescribedConfig> {
        let row = |key: &'static Key| {
            let mut synonyms = Vec::new();
            if let Some(value) = own.get(key.name) {
                synonyms.push(synonym(key, value, ConfigSource::Topic));
            }
            self.push_synonyms(key.synonyms.iter().map(|(name, _)| *name), &mut synonyms);
            described(key, self.topic_value(key, own), synonyms)
        };
        all_topic_keys().iter().map(row).collect()
    }

    /// Rows for this broker, sorted by name.
    #[must_use]
    pub fn describe_broker(&self) -> Vec<DescribedConfig> {
        let row = |key: &&'static Key| {
            let mut synonyms = Vec::new();
            if key.synonyms.is_empty() {
                self.push_synonyms([key.name].into_iter(), &mut synonyms);
            } else {
                self.push_synonyms(key.synonyms.iter().map(|(name, _)| *name), &mut synonyms);
            }
            described(key, self.get(key.name).map(str::to_owned), synonyms)
        };
        all_broker_keys().iter().map(row).collect()
    }

    /// What is set for these keys, then what they are without that.
    fn push_synonyms(
        &self,
        names: impl Iterator<Item = &'static str> + Clone,
        synonyms: &mut Vec<Synonym>,
    ) {
        let keys = names.filter_map(broker_key);
        for key in keys.clone() {
            if let Some(value) = self.own(key.name) {
                synonyms.push(synonym(key, value, ConfigSource::StaticBroker));
            }
        }
        for key in keys {
            if let Some(value) = key.default {
                synonyms.push(synonym(key, value, ConfigSource::Default));
            }
        }
    }
}

fn synonym(key: &Key, value: &str, source: ConfigSource) -> Synonym {
    Synonym { name: key.name, value: (!key.is_sensitive()).then(|| value.to_owned()), source }
}

fn described(key: &'static Key, value: Option<String>, synonyms: Vec<Synonym>) -> DescribedConfig {
    DescribedConfig {
        name: key.name,
        value: value.filter(|_| !key.is_sensitive()),
        read_only: key.is_read_only(),
        source: synonyms.first().map_or(ConfigSource::Default, |first| first.source),
        is_sensitive: key.is_sensitive(),
        synonyms,
        kind: key.kind,
        documentation: key.doc,
    }
}
