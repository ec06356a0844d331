//! How many connections there may be: what the configuration says, and what the
//! process's descriptors leave when the logs have theirs.

use std::net::{IpAddr, ToSocketAddrs as _};

use ahash::AHashMap;

use crate::model::config::BrokerConfig;
use crate::shard::PeerLimits;

use super::StartError;

/// Least open-files limit that a broker starts with.
pub(super) const DESCRIPTORS_MIN: u64 = 1024;

/// Files of logs kept open: a quarter of all descriptors, within this.
const FILES: std::ops::RangeInclusive<usize> = 128..=512;

/// Journals, checkpoints, rings, eventfds, listeners, standard streams.
const FIXED: usize = 128;

/// How the process's descriptors are shared out, so that connections never take
/// those of the logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Descriptors {
    /// Files of logs kept open. As many again may be in use by reads after they
    /// were let go of.
    pub(super) files: usize,
    /// What is left for connections.
    pub(super) connections: usize,
}

impl Descriptors {
    /// Shares out `limit` descriptors, at least [`DESCRIPTORS_MIN`].
    pub(super) fn share(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let files = (limit / 4).clamp(*FILES.start(), *FILES.end());
        Self { files, connections: limit.saturating_sub(2 * files + FIXED) }
    }
}

/// Connections at a time: `max.connections`, or what `left` allows.
pub(super) fn most(config: &BrokerConfig, left: usize) -> usize {
    let asked = usize::try_from(config.number("max.connections")).unwrap_or(usize::MAX);
    if config.own("max.connections").is_some() && asked > left {
        tracing::warn!(
            "max.connections = {asked}: the open-files limit leaves {left} descriptors for \
             connections, and no more are accepted (raise it: ulimit -n, or LimitNOFILE in a unit)"
        );
    }
    asked.min(left)
}

/// Connections from one address: `max.connections.per.ip` and its overrides.
pub(super) fn per_ip(config: &BrokerConfig) -> Result<PeerLimits, StartError> {
    const OVERRIDES: &str = "max.connections.per.ip.overrides";
    let each = usize::try_from(config.number("max.connections.per.ip")).unwrap_or(usize::MAX);
    let text = config.get(OVERRIDES).unwrap_or_default();
    let mut overrides = AHashMap::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let fault = |what: &str| {
            StartError::Usage(format!(
                "{OVERRIDES}: '{entry}': {what}; write ADDRESS:NUMBER, such as 10.0.0.5:100"
            ))
        };
        let (host, most) = entry.rsplit_once(':').ok_or_else(|| fault("no number"))?;
        let most = most.trim().parse().map_err(|_| fault("not a number of connections"))?;
        for address in addresses(host.trim()).map_err(|e| fault(&e.to_string()))? {
            overrides.insert(address.to_canonical(), most);
        }
    }
    if each == 0 && overrides.is_empty() {
        return Err(StartError::Usage(format!(
            "max.connections.per.ip = 0 lets nobody in; raise it, or name addresses in {OVERRIDES}"
        )));
    }
    Ok(PeerLimits { each, overrides })
}

/// The addresses of a host, or the one that it is, with or without brackets.
fn addresses(host: &str) -> std::io::Result<Vec<IpAddr>> {
    match host.trim_start_matches('[').trim_end_matches(']').parse() {
        Ok(address) => Ok(vec![address]),
        Err(_) => Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_never_take_the_descriptors_of_the_logs() {
        for limit in [DESCRIPTORS_MIN, 2000, 4096, 65_536, 1 << 20, u64::MAX] {
            let shares = Descriptors::share(limit);
            let all = shares.connections as u64 + 2 * shares.files as u64 + FIXED as u64;
            assert!(all <= limit, "{shares:?} of {limit}");
            assert!(shares.connections >= 384 && shares.files >= 128, "{shares:?} of {limit}");
        }
        assert_eq!(Descriptors::share(65_536), Descriptors { files: 512, connections: 64_384 });
    }

    fn config(values: &[(&str, &str)]) -> BrokerConfig {
        let mut config = BrokerConfig::default();
        for (key, value) in values {
            config.set(key, value).unwrap();
        }
        config
    }

    #[test]
    fn what_is_asked_for_holds_as_far_as_descriptors_go() {
        assert_eq!(most(&config(&[]), 384), 384);
        assert_eq!(most(&config(&[("max.connections", "100")]), 384), 100);
        assert_eq!(most(&config(&[("max.connections", "1000")]), 384), 384);
    }

    #[test]
    fn overrides_are_addresses_with_numbers() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(per_ip(&config(&[])).unwrap().each, 2_147_483_647);
        let text = "10.0.0.5:100, [::1]:7,localhost:3, ";
        let limits = per_ip(&config(&[
            ("max.connections.per.ip", "0"),
            ("max.connections.per.ip.overrides", text),
        ]));
        let limits = limits.unwrap();
        assert_eq!(limits.each, 0);
        assert_eq!(limits.overrides[&ip("10.0.0.5")], 100);
        assert!(limits.overrides.contains_key(&ip("::1")));
        assert!(limits.overrides.values().any(|most| *most == 3), "localhost is known");
        for bad in ["10.0.0.5", "10.0.0.5:many", "no.such.host.invalid:1"] {
            let error = per_ip(&config(&[("max.connections.per.ip.overrides", bad)])).unwrap_err();
            assert!(error.to_string().contains("10.0.0.5:100"), "{error}");
        }
        let none = per_ip(&config(&[("max.connections.per.ip", "0")])).unwrap_err();
        assert!(none.to_string().contains("raise it"), "{none}");
    }
}
