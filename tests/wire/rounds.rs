//! Random messages of every API and version, read and written back; and the
//! rules that random bytes cannot show.

use bytes::Bytes;
use millstream::wire::generated::create_topics::CreateTopicsRequest;
use millstream::wire::generated::fetch::FetchResponse;
use millstream::wire::generated::list_offsets::{
    ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse,
};
use millstream::wire::generated::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic,
};
use millstream::wire::generated::produce::{ProduceRequest, ProduceResponse};
use millstream::wire::{ApiKey, Message, Reader, VersionCheck, WireError};
use proptest::prelude::*;

use super::dispatch::{Role, decode_encode};
use super::random::{Random, message};
use super::schema;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_message_reads_and_writes_back(seed: u64) {
        let mut random = Random(seed);
        for api in schema::load() {
            let key = ApiKey::from_code(api.key).expect("generated from the same table");
            for (role, item) in [(Role::Request, &api.request), (Role::Response, &api.response)] {
                for version in key.known_versions().iter() {
                    let forms = message(&mut random, &api, item, version);
                    let shown = || format!("{} {version}: {forms:02x?}", item.name);
                    for bytes in [&forms.clean, &forms.dirty] {
                        let again = decode_encode(key, role, version, Reader::new(bytes));
                        prop_assert_eq!(again.as_ref(), Ok(&forms.clean), "{}", shown());
                    }
                    let shared = Bytes::from(forms.clean.clone());
                    let again = decode_encode(key, role, version, Reader::of_bytes(&shared));
                    prop_assert_eq!(again.as_ref(), Ok(&forms.clean), "{}", shown());
                    let mut long = forms.clean.clone();
                    long.push(0);
                    let trailing = decode_encode(key, role, version, Reader::new(&long));
                    prop_assert_eq!(trailing, Err(WireError::TrailingBytes(1)), "{}", shown());
                }
            }
        }
    }
}

#[test]
fn versions_outside_the_schema_are_refused() {
    for facts in ApiKey::ALL {
        for version in [i16::MIN, -1, facts.known.min - 1, facts.known.max + 1, i16::MAX] {
            for role in [Role::Request, Role::Response] {
                let read = decode_encode(facts.key, role, version, Reader::new(&[0; 64]));
                assert!(
                    matches!(read, Err(WireError::UnsupportedVersion { .. })),
                    "{facts:?} {version}"
                );
            }
        }
    }
    assert!(MetadataRequest::default().encode(14).is_err());
}

#[test]
fn the_advertised_table_is_the_one_we_serve() {
    for (key, range) in ApiKey::advertised() {
        let served = key.served_versions().expect("nothing is advertised that is not served");
        assert_eq!(range.max, served.max, "{key:?}");
        assert!(range.min == served.min || key == ApiKey::Produce, "{key:?}");
        assert!(key.known_versions().contains(served.min));
        assert!(key.known_versions().contains(served.max));
        for version in served.iter() {
            assert_eq!(key.check_version(version), VersionCheck::Served);
        }
    }
    // KAFKA-18659: announced for old librdkafka, and refused all the same.
    assert_eq!(ApiKey::Produce.advertised_versions().unwrap().min, 0);
    for version in [-1, 0, 1, 2, 14] {
        assert_eq!(ApiKey::Produce.check_version(version), VersionCheck::Refused);
    }
    assert_eq!(ApiKey::InitProducerId.check_version(6), VersionCheck::Refused);
    for version in [-1, 6, 32767] {
        assert_eq!(ApiKey::ApiVersions.check_version(version), VersionCheck::ApiVersionsFallback);
    }
}

#[test]
fn a_set_field_that_the_version_lacks_is_an_error_unless_ignorable() {
    let request = CreateTopicsRequest { validate_only: true, ..Default::default() };
    assert!(request.encode(2).is_ok());
    let request = MetadataRequest { allow_auto_topic_creation: false, ..Default::default() };
    assert_eq!(
        request.encode(3),
        Err(WireError::FieldNotInVersion {
            field: "MetadataRequest.allow_auto_topic_creation",
            version: 3
        })
    );
    assert!(request.encode(4).is_ok());
    let response = FetchResponse { session_id: 5, ..Default::default() };
    assert!(matches!(response.encode(6), Err(WireError::FieldNotInVersion { .. })));
    let ignorable = MetadataResponse { cluster_id: Some("c".into()), ..Default::default() };
    let plain = MetadataResponse::default();
    assert_eq!(ignorable.encode(1), plain.encode(1));
    assert_ne!(ignorable.encode(2), plain.encode(2));
    let partition = ListOffsetsPartitionResponse { leader_epoch: 3, ..Default::default() };
    let topic = ListOffsetsTopicResponse { partitions: vec![partition], ..Default::default() };
    let nested = ListOffsetsResponse { topics: vec![topic], ..Default::default() };
    assert!(nested.encode(3).is_err());
    assert!(nested.encode(4).is_ok());
}

#[test]
fn null_empty_and_default_stay_apart() {
    let all = MetadataRequest { topics: None, ..Default::default() };
    let none = MetadataRequest { topics: Some(Vec::new()), ..Default::default() };
    for version in 1..=13 {
        let (all_bytes, none_bytes) = (all.encode(version).unwrap(), none.encode(version).unwrap());
        assert_ne!(all_bytes, none_bytes);
        assert_eq!(MetadataRequest::decode(Reader::new(&all_bytes), version).unwrap(), all);
        assert_eq!(MetadataRequest::decode(Reader::new(&none_bytes), version).unwrap(), none);
    }
    let null = WireError::UnexpectedNull { field: "MetadataRequest.topics", version: 0 };
    assert_eq!(all.encode(0), Err(null));
    assert_eq!(MetadataRequest::decode(Reader::new(&[0xff; 4]), 0), Err(null));

    let nameless = MetadataResponseTopic { name: None, ..Default::default() };
    let response = MetadataResponse { topics: vec![nameless], ..Default::default() };
    assert!(response.encode(12).is_ok());
    assert!(matches!(response.encode(11), Err(WireError::UnexpectedNull { .. })));
    // A null in a field that is not nullable, at a version with the short form.
    assert!(matches!(
        MetadataRequest::decode(Reader::new(&[0, 0, 0, 1, 0xff, 0xff, 0]), 4),
        Err(WireError::UnexpectedNull { field: "MetadataRequestTopic.name", version: 4 })
    ));
    assert_eq!(MetadataRequestTopic::default().name.as_deref(), Some(""));
    assert_eq!(ProduceRequest::default().transactional_id, None);
}

#[test]
fn invalid_utf8_is_substituted_as_java_does() {
    let bytes = [0, 0, 0, 1, 0, 3, b'a', 0xff, b'b', 1];
    let request = MetadataRequest::decode(Reader::new(&bytes), 4).unwrap();
    assert_eq!(request.topics.unwrap()[0].name.as_deref(), Some("a\u{fffd}b"));
}

#[test]
fn records_are_slices_of_the_frame() {
    let mut request = ProduceRequest { acks: -1, ..Default::default() };
    request.topic_data.push(Default::default());
    request.topic_data[0].partition_data.push(Default::default());
    request.topic_data[0].partition_data[0].records = Some(Bytes::from(vec![7; 1000]));
    let frame = Bytes::from(request.encode(12).unwrap());
    let decoded = ProduceRequest::decode(Reader::of_bytes(&frame), 12).unwrap();
    let records = decoded.topic_data[0].partition_data[0].records.as_ref().unwrap();
    assert!(frame.as_ptr_range().contains(&records.as_ptr()), "copied");
    assert_eq!(decoded, request);
}

#[test]
fn strings_too_long_for_their_length_field_are_refused() {
    let mut response = ProduceResponse::default();
    response.responses.push(Default::default());
    response.responses[0].name = "x".repeat(40_000);
    assert_eq!(response.encode(8), Err(WireError::TooLong(40_000)));
    assert!(response.encode(9).is_ok());
}
