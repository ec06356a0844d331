//! Bytes that Kafka's own encoder made (`tests/wire/vectors.sh`).

use millstream::wire::{ApiKey, Reader, WireError};

use super::dispatch::{Role, decode_encode};

/// One line of `vectors.txt`.
#[derive(Clone, Debug)]
pub(crate) struct Vector {
    pub(crate) key: ApiKey,
    pub(crate) role: Role,
    pub(crate) version: i16,
    pub(crate) style: String,
    pub(crate) bytes: Vec<u8>,
}

fn lines() -> impl Iterator<Item = [&'static str; 5]> {
    include_str!("vectors.txt").lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        <[&str; 5]>::try_from(words).expect("five words a line")
    })
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect()
}

fn key(name: &str) -> ApiKey {
    ApiKey::ALL.iter().find(|facts| facts.name == name).expect("an API of the schema").key
}

/// Every message vector.
pub(crate) fn messages() -> Vec<Vector> {
    lines()
        .filter(|[_, role, ..]| *role != "headers")
        .map(|[api, role, version, style, bytes]| Vector {
            key: key(api),
            role: if role == "request" { Role::Request } else { Role::Response },
            version: version.parse().expect("a version"),
            style: style.to_owned(),
            bytes: hex(bytes),
        })
        .collect()
}

#[test]
fn we_read_and_write_what_kafka_writes() {
    for vector in messages() {
        let again =
            decode_encode(vector.key, vector.role, vector.version, Reader::new(&vector.bytes));
        assert_eq!(again.as_ref(), Ok(&vector.bytes), "{vector:02x?}");
    }
}

#[test]
fn there_is_a_vector_for_every_message_and_version() {
    let messages = messages();
    for facts in ApiKey::ALL {
        for version in facts.known.iter() {
            for role in [Role::Request, Role::Response] {
                for style in ["full", "null", "empty"] {
                    let count = messages
                        .iter()
                        .filter(|vector| vector.key == facts.key && vector.role == role)
                        .filter(|vector| vector.version == version && vector.style == style)
                        .count();
                    assert_eq!(
                        count, 1,
                        "{} {role:?} {version} {style}: run tests/wire/vectors.sh write",
                        facts.name
                    );
                }
            }
        }
    }
}

#[test]
fn header_versions_are_kafkas() {
    for [api, _, version, _, bytes] in lines().filter(|[_, role, ..]| *role == "headers") {
        let (key, version) = (key(api), version.parse().expect("a version"));
        let expected = hex(bytes);
        assert_eq!(key.request_header_version(version), i16::from(expected[0]), "{api} {version}");
        assert_eq!(key.response_header_version(version), i16::from(expected[1]), "{api} {version}");
    }
}

#[test]
fn every_truncation_is_an_error() {
    for vector in messages() {
        for end in 0..vector.bytes.len() {
            let cut = Reader::new(&vector.bytes[..end]);
            let read = decode_encode(vector.key, vector.role, vector.version, cut);
            assert!(
                matches!(read, Err(WireError::Truncated { .. } | WireError::ArrayTooLong { .. })),
                "cut at {end} of {vector:02x?}: {read:?}"
            );
        }
    }
}
