//! FindCoordinator. There are no groups and no transactions yet, so no key has
//! a coordinator: clients are told to ask again (checklist 63).

use crate::io::Env;
use crate::model::ErrorCode;
use crate::wire::generated::find_coordinator::{
    Coordinator, FindCoordinatorRequest, FindCoordinatorResponse,
};

use super::super::context::Request;

/// First version with several keys per request.
const BATCHES_FROM: i16 = 4;

/// First version with coordinators of share groups.
const SHARE_FROM: i16 = 6;

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

/// Names the node that coordinates a group or a transactional id.
pub(in crate::server) async fn find<E: Env>(
    request: &Request<E>,
    body: FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    respond(request.version, body)
}

fn respond(version: i16, body: FindCoordinatorRequest) -> FindCoordinatorResponse {
    let (code, message) = judge(version, body.key_type);
    if version < BATCHES_FROM {
        return FindCoordinatorResponse {
            error_code: code.code(),
            error_message: Some(message.into()),
            node_id: -1,
            port: -1,
            ..FindCoordinatorResponse::default()
        };
    }
    let none = |key| Coordinator {
        key,
        node_id: -1,
        host: String::new(),
        port: -1,
        error_code: code.code(),
        // As in Kafka; the same words for thousands of keys are of no use.
        error_message: None,
    };
    FindCoordinatorResponse {
        error_message: None,
        coordinators: body.coordinator_keys.into_iter().map(none).collect(),
        ..FindCoordinatorResponse::default()
    }
}

fn judge(version: i16, key_type: i8) -> (ErrorCode, &'static str) {
    match key_type {
        GROUP => (ErrorCode::CoordinatorNotAvailable, "this broker has no groups yet"),
        TRANSACTION => (ErrorCode::CoordinatorNotAvailable, "this broker has no transactions yet"),
        SHARE if version >= SHARE_FROM => {
            (ErrorCode::CoordinatorNotAvailable, "this broker has no share groups yet")
        }
        _ => (ErrorCode::InvalidRequest, "no such type of key in this version"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Message, Reader};

    fn ask(version: i16, key_type: i8, keys: &[&str]) -> FindCoordinatorResponse {
        let mut body = FindCoordinatorRequest { key_type, ..FindCoordinatorRequest::default() };
        if version < BATCHES_FROM {
            body.key = keys[0].into();
        } else {
            body.coordinator_keys = keys.iter().map(|key| (*key).into()).collect();
        }
        let bytes = respond(version, body).encode(version).unwrap();
        FindCoordinatorResponse::decode(Reader::new(&bytes), version).unwrap()
    }

    #[test]
    fn c63_no_coordinator_is_available_in_any_version() {
        for version in 0..=3 {
            let response = ask(version, 0, &["g"]);
            assert_eq!((response.error_code, response.node_id), (15, -1), "version {version}");
        }
        for version in 4..=6 {
            let response = ask(version, 1, &["a", "b", ""]);
            let codes: Vec<_> =
                response.coordinators.iter().map(|c| (c.key.as_str(), c.error_code)).collect();
            assert_eq!(codes, [("a", 15), ("b", 15), ("", 15)], "version {version}");
            assert!(ask(version, 0, &[]).coordinators.is_empty());
        }
    }

    #[test]
    fn c63_types_of_key_that_the_version_has_not_are_refused() {
        assert_eq!(ask(1, 2, &["s"]).error_code, 42);
        assert_eq!(ask(5, 2, &["s"]).coordinators[0].error_code, 42);
        assert_eq!(ask(6, 2, &["s"]).coordinators[0].error_code, 15);
        assert_eq!(ask(6, 3, &["s"]).coordinators[0].error_code, 42);
        assert_eq!(ask(6, -1, &["s"]).coordinators[0].error_code, 42);
    }
}
