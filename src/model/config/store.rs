//! A broker's own settings, and how a topic's follow from them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::key::{Key, Status};
use super::{broker_key, broker_keys, topic_key, topic_keys, value};

/// Why a value is refused: always INVALID_CONFIG on the wire.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// No such key.
    #[error("there is no {scope} configuration '{key}'")]
    UnknownKey {
        /// `topic` or `broker`.
        scope: &'static str,
        /// The key.
        key: String,
    },
    /// Not a value of the key's type, or not an allowed one.
    #[error("'{value}' is no value for configuration {key}: {allowed}")]
    BadValue {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// Two values that contradict each other.
    #[error("{low} = {low_value} must not be above {high} = {high_value}")]
    Contradiction {
        /// Key of the value that must be the lower one.
        low: &'static str,
        /// That value.
        low_value: i64,
        /// Key of the other value.
        high: &'static str,
        /// That value.
        high_value: i64,
    },
}

/// Settings of this broker, from its file and command line. What a topic does
/// not set itself follows from here.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BrokerConfig {
    values: BTreeMap<&'static str, String>,
}

impl BrokerConfig {
    /// Sets one key, over an earlier value; returns its row, so that the
    /// caller can warn about one without effect.
    ///
    /// # Errors
    /// When the key is unknown or the value not allowed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<&'static Key, ConfigError> {
        let key = broker_key(key)
            .ok_or_else(|| ConfigError::UnknownKey { scope: "broker", key: key.to_owned() })?;
        self.values.insert(key.name, value::canonical(key, value)?);
        Ok(key)
    }

    /// The value that was set for this broker, if any.
    #[must_use]
    pub fn own(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// The value that holds; none when the key has none.
    ///
    /// Panics when there is no such key, which is a bug of the caller.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let row = broker_key(key).unwrap_or_else(|| panic!("no broker configuration '{key}'"));
        self.own(key).or(row.default)
    }

    /// The value that holds, as a whole number; sizes in bytes.
    ///
    /// Panics when the key is not a number, or has no value.
    #[must_use]
    pub fn number(&self, key: &str) -> i64 {
        let text = self.get(key).unwrap_or_else(|| panic!("configuration {key} has no value"));
        let size = || i64::try_from(value::size(text)?).ok();
        let number = text.parse().ok().or_else(size);
        number.unwrap_or_else(|| panic!("configuration {key} = {text} is not a number"))
    }

    /// The value that holds, as yes or no.
    ///
    /// Panics when there is no such key.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        self.get(key) == Some("true")
    }

    /// The value of a topic key: the topic's own, or what this broker's
    /// settings give every topic, or the default.
    pub(crate) fn topic_value(&self, key: &Key, own: &BTreeMap<String, String>) -> Option<String> {
        if let Some(value) = own.get(key.name).and_then(|v| value::canonical(key, v).ok()) {
            return Some(value);
        }
        for (name, factor) in key.synonyms {
            if let Some(value) = self.own(name) {
                return Some(match value.parse::<i64>() {
                    // A negative number means "never", in every unit.
                    Ok(number) if *factor != 1 && number >= 0 => {
                        number.saturating_mul(*factor).to_string()
                    }
                    Ok(number) if *factor != 1 => number.max(-1).to_string(),
                    _ => value.to_owned(),
                });
            }
        }
        key.default.map(str::to_owned)
    }

    /// As `topic_value`, a number; panics when the key is not one.
    pub(crate) fn topic_number(&self, name: &str, own: &BTreeMap<String, String>) -> i64 {
        let key = topic_key(name).unwrap_or_else(|| panic!("no topic configuration '{name}'"));
        let value = self.topic_value(key, own).and_then(|value| value.parse().ok());
        value.unwrap_or_else(|| panic!("topic configuration {name} is not a number"))
    }

    /// Checks the configs that a topic asks for, each alone and together.
    ///
    /// # Errors
    /// The first one that is not allowed.
    pub fn check_topic(&self, own: &BTreeMap<String, String>) -> Result<(), ConfigError> {
        for (name, text) in own {
            let key = topic_key(name)
                .ok_or_else(|| ConfigError::UnknownKey { scope: "topic", key: name.clone() })?;
            value::canonical(key, text)?;
        }
        let (low, high) = ("min.compaction.lag.ms", "max.compaction.lag.ms");
        let (low_value, high_value) = (self.topic_number(low, own), self.topic_number(high, own));
        if low_value > high_value {
            return Err(ConfigError::Contradiction { low, low_value, high, high_value });
        }
        Ok(())
    }

    /// Keys set for this broker that have no effect (yet): each to be warned
    /// about once.
    pub fn without_effect(&self) -> impl Iterator<Item = &'static Key> {
        self.values.keys().filter_map(|name| broker_key(name)).filter(|key| is_inert(key))
    }
}

/// Keys of a topic's own configs that have no effect (yet).
pub fn topic_keys_without_effect(
    own: &BTreeMap<String, String>,
) -> impl Iterator<Item = &'static Key> {
    own.keys().filter_map(|name| topic_key(name)).filter(|key| is_inert(key))
}

fn is_inert(key: &Key) -> bool {
    key.status != Status::Enforced
}

/// All broker keys, sorted by name.
pub(super) fn all_broker_keys() -> &'static [&'static Key] {
    static ALL: LazyLock<Vec<&'static Key>> = LazyLock::new(|| {
        let mut all: Vec<_> = broker_keys::GROUPS.into_iter().flatten().collect();
        all.sort_unstable_by_key(|key| key.name);
        all
    });
    &ALL
}

/// All topic keys, sorted by name.
pub(super) const fn all_topic_keys() -> &'static [Key] {
    topic_keys::KEYS
}
