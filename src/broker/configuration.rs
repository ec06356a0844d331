//! The broker's configuration: the table's defaults, then the file, then the
//! flags, then `--set`. Whatever is unknown is refused by name.
//!
//! What a flag of its own decides is put into the configuration from there, so
//! that it says what runs, and is refused anywhere else.

use std::net::SocketAddr;
use std::path::Path;

use crate::model::config::{BrokerConfig, Key, Status};

use super::{Advertised, Settings, StartError};

/// Kafka's key for the flag `--durability`.
const DURABILITY_KEY: &str = "millstream.durability";

/// Name of the only listener there is.
pub(super) const LISTENER: &str = "PLAINTEXT";

/// Keys that a flag alone decides, with the flag.
const BY_FLAG: &[(&str, &str)] = &[
    ("advertised.listeners", "--advertise"),
    ("listeners", "--listen"),
    ("log.dir", "--data-dir"),
    ("log.dirs", "--data-dir"),
    ("millstream.memory", "--memory"),
    ("millstream.shards", "--shards"),
    ("millstream.spin.us", "--spin"),
];

/// Sets a key that a file or `--set` names.
fn set_named(
    config: &mut BrokerConfig,
    key: &str,
    value: &str,
    from: &str,
) -> Result<(), StartError> {
    if let Some((_, flag)) = BY_FLAG.iter().find(|(by_flag, _)| *by_flag == key) {
        return Err(StartError::Usage(format!(
            "{from}: {key} is not set here; use the flag {flag}"
        )));
    }
    set(config, key, value, from)
}

fn set(config: &mut BrokerConfig, key: &str, value: &str, from: &str) -> Result<(), StartError> {
    let row: &Key = config
        .set(key, value)
        .map_err(|e| StartError::Usage(format!("{from}: {e} (see `millstream configs`)")))?;
    if row.status == Status::Stored {
        tracing::warn!("{from}: {key} is accepted but has no effect in this version");
    }
    Ok(())
}

fn read_file(config: &mut BrokerConfig, path: &Path) -> Result<(), StartError> {
    let from = format!("--config {}", path.display());
    let text = std::fs::read_to_string(path)
        .map_err(|e| StartError::Usage(format!("{from}: cannot be read: {e}")))?;
    let table: toml::Table =
        text.parse().map_err(|e| StartError::Usage(format!("{from}: not TOML: {e}")))?;
    let mut flat = Vec::new();
    flatten("", &table, &mut flat);
    for (key, value) in flat {
        set_named(config, &key, &value, &from)?;
    }
    Ok(())
}

/// `a.b = 1` in TOML is a table in a table; the table of configurations has
/// dotted names.
fn flatten(prefix: &str, table: &toml::Table, into: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&name, inner, into),
            toml::Value::String(text) => into.push((name, text.clone())),
            other => into.push((name, other.to_string())),
        }
    }
}

/// The configuration that these settings ask for.
///
/// # Errors
/// The first unknown key or value that is not allowed, with where it stands.
pub(super) fn load(settings: &Settings) -> Result<BrokerConfig, StartError> {
    let mut config = BrokerConfig::default();
    if let Some(path) = &settings.config_file {
        read_file(&mut config, path)?;
    }
    set_flags(&mut config, settings)?;
    for text in &settings.overrides {
        let from = format!("--set {text}");
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| StartError::Usage(format!("{from}: not of the form KEY=VALUE")))?;
        set_named(&mut config, key.trim(), value.trim(), &from)?;
    }
    one_node_id(&mut config)?;
    some_retention(&config)?;
    Ok(config)
}

/// No retention at all would delete each record at once: Kafka refuses it too.
fn some_retention(config: &BrokerConfig) -> Result<(), StartError> {
    for key in ["log.retention.ms", "log.retention.minutes", "log.retention.hours"] {
        if config.own(key) == Some("0") {
            return Err(StartError::Usage(format!(
                "{key}=0 would delete every record at once; use -1 for no limit, or at least 1"
            )));
        }
    }
    Ok(())
}

/// What has a flag of its own, except addresses: those are known once bound.
fn set_flags(config: &mut BrokerConfig, settings: &Settings) -> Result<(), StartError> {
    if let Some(class) = settings.durability {
        set(config, DURABILITY_KEY, class.name(), "--durability")?;
    }
    set(config, "log.dirs", &settings.data_dir.display().to_string(), "--data-dir")?;
    set(config, "millstream.memory", &settings.memory_bytes.to_string(), "--memory")?;
    set(config, "millstream.shards", &settings.shards.to_string(), "--shards")?;
    set(config, "millstream.spin.us", &settings.spin_us.to_string(), "--spin")
}

/// `broker.id` is the older name of `node.id`: either sets both.
fn one_node_id(config: &mut BrokerConfig) -> Result<(), StartError> {
    let (node, broker) = (config.own("node.id"), config.own("broker.id"));
    let id = match (node, broker) {
        (Some(node), Some(broker)) if node != broker => {
            return Err(StartError::Usage(format!(
                "node.id = {node} and broker.id = {broker} are two names of one number; set node.id"
            )));
        }
        (None, None) => return Ok(()),
        (node, broker) => node.or(broker).unwrap_or_default().to_owned(),
    };
    set(config, "node.id", &id, "broker.id")?;
    set(config, "broker.id", &id, "node.id")
}

/// Puts the addresses into the configuration: where the broker listens, and
/// what clients are told.
pub(super) fn note_addresses(
    config: &mut BrokerConfig,
    bound: SocketAddr,
    advertised: &Advertised,
) -> Result<(), StartError> {
    let Advertised { host, port } = advertised;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    set(config, "listeners", &format!("{LISTENER}://{bound}"), "--listen")?;
    let told = format!("{LISTENER}://{host}:{port}");
    set(config, "advertised.listeners", &told, "--advertise")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_with_dotted_keys_becomes_flat_names() {
        let table: toml::Table =
            "num.partitions = 3\nnum.io.threads = 8\n[log]\nretention.ms = 5\nname = 'x'"
                .parse()
                .unwrap();
        let mut flat = Vec::new();
        flatten("", &table, &mut flat);
        flat.sort();
        let flat: Vec<_> = flat.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let want = [
            ("log.name", "x"),
            ("log.retention.ms", "5"),
            ("num.io.threads", "8"),
            ("num.partitions", "3"),
        ];
        assert_eq!(flat, want);
    }

    fn loaded(overrides: &[&str]) -> Result<BrokerConfig, StartError> {
        let mut settings = crate::broker::settings::tests::settings("127.0.0.1:0");
        settings.overrides = overrides.iter().map(|text| (*text).to_owned()).collect();
        load(&settings)
    }

    #[test]
    fn flags_are_what_the_configuration_says() {
        let mut config = loaded(&[]).unwrap();
        assert_eq!(config.get("log.dirs"), Some("data"));
        assert_eq!(config.number("millstream.memory"), 64 << 20);
        assert_eq!(config.number("millstream.spin.us"), 0);
        let told = Advertised { host: "::1".into(), port: 7 };
        note_addresses(&mut config, "[::1]:9092".parse().unwrap(), &told).unwrap();
        assert_eq!(config.get("listeners"), Some("PLAINTEXT://[::1]:9092"));
        assert_eq!(config.get("advertised.listeners"), Some("PLAINTEXT://[::1]:7"));
        for (key, flag) in BY_FLAG {
            let refused = loaded(&[&format!("{key}=1")]).unwrap_err().to_string();
            assert!(refused.contains(&format!("use the flag {flag}")), "{refused}");
        }
    }

    #[test]
    fn the_older_name_of_the_node_id_counts() {
        let config = loaded(&["broker.id=7"]).unwrap();
        assert_eq!((config.number("node.id"), config.number("broker.id")), (7, 7));
        let config = loaded(&["node.id=8"]).unwrap();
        assert_eq!(config.number("broker.id"), 8);
        let two = loaded(&["node.id=8", "broker.id=7"]).unwrap_err().to_string();
        assert!(two.contains("set node.id"), "{two}");
    }
}
