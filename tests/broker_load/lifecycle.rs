//! Starts, stops and refusals, with their figures.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use millstream::wire::generated::fetch::FetchRequest;
use millstream::wire::generated::produce::ProduceResponse;
use millstream::wire::{Message as _, Reader};

use super::common::Broker;
use super::figures::{alone, cpu, resident};
use super::records::{
    FETCH_VERSION, PRODUCE_VERSION, ask_produce, create, end, fetch, frame, produce, read_frame,
};

/// Most resident memory of a broker that does nothing, in bytes.
const IDLE_BYTES_MAX: u64 = 30 << 20;
/// A start or stop that takes longer hangs.
const HANGS_AFTER: Duration = Duration::from_secs(60);

fn serve(data_dir: &std::path::Path, listen: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millstream"))
        .args(["serve", "--memory", "64MiB", "--listen", listen, "--data-dir"])
        .arg(data_dir)
        .output()
        .unwrap()
}

#[test]
fn a_second_broker_on_the_directory_or_the_port_is_refused() {
    let _alone = alone();
    let broker = Broker::start();
    let refused = serve(broker.data_dir(), "127.0.0.1:0");
    let says = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{says}");
    assert!(says.contains(&format!("process id {}", broker.pid())), "{says}");
    assert!(says.contains("--data-dir"), "{says}");

    let elsewhere = tempfile::tempdir().unwrap();
    let refused = serve(elsewhere.path(), &broker.address().to_string());
    let says = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{says}");
    assert!(says.contains(&broker.address().to_string()), "{says}");
    assert!(says.contains("--listen"), "{says}");
    // The first is none the worse for it.
    create(&mut broker.connect(), "t", 1);
}

#[test]
fn a_broker_is_ready_soon_and_idles_small() {
    let _alone = alone();
    let exec = Instant::now();
    let mut broker = Broker::start();
    println!("ready {:?} after exec, on an empty directory", exec.elapsed());
    let mut client = broker.connect();
    let topic = create(&mut client, "t", 1);
    ask_produce(&mut client, &produce(&topic, 0, 1, 100));
    println!("first record of a new topic acknowledged {:?} after exec", exec.elapsed());
    drop(client);
    assert!(broker.stop().success());

    let exec = Instant::now();
    broker.restart();
    let ready = exec.elapsed();
    let mut client = broker.connect();
    assert_eq!(ask_produce(&mut client, &produce(&topic, 0, 1, 100)), 1);
    let first = exec.elapsed();
    println!("started again: ready {ready:?}, first record acknowledged {first:?} after exec");
    assert!(first < HANGS_AFTER);

    // One connection stays open; it is idle as well.
    let (before, since) = (cpu(broker.pid()), Instant::now());
    std::thread::sleep(Duration::from_secs(5));
    let share = (cpu(broker.pid()) - before).as_secs_f64() / since.elapsed().as_secs_f64();
    let bytes = resident(broker.pid());
    println!("idle: {:.2} % of a core, {} KiB resident", share * 100.0, bytes >> 10);
    assert!(bytes < IDLE_BYTES_MAX, "{bytes} bytes resident");
}

/// Produces without pause until the broker ends; the number of acknowledgements.
fn produce_to_the_end(mut stream: TcpStream, topic: &str, partition: i32) -> i64 {
    let request = frame(PRODUCE_VERSION, 1, &produce(topic, partition, 10, 1000));
    let mut acknowledged = 0;
    while stream.write_all(&request).is_ok() {
        let Some(answer) = read_frame(&mut stream) else { break };
        // Behind the correlation id and the tags of the header.
        let answer = ProduceResponse::decode(Reader::new(&answer[5..]), PRODUCE_VERSION).unwrap();
        match answer.responses[0].partition_responses[0].error_code {
            0 => acknowledged += 1,
            // What a stop may say to a batch that it does not take any more.
            code => println!("partition {partition} was told {code} at the end"),
        }
    }
    acknowledged
}

fn stop_under_load(durability: &str) {
    let mut broker = Broker::start_with(&["--durability", durability]);
    let mut client = broker.connect();
    let topic = create(&mut client, "t", 16);
    let empty = create(&mut client, "empty", 1);
    let connect = || TcpStream::connect(broker.address()).unwrap();
    let producers: Vec<_> = (0..16)
        .map(|partition| {
            let (stream, topic) = (connect(), topic.clone());
            std::thread::spawn(move || produce_to_the_end(stream, &topic, partition))
        })
        .collect();
    // One that reads nothing, and one whose fetch waits for data.
    let mut slow = connect();
    slow.write_all(&frame(FETCH_VERSION, 1, &fetch(&topic, 16, 1 << 20)).repeat(8)).unwrap();
    let mut waiting = connect();
    let wait = FetchRequest { max_wait_ms: 60_000, ..fetch(&empty, 1, 1 << 20) };
    waiting.write_all(&frame(FETCH_VERSION, 2, &wait)).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let told = Instant::now();
    let status = broker.stop();
    let took = told.elapsed();
    println!("class {durability}: stopped {took:?} after SIGTERM under load");
    assert!(status.success(), "{status}");
    assert!(took < HANGS_AFTER);
    let acknowledged: Vec<i64> = producers.into_iter().map(|p| p.join().unwrap()).collect();
    println!("{} batches were acknowledged before", acknowledged.iter().sum::<i64>());
    broker.restart();
    let mut client = broker.connect();
    for (partition, acknowledged) in (0..).zip(acknowledged) {
        let end = end(&mut client, &topic, partition);
        assert!(acknowledged > 0, "partition {partition} was served");
        assert!(end >= acknowledged * 10, "partition {partition} ends at {end}");
    }
}

#[test]
fn a_stop_under_load_is_clean_in_class_os() {
    let _alone = alone();
    stop_under_load("os");
}

#[test]
fn a_stop_under_load_is_clean_in_class_disk() {
    let _alone = alone();
    stop_under_load("disk");
}
