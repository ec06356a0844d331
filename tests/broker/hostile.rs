//! Broken frames against a real broker: it neither ends nor panics, and
//! other connections notice nothing (checklist 3, 9).
//!
//! `MILLSTREAM_MUTATION_SEED=N` replays the run that a failure names.

use millstream::wire::generated::api_versions::ApiVersionsRequest;
use millstream::wire::generated::metadata::MetadataRequest;
use millstream::wire::{ApiKey, Message};

use super::admin::{create, topic};
use super::common::{Broker, Client, frame};
use super::random::{Random, message};
use super::requests::{batch, end, fetch_request, produce, produce_request, sequenced, wanted};
use super::schema::{self, Api};

/// Most cuts of one API's frame.
const CUTS_MAX: usize = 48;

/// Frames of the mutation run.
const MUTATED: usize = 20_000;

/// Most frames on one connection; the first that is broken closes it, and what
/// stands behind it is lost.
const PIPELINED_MAX: usize = 3;

/// The served APIs with their schemas.
fn served() -> Vec<(ApiKey, Api)> {
    let all = schema::load().into_iter();
    let keyed = all.map(|api| (ApiKey::from_code(api.key).expect("of the same table"), api));
    keyed.filter(|(key, _)| key.served_versions().is_some()).collect()
}

/// A request body that says something, of this API and version.
fn body(random: &mut Random, key: ApiKey, api: &Api, version: i16) -> Vec<u8> {
    let encoded = match key {
        ApiKey::Produce if version < 13 => {
            let parts = [(0, batch(3, 40)), (1, sequenced(7, 0, 2)), (9, batch(1, 1))];
            produce_request(-1, "t", &parts).encode(version)
        }
        ApiKey::Fetch if version < 13 => {
            let mut fetch = fetch_request(&[("t", wanted(0, 0)), ("t", wanted(1, 3))]);
            if version >= 7 {
                fetch.session_epoch = 0;
            }
            fetch.encode(version)
        }
        ApiKey::Metadata if version >= 1 => {
            MetadataRequest { topics: None, ..Default::default() }.encode(version)
        }
        _ => Ok(message(random, api, &api.request, version).clean),
    };
    encoded.expect("the version has these fields")
}

/// A frame that ends before its announced length, and one that announces what
/// it has: neither says what its API needs.
fn cuts(whole: &[u8], at: usize) -> [Vec<u8>; 2] {
    let mut shorter = whole[..at].to_vec();
    if let Some(length) = at.checked_sub(4) {
        shorter[..4].copy_from_slice(&u32::try_from(length).unwrap().to_be_bytes());
    }
    [whole[..at].to_vec(), shorter]
}

fn unharmed(broker: &Broker, other: &mut Client) {
    assert_eq!(other.ask(0, &ApiVersionsRequest::default()).error_code, 0);
    let log = broker.log();
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn c9_frames_cut_anywhere_end_their_connection_and_no_other() {
    let broker = Broker::start();
    let mut other = broker.connect();
    create(&mut other, topic("t", 2));
    let mut random = Random(3);
    let mut sent = 0;
    for (key, api) in served() {
        let version = key.served_versions().expect("only those").max;
        for version in [version, key.served_versions().expect("only those").min] {
            let body = body(&mut random, key, &api, version);
            let whole = frame(key, version, 1, "test", &body);
            let step = whole.len().div_ceil(CUTS_MAX).max(1);
            // The heads at each byte, the rest sampled.
            for at in (0..whole.len().min(24)).chain((24..whole.len()).step_by(step)) {
                for cut in cuts(&whole, at) {
                    let mut client = broker.connect();
                    client.send_bytes(&cut);
                    client.send_no_more();
                    client.drain();
                    sent += 1;
                }
            }
            unharmed(&broker, &mut other);
        }
    }
    assert!(sent > 1000, "{sent} frames");
    produce(&mut other, "t", 0, batch(1, 10));
    assert!(end(&mut other, "t", 0) > 0);
}

const NASTY: [&[u8]; 8] = [
    &[0x7f, 0xff, 0xff, 0xff],
    &[0xff; 4],
    &[0x80, 0, 0, 0],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff; 6],
    &[0x7f, 0xff],
    &[0],
    &[0xfe],
];

/// Changes a few bytes behind the length, and most times keeps it true.
fn mutate(random: &mut Random, frame: &mut Vec<u8>) {
    for _ in 0..random.below(4) {
        if frame.len() <= 4 {
            break;
        }
        // Key and version mostly stay, so that something is reached.
        let from = if random.below(8) == 0 { 4 } else { 8 };
        let at = (from + random.below(frame.len())).min(frame.len() - 1);
        match random.below(6) {
            0 => frame[at] ^= 1 << random.below(8),
            1 => frame[at] = random.next() as u8,
            2 => frame.truncate(at.max(4)),
            3 => drop(frame.remove(at)),
            4 => frame.insert(at, random.next() as u8),
            _ => {
                let nasty = NASTY[random.below(NASTY.len())];
                frame[at..].iter_mut().zip(nasty).for_each(|(place, byte)| *place = *byte);
            }
        }
    }
    let length = u32::try_from(frame.len() - 4).unwrap();
    frame[..4].copy_from_slice(&length.to_be_bytes());
}

#[test]
fn c3_20000_mutated_requests_leave_a_broker_that_answers() {
    let seed = std::env::var("MILLSTREAM_MUTATION_SEED");
    let seed = seed.ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_130);
    eprintln!("mutations from seed {seed}");
    let mut broker = Broker::start();
    let mut other = broker.connect();
    create(&mut other, topic("t", 2));
    let apis = served();
    let mut random = Random(seed);
    let mut sent = 0;
    while sent < MUTATED {
        let mut client = broker.connect();
        let count = 1 + random.below(PIPELINED_MAX);
        sent += count;
        for number in 0..count {
            let (key, api) = &apis[random.below(apis.len())];
            let versions: Vec<_> = key.served_versions().expect("only those").iter().collect();
            let version = versions[random.below(versions.len())];
            let body = body(&mut random, *key, api, version);
            let id = i32::try_from(number).unwrap();
            let mut frame = frame(*key, version, id, "test", &body);
            mutate(&mut random, &mut frame);
            client.send_bytes(&frame);
        }
        client.send_no_more();
        client.drain();
        if random.below(200) == 0 {
            unharmed(&broker, &mut other);
        }
    }
    unharmed(&broker, &mut other);
    let before = produce(&mut other, "t", 0, batch(1, 10));
    assert_eq!(end(&mut other, "t", 0), before + 1);
    // And what it stored can be recovered.
    assert!(broker.stop().success());
    broker.restart();
    let mut other = broker.connect();
    assert_eq!(end(&mut other, "t", 0), before + 1);
    unharmed(&broker, &mut other);
}
