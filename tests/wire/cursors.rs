//! The hand-written Produce and Fetch code against the generated codec.

use std::borrow::Cow;

use millstream::model::{ErrorCode, TopicId, error_code};
use millstream::wire::fetch::{FetchStep, FetchWalk, Piece};
use millstream::wire::generated::{fetch, produce};
use millstream::wire::{
    ApiKey, FetchOutcome, FetchResponsePlan, FetchResponseTop, FetchView, Message, ProduceOutcome,
    ProduceResponseWriter, ProduceView, ProduceWalk, Reader, RecordsRef, TopicRef, Writer,
};
use proptest::prelude::*;

use super::random::{Random, message};
use super::schema::{self, Api};
use super::vectors;

fn api(key: ApiKey) -> Api {
    schema::load().into_iter().find(|api| api.key == key.code()).expect("in the schema")
}

fn topic_ref<'a>(version: i16, name: &'a str, id: [u8; 16]) -> TopicRef<'a> {
    if version >= 13 { TopicRef::Id(TopicId(id)) } else { TopicRef::Name(Cow::Borrowed(name)) }
}

fn error_code(random: &mut Random) -> ErrorCode {
    error_code::ALL[random.below(error_code::ALL.len())].0
}

/// The view's content as an owned message.
fn produce_from_view(view: &ProduceView<'_>, frame: &[u8]) -> produce::ProduceRequest {
    let mut partitions = 0;
    let mut record_bytes = 0;
    let mut topic_data = Vec::new();
    let mut walk = view.walk();
    let mut topics = view.topics();
    while let Some((_, count)) = walk.next_topic() {
        let topic = topics.next().expect("as many topics as the walk meets");
        assert_eq!(topic.partition_count, count);
        let mut data = produce::TopicProduceData::default();
        match &topic.topic {
            TopicRef::Name(name) => data.name = name.clone().into_owned(),
            TopicRef::Id(id) => data.topic_id = id.0,
        }
        for partition in topic.partitions() {
            // As if the frame was shown again.
            walk = ProduceWalk::resume(frame, walk.place());
            assert_eq!(walk.next_partition(), Some(partition));
            if let Some(records) = partition.records {
                let at = partition.records_at;
                assert!(std::ptr::eq(&raw const frame[at..at + records.len()], records));
                record_bytes += records.len();
            }
            partitions += 1;
            data.partition_data.push(produce::PartitionProduceData {
                index: partition.index,
                records: partition.records.map(bytes::Bytes::copy_from_slice),
            });
        }
        assert_eq!(data.partition_data.len(), topic.partition_count);
        assert_eq!(walk.next_partition(), None);
        topic_data.push(data);
    }
    assert!(walk.is_done() && topics.next().is_none());
    assert_eq!(partitions, view.partition_count);
    assert_eq!(record_bytes, view.record_bytes);
    assert_eq!(topic_data.len(), view.topic_count);
    produce::ProduceRequest {
        transactional_id: view.transactional_id.clone().map(Cow::into_owned),
        acks: view.acks,
        timeout_ms: view.timeout_ms,
        topic_data,
    }
}

fn fetch_from_view(view: &FetchView<'_>, generated: &fetch::FetchRequest) -> fetch::FetchRequest {
    let mut request = fetch::FetchRequest {
        max_wait_ms: view.max_wait_ms,
        min_bytes: view.min_bytes,
        max_bytes: view.max_bytes,
        isolation_level: view.isolation_level,
        session_id: view.session_id,
        session_epoch: view.session_epoch,
        rack_id: view.rack_id.clone().into_owned(),
        // Not in the view.
        cluster_id: generated.cluster_id.clone(),
        ..Default::default()
    };
    if view.version >= 15 {
        request.replica_state.replica_id = view.replica_id;
        request.replica_state.replica_epoch = generated.replica_state.replica_epoch;
    } else {
        request.replica_id = view.replica_id;
    }
    for topic in view.topics() {
        let mut data = fetch::FetchTopic::default();
        match &topic.topic {
            TopicRef::Name(name) => data.topic = name.clone().into_owned(),
            TopicRef::Id(id) => data.topic_id = id.0,
        }
        data.partitions = topic.partitions().collect();
        request.topics.push(data);
    }
    for topic in view.forgotten() {
        let mut data = fetch::ForgottenTopic::default();
        match &topic.topic {
            TopicRef::Name(name) => data.topic = name.clone().into_owned(),
            TopicRef::Id(id) => data.topic_id = id.0,
        }
        data.partitions = topic.partitions().collect();
        request.forgotten_topics_data.push(data);
    }
    request
}

/// The walk meets what the iterators do, whether it is stopped or not.
fn check_fetch_walk(view: &FetchView<'_>, frame: &[u8]) {
    let mut expected = Vec::new();
    for topic in view.topics() {
        expected.push(FetchStep::Topic(topic.topic.clone()));
        expected.extend(topic.partitions().map(FetchStep::Wanted));
    }
    let mut forgotten = 0;
    for topic in view.forgotten() {
        expected.push(FetchStep::Topic(topic.topic.clone()));
        expected.extend(topic.partitions().map(FetchStep::Forgotten));
        forgotten += topic.partitions().count();
    }
    assert_eq!(forgotten, view.forgotten_partition_count);
    assert_eq!(view.walk().collect::<Vec<_>>(), expected);
    let mut walk = view.walk();
    for step in expected {
        // As if the frame was shown again.
        walk = FetchWalk::resume(frame, walk.place());
        assert_eq!(walk.next(), Some(step));
    }
    assert_eq!(walk.next(), None);
}

fn check_produce_request(bytes: &[u8], version: i16) {
    let generated = produce::ProduceRequest::decode(Reader::new(bytes), version).unwrap();
    let view = ProduceView::parse(Reader::new(bytes), version).unwrap();
    assert_eq!(produce_from_view(&view, bytes), generated);
}

fn check_fetch_request(bytes: &[u8], version: i16) {
    let generated = fetch::FetchRequest::decode(Reader::new(bytes), version).unwrap();
    let view = FetchView::parse(Reader::new(bytes), version).unwrap();
    check_fetch_walk(&view, bytes);
    assert_eq!(fetch_from_view(&view, &generated), generated);
}

/// Writes the generated message by hand.
fn produce_response(response: &produce::ProduceResponse, version: i16) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    let mut by_hand =
        ProduceResponseWriter::new(&mut writer, version, response.responses.len()).unwrap();
    for topic in &response.responses {
        let reference = topic_ref(version, &topic.name, topic.topic_id);
        by_hand.topic(&reference, topic.partition_responses.len()).unwrap();
        for partition in &topic.partition_responses {
            let record_errors: Vec<(i32, String)> = partition
                .record_errors
                .iter()
                .map(|error| {
                    let message = error.batch_index_error_message.clone();
                    (error.batch_index, message.expect("made not null"))
                })
                .collect();
            let leader = &partition.current_leader;
            let outcome = ProduceOutcome {
                index: partition.index,
                error_code: code_of(partition.error_code),
                base_offset: partition.base_offset,
                log_append_time_ms: partition.log_append_time_ms,
                log_start_offset: partition.log_start_offset,
                record_errors: &record_errors,
                error_message: partition.error_message.as_deref(),
                current_leader: Some((leader.leader_id, leader.leader_epoch)),
            };
            by_hand.partition(&outcome).unwrap();
        }
    }
    by_hand.finish(response.throttle_time_ms, &response.node_endpoints).unwrap();
    out
}

fn code_of(code: i16) -> ErrorCode {
    error_code::ALL.iter().find(|(known, _)| known.code() == code).expect("made a known one").0
}

/// Plans the generated message by hand and joins the pieces.
fn fetch_response(response: &fetch::FetchResponse, version: i16) -> Vec<u8> {
    let (mut scratch, mut pieces, mut records) = (b"head".to_vec(), Vec::new(), Vec::new());
    let top = FetchResponseTop {
        throttle_time_ms: response.throttle_time_ms,
        error_code: code_of(response.error_code),
        session_id: response.session_id,
        topic_count: response.responses.len(),
    };
    let mut plan = FetchResponsePlan::new(&mut scratch, &mut pieces, version, top).unwrap();
    for topic in &response.responses {
        let reference = topic_ref(version, &topic.topic, topic.topic_id);
        plan.topic(&reference, topic.partitions.len()).unwrap();
        for partition in &topic.partitions {
            let slice = partition.records.as_ref().map(|bytes| {
                records.push(bytes.clone());
                RecordsRef { number: records.len() - 1, length: bytes.len() }
            });
            let outcome = FetchOutcome {
                partition_index: partition.partition_index,
                error_code: code_of(partition.error_code),
                high_watermark: partition.high_watermark,
                last_stable_offset: partition.last_stable_offset,
                log_start_offset: partition.log_start_offset,
                diverging_epoch: (version >= 12).then(|| partition.diverging_epoch.clone()),
                current_leader: Some(partition.current_leader.clone()),
                aborted_transactions: partition.aborted_transactions.as_deref(),
                preferred_read_replica: partition.preferred_read_replica,
                records: slice,
            };
            plan.partition(&outcome).unwrap();
            let state = plan.pause();
            plan = FetchResponsePlan::resume(&mut scratch, &mut pieces, state);
        }
    }
    let record_bytes = plan.finish(&response.node_endpoints).unwrap();
    let mut joined = Vec::new();
    for piece in &pieces {
        match piece {
            Piece::Head(range) => joined.extend_from_slice(&scratch[range.clone()]),
            Piece::Records(number) => joined.extend_from_slice(&records[*number]),
        }
    }
    assert_eq!(joined.len(), scratch.len() + record_bytes, "the frame length");
    assert_eq!(&joined[..4], b"head");
    joined.split_off(4)
}

/// Limits a random message to what a broker can mean.
fn sensible_produce(response: &mut produce::ProduceResponse, random: &mut Random) {
    for partition in response.responses.iter_mut().flat_map(|topic| &mut topic.partition_responses)
    {
        partition.error_code = error_code(random).code();
        for error in &mut partition.record_errors {
            error.batch_index_error_message.get_or_insert_with(String::new);
        }
    }
}

fn sensible_fetch(response: &mut fetch::FetchResponse, random: &mut Random) {
    response.error_code = error_code(random).code();
    for partition in response.responses.iter_mut().flat_map(|topic| &mut topic.partitions) {
        partition.error_code = error_code(random).code();
        partition.snapshot_id = Default::default();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn produce_requests_read_alike(seed: u64) {
        let (mut random, api) = (Random(seed), api(ApiKey::Produce));
        for version in ApiKey::Produce.known_versions().iter() {
            let forms = message(&mut random, &api, &api.request, version);
            check_produce_request(&forms.clean, version);
            check_produce_request(&forms.dirty, version);
        }
    }

    #[test]
    fn fetch_requests_read_alike(seed: u64) {
        let (mut random, api) = (Random(seed), api(ApiKey::Fetch));
        for version in ApiKey::Fetch.known_versions().iter() {
            let forms = message(&mut random, &api, &api.request, version);
            check_fetch_request(&forms.clean, version);
            check_fetch_request(&forms.dirty, version);
        }
    }

    #[test]
    fn produce_responses_write_alike(seed: u64) {
        let (mut random, api) = (Random(seed), api(ApiKey::Produce));
        for version in ApiKey::Produce.known_versions().iter() {
            let bytes = message(&mut random, &api, &api.response, version).clean;
            let mut response =
                produce::ProduceResponse::decode(Reader::new(&bytes), version).unwrap();
            sensible_produce(&mut response, &mut random);
            prop_assert_eq!(
                produce_response(&response, version),
                response.encode(version).unwrap(),
                "version {}: {:?}", version, response
            );
        }
    }

    #[test]
    fn fetch_responses_write_alike(seed: u64) {
        let (mut random, api) = (Random(seed), api(ApiKey::Fetch));
        for version in ApiKey::Fetch.known_versions().iter() {
            let bytes = message(&mut random, &api, &api.response, version).clean;
            let mut response = fetch::FetchResponse::decode(Reader::new(&bytes), version).unwrap();
            sensible_fetch(&mut response, &mut random);
            prop_assert_eq!(
                fetch_response(&response, version),
                response.encode(version).unwrap(),
                "version {}: {:?}", version, response
            );
        }
    }
}

#[test]
fn the_views_refuse_every_truncation_and_trailing_bytes() {
    for vector in vectors::messages() {
        let parse = |bytes: &[u8]| match (vector.key, vector.role) {
            (ApiKey::Produce, super::dispatch::Role::Request) => {
                Some(ProduceView::parse(Reader::new(bytes), vector.version).map(drop))
            }
            (ApiKey::Fetch, super::dispatch::Role::Request) => {
                Some(FetchView::parse(Reader::new(bytes), vector.version).map(drop))
            }
            _ => None,
        };
        let Some(whole) = parse(&vector.bytes) else { continue };
        whole.unwrap();
        for end in 0..vector.bytes.len() {
            parse(&vector.bytes[..end]).unwrap().unwrap_err();
        }
        let mut long = vector.bytes.clone();
        long.push(0);
        parse(&long).unwrap().unwrap_err();
    }
}

#[test]
fn hints_and_fields_of_later_versions() {
    let leader = fetch::LeaderIdAndEpoch { leader_id: 1, leader_epoch: 2 };
    let epoch = fetch::EpochEndOffset { epoch: 1, end_offset: 9 };
    let base = FetchOutcome::failed(0, ErrorCode::NotLeaderOrFollower);
    let with_hint = FetchOutcome { current_leader: Some(leader), ..base.clone() };
    let with_replica = FetchOutcome { preferred_read_replica: 3, ..base.clone() };
    let with_epoch = FetchOutcome { diverging_epoch: Some(epoch), ..base.clone() };
    let written = |version: i16, outcome: &FetchOutcome<'_>| {
        let (mut scratch, mut pieces) = (Vec::new(), Vec::new());
        let top = FetchResponseTop {
            throttle_time_ms: 0,
            error_code: ErrorCode::None,
            session_id: 0,
            topic_count: 1,
        };
        let mut plan = FetchResponsePlan::new(&mut scratch, &mut pieces, version, top)?;
        plan.topic(&TopicRef::Name(Cow::Borrowed("t")), 1)?;
        plan.partition(outcome)?;
        plan.finish(&[])?;
        assert_eq!(pieces, [Piece::Head(0..scratch.len())]);
        Ok::<_, millstream::wire::WireError>(scratch)
    };
    assert_eq!(written(11, &with_hint), written(11, &base));
    assert_ne!(written(12, &with_hint), written(12, &base));
    assert!(written(10, &with_replica).is_err());
    assert!(written(11, &with_replica).is_ok());
    assert!(written(11, &with_epoch).is_err());
    assert!(written(12, &with_epoch).is_ok());
    // A name where the version wants an id.
    assert!(written(13, &base).is_err());
}
