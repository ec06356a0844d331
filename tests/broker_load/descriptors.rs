//! A broker with few descriptors: connections do not take those of the logs.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use millstream::io::preflight;
use millstream::wire::generated::api_versions::ApiVersionsRequest;

use super::common::{Broker, Client};
use super::figures::alone;
use super::records::{PRODUCE_VERSION, ask_produce, create, end, frame, produce, read_frame};

/// The least that a broker starts with.
const OPEN_FILES: u32 = 1024;
/// What is left for connections.
const CONNECTIONS: usize = 384;
const WAITING: usize = 300;
/// More partitions than files are kept open.
const PARTITIONS: i32 = 300;

#[test]
fn connections_at_their_limit_leave_the_logs_their_descriptors() {
    let _alone = alone();
    preflight::open_files(4096).unwrap();
    // Small segments: files are made, closed and opened all the time.
    let flags = ["--durability", "os", "--set", "log.segment.bytes=1048576"];
    let broker = Broker::start_within(Some(OPEN_FILES), &flags);
    let mut client = broker.connect();
    let topic = create(&mut client, "many", PARTITIONS);
    let request = ApiVersionsRequest {
        client_software_name: "many".into(),
        client_software_version: "1".into(),
        ..Default::default()
    };
    let mut open: Vec<Client> = (1..CONNECTIONS).map(|_| broker.connect()).collect();
    for client in &mut open {
        assert_eq!(client.ask(3, &request).error_code, 0);
    }
    // They are connected, by the kernel, and wait to be accepted.
    let mut waiting: Vec<TcpStream> = (0..WAITING)
        .map(|number| {
            let mut stream = TcpStream::connect(broker.address()).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let request = produce(&topic, number as i32 % PARTITIONS, 1, 100);
            stream.write_all(&frame(PRODUCE_VERSION, 7, &request)).unwrap();
            stream
        })
        .collect();
    for round in 0..4 {
        for partition in 0..PARTITIONS {
            let done = ask_produce(&mut client, &produce(&topic, partition, 300, 1000));
            assert_eq!(done, round * 300, "nobody of those who wait was served");
        }
    }
    drop(open);
    for stream in &mut waiting {
        assert!(read_frame(stream).is_some(), "it was served when others had closed");
    }
    for partition in 0..PARTITIONS {
        assert_eq!(end(&mut client, &topic, partition), 4 * 300 + 1);
    }
    let log = broker.log();
    assert!(log.contains("max.connections"), "the log says why some wait:\n{log}");
    assert!(!log.contains("Too many open files"), "{log}");
}

#[test]
fn an_address_may_have_so_many_connections_and_no_more() {
    let _alone = alone();
    let flags = [
        "--set",
        "max.connections.per.ip=1",
        "--set",
        "max.connections.per.ip.overrides=127.0.0.1:5",
    ];
    let broker = Broker::start_with(&flags);
    let request = ApiVersionsRequest {
        client_software_name: "few".into(),
        client_software_version: "1".into(),
        ..Default::default()
    };
    let mut open: Vec<Client> = (0..5).map(|_| broker.connect()).collect();
    for client in &mut open {
        assert_eq!(client.ask(3, &request).error_code, 0);
    }
    for _ in 0..3 {
        assert!(broker.connect().drain().is_empty(), "closed without an answer");
    }
    let log = broker.log();
    assert!(log.contains("max.connections.per.ip"), "{log}");
}
