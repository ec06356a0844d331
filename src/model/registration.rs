//! What a node says about itself when it registers: the only source of
//! Metadata and DescribeCluster answers.

use super::ids::NodeId;

/// One address under which clients may reach a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listener {
    /// Name of the listener, for example `PLAINTEXT`. Answers name the address
    /// of the listener that the question came in by.
    pub name: String,
    /// Advertised host.
    pub host: String,
    /// Advertised port.
    pub port: u16,
    /// Kafka's id of the security protocol: 0 is PLAINTEXT.
    pub security_protocol: i16,
}

/// A node of the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeRegistration {
    /// The node.
    pub node_id: NodeId,
    /// Random per start of the process.
    pub incarnation: [u8; 16],
    /// Where it stands (`broker.rack`); all its shards share it.
    pub rack: Option<String>,
    /// Number of its shards: partitions are placed on 0 until this.
    pub shards: u16,
    /// Its addresses.
    pub listeners: Vec<Listener>,
}

impl NodeRegistration {
    /// The listener of this name.
    #[must_use]
    pub fn listener(&self, name: &str) -> Option<&Listener> {
        self.listeners.iter().find(|listener| listener.name == name)
    }
}
