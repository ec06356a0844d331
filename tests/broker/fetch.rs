//! Fetch through the socket: checklist 45 to 54, from memory and from disk.
//!
//! Whether a fetch waits is never measured: one that must not wait asks for a
//! wait that no test survives, and one that must wait shows it by what it
//! answers.

use millstream::wire::generated::fetch::{FetchPartition, FetchRequest, ForgottenTopic};
use millstream::wire::{ApiKey, Message, Reader, ResponseHeader};

use super::admin::{create, topic};
use super::common::{Broker, Client};
use super::requests::{
    FOR_EVER_MS, READS, answered, batch, end, fetch, fetch_request, latest, offsets, prepare,
    produce, wanted,
};

/// Bytes of `batch(1, 1000)`, and a little more.
const ONE_BATCH: i32 = 1100;

/// Topic, partition, error and batches of each partition of an answer.
fn found(client: &mut Client, version: i16, request: &FetchRequest) -> Vec<Found> {
    let answer = client.ask(version, request);
    assert_eq!(answer.error_code, 0, "{answer:?}");
    let all = answered(answer).into_iter();
    all.map(|(name, p)| (name, p.partition_index, p.error_code, offsets(&p).len())).collect()
}

type Found = (String, i32, i16, usize);

/// As `found`, to compare with.
fn want(all: &[(&str, i32, i16, usize)]) -> Vec<Found> {
    all.iter()
        .map(|(name, index, code, batches)| ((*name).into(), *index, *code, *batches))
        .collect()
}

#[test]
fn c45_an_offset_inside_of_a_batch_gets_the_whole_batch() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 1));
    produce(&mut client, "t", 0, batch(5, 100));
    produce(&mut client, "t", 0, batch(1, 100));
    produce(&mut client, "t", 0, batch(5, 100));
    for reads in READS {
        let mut client = prepare(&mut broker, reads);
        for (offset, first) in [(0, 0), (3, 0), (4, 0), (5, 1), (6, 2), (8, 2), (10, 2)] {
            let answer = fetch(&mut client, "t", wanted(0, offset));
            assert_eq!((answer.error_code, answer.high_watermark), (0, 11), "{reads:?}");
            assert_eq!(offsets(&answer), [(0, 4), (5, 5), (6, 10)][first..], "{reads:?} {offset}");
        }
        let answer = fetch(&mut client, "t", wanted(0, 11));
        assert_eq!((answer.error_code, offsets(&answer).len()), (0, 0));
        for outside in [12, -1] {
            assert_eq!(fetch(&mut client, "t", wanted(0, outside)).error_code, 1, "c48");
        }
    }
}

#[test]
fn c46_the_first_batch_comes_whatever_the_limits_and_the_rest_obeys_them() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 3));
    create(&mut client, topic("u", 1));
    for (name, index) in [("t", 1), ("t", 2), ("u", 0)] {
        for _ in 0..3 {
            produce(&mut client, name, index, batch(1, 1000));
        }
    }
    for reads in READS {
        let mut client = prepare(&mut broker, reads);
        let ask = |max_bytes, partition_max_bytes| {
            let order = [("t", 0), ("t", 2), ("u", 0), ("t", 1)];
            let part = |index| FetchPartition { partition_max_bytes, ..wanted(index, 0) };
            let parts = order.map(|(name, index)| (name, part(index)));
            FetchRequest { max_bytes, ..fetch_request(&parts) }
        };
        let mut check = |max_bytes, partition_max, batches: [usize; 3]| {
            let answer = found(&mut client, 12, &ask(max_bytes, partition_max));
            let [t2, u0, t1] = batches;
            let all = [("t", 0, 0, 0), ("t", 2, 0, t2), ("u", 0, 0, u0), ("t", 1, 0, t1)];
            assert_eq!(answer, want(&all), "{reads:?} {max_bytes} {partition_max}");
        };
        check(1 << 20, 1 << 20, [3, 3, 3]);
        check(10, 1 << 20, [1, 0, 0]);
        check(1 << 20, 10, [1, 0, 0]);
        check(0, 0, [1, 0, 0]);
        check(1 << 20, ONE_BATCH, [1, 1, 1]);
        check(1 << 20, 2 * ONE_BATCH, [2, 2, 2]);
        // From disk as many bytes count as could come.
        check(2 * ONE_BATCH, ONE_BATCH, [1, 1, 0]);
    }
}

#[test]
fn c47_what_cannot_get_better_is_answered_at_once() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 2));
    produce(&mut client, "t", 0, batch(1, 1000));
    for reads in READS {
        let mut client = prepare(&mut broker, reads);
        let slow = |min_bytes, max_bytes, parts: &[(&str, FetchPartition)]| FetchRequest {
            max_wait_ms: FOR_EVER_MS,
            min_bytes,
            max_bytes,
            ..fetch_request(parts)
        };
        let capped = slow(i32::MAX, 500, &[("t", wanted(0, 0))]);
        assert_eq!(found(&mut client, 12, &capped), want(&[("t", 0, 0, 1)]), "{reads:?}");
        let enough = slow(1, 1 << 20, &[("t", wanted(1, 0)), ("t", wanted(0, 0))]);
        assert_eq!(found(&mut client, 12, &enough), want(&[("t", 1, 0, 0), ("t", 0, 0, 1)]));
        let nothing_asked = slow(1, 1 << 20, &[]);
        assert_eq!(found(&mut client, 12, &nothing_asked), []);
        for (failing, code) in [(("t", wanted(1, 5)), 1), (("nowhere", wanted(0, 0)), 3)] {
            let name = failing.0;
            let index = failing.1.partition;
            let failed = slow(1 << 20, 2 << 20, &[("t", wanted(0, 0)), failing]);
            let answer = found(&mut client, 12, &failed);
            assert_eq!(answer, want(&[("t", 0, 0, 1), (name, index, code, 0)]), "{reads:?}");
        }
        for wait in [0, -1] {
            let now = FetchRequest { max_wait_ms: wait, ..slow(1, 1, &[("t", wanted(1, 0))]) };
            assert_eq!(found(&mut client, 12, &now), want(&[("t", 1, 0, 0)]));
        }
        // Too little is all there is when the time is over.
        let short =
            FetchRequest { max_wait_ms: 50, ..slow(1 << 20, 2 << 20, &[("t", wanted(0, 0))]) };
        assert_eq!(found(&mut client, 12, &short), want(&[("t", 0, 0, 1)]), "{reads:?}");
    }
}

#[test]
fn c49_aborted_transactions_are_listed_for_readers_of_committed_data_only() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 1));
    produce(&mut client, "t", 0, batch(3, 10));
    for reads in READS {
        let mut client = prepare(&mut broker, reads);
        for version in [4, 12] {
            for (isolation_level, list) in [(0, None), (1, Some(Vec::new()))] {
                let request =
                    FetchRequest { isolation_level, ..fetch_request(&[("t", wanted(0, 0))]) };
                let answer = answered(client.ask(version, &request)).remove(0).1;
                assert_eq!(answer.aborted_transactions, list, "version {version}");
                assert_eq!((answer.last_stable_offset, offsets(&answer)), (3, vec![(0, 2)]));
            }
        }
    }
}

/// Sends a fetch that waits for ever; its answer comes by `answer`.
fn park(client: &mut Client, version: i16, request: FetchRequest) -> i32 {
    let request = FetchRequest { max_wait_ms: FOR_EVER_MS, ..request };
    client.send_body(ApiKey::Fetch, version, &request.encode(version).unwrap())
}

/// The answer to the fetch with this correlation id.
fn answer(client: &mut Client, version: i16, id: i32) -> Vec<Found> {
    let frame = client.receive().expect("the fetch is answered");
    let mut reader = Reader::new(&frame);
    let header = ResponseHeader::read(&mut reader, ApiKey::Fetch, version).unwrap();
    assert_eq!(header.correlation_id, id);
    let answer =
        millstream::wire::generated::fetch::FetchResponse::decode(reader, version).unwrap();
    let all = answered(answer).into_iter();
    all.map(|(name, p)| (name, p.partition_index, p.error_code, offsets(&p).len())).collect()
}

#[test]
fn c50_a_parked_fetch_is_woken_by_another_connections_produce() {
    let mut broker = Broker::start();
    let mut producer = broker.connect();
    create(&mut producer, topic("t", 2));
    create(&mut producer, topic("u", 1));
    for (round, reads) in READS.into_iter().enumerate() {
        let mut consumer = prepare(&mut broker, reads);
        let mut producer = broker.connect();
        let base = i64::try_from(round).unwrap() * 2;
        let all = [("t", wanted(0, base)), ("t", wanted(1, base)), ("u", wanted(0, base))];
        let one = park(&mut consumer, 12, fetch_request(&all));
        produce(&mut producer, "t", 1, batch(1, 1000));
        let empty = [("t", 0, 0, 0), ("t", 1, 0, 1), ("u", 0, 0, 0)];
        assert_eq!(answer(&mut consumer, 12, one), want(&empty), "{reads:?}");

        // Nothing less than all four batches is enough.
        let sum = FetchRequest { min_bytes: 4000, ..fetch_request(&all) };
        let sum = park(&mut consumer, 12, sum);
        for (name, index) in [("u", 0), ("t", 0), ("t", 0)] {
            produce(&mut producer, name, index, batch(1, 1000));
        }
        let full = [("t", 0, 0, 2), ("t", 1, 0, 1), ("u", 0, 0, 1)];
        assert_eq!(answer(&mut consumer, 12, sum), want(&full), "{reads:?}");
        produce(&mut producer, "t", 1, batch(1, 10));
        produce(&mut producer, "u", 0, batch(1, 10));
        let ends = [("t", 0), ("t", 1), ("u", 0)].map(|(name, p)| end(&mut producer, name, p));
        assert_eq!(ends, [base + 2; 3]);
    }
}

#[test]
fn c50_many_fetches_on_one_partition_are_all_woken() {
    let broker = Broker::start();
    let mut producer = broker.connect();
    create(&mut producer, topic("t", 1));
    let mut consumers: Vec<_> = (0..50).map(|_| broker.connect()).collect();
    for round in 0..5 {
        let request = fetch_request(&[("t", wanted(0, round))]);
        let ids: Vec<_> = consumers.iter_mut().map(|c| park(c, 12, request.clone())).collect();
        produce(&mut producer, "t", 0, batch(1, 100));
        for (consumer, id) in consumers.iter_mut().zip(ids) {
            assert_eq!(answer(consumer, 12, id), want(&[("t", 0, 0, 1)]));
        }
    }
    // One that goes away while it waits harms nobody.
    let request = fetch_request(&[("t", wanted(0, 5))]);
    for consumer in &mut consumers {
        park(consumer, 12, request.clone());
    }
    drop(consumers);
    produce(&mut producer, "t", 0, batch(1, 100));
    assert_eq!(end(&mut producer, "t", 0), 6);
}

#[test]
fn c52_a_reader_of_a_log_that_parted_is_told_where() {
    let mut broker = Broker::start();
    // So that the log has not the first of all epochs.
    broker.kill();
    broker.restart();
    let mut client = broker.connect();
    create(&mut client, topic("t", 1));
    produce(&mut client, "t", 0, batch(5, 10));
    let old = latest(&mut client, "t", 0).leader_epoch;
    broker.kill();
    broker.restart();
    produce(&mut broker.connect(), "t", 0, batch(3, 10));
    let new = latest(&mut broker.connect(), "t", 0).leader_epoch;
    assert!(new > old);
    for reads in READS {
        let mut client = prepare(&mut broker, reads);
        let mut ask = |last_fetched_epoch, offset| {
            let part = FetchPartition { last_fetched_epoch, ..wanted(0, offset) };
            let fetch = fetch_request(&[("t", part)]);
            let slow = FetchRequest { max_wait_ms: FOR_EVER_MS, min_bytes: 1 << 20, ..fetch };
            // Divergence and errors do not wait (c47); the rest is not asked to.
            let waits = offset <= 5 && last_fetched_epoch == old || last_fetched_epoch == new;
            let request = FetchRequest { max_wait_ms: if waits { 0 } else { FOR_EVER_MS }, ..slow };
            let answer = answered(client.ask(12, &request)).remove(0).1;
            let parted = (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset);
            (answer.error_code, parted, offsets(&answer).len())
        };
        assert_eq!(ask(old, 7), (0, (old, 5), 0), "{reads:?}");
        assert_eq!(ask(old, 8), (0, (old, 5), 0));
        assert_eq!(ask(old, 5), (0, (-1, -1), 1));
        assert_eq!(ask(old, 2), (0, (-1, -1), 2));
        assert_eq!(ask(new, 7), (0, (-1, -1), 1));
        // Before the first epoch there was nothing that both could have.
        assert_eq!(ask(old - 1, 3), (0, (old - 1, 0), 0));
        let beyond = latest(&mut broker.connect(), "t", 0).leader_epoch + 10;
        assert_eq!(ask(beyond, 3).0, 1, "an epoch from the future");
    }
}

#[test]
fn c51_other_epochs_of_the_leader_are_refused() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 1));
    produce(&mut client, "t", 0, batch(5, 10));
    for reads in READS {
        let mut client = prepare(&mut broker, reads);
        let epoch = latest(&mut client, "t", 0).leader_epoch;
        for (asked, code) in [(epoch, 0), (-1, 0), (epoch - 1, 74), (epoch + 1, 75)] {
            let part = FetchPartition { current_leader_epoch: asked, ..wanted(0, 0) };
            if asked >= 0 || code == 0 {
                assert_eq!(fetch(&mut client, "t", part).error_code, code, "{reads:?} {asked}");
            }
        }
        // Leave an epoch behind that differs.
        produce(&mut client, "t", 0, batch(1, 10));
    }
}

/// A fetch by ids, with these session fields.
fn by_id(ids: &[[u8; 16]], session: (i32, i32)) -> FetchRequest {
    let parts: Vec<_> = ids.iter().map(|_| ("", wanted(0, 0))).collect();
    let mut request = fetch_request(&parts);
    for (topic, id) in request.topics.iter_mut().zip(ids) {
        topic.topic_id = *id;
    }
    (request.session_id, request.session_epoch) = session;
    request
}

#[test]
fn c53_topics_go_by_id_from_version_13() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    let id = create(&mut client, topic("t", 1)).topic_id;
    produce(&mut client, "t", 0, batch(1, 10));
    for reads in READS {
        let mut client = prepare(&mut broker, reads);
        for version in 13..=ApiKey::Fetch.served_versions().unwrap().max {
            let request = FetchRequest {
                max_wait_ms: FOR_EVER_MS,
                min_bytes: 1 << 20,
                ..by_id(&[id, [9; 16]], (0, -1))
            };
            let answer = client.ask(version, &request);
            let ids: Vec<_> = answer.responses.iter().map(|t| t.topic_id).collect();
            assert_eq!(ids, [id, [9; 16]]);
            let all: Vec<_> =
                answered(answer).iter().map(|(_, p)| (p.error_code, offsets(p).len())).collect();
            assert_eq!(all, [(0, 1), (100, 0)], "{reads:?} version {version}");
        }
    }
}

/// A fetch in a session, by names.
fn in_session(session: (i32, i32), parts: &[(&str, FetchPartition)]) -> FetchRequest {
    let (session_id, session_epoch) = session;
    FetchRequest { session_id, session_epoch, ..fetch_request(parts) }
}

/// Error and session of the answer, which has no partitions.
fn refused(client: &mut Client, version: i16, request: &FetchRequest) -> (i16, i32) {
    let answer = client.ask(version, request);
    assert!(answer.responses.is_empty());
    (answer.error_code, answer.session_id)
}

#[test]
fn c54_a_session_lists_only_what_changed() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 3));
    produce(&mut client, "t", 2, batch(1, 1000));
    let all = [("t", wanted(0, 0)), ("t", wanted(1, 0)), ("t", wanted(2, 1))];
    let none = client.ask(12, &in_session((0, -1), &all));
    assert_eq!((none.session_id, answered(none).len()), (0, 3), "no session");

    let opened = client.ask(12, &in_session((0, 0), &all));
    let id = opened.session_id;
    assert!(id > 0);
    assert_eq!(answered(opened).len(), 3, "the first answer is whole");
    let next = |client: &mut Client, epoch, parts: &[(&str, FetchPartition)]| {
        let answer = client.ask(12, &in_session((id, epoch), parts));
        assert_eq!((answer.error_code, answer.session_id), (0, id));
        let all = answered(answer).into_iter();
        all.map(|(_, p)| (p.partition_index, offsets(&p).len())).collect::<Vec<_>>()
    };
    assert_eq!(next(&mut client, 1, &[]), [], "nothing is news");
    let mut producer = broker.connect();
    produce(&mut producer, "t", 1, batch(1, 1000));
    assert_eq!(next(&mut client, 2, &[]), [(1, 1)]);
    assert_eq!(next(&mut client, 3, &[]), [(1, 1)], "its offset has not moved");
    assert_eq!(next(&mut client, 4, &[("t", wanted(1, 1))]), [], "now it has");

    // Parked, and woken for one partition.
    let parked = park(&mut client, 12, in_session((id, 5), &[]));
    produce(&mut producer, "t", 2, batch(1, 1000));
    assert_eq!(answer(&mut client, 12, parked), want(&[("t", 2, 0, 1)]));

    let mut forgetting = in_session((id, 6), &[]);
    forgetting.forgotten_topics_data =
        vec![ForgottenTopic { topic: "t".into(), partitions: vec![2], ..Default::default() }];
    let quiet = client.ask(12, &forgetting);
    assert_eq!((quiet.error_code, quiet.responses.len()), (0, 0));
    produce(&mut producer, "t", 2, batch(1, 1000));
    assert_eq!(next(&mut client, 7, &[]), [], "a forgotten partition is not told");

    assert_eq!(refused(&mut client, 12, &in_session((id, 9), &[])), (71, 0));
    assert_eq!(refused(&mut client, 13, &in_session((id, 8), &[])), (106, 0));
    assert_eq!(refused(&mut client, 12, &in_session((id ^ 1, 8), &[])), (70, 0));
    // Another connection may go on with it: sessions are the broker's.
    assert_eq!(next(&mut broker.connect(), 8, &[]), []);

    let closed = client.ask(12, &in_session((id, -1), &all));
    assert_eq!((closed.error_code, closed.session_id, answered(closed).len()), (0, 0, 3));
    assert_eq!(refused(&mut client, 12, &in_session((id, 9), &[])), (70, 0));

    let again = client.ask(12, &in_session((0, 0), &all)).session_id;
    assert!(broker.stop().success());
    broker.restart();
    let mut client = broker.connect();
    assert_eq!(refused(&mut client, 12, &in_session((again, 1), &[])), (70, 0), "not kept");
}

#[test]
fn c54_partitions_of_a_session_are_served_in_turn() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    create(&mut client, topic("t", 3));
    for index in 0..3 {
        for _ in 0..4 {
            produce(&mut client, "t", index, batch(1, 1000));
        }
    }
    for reads in READS {
        let mut client = prepare(&mut broker, reads);
        // Room for one batch, and not quite for a second.
        let small = |session, parts: &[(&str, FetchPartition)]| {
            let max_bytes = ONE_BATCH + 700;
            FetchRequest { max_bytes, ..in_session(session, parts) }
        };
        let part = |index, offset| {
            let partition_max_bytes = ONE_BATCH;
            ("t", FetchPartition { partition_max_bytes, ..wanted(index, offset) })
        };
        let mut answer = client.ask(12, &small((0, 0), &[0, 1, 2].map(|index| part(index, 0))));
        let id = answer.session_id;
        let mut next = [0; 3];
        for epoch in 1..12 {
            let served: Vec<_> =
                answered(answer).into_iter().filter(|(_, p)| !offsets(p).is_empty()).collect();
            assert_eq!(served.len(), 1, "{reads:?}");
            let index = served[0].1.partition_index;
            let turn = usize::try_from(index).unwrap();
            assert_eq!(i32::try_from(turn), Ok((epoch - 1) % 3), "{reads:?} {next:?}");
            next[turn] += 1;
            answer = client.ask(12, &small((id, epoch), &[part(index, next[turn])]));
        }
        assert_eq!(next, [4, 4, 3]);
    }
}

#[test]
fn c54_sessions_by_id_and_a_full_cache() {
    let broker = Broker::start_with(&["--set", "max.incremental.fetch.session.cache.slots=1"]);
    let mut client = broker.connect();
    let id = create(&mut client, topic("t", 1)).topic_id;
    let opened = client.ask(17, &by_id(&[id, [9; 16]], (0, 0)));
    let session = opened.session_id;
    assert!(session > 0);
    let second = broker.connect().ask(17, &by_id(&[id], (0, 0)));
    assert_eq!((second.error_code, second.session_id, second.responses.len()), (0, 0, 1));
    produce(&mut broker.connect(), "t", 0, batch(1, 10));
    let news = client.ask(17, &by_id(&[], (session, 1)));
    assert_eq!(news.session_id, session);
    let ids: Vec<_> = news.responses.iter().map(|topic| topic.topic_id).collect();
    assert!(ids.contains(&id), "{ids:?}");
    assert_eq!(refused(&mut client, 12, &in_session((session, 2), &[])), (106, 0));
}
