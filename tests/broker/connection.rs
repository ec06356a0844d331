//! What a connection promises whatever is asked on it: order, and that what
//! is broken harms nobody else (checklist 3, 4, 9, 23).

use millstream::wire::generated::api_versions::ApiVersionsRequest;
use millstream::wire::generated::fetch::FetchRequest;
use millstream::wire::generated::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic,
};
use millstream::wire::generated::metadata::{MetadataRequest, MetadataRequestTopic};
use millstream::wire::{ApiKey, Message, Reader, Request, ResponseHeader};

use super::admin::{create, topic};
use super::common::{Broker, Client, frame};
use super::requests::{
    FOR_EVER_MS, answered, batch, end, fetch_request, offsets, produce_request, wanted,
};

/// Requests on one connection at a time in the test of order.
const PIPELINED: i32 = 5000;

/// Asks something that has nothing to do with what is broken elsewhere.
fn still_answers(client: &mut Client) {
    assert_eq!(client.ask(0, &ApiVersionsRequest::default()).error_code, 0);
}

fn names() -> MetadataRequest {
    let topic = MetadataRequestTopic { name: Some("t".into()), ..Default::default() };
    MetadataRequest { topics: Some(vec![topic]), ..Default::default() }
}

fn ends() -> ListOffsetsRequest {
    let partition = ListOffsetsPartition { timestamp: -1, ..Default::default() };
    let topics = vec![ListOffsetsTopic { name: "t".into(), partitions: vec![partition] }];
    ListOffsetsRequest { replica_id: -1, topics, ..Default::default() }
}

#[test]
fn c3_a_body_that_cannot_be_read_closes_its_connection_only() {
    let broker = Broker::start();
    let mut other = broker.connect();
    create(&mut other, topic("t", 1));
    let produce = produce_request(-1, "t", &[(0, batch(1, 10))]).encode(9).unwrap();
    let fetch = fetch_request(&[("t", wanted(0, 0))]).encode(12).unwrap();
    let bodies = [
        (ApiKey::Metadata, 12, names().encode(12).unwrap()),
        (ApiKey::ListOffsets, 7, ends().encode(7).unwrap()),
        (ApiKey::Produce, 9, produce),
        (ApiKey::Fetch, 12, fetch),
    ];
    for (key, version, body) in bodies {
        let cut = &body[..body.len() - 1];
        let long = [&body[..], &[0]].concat();
        let endless = [&[0xff; 4][..], &body[..]].concat();
        for (what, broken) in [("cut", cut), ("long", &long), ("endless", &endless), ("none", &[])]
        {
            let mut client = broker.connect();
            client.send_body(key, version, broken);
            assert_eq!(client.receive(), None, "{key:?} {what}");
            still_answers(&mut other);
        }
        let mut client = broker.connect();
        client.ask_body(key, version, &body);
    }
    assert_eq!(end(&mut other, "t", 0), 1, "the whole one alone was taken");
}

#[test]
fn c3_what_was_asked_before_the_broken_frame_is_still_done() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 1));
    let body = produce_request(-1, "t", &[(0, batch(1, 10))]).encode(9).unwrap();
    client.send_body(ApiKey::Produce, 9, &body);
    client.send_body(ApiKey::Produce, 9, &body[..20]);
    client.drain();
    let wait = FetchRequest { max_wait_ms: FOR_EVER_MS, ..fetch_request(&[("t", wanted(0, 0))]) };
    let answer = answered(broker.connect().ask(12, &wait)).remove(0).1;
    assert_eq!(offsets(&answer), [(0, 0)]);
}

#[test]
fn c3_the_answers_to_what_came_before_leave_before_the_connection_is_closed() {
    let broker = Broker::start();
    let mut other = broker.connect();
    create(&mut other, topic("t", 1));
    let body = produce_request(-1, "t", &[(0, batch(1, 10))]).encode(9).unwrap();
    let silent = produce_request(0, "nowhere", &[(0, batch(1, 10))]).encode(9).unwrap();
    let produces = (1..=5).flat_map(|id| frame(ApiKey::Produce, 9, id, "test", &body));
    let produces: Vec<u8> = produces.collect();
    let broken = [
        ("a negative length", vec![0xff; 4]),
        ("a huge length", vec![0x7f; 4]),
        ("an unknown key", vec![0, 0, 0, 8, 0x7f, 0xff, 0, 0, 0, 0, 0, 1]),
        ("a body that is cut", frame(ApiKey::Produce, 9, 6, "test", &body[..20])),
        ("a failure without an answer", frame(ApiKey::Produce, 9, 6, "test", &silent)),
    ];
    for (round, (what, broken)) in (1..).zip(broken) {
        let mut client = broker.connect();
        // All of it is there at once, so nothing is durable when it is met.
        client.send_bytes(&[&produces[..], &broken[..], &produces[..]].concat());
        for id in 1..=5_i32 {
            let answer = client.receive().unwrap_or_else(|| panic!("{what}: no answer {id}"));
            assert_eq!(answer[..4], id.to_be_bytes(), "{what}");
        }
        assert_eq!(client.receive(), None, "{what}");
        assert_eq!(end(&mut other, "t", 0), 5 * round, "{what}: what follows is not done");
    }
}

#[test]
fn c3_a_parked_fetch_before_a_broken_frame_is_answered_in_its_time() {
    let broker = Broker::start();
    let mut other = broker.connect();
    create(&mut other, topic("t", 1));
    let fetch = FetchRequest { max_wait_ms: FOR_EVER_MS, ..fetch_request(&[("t", wanted(0, 0))]) };
    let fetch = fetch.encode(12).unwrap();
    let mut client = broker.connect();
    client.send_bytes(&[frame(ApiKey::Fetch, 12, 1, "test", &fetch), vec![0xff; 4]].concat());
    still_answers(&mut other);
    let gone = {
        let mut gone = broker.connect();
        gone.send_bytes(&[frame(ApiKey::Fetch, 12, 1, "test", &fetch), vec![0xff; 4]].concat());
        gone.send_no_more();
        gone.drain()
    };
    assert!(!gone.is_empty(), "nobody waits for it any more, so it is answered at once");
    super::requests::produce(&mut other, "t", 0, batch(1, 10));
    assert!(client.receive().is_some());
    assert_eq!(client.receive(), None);
}

#[test]
fn c9_a_peer_that_leaves_is_forgotten_although_its_fetch_is_parked() {
    let broker = Broker::start();
    let mut other = broker.connect();
    create(&mut other, topic("t", 1));
    let fetch = FetchRequest { max_wait_ms: FOR_EVER_MS, ..fetch_request(&[("t", wanted(0, 0))]) };
    let fetch = fetch.encode(12).unwrap();
    let silent = produce_request(0, "t", &[(0, batch(1, 10))]).encode(9).unwrap();
    for behind in [false, true] {
        let mut client = broker.connect();
        client.send_body(ApiKey::Fetch, 12, &fetch);
        if behind {
            // Metadata waits for the fetch, the produce for both.
            client.send_body(ApiKey::Metadata, 12, &names().encode(12).unwrap());
            client.send_body(ApiKey::Produce, 9, &silent);
        }
        client.send_no_more();
        client.drain();
    }
    let wait = FetchRequest { max_wait_ms: FOR_EVER_MS, ..fetch_request(&[("t", wanted(0, 0))]) };
    let answer = answered(other.ask(12, &wait)).remove(0).1;
    assert_eq!(offsets(&answer), [(0, 0)], "what came before the end is done");
}

#[test]
fn c11_a_negative_idle_time_closes_nobody() {
    let broker = Broker::start_with(&["--set", "connections.max.idle.ms=-1"]);
    let mut client = broker.connect();
    std::thread::sleep(std::time::Duration::from_millis(500));
    still_answers(&mut client);
}

/// The request at this place of the stream: key, version, body, and whether
/// it has an answer.
fn mixed(at: i32) -> (ApiKey, i16, Vec<u8>, bool) {
    fn of<R: Request>(version: i16, request: &R) -> (ApiKey, i16, Vec<u8>, bool) {
        (R::KEY, version, request.encode(version).unwrap(), true)
    }
    let parts = |count: i32| (0..count).map(|index| (index % 3, batch(1, 50))).collect::<Vec<_>>();
    match at % 11 {
        0 => of(0, &ApiVersionsRequest::default()),
        1 | 7 => of(9, &produce_request(-1, "t", &parts(1 + at % 3))),
        2 => of(12, &names()),
        3 | 8 => of(12, &fetch_request(&[("t", wanted(at % 3, i64::from(at % 7)))])),
        4 => of(7, &ends()),
        5 => of(3, &produce_request(1, "t", &parts(1))),
        6 => {
            let (key, version, body, _) = of(9, &produce_request(0, "t", &parts(1)));
            (key, version, body, false)
        }
        // Waits for its deadline, or for the produces around it.
        9 => {
            let mut fetch = fetch_request(&[("t", wanted(0, 0))]);
            (fetch.max_wait_ms, fetch.min_bytes, fetch.max_bytes) = (1, 2000, 2000);
            of(12, &fetch)
        }
        _ => of(9, &produce_request(-1, "nowhere", &parts(1))),
    }
}

#[test]
fn c4_5000_frames_of_all_kinds_are_answered_in_order() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 3));
    let mut reading = client.handle();
    let asked: Vec<_> = (0..PIPELINED).map(mixed).collect();
    let stream: Vec<u8> = (0..)
        .zip(&asked)
        .flat_map(|(id, (key, version, body, _))| frame(*key, *version, id, "test", body))
        .collect();
    std::thread::scope(|scope| {
        // Pieces that have nothing to do with where frames end.
        scope.spawn(|| stream.chunks(7001).for_each(|piece| client.send_bytes(piece)));
        for (id, (key, version, _, _)) in (0..).zip(&asked).filter(|(_, (_, _, _, told))| *told) {
            let frame = reading.receive().unwrap_or_else(|| panic!("closed before {id}"));
            let mut reader = Reader::new(&frame);
            let header = ResponseHeader::read(&mut reader, *key, *version).unwrap();
            assert_eq!(header.correlation_id, id, "{key:?}");
        }
    });
    still_answers(&mut client.handle());
    let produced: usize = (0..PIPELINED)
        .map(|at| match at % 11 {
            1 | 7 => usize::try_from(1 + at % 3).unwrap(),
            5 | 6 => 1,
            _ => 0,
        })
        .sum();
    let ends = [0, 1, 2].map(|index| end(&mut broker.connect(), "t", index));
    assert_eq!(ends.iter().sum::<i64>(), i64::try_from(produced).unwrap());
}

#[test]
fn c23_authorized_operations_are_for_those_who_ask() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 1));
    let unasked = i32::MIN;
    for version in ApiKey::Metadata.served_versions().unwrap().iter() {
        let answer = client.ask(version, &names());
        assert_eq!(answer.topics[0].error_code, 0, "version {version}");
        assert_eq!(answer.topics[0].topic_authorized_operations, unasked, "version {version}");
        assert_eq!(answer.cluster_authorized_operations, unasked, "version {version}");
        if version < 8 {
            continue;
        }
        let of_topics = MetadataRequest { include_topic_authorized_operations: true, ..names() };
        let answer = client.ask(version, &of_topics);
        // Read, Write, Create, Delete, Alter, Describe, DescribeConfigs, AlterConfigs.
        assert_eq!(answer.topics[0].topic_authorized_operations, 0b1101_1111_1000);
        assert_eq!(answer.cluster_authorized_operations, unasked);
        if version <= 10 {
            let mut of_cluster = names();
            of_cluster.include_cluster_authorized_operations = true;
            let answer = client.ask(version, &of_cluster);
            assert_eq!(answer.topics[0].topic_authorized_operations, unasked);
            // Create, Alter, Describe, ClusterAction, the two of configs, IdempotentWrite.
            assert_eq!(answer.cluster_authorized_operations, 0b1_1111_1010_0000);
        }
    }
}

#[test]
fn c9_frames_that_together_exceed_the_memory_do_not_wait_for_each_other() {
    const CONNECTIONS: usize = 100;
    let broker = Broker::start();
    let mut other = broker.connect();
    create(&mut other, topic("t", 1));
    let body = produce_request(-1, "t", &[(0, batch(1, 1_000_000))]).encode(9).unwrap();
    let whole = frame(ApiKey::Produce, 9, 1, "test", &body);
    // All have begun before any can end: together they want 25 times the pool.
    let (first, rest) = whole.split_at(600_000);
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| broker.connect()).collect();
    let answered: Vec<bool> = std::thread::scope(|scope| {
        let started: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(|| {
                    client.send_bytes(first);
                    client.send_bytes(rest);
                    client.receive().is_some()
                })
            })
            .collect();
        started.into_iter().map(|thread| thread.join().expect("answered or closed")).collect()
    });
    assert!(answered.iter().all(|answered| *answered), "each has its turn");
    let taken = end(&mut other, "t", 0);
    assert_eq!(taken, i64::try_from(CONNECTIONS).unwrap());
    let mut again = broker.connect();
    for round in 0..3 {
        again.ask_body(ApiKey::Produce, 9, &body);
        assert_eq!(end(&mut other, "t", 0), taken + 1 + round);
    }
}
