//! Connections that do nothing, and what they cost the broker.

use std::time::Duration;

use millstream::wire::generated::api_versions::ApiVersionsRequest;

use crate::options::Idle;
use crate::plain::{CLIENT_ID, Plain};
use crate::{Result, process};

const API_VERSIONS_VERSION: i16 = 3;

/// Opens them, waits, and prints what they cost.
///
/// # Errors
/// When a connection is refused or its first request is not answered.
pub(crate) fn run(options: &Idle) -> Result<()> {
    process::pin(options.target.pin)?;
    process::need_files(u64::from(options.connections) + 64)?;
    let pid = options.target.broker_pid;
    let before = pid.map(process::resident_bytes).transpose()?;
    let request = ApiVersionsRequest {
        client_software_name: CLIENT_ID.into(),
        client_software_version: env!("CARGO_PKG_VERSION").into(),
        ..Default::default()
    };
    let mut connections = Vec::new();
    for _ in 0..options.connections {
        let mut connection = Plain::connect(options.target.broker)?;
        connection.ask(API_VERSIONS_VERSION, &request)?;
        connections.push(connection);
    }
    println!("{} connections are open", connections.len());
    let cpu_before = pid.map(process::cpu_time).transpose()?;
    std::thread::sleep(Duration::from_secs_f64(options.seconds));
    if let (Some(pid), Some(before), Some(cpu_before)) = (pid, before, cpu_before) {
        let after = process::resident_bytes(pid)?;
        let cpu = process::cpu_time(pid)?.saturating_sub(cpu_before);
        println!(
            "broker: RSS {} KiB before, {} KiB now: {} bytes per connection; {:.2} % of a core",
            before >> 10,
            after >> 10,
            after.saturating_sub(before) / u64::from(options.connections),
            cpu.as_secs_f64() / options.seconds * 100.0
        );
    }
    // The last to be opened is still served.
    let last = connections.last_mut().ok_or("there is no connection")?;
    last.ask(API_VERSIONS_VERSION, &request)?;
    Ok(())
}
