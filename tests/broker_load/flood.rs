//! 5,000 idle connections, one that floods without pause, and 99 others.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use millstream::io::preflight;
use millstream::wire::generated::api_versions::ApiVersionsRequest;

use super::common::{Broker, Client};
use super::figures::{alone, percentile, resident};
use super::records::{PRODUCE_VERSION, ask_produce, create, end, frame, produce};

const IDLE: usize = 5_000;
const OTHERS: usize = 99;
/// Requests of each of the others in one run, and the time between them.
const OTHERS_REQUESTS: usize = 200;
const OTHERS_PAUSE: Duration = Duration::from_millis(10);
/// Most resident memory that an idle connection may cost, in bytes. What it
/// costs is printed; the first 256 also touch a receive buffer each.
const IDLE_BYTES_MAX: u64 = 8 << 10;

/// Runs the others beside whatever else happens; returns their latencies.
fn others(broker: &Broker, topic: &str) -> Vec<Duration> {
    let start = Arc::new(Barrier::new(OTHERS));
    let threads: Vec<_> = (0..OTHERS)
        .map(|number| {
            let mut client = broker.connect();
            let request = produce(topic, i32::try_from(number % 8).unwrap(), 1, 100);
            let start = start.clone();
            std::thread::spawn(move || {
                start.wait();
                let mut latencies = Vec::new();
                for _ in 0..OTHERS_REQUESTS {
                    let sent = Instant::now();
                    ask_produce(&mut client, &request);
                    latencies.push(sent.elapsed());
                    std::thread::sleep(OTHERS_PAUSE);
                }
                latencies
            })
        })
        .collect();
    threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
}

/// A connection that writes produces without pause, and one thread that reads
/// what is answered.
struct Flooder {
    stream: TcpStream,
    stop: Arc<AtomicBool>,
    answers: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Flooder {
    fn start(broker: &Broker, topic: &str) -> Self {
        let stream = TcpStream::connect(broker.address()).unwrap();
        let requests = frame(PRODUCE_VERSION, 7, &produce(topic, 0, 1, 100)).repeat(256);
        let stop = Arc::new(AtomicBool::new(false));
        let answers = Arc::new(AtomicU64::new(0));
        let (mut to, stopped) = (stream.try_clone().unwrap(), stop.clone());
        let writer = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                to.write_all(&requests).unwrap();
            }
            to.shutdown(Shutdown::Write).unwrap();
        });
        let (mut from, counted) = (stream.try_clone().unwrap(), answers.clone());
        let reader = std::thread::spawn(move || {
            let mut length = [0; 4];
            let mut answer = Vec::new();
            let mut from = std::io::BufReader::with_capacity(1 << 16, &mut from);
            while from.read_exact(&mut length).is_ok() {
                answer.resize(u32::from_be_bytes(length) as usize, 0);
                from.read_exact(&mut answer).unwrap();
                assert_eq!(answer[..4], 7i32.to_be_bytes(), "an answer to the flooder");
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { stream, stop, answers, threads: vec![writer, reader] }
    }

    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().unwrap();
        }
        drop(self.stream);
        self.answers.load(Ordering::Relaxed)
    }
}

#[test]
fn c4_five_thousand_idle_connections_and_a_flooder_leave_the_others_their_turn() {
    let _alone = alone();
    preflight::open_files(IDLE as u64 + 512).unwrap();
    let broker = Broker::start_with(&["--durability", "os"]);
    let topic = create(&mut broker.connect(), "load", 8);
    // The buffers that all share are touched before.
    let warm = others(&broker, &topic);

    let before = resident(broker.pid());
    let request = ApiVersionsRequest {
        client_software_name: "idle".into(),
        client_software_version: "1".into(),
        ..Default::default()
    };
    let mut idle: Vec<Client> = (0..IDLE)
        .map(|_| {
            let mut client = broker.connect();
            assert_eq!(client.ask(3, &request).error_code, 0);
            client
        })
        .collect();
    let each = resident(broker.pid()).saturating_sub(before) / IDLE as u64;
    println!("{IDLE} idle connections: {each} bytes of resident memory each");
    assert!(each <= IDLE_BYTES_MAX, "{each} bytes for an idle connection");

    let mut quiet = others(&broker, &topic);
    let flooder = Flooder::start(&broker, "load");
    while flooder.answers.load(Ordering::Relaxed) < 10_000 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (flooded, since) = (flooder.answers.load(Ordering::Relaxed), Instant::now());
    let mut beside = others(&broker, &topic);
    let flooded = flooder.answers.load(Ordering::Relaxed) - flooded;
    let rate = flooded as f64 / since.elapsed().as_secs_f64();
    assert!(flooded > 0, "the flooder was served as well");
    for (name, latencies) in [("without", &mut quiet), ("beside", &mut beside)] {
        let at = |percent| percentile(&mut latencies.clone(), percent);
        println!(
            "99 others {name} the flood: p50 {:?}, p99 {:?}, max {:?}",
            at(50),
            at(99),
            at(100)
        );
    }
    println!("the flooder was served {rate:.0} requests a second meanwhile");

    let answered = flooder.end();
    let records = answered as usize + warm.len() + quiet.len() + beside.len();
    let mut client = broker.connect();
    let stored: i64 = (0..8).map(|partition| end(&mut client, &topic, partition)).sum();
    assert_eq!(stored, i64::try_from(records).unwrap(), "each answer is one record");
    for client in idle.iter_mut().step_by(97) {
        assert_eq!(client.ask(3, &request).error_code, 0, "idle connections live");
    }
}

#[test]
fn c1_a_frame_announced_as_two_gib_is_refused_without_memory() {
    let _alone = alone();
    let broker = Broker::start();
    let mut other = broker.connect();
    create(&mut other, "load", 1);
    let before = resident(broker.pid());
    for _ in 0..100 {
        let mut stream = TcpStream::connect(broker.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut bytes = 0x7fff_ffff_u32.to_be_bytes().to_vec();
        bytes.extend([0; 1000]);
        stream.write_all(&bytes).unwrap();
        // The broker may have reset it already: bytes were left unread.
        let closed = stream.read(&mut [0; 16]);
        assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    }
    let grown = resident(broker.pid()).saturating_sub(before);
    println!("100 frames announced as 2 GiB: {} KiB more resident memory", grown >> 10);
    assert!(grown < 4 << 20, "{grown} bytes for frames that were refused");
    ask_produce(&mut other, &produce("load", 0, 1, 100));
}
