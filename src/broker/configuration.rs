//! The broker's configuration: the table's defaults, then the file, then the
//! flags. Whatever is unknown is refused by name.

use std::path::Path;

use crate::model::DurabilityClass;
use crate::model::config::{BrokerConfig, Key, Status};

use super::{Settings, StartError};

/// Kafka's key for the flag `--durability`.
const DURABILITY_KEY: &str = "millstream.durability";

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
        set(config, &key, &value, &from)?;
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
    if let Some(class) = settings.durability {
        let class = match class {
            DurabilityClass::Disk => "disk",
            DurabilityClass::Os => "os",
        };
        set(&mut config, DURABILITY_KEY, class, "--durability")?;
    }
    if let Some(path) = &settings.config_file {
        read_file(&mut config, path)?;
    }
    for text in &settings.overrides {
        let from = format!("--set {text}");
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| StartError::Usage(format!("{from}: not of the form KEY=VALUE")))?;
        set(&mut config, key.trim(), value.trim(), &from)?;
    }
    Ok(config)
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
}
