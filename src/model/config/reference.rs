//! Text about the keys: the config file reference and the matrix of what has
//! no effect.

use std::fmt::Write as _;

use super::key::{Key, Status, Update};
use super::{broker_keys, topic_keys, value};

/// The reference of all keys, as Markdown.
#[must_use]
pub fn reference() -> String {
    let mut out = String::from("## Broker keys\n");
    broker_keys().for_each(|key| entry(&mut out, key));
    out.push_str("\n## Topic keys\n");
    topic_keys().iter().for_each(|key| entry(&mut out, key));
    out
}

/// What is known of one key, as Markdown.
fn entry(out: &mut String, key: &Key) {
    let default = match key.default {
        Some("") => "empty".to_owned(),
        Some(value) => format!("`{value}`"),
        None => "not set".to_owned(),
    };
    let change = match key.update {
        Update::ReadOnly => "at start",
        Update::PerBroker => "at run time, per broker",
        Update::Dynamic => "at run time",
    };
    let _ = write!(
        out,
        "\n### `{}`\n{}\n\n- Value: {}. Default: {default}. Can change: {change}.\n",
        key.name,
        key.doc,
        value::allowed(key),
    );
    if let Some(note) = effect(key) {
        let _ = writeln!(out, "- {note}");
    }
    let defaults: Vec<_> = key.synonyms.iter().map(|(name, _)| format!("`{name}`")).collect();
    if !defaults.is_empty() {
        let _ = writeln!(out, "- When not set: {}.", defaults.join(", then "));
    }
}

/// The keys that are accepted without effect, as a Markdown table.
#[must_use]
pub fn matrix() -> String {
    let mut out = String::from("| Scope | Key | Effect |\n|---|---|---|\n");
    let rows = broker_keys().map(|key| ("broker", key));
    for (scope, key) in rows.chain(topic_keys().iter().map(|key| ("topic", key))) {
        if let Some(note) = effect(key) {
            let _ = writeln!(out, "| {scope} | `{}` | {note} |", key.name);
        }
    }
    out
}

/// What to tell of a key without effect.
#[must_use]
pub const fn effect(key: &Key) -> Option<&'static str> {
    match key.status {
        Status::Enforced => None,
        Status::Stored => Some("Accepted and described, without effect yet."),
        Status::NotApplicable => Some("Accepted and described; there is nothing here to tune."),
    }
}
