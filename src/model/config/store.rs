//! A broker's own settings, and how a topic's follow from them.

use std::collections::BTreeMap;

use super::describe::DescribedConfig;
use super::key::Key;

/// Why a value is refused: always INVALID_CONFIG on the wire.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// No such key.
    #[error("unknown {scope} configuration '{key}'")]
    UnknownKey {
        /// `topic` or `broker`.
        scope: &'static str,
        /// The key.
        key: String,
    },
    /// Not a value of the key's type, or not an allowed one.
    #[error("invalid value '{value}' for configuration {key}: {allowed}")]
    BadValue {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
}

/// Settings of this broker: from its file and command line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BrokerConfig {
    values: BTreeMap<&'static str, String>,
}

impl BrokerConfig {
    /// Sets one key.
    ///
    /// # Errors
    /// When the key is unknown or the value not allowed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<&'static Key, ConfigError> {
        let _ = (key, value);
        todo!()
    }

    /// The value that holds; none when the key has none, or does not exist.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let _ = key;
        todo!()
    }

    /// The value that holds, as a whole number; sizes in bytes.
    #[must_use]
    pub fn number(&self, key: &str) -> i64 {
        let _ = key;
        todo!()
    }

    /// The value that holds, as yes or no.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        let _ = key;
        todo!()
    }

    /// Checks the configs that a new topic asks for, alone and together.
    ///
    /// # Errors
    /// The first one that is not allowed.
    pub fn check_topic(&self, own: &BTreeMap<String, String>) -> Result<(), ConfigError> {
        let _ = own;
        todo!()
    }

    /// Rows of DescribeConfigs for a topic, sorted by name.
    #[must_use]
    pub fn describe_topic(&self, own: &BTreeMap<String, String>) -> Vec<DescribedConfig> {
        let _ = own;
        todo!()
    }

    /// Rows of DescribeConfigs for this broker, sorted by name.
    #[must_use]
    pub fn describe_broker(&self) -> Vec<DescribedConfig> {
        todo!()
    }

    /// Keys set here, or by this topic, that have no effect yet: to be warned
    /// about once each.
    pub fn without_effect<'a>(
        &'a self,
        own: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = &'static Key> + 'a {
        let _ = own;
        std::iter::empty()
    }
}

/// All broker keys, sorted by name.
pub(super) fn all_broker_keys() -> &'static [&'static Key] {
    todo!()
}
