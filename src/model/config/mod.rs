//! The one table of configuration keys, for brokers and for topics.
//!
//! Everything that anybody says about a key comes from its row: validation,
//! DescribeConfigs, the reference text, the compatibility matrix. Rows for
//! topics are in `topic_keys`, for brokers in `broker_keys`.
//!
//! A key that Kafka has and that does nothing here yet is in the table with
//! [`Status::Stored`]: it is accepted, kept and described, and whoever sets it
//! is told once, by name, that nothing comes of it yet.

mod broker_keys;
mod describe;
mod key;
mod reference;
mod store;
mod topic_keys;
mod value;

pub use describe::{ConfigSource, DescribedConfig, Synonym};
pub use key::{Check, Importance, Key, Kind, Status, Update};
pub use reference::{effect, matrix, reference};
pub use store::{BrokerConfig, ConfigError, topic_keys_without_effect};

/// Every key of a topic, sorted by name.
#[must_use]
pub fn topic_keys() -> &'static [Key] {
    topic_keys::KEYS
}

/// Every key of a broker, sorted by name.
pub fn broker_keys() -> impl Iterator<Item = &'static Key> {
    store::all_broker_keys().iter().copied()
}

/// The topic key of this name.
#[must_use]
pub fn topic_key(name: &str) -> Option<&'static Key> {
    let at = topic_keys::KEYS.binary_search_by_key(&name, |key| key.name).ok()?;
    Some(&topic_keys::KEYS[at])
}

/// The broker key of this name.
#[must_use]
pub fn broker_key(name: &str) -> Option<&'static Key> {
    let keys = store::all_broker_keys();
    let at = keys.binary_search_by_key(&name, |key| key.name).ok()?;
    Some(keys[at])
}

/// The items of a list value, without blanks around them and without empty ones.
pub fn list_items(value: &str) -> impl Iterator<Item = &str> {
    value::items(value).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests;
