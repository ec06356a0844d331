//! IncrementalAlterConfigs (KIP-339) and AlterConfigs (checklist 108, 110).
//!
//! Requests become one command of the controller, which judges the values.
//! Only topics have configs that change at run time: a broker's are those of
//! its start, and whoever wants to change them is told so by name.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::cluster::{Command, ConfigChange, ConfigOp, Reply};
use crate::io::Env;
use crate::model::ErrorCode;
use crate::model::config::broker_key;
use crate::wire::generated::{alter_configs as whole, incremental_alter_configs as incremental};

use super::super::context::Request;
use super::support::{BROKER, BROKER_LOGGER, NEVER_THROTTLED, TOPIC, as_known, command, is_here};

/// How long a client waits for a change; the requests have no time of their
/// own. Kafka's `request.timeout.ms`.
const WAIT_MS: i32 = 30_000;

/// Why nothing changed; none when it did.
type Refusal = Option<(ErrorCode, String)>;

/// A resource and what the client wants of it.
struct Wanted {
    kind: i8,
    name: String,
    change: Result<ConfigChange, (ErrorCode, String)>,
    /// The keys that it names, for messages.
    keys: Vec<String>,
}

/// Changes single keys.
pub(in crate::server) async fn incremental<E: Env>(
    request: &Request<E>,
    body: incremental::IncrementalAlterConfigsRequest,
) -> incremental::IncrementalAlterConfigsResponse {
    let wanted: Vec<_> = body.resources.into_iter().map(by_keys).collect();
    let (responses, throttle_time_ms) = alter(request, wanted, body.validate_only).await;
    let response = |(resource_type, resource_name, refusal): (i8, String, Refusal)| {
        let (error_code, error_message) = coded(refusal);
        incremental::AlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type,
            resource_name,
        }
    };
    incremental::IncrementalAlterConfigsResponse {
        responses: responses.into_iter().map(response).collect(),
        throttle_time_ms,
    }
}

/// Replaces all keys of a resource.
pub(in crate::server) async fn replace<E: Env>(
    request: &Request<E>,
    body: whole::AlterConfigsRequest,
) -> whole::AlterConfigsResponse {
    let wanted: Vec<_> = body.resources.into_iter().map(in_whole).collect();
    let (responses, throttle_time_ms) = alter(request, wanted, body.validate_only).await;
    let response = |(resource_type, resource_name, refusal): (i8, String, Refusal)| {
        let (error_code, error_message) = coded(refusal);
        whole::AlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type,
            resource_name,
        }
    };
    whole::AlterConfigsResponse {
        responses: responses.into_iter().map(response).collect(),
        throttle_time_ms,
    }
}

fn coded(refusal: Refusal) -> (i16, Option<String>) {
    match refusal {
        None => (ErrorCode::None.code(), None),
        Some((code, message)) => (code.code(), Some(message)),
    }
}

fn invalid<T>(message: impl Into<String>) -> Result<T, (ErrorCode, String)> {
    Err((ErrorCode::InvalidRequest, message.into()))
}

fn by_keys(resource: incremental::AlterConfigsResource) -> Wanted {
    let keys: Vec<String> = resource.configs.iter().map(|config| config.name.clone()).collect();
    let op = |config: incremental::AlterableConfig| {
        let incremental::AlterableConfig { name, config_operation, value } = config;
        let op = match (config_operation, value) {
            (1, _) => ConfigOp::Delete,
            (0 | 2 | 3, None) => return invalid(format!("configuration {name} has no value")),
            (0, Some(value)) => ConfigOp::Set(value),
            (2, Some(value)) => ConfigOp::Append(value),
            (3, Some(value)) => ConfigOp::Subtract(value),
            (other, _) => {
                return invalid(format!(
                    "operation {other} on configuration {name} is unknown (0 SET, 1 DELETE, \
                     2 APPEND, 3 SUBTRACT)"
                ));
            }
        };
        Ok((name, op))
    };
    let ops: Result<Vec<_>, _> = resource.configs.into_iter().map(op).collect();
    let change = no_key_twice(&keys).and(ops.map(ConfigChange::Keys));
    Wanted { kind: resource.resource_type, name: resource.resource_name, change, keys }
}

fn in_whole(resource: whole::AlterConfigsResource) -> Wanted {
    let keys: Vec<String> = resource.configs.iter().map(|config| config.name.clone()).collect();
    let pair = |config: whole::AlterableConfig| match config.value {
        Some(value) => Ok((config.name, value)),
        None => invalid(format!("configuration {} has no value", config.name)),
    };
    let pairs: Result<BTreeMap<_, _>, _> = resource.configs.into_iter().map(pair).collect();
    let change = no_key_twice(&keys).and(pairs.map(ConfigChange::Whole));
    Wanted { kind: resource.resource_type, name: resource.resource_name, change, keys }
}

fn no_key_twice(keys: &[String]) -> Result<(), (ErrorCode, String)> {
    let mut seen = HashSet::new();
    match keys.iter().find(|key| !seen.insert(key.as_str())) {
        Some(key) => invalid(format!("configuration {key} is named twice")),
        None => Ok(()),
    }
}

/// Kind, name and outcome of each resource, in the order of the request, and
/// how long the client is to wait.
async fn alter<E: Env>(
    request: &Request<E>,
    wanted: Vec<Wanted>,
    validate_only: bool,
) -> (Vec<(i8, String, Refusal)>, i32) {
    let here = request.context.node().0;
    let (changes, answers) = sorted_out(wanted, here);
    let asked: Vec<String> = changes.iter().map(|(name, _)| name.clone()).collect();
    let mut decided: HashMap<String, Refusal> = HashMap::new();
    let mut throttle_time_ms = 0;
    if !changes.is_empty() {
        let change = Command::AlterConfigs { changes, validate_only };
        match command(&request.context, change, WAIT_MS).await {
            Ok(Reply::AlterConfigs(results)) => {
                let refusal = |e: crate::cluster::ErrorReply| (e.code, e.message);
                decided.extend(results.into_iter().map(|r| (r.topic, r.error.map(refusal))));
            }
            Ok(reply) => unreachable!("AlterConfigs answered {reply:?}"),
            Err(error) => {
                let (error, throttle) = as_known(error, request.version, NEVER_THROTTLED);
                throttle_time_ms = throttle;
                let refusal = Some((error.code, error.message));
                decided.extend(asked.into_iter().map(|name| (name, refusal.clone())));
            }
        }
    }
    let settle = |(kind, name, answer): (i8, String, Option<Refusal>)| {
        let refusal = answer.unwrap_or_else(|| decided.get(&name).cloned().flatten());
        (kind, name, refusal)
    };
    (answers.into_iter().map(settle).collect(), throttle_time_ms)
}

type Answers = Vec<(i8, String, Option<Refusal>)>;

/// What the controller has to decide, and every resource with the answer that
/// is known without it.
fn sorted_out(wanted: Vec<Wanted>, here: i32) -> (Vec<(String, ConfigChange)>, Answers) {
    let mut times: HashMap<(i8, String), usize> = HashMap::new();
    for resource in &wanted {
        *times.entry((resource.kind, resource.name.clone())).or_default() += 1;
    }
    let mut changes = Vec::new();
    let mut answers = Vec::with_capacity(wanted.len());
    for Wanted { kind, name, change, keys } in wanted {
        let once = match times.get(&(kind, name.clone())) {
            Some(1) => Ok(()),
            _ => invalid("the request names this resource more than once"),
        };
        let answer = match (once.and(change), kind) {
            (Err(refusal), _) => Some(Some(refusal)),
            (Ok(change), TOPIC) => {
                changes.push((name.clone(), change));
                None
            }
            (Ok(_), other) => Some(not_at_run_time(other, &name, &keys, here)),
        };
        answers.push((kind, name, answer));
    }
    (changes, answers)
}

/// Why a resource that is no topic stays as it is; none when nothing of it was
/// to change.
fn not_at_run_time(kind: i8, name: &str, keys: &[String], here: i32) -> Refusal {
    if matches!(kind, BROKER | BROKER_LOGGER)
        && !name.is_empty()
        && let Err(refusal) = is_here(name, here)
    {
        return Some(refusal);
    }
    let message = match (kind, keys.first()) {
        (BROKER | BROKER_LOGGER, None) => return None,
        (BROKER, Some(key)) if broker_key(key).is_none() => {
            format!("there is no broker configuration '{key}'")
        }
        (BROKER, Some(key)) => format!(
            "broker configuration {key} cannot change while the broker runs: put it into the \
             configuration file or after --set, and start the broker again"
        ),
        (BROKER_LOGGER, Some(_)) => "log levels cannot change while the broker runs: set \
                                     MILLSTREAM_LOG and start the broker again"
            .to_owned(),
        (other, _) => format!("resources of type {other} have no configs here to change (2 topic)"),
    };
    Some((ErrorCode::InvalidRequest, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(kind: i8, name: &str, ops: &[(&str, i8, Option<&str>)]) -> Wanted {
        let config = |(name, op, value): &(&str, i8, Option<&str>)| incremental::AlterableConfig {
            name: (*name).into(),
            config_operation: *op,
            value: value.map(Into::into),
        };
        by_keys(incremental::AlterConfigsResource {
            resource_type: kind,
            resource_name: name.into(),
            configs: ops.iter().map(config).collect(),
        })
    }

    fn refusal(wanted: Wanted) -> (ErrorCode, String) {
        let (changes, mut answers) = sorted_out(vec![wanted], 1);
        assert!(changes.is_empty(), "{changes:?}");
        answers.remove(0).2.expect("decided").expect("refused")
    }

    #[test]
    fn c108_malformed_changes_are_refused_by_key() {
        for (ops, word) in [
            (&[("retention.ms", 0, None)][..], "retention.ms has no value"),
            (&[("cleanup.policy", 2, None)][..], "cleanup.policy has no value"),
            (&[("a", 9, Some("1"))][..], "operation 9 on configuration a is unknown"),
            (&[("a", 0, Some("1")), ("b", 1, None), ("a", 1, None)][..], "a is named twice"),
        ] {
            let (code, message) = refusal(resource(TOPIC, "t", ops));
            assert_eq!(code, ErrorCode::InvalidRequest);
            assert!(message.contains(word), "{message}");
        }
        let whole = in_whole(whole::AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: "t".into(),
            configs: vec![whole::AlterableConfig { name: "segment.ms".into(), value: None }],
        });
        assert!(refusal(whole).1.contains("segment.ms has no value"));
    }

    #[test]
    fn c108_only_topics_change_at_run_time() {
        for (kind, name, key, word) in [
            (BROKER, "1", "message.max.bytes", "message.max.bytes cannot change"),
            (BROKER, "", "message.max.bytes", "message.max.bytes cannot change"),
            (BROKER, "1", "no.such.key", "no broker configuration 'no.such.key'"),
            (BROKER, "2", "message.max.bytes", "this is broker 1"),
            (BROKER_LOGGER, "1", "root", "MILLSTREAM_LOG"),
            (BROKER_LOGGER, "x", "root", "not a number"),
            (32, "group", "k", "type 32"),
            (99, "x", "k", "type 99"),
        ] {
            let (code, message) = refusal(resource(kind, name, &[(key, 0, Some("1"))]));
            assert_eq!(code, ErrorCode::InvalidRequest);
            assert!(message.contains(word), "{message}");
        }
        let (_, mut answers) = sorted_out(vec![resource(BROKER, "1", &[])], 1);
        assert_eq!(answers.remove(0).2, Some(None), "nothing was to change");
    }

    #[test]
    fn c108_a_resource_named_twice_is_refused_twice() {
        let topic = || resource(TOPIC, "t", &[("retention.ms", 0, Some("1"))]);
        let other = resource(TOPIC, "u", &[("retention.ms", 1, None)]);
        let (changes, answers) = sorted_out(vec![topic(), other, topic()], 1);
        let names: Vec<_> = changes.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["u"]);
        let refused: Vec<_> = answers.iter().map(|(_, _, answer)| answer.is_some()).collect();
        assert_eq!(refused, [true, false, true]);
    }
}
