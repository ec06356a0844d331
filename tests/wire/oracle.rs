//! Our codec against the crate `kafka-protocol`, in both directions, for
//! every message and version that it has.
//!
//! An oracle for well-formed bytes only: its defects are lengths taken on
//! trust, tolerated trailing bytes, and versions that it claims but cannot do.

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable, Message as _};
use millstream::wire::{ApiKey, Reader};

use super::dispatch::{Role, decode_encode};
use super::random::{Random, message};
use super::{schema, vectors};

fn recode<M: Decodable + Encodable>(bytes: &[u8], version: i16) -> Result<Vec<u8>, String> {
    let mut input = Bytes::copy_from_slice(bytes);
    let message = M::decode(&mut input, version).map_err(|error| error.to_string())?;
    if !input.is_empty() {
        return Err(format!("{} bytes are left over", input.len()));
    }
    let mut out = BytesMut::new();
    message.encode(&mut out, version).map_err(|error| error.to_string())?;
    Ok(out.to_vec())
}

/// What the oracle makes of the bytes; `None` when it lacks the version.
fn theirs(key: ApiKey, role: Role, version: i16, bytes: &[u8]) -> Option<Result<Vec<u8>, String>> {
    macro_rules! by_key {
        ($(($api:ident, $module:ident, $request:ident, $response:ident))*) => {
            match (key, role) {$(
                (ApiKey::$api, Role::Request) => {
                    let range = kafka_protocol::messages::$request::VERSIONS;
                    (range.min <= version && version <= range.max)
                        .then(|| recode::<kafka_protocol::messages::$request>(bytes, version))
                }
                (ApiKey::$api, Role::Response) => {
                    let range = kafka_protocol::messages::$response::VERSIONS;
                    (range.min <= version && version <= range.max)
                        .then(|| recode::<kafka_protocol::messages::$response>(bytes, version))
                }
            )*}
        };
    }
    millstream::for_each_api!(by_key)
}

#[test]
fn the_oracle_agrees_on_random_messages() {
    let mut missing = BTreeSet::new();
    for seed in 0..40 {
        let mut random = Random(seed);
        for api in schema::load() {
            let key = ApiKey::from_code(api.key).expect("generated from the same table");
            for (role, item) in [(Role::Request, &api.request), (Role::Response, &api.response)] {
                for version in key.known_versions().iter() {
                    let bytes = message(&mut random, &api, item, version).clean;
                    let Some(theirs) = theirs(key, role, version, &bytes) else {
                        missing.insert(format!("{} {version}", item.name));
                        continue;
                    };
                    let shown = || format!("{} {version} {bytes:02x?}", item.name);
                    // Their reading of our bytes, written again by them ...
                    assert_eq!(theirs.as_ref(), Ok(&bytes), "{}", shown());
                    // ... and our reading of theirs.
                    let theirs = theirs.expect("compared above");
                    let ours = decode_encode(key, role, version, Reader::new(&theirs));
                    assert_eq!(ours.as_ref(), Ok(&theirs), "{}", shown());
                }
            }
        }
    }
    let known_gaps = [
        "ApiVersionsRequest 5",
        "ApiVersionsResponse 5",
        "DeleteGroupsRequest 3",
        "DeleteGroupsResponse 3",
        "DescribeLogDirsRequest 5",
        "DescribeLogDirsResponse 5",
        "InitProducerIdRequest 6",
        "ListOffsetsRequest 11",
        "ListOffsetsResponse 11",
        "OffsetCommitRequest 10",
        "OffsetFetchRequest 10",
    ];
    assert_eq!(missing.iter().map(String::as_str).collect::<Vec<_>>(), known_gaps);
}

#[test]
fn the_oracle_agrees_on_kafkas_bytes() {
    for vector in vectors::messages() {
        if let Some(theirs) = theirs(vector.key, vector.role, vector.version, &vector.bytes) {
            assert_eq!(theirs.as_ref(), Ok(&vector.bytes), "{vector:02x?}");
        }
    }
}
