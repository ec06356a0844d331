//! ApiVersions (KIP-35, KIP-511, KIP-584, KIP-1242).

use crate::cluster::{FEATURE_LEVEL, FEATURE_NAME};
use crate::io::Env;
use crate::model::{ErrorCode, NodeId};
use crate::wire::ApiKey;
use crate::wire::generated::api_versions::{
    ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};

use super::super::context::Request;

/// First version whose clients name themselves.
const NAMES_FROM: i16 = 3;

/// First version whose clients accept a supported feature with minimum 0
/// (KAFKA-17011).
const FEATURE_MIN_ZERO_FROM: i16 = 4;

/// First version whose clients say whom they expect to meet (KIP-1242).
const IDENTITY_FROM: i16 = 5;

/// Who answers.
#[derive(Clone, Copy)]
struct Identity<'a> {
    cluster_id: Option<&'a str>,
    node: NodeId,
    /// Level of our metadata feature that is in force; 0 before the first.
    feature_level: u16,
}

/// Says which APIs and versions this broker answers.
pub(in crate::server) async fn handle<E: Env>(
    request: &Request<E>,
    body: ApiVersionsRequest,
) -> ApiVersionsResponse {
    let image = request.context.metadata.image();
    let identity = Identity {
        cluster_id: image.cluster_id(),
        node: request.context.node(),
        feature_level: image.feature_level(),
    };
    respond(request.version, &body, identity)
}

/// The answer to a version that we do not speak: always a version 0 body, which
/// names the versions of this one API so that the client can ask again.
pub(in crate::server) fn unsupported_version() -> ApiVersionsResponse {
    ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys: keys().filter(|key| key.api_key == ApiKey::ApiVersions.code()).collect(),
        ..ApiVersionsResponse::default()
    }
}

fn respond(version: i16, body: &ApiVersionsRequest, identity: Identity<'_>) -> ApiVersionsResponse {
    let refuse = |code: ErrorCode| ApiVersionsResponse {
        error_code: code.code(),
        ..ApiVersionsResponse::default()
    };
    if version >= NAMES_FROM
        && !(is_software_name(&body.client_software_name)
            && is_software_name(&body.client_software_version))
    {
        return refuse(ErrorCode::InvalidRequest);
    }
    if version >= IDENTITY_FROM && meets_a_stranger(body, identity) {
        return refuse(ErrorCode::RebootstrapRequired);
    }
    let level = i16::try_from(identity.feature_level).expect("feature levels are small numbers");
    let newest = i16::try_from(FEATURE_LEVEL).expect("feature levels are small numbers");
    let ours =
        SupportedFeatureKey { name: FEATURE_NAME.into(), min_version: 1, max_version: newest };
    let mut response = ApiVersionsResponse {
        api_keys: keys().collect(),
        supported_features: supported(version, vec![ours]),
        ..ApiVersionsResponse::default()
    };
    if level > 0 {
        // It must grow whenever a finalized level does; there is one level.
        response.finalized_features_epoch = i64::from(level);
        response.finalized_features.push(FinalizedFeatureKey {
            name: FEATURE_NAME.into(),
            max_version_level: level,
            min_version_level: level,
        });
    }
    response
}

fn keys() -> impl Iterator<Item = ApiVersion> {
    ApiKey::advertised().map(|(key, range)| ApiVersion {
        api_key: key.code(),
        min_version: range.min,
        max_version: range.max,
    })
}

/// The features that clients of this version can be told about.
fn supported(version: i16, features: Vec<SupportedFeatureKey>) -> Vec<SupportedFeatureKey> {
    let tell = |f: &SupportedFeatureKey| version >= FEATURE_MIN_ZERO_FROM || f.min_version > 0;
    features.into_iter().filter(tell).collect()
}

/// Whether the client looks for another cluster, or for another node of this
/// one: Kafka compares only when a cluster id is given, and then both.
fn meets_a_stranger(body: &ApiVersionsRequest, identity: Identity<'_>) -> bool {
    body.cluster_id.as_deref().is_some_and(|expected| {
        Some(expected) != identity.cluster_id || body.node_id != identity.node.0
    })
}

/// Letters, digits, `-` and `.`, with a letter or a digit at both ends.
fn is_software_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| inner(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Message;

    const US: Identity<'_> = Identity { cluster_id: Some("c1"), node: NodeId(1), feature_level: 1 };

    fn named() -> ApiVersionsRequest {
        ApiVersionsRequest {
            client_software_name: "librdkafka".into(),
            client_software_version: "2.10.0".into(),
            ..ApiVersionsRequest::default()
        }
    }

    #[test]
    fn c12_the_fallback_names_this_api_alone_in_a_version_0_body() {
        let response = unsupported_version();
        assert_eq!(response.error_code, 35);
        let keys: Vec<_> =
            response.api_keys.iter().map(|k| (k.api_key, k.min_version, k.max_version)).collect();
        assert_eq!(keys, [(18, 0, 5)]);
        assert_eq!(response.encode(0).unwrap(), [0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5]);
    }

    #[test]
    fn c14_software_names() {
        for good in ["a", "9", "apache-kafka-java", "4.4.0", "a-.-b", "4.4.0-SNAPSHOT"] {
            assert!(is_software_name(good), "{good}");
        }
        for bad in ["", "-", ".", "a-", "-a", "a b", "a_b", "ä", "a\n", "sarama/1"] {
            assert!(!is_software_name(bad), "{bad}");
        }
        let mut body = named();
        body.client_software_version = String::new();
        assert_eq!(respond(3, &body, US).error_code, 42);
        assert!(respond(3, &body, US).api_keys.is_empty());
        assert_eq!(respond(2, &body, US).error_code, 0, "older clients have no name");
    }

    #[test]
    fn c15_a_stranger_must_bootstrap_again() {
        let ask = |cluster: Option<&str>, node| ApiVersionsRequest {
            cluster_id: cluster.map(Into::into),
            node_id: node,
            ..named()
        };
        let code = |version, body: &ApiVersionsRequest| respond(version, body, US).error_code;
        assert_eq!(code(5, &ask(None, -1)), 0);
        assert_eq!(code(5, &ask(None, 7)), 0, "a node id alone is not compared");
        assert_eq!(code(5, &ask(Some("c1"), 1)), 0);
        assert_eq!(code(5, &ask(Some("c1"), 2)), 129);
        assert_eq!(code(5, &ask(Some("c2"), 1)), 129);
        assert_eq!(code(4, &ask(Some("c2"), 2)), 0);
    }

    #[test]
    fn c15_features_with_minimum_0_are_kept_from_old_clients() {
        let feature = |name: &str, min| SupportedFeatureKey {
            name: name.into(),
            min_version: min,
            max_version: 1,
        };
        let names = |version| -> Vec<String> {
            let all = vec![feature("zero", 0), feature("one", 1)];
            supported(version, all).into_iter().map(|f| f.name).collect()
        };
        assert_eq!(names(3), ["one"]);
        assert_eq!(names(4), ["zero", "one"]);
        let response = respond(3, &named(), US);
        assert!(response.supported_features.iter().all(|f| f.min_version > 0));
    }

    #[test]
    fn c16_c17_what_is_advertised_is_exactly_what_the_schema_serves() {
        for version in 0..=5 {
            let response = respond(version, &named(), US);
            assert_eq!(response.error_code, 0);
            let expected: Vec<_> = keys().collect();
            assert_eq!(response.api_keys, expected, "version {version}");
            response.encode(version).unwrap();
        }
        let has = |key| keys().any(|k| k.api_key == key);
        assert!(has(0) && has(18));
        assert!(!has(71) && !has(72), "no telemetry without a receiver");
        let produce = keys().find(|k| k.api_key == 0).unwrap();
        assert_eq!(produce.min_version, 0, "librdkafka looks for Produce 0 (KAFKA-18659)");
    }
}
