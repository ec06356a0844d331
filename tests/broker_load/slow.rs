//! Consumers that ask for much and read little: memory stays within the pools.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::common::Broker;
use super::figures::{alone, pools, resident};
use super::records::{FETCH_VERSION, ask_produce, create, end, fetch, frame, produce};

const CONSUMERS: usize = 200;
const PARTITIONS: i32 = 4;
/// Batches of each partition, of about 500 KiB: more in all than the tail pool
/// holds, so that some are read from disk.
const BATCHES: usize = 24;
/// Requests that each consumer sends at once.
const PIPELINED: i32 = 8;
/// What a broker needs beside its pools, in bytes.
const BESIDE_POOLS: u64 = 30 << 20;

#[test]
fn slow_consumers_stay_within_the_pools() {
    let _alone = alone();
    let mut broker = Broker::start_with(&["--durability", "os"]);
    let mut client = broker.connect();
    let topic = create(&mut client, "slow", PARTITIONS);
    for partition in 0..PARTITIONS {
        let request = produce(&topic, partition, 500, 1000);
        for _ in 0..BATCHES {
            ask_produce(&mut client, &request);
        }
    }
    let request = fetch(&topic, PARTITIONS, 1 << 20);
    let asked: Vec<u8> = (0..PIPELINED).flat_map(|id| frame(FETCH_VERSION, id, &request)).collect();
    let consumers: Vec<TcpStream> = (0..CONSUMERS)
        .map(|_| {
            let mut stream = TcpStream::connect(broker.address()).unwrap();
            stream.write_all(&asked).unwrap();
            stream
        })
        .collect();
    let mut most = 0;
    let started = Instant::now();
    let small = produce(&topic, 0, 1, 100);
    let mut served = 0;
    let mut slowest = Duration::ZERO;
    while started.elapsed() < Duration::from_secs(5) {
        let sent = Instant::now();
        ask_produce(&mut client, &small);
        served += 1;
        slowest = slowest.max(sent.elapsed());
        most = most.max(resident(broker.pid()));
        // Each reads a little now and then.
        let reader = &consumers[served % CONSUMERS];
        reader.set_nonblocking(true).unwrap();
        let _ = std::io::Read::read(&mut &*reader, &mut [0; 4096]);
    }
    let stored = end(&mut client, &topic, 0);
    assert_eq!(stored, i64::try_from(BATCHES * 500 + served).unwrap());
    drop(consumers);
    assert!(broker.stop().success());

    assert!(!broker.log().contains("corrupt"), "a cold read met damage:\n{}", broker.log());
    let pools = pools(&broker.log());
    assert_eq!(pools.len(), 7, "the log tells of every pool:\n{}", broker.log());
    for pool in &pools {
        println!(
            "pool {}: high water {} KiB of {} KiB",
            pool.name,
            pool.high_water >> 10,
            pool.limit >> 10
        );
        assert!(pool.high_water <= pool.limit, "{pool:?}");
    }
    let limit: u64 = pools.iter().map(|pool| pool.limit).sum();
    println!(
        "{CONSUMERS} slow consumers: {} KiB resident at most, pools {} KiB; beside them {served} \
         produces were answered, the slowest after {slowest:?}",
        most >> 10,
        limit >> 10
    );
    assert!(most <= limit + BESIDE_POOLS, "{most} bytes resident");
}
