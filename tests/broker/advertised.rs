//! Every advertised (API, version) is decoded and answered, and our answers
//! are what the crate `kafka-protocol` reads (checklist 17).

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable, Message as _};
use millstream::wire::generated::api_versions::ApiVersionsRequest;
use millstream::wire::generated::create_topics::{CreatableTopic, CreateTopicsRequest};
use millstream::wire::generated::find_coordinator::FindCoordinatorRequest;
use millstream::wire::generated::metadata::MetadataRequest;
use millstream::wire::generated::produce::ProduceRequest;
use millstream::wire::{ApiKey, Message, Reader};

use super::common::{Broker, Client};

/// Reads an answer with the oracle and writes it again.
fn oracle<M: Decodable + Encodable>(body: &[u8], version: i16) -> Vec<u8> {
    let mut input = Bytes::copy_from_slice(body);
    let message = M::decode(&mut input, version).unwrap_or_else(|e| panic!("oracle: {e}"));
    assert!(input.is_empty(), "{} bytes are left over", input.len());
    let mut out = BytesMut::new();
    message.encode(&mut out, version).unwrap_or_else(|e| panic!("oracle: {e}"));
    out.to_vec()
}

/// The oracle's bytes of an answer, when it has the version.
fn reread(key: ApiKey, version: i16, body: &[u8]) -> Option<Vec<u8>> {
    macro_rules! by_key {
        ($(($api:ident, $module:ident, $request:ident, $response:ident))*) => {
            match key {$(
                ApiKey::$api => {
                    let range = kafka_protocol::messages::$response::VERSIONS;
                    (range.min <= version && version <= range.max)
                        .then(|| oracle::<kafka_protocol::messages::$response>(body, version))
                }
            )*}
        };
    }
    millstream::for_each_api!(by_key)
}

/// Sends the default body of an API, or the nearest one that has an answer.
fn ask_default(client: &mut Client, key: ApiKey, version: i16) {
    macro_rules! by_key {
        ($(($api:ident, $module:ident, $request:ident, $response:ident))*) => {
            match key {$(
                ApiKey::$api => {
                    use millstream::wire::generated::$module::{$request, $response};
                    let body = default_body::<$request>(key, version);
                    let answer = client.ask_body(key, version, &body);
                    let read = $response::decode(Reader::new(&answer), version);
                    let read = read.unwrap_or_else(|e| panic!("{key:?} {version}: {e}"));
                    assert_eq!(read.encode(version).unwrap(), answer, "{key:?} {version}");
                    if let Some(theirs) = reread(key, version, &answer) {
                        assert_eq!(theirs, answer, "{key:?} {version}");
                    }
                }
            )*}
        };
    }
    millstream::for_each_api!(by_key);
}

fn default_body<R: Message>(key: ApiKey, version: i16) -> Vec<u8> {
    let encoded = match key {
        // acks=0 has no answer.
        ApiKey::Produce => ProduceRequest { acks: -1, ..Default::default() }.encode(version),
        ApiKey::ApiVersions => ApiVersionsRequest {
            client_software_name: "test".into(),
            client_software_version: "1".into(),
            ..Default::default()
        }
        .encode(version),
        ApiKey::FindCoordinator if version >= 4 => {
            let coordinator_keys = vec!["g".to_owned()];
            FindCoordinatorRequest { coordinator_keys, ..Default::default() }.encode(version)
        }
        // All topics, so that the answer has some.
        ApiKey::Metadata if version >= 1 => {
            MetadataRequest { topics: None, ..Default::default() }.encode(version)
        }
        _ => R::default().encode(version),
    };
    encoded.unwrap_or_else(|e| panic!("{key:?} {version}: {e}"))
}

#[test]
fn c17_every_advertised_api_and_version_is_answered() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let topic = CreatableTopic {
        name: "t".into(),
        num_partitions: 3,
        replication_factor: 1,
        ..Default::default()
    };
    let created = client.ask(7, &CreateTopicsRequest { topics: vec![topic], ..Default::default() });
    assert_eq!(created.topics[0].error_code, 0, "{created:?}");

    let names = ApiVersionsRequest {
        client_software_name: "test".into(),
        client_software_version: "1".into(),
        ..Default::default()
    };
    let advertised = client.ask(4, &names).api_keys;
    assert!(advertised.len() >= 14);
    for api in advertised {
        let key = ApiKey::from_code(api.api_key).expect("only what the codec knows is advertised");
        for version in api.min_version..=api.max_version {
            if key == ApiKey::Produce && version < 3 {
                // Announced for librdkafka's sake and refused, as in Kafka.
                let mut refused = broker.connect();
                refused.send_body(key, version, &[0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 0]);
                assert_eq!(refused.receive(), None, "Produce {version}");
                continue;
            }
            ask_default(&mut client, key, version);
        }
    }
}

#[test]
fn c12_c13_a_version_from_the_future_gets_the_oldest_body_and_the_connection_lives() {
    let broker = Broker::start();
    let mut client = broker.connect();
    for version in [6, 99, i16::MAX] {
        // The body is never looked at.
        client.send_body(ApiKey::ApiVersions, version, &[0xee; 40]);
        let frame = client.receive().expect("an answer");
        assert_eq!(frame[4..], [0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5]);
    }
    let answer = client.ask(0, &ApiVersionsRequest::default());
    assert_eq!(answer.error_code, 0);
}

#[test]
fn c5_pipelined_questions_are_answered_in_order() {
    let broker = Broker::start();
    let mut client = broker.connect();
    let first = client.send_body(ApiKey::ApiVersions, 0, &[]);
    let second = client.send_body(ApiKey::Metadata, 0, &[0, 0, 0, 0]);
    for id in [first, second] {
        let frame = client.receive().expect("an answer");
        assert_eq!(frame[..4], id.to_be_bytes());
    }
}

#[test]
fn c2_unknown_keys_and_versions_close_the_connection() {
    let broker = Broker::start();
    for (key, version) in [(ApiKey::Metadata, 99), (ApiKey::Fetch, 3), (ApiKey::JoinGroup, 0)] {
        let mut client = broker.connect();
        client.send_body(key, version, &[0; 8]);
        assert_eq!(client.receive(), None, "{key:?} {version}");
    }
}
