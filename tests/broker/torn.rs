//! A panic inside of an append: the broker must not go on with a partition
//! whose log and machine disagree.

use millstream::wire::{ApiKey, Message};

use super::admin::{create, topic};
use super::common::Broker;
use super::requests::{batch, end, produce, produce_request};

#[test]
fn a_panic_inside_an_append_ends_the_process_with_its_number() {
    let mut broker = Broker::start_planted("panic-inside-append");
    let mut client = broker.connect();
    create(&mut client, topic("t", 2));
    let body = produce_request(-1, "t", &[(1, batch(1, 10))]).encode(9).unwrap();
    client.send_body(ApiKey::Produce, 9, &body);
    assert_eq!(client.receive(), None, "nothing is acknowledged");
    assert_eq!(broker.wait().code(), Some(123));
    let log = broker.log();
    assert!(log.contains("a panic inside an append of t-1"), "{log}");

    broker.restart();
    let mut client = broker.connect();
    // What nobody acknowledged may be there or not, as after any crash.
    let taken = end(&mut client, "t", 1);
    assert!(taken <= 1);
    assert_eq!(produce(&mut client, "t", 1, batch(1, 10)), taken);
    assert_eq!(produce(&mut client, "t", 0, batch(1, 10)), 0);
}
