//! How this process starts: what the command line said, checked.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::model::DurabilityClass;

use super::StartError;
use super::memory::MEMORY_MIN_BYTES;

/// What the command line said. Units are in the names.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Directory of all data.
    pub data_dir: PathBuf,
    /// Address of the Kafka listener.
    pub listen: SocketAddr,
    /// `host:port` that clients are told; `None` means `listen`.
    pub advertise: Option<String>,
    /// Address of the admin listener; refused until it exists.
    pub admin_listen: Option<SocketAddr>,
    /// Number of shards; one until the mesh exists.
    pub shards: u16,
    /// Cores to pin to, or none to leave placement to the kernel.
    pub cores: Option<Vec<usize>>,
    /// Default durability class of topics; `None` leaves it to the
    /// configuration.
    pub durability: Option<DurabilityClass>,
    /// Memory for buffers per shard, in bytes.
    pub memory_bytes: usize,
    /// Longest look-again before a park, in microseconds.
    pub spin_us: u32,
    /// Configuration file, TOML.
    pub config_file: Option<PathBuf>,
    /// `KEY=VALUE` overrides, in order.
    pub overrides: Vec<String>,
}

/// Where clients are told to connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advertised {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Settings {
    /// Refuses what this version cannot do, by name and with the remedy.
    pub fn check(&self) -> Result<Advertised, StartError> {
        if let Some(address) = self.admin_listen {
            return Err(StartError::Usage(format!(
                "--admin-listen {address}: this version has no admin listener; leave the flag out"
            )));
        }
        if self.shards != 1 {
            return Err(StartError::Usage(format!(
                "--shards {}: this version runs one shard; use --shards 1 or leave the flag out",
                self.shards
            )));
        }
        if let Some(cores) = &self.cores
            && cores.len() != usize::from(self.shards)
        {
            return Err(StartError::Usage(format!(
                "--cores names {} cores for {} shard; name one core per shard",
                cores.len(),
                self.shards
            )));
        }
        if self.memory_bytes < MEMORY_MIN_BYTES {
            return Err(StartError::Usage(format!(
                "--memory {}: a shard needs at least {MEMORY_MIN_BYTES} bytes; use --memory 64MiB \
                 or more",
                self.memory_bytes
            )));
        }
        self.advertised()
    }

    fn advertised(&self) -> Result<Advertised, StartError> {
        let Some(text) = &self.advertise else {
            if self.listen.ip().is_unspecified() {
                return Err(StartError::Usage(format!(
                    "--listen {} is a wildcard, which clients cannot connect to; add \
                     --advertise HOST:PORT with the name that they can reach",
                    self.listen
                )));
            }
            let (host, port) = (self.listen.ip().to_string(), self.listen.port());
            return Ok(Advertised { host, port });
        };
        let fault = || {
            StartError::Usage(format!(
                "--advertise {text}: not HOST:PORT with a port from 1 to 65535"
            ))
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(fault)?;
        let port: u16 = port.parse().map_err(|_| fault())?;
        if host.is_empty() || port == 0 {
            return Err(fault());
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
        let wildcard = host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified());
        if wildcard || host.contains(char::is_whitespace) {
            return Err(StartError::Usage(format!(
                "--advertise {text}: {host:?} is no host that clients can connect to; use a name \
                 or an address that they can reach"
            )));
        }
        Ok(Advertised { host, port })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::broker) fn settings(listen: &str) -> Settings {
        Settings {
            data_dir: "data".into(),
            listen: listen.parse().unwrap(),
            advertise: None,
            admin_listen: None,
            shards: 1,
            cores: None,
            durability: None,
            memory_bytes: 64 << 20,
            spin_us: 0,
            config_file: None,
            overrides: Vec::new(),
        }
    }

    #[test]
    fn a_wildcard_needs_an_advertised_address() {
        let mut wild = settings("0.0.0.0:9092");
        assert!(wild.check().unwrap_err().to_string().contains("--advertise HOST:PORT"));
        wild.advertise = Some("broker.example:9092".into());
        let told = wild.check().unwrap();
        assert_eq!((told.host.as_str(), told.port), ("broker.example", 9092));
        for bad in ["nohost", ":9092", "h:0", "h:99999"] {
            wild.advertise = Some(bad.into());
            assert!(wild.check().is_err(), "{bad}");
        }
        wild.advertise = Some("[::1]:9092".into());
        assert_eq!(wild.check().unwrap().host, "::1");
        assert_eq!(settings("127.0.0.1:9092").check().unwrap().port, 9092);
    }

    #[test]
    fn what_is_not_there_yet_is_refused_by_name() {
        let mut s = settings("127.0.0.1:9092");
        s.shards = 2;
        assert!(s.check().unwrap_err().to_string().contains("--shards 2"));
        let mut s = settings("127.0.0.1:9092");
        s.admin_listen = Some("127.0.0.1:9644".parse().unwrap());
        assert!(s.check().unwrap_err().to_string().contains("--admin-listen"));
        let mut s = settings("127.0.0.1:9092");
        s.memory_bytes = 1;
        assert!(s.check().unwrap_err().to_string().contains("--memory 64MiB or more"));
    }
}
