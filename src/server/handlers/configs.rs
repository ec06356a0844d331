//! DescribeConfigs: the one configuration table, as it holds for a topic or
//! for this broker (checklist 109).

use std::collections::HashSet;

use crate::io::Env;
use crate::model::config::DescribedConfig;
use crate::model::{ErrorCode, topic_name};
use crate::wire::generated::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult,
    DescribeConfigsResponse, DescribeConfigsResult, DescribeConfigsSynonym,
};

use super::super::context::{Context, Request};
use super::support::{BROKER, BROKER_LOGGER, TOPIC, is_here};

/// Kafka's number for the source of a logger's level.
const SOURCE_BROKER_LOGGER: i8 = 6;

/// Resources that one request may describe; an answer has about 20 KiB for
/// each. Kafka has no limit, its admin client sends a topic list whole.
const RESOURCES_MAX: usize = 10_000;

const TOO_MANY: &str = "a request may describe at most 10,000 resources";

/// Why a resource is not described.
type Refusal = (ErrorCode, String);

/// Which columns the client wants.
#[derive(Clone, Copy)]
struct Columns {
    synonyms: bool,
    documentation: bool,
}

/// Lists keys and values.
pub(in crate::server) async fn describe<E: Env>(
    request: &Request<E>,
    body: DescribeConfigsRequest,
) -> DescribeConfigsResponse {
    let context = &request.context;
    let columns =
        Columns { synonyms: body.include_synonyms, documentation: body.include_documentation };
    let mut seen = HashSet::new();
    let mut results = Vec::with_capacity(body.resources.len().min(RESOURCES_MAX));
    for resource in body.resources {
        // The rows of a few resources take longer than this shard's slice.
        if context.owner.env().slice_over() {
            context.owner.env().pause().await;
        }
        let is_new = seen.insert((resource.resource_type, resource.resource_name.clone()));
        let rows = if !is_new {
            Err((ErrorCode::InvalidRequest, "the request names this resource twice".to_owned()))
        } else if seen.len() > RESOURCES_MAX {
            Err((ErrorCode::InvalidRequest, TOO_MANY.to_owned()))
        } else {
            rows(context, &resource, columns)
        };
        results.push(result(resource, rows));
    }
    DescribeConfigsResponse { results, ..DescribeConfigsResponse::default() }
}

fn result(
    resource: DescribeConfigsResource,
    rows: Result<Vec<DescribeConfigsResourceResult>, Refusal>,
) -> DescribeConfigsResult {
    let (code, message, configs) = match rows {
        Ok(configs) => (ErrorCode::None, None, configs),
        Err((code, message)) => (code, Some(message), Vec::new()),
    };
    DescribeConfigsResult {
        error_code: code.code(),
        error_message: message,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name,
        configs,
    }
}

fn rows<E: Env>(
    context: &Context<E>,
    resource: &DescribeConfigsResource,
    columns: Columns,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    let (metadata, name) = (&context.metadata, resource.resource_name.as_str());
    let keys = resource.configuration_keys.as_deref();
    match resource.resource_type {
        TOPIC => {
            topic_name::validate(name)
                .map_err(|e| (ErrorCode::InvalidTopicException, e.to_string()))?;
            let image = metadata.image();
            let topic = image.topic(name).ok_or_else(|| {
                (ErrorCode::UnknownTopicOrPartition, format!("there is no topic '{name}'"))
            })?;
            Ok(select(metadata.config().describe_topic(&topic.configs), keys, columns))
        }
        // Defaults of all brokers, set at run time: there are none so far.
        BROKER if name.is_empty() => Ok(Vec::new()),
        BROKER => {
            is_here(name, context.node().0)?;
            Ok(select(metadata.config().describe_broker(), keys, columns))
        }
        BROKER_LOGGER => {
            is_here(name, context.node().0)?;
            Ok(loggers(keys))
        }
        other => Err((
            ErrorCode::InvalidRequest,
            format!("resources of type {other} have no configs here (2 topic, 4 broker, 8 logger)"),
        )),
    }
}

/// The rows that the client named, or all of them.
fn select(
    described: Vec<DescribedConfig>,
    keys: Option<&[String]>,
    columns: Columns,
) -> Vec<DescribeConfigsResourceResult> {
    let wanted = wanted(keys);
    described.into_iter().filter(|r| wanted(r.name)).map(|r| row(r, columns)).collect()
}

/// No list and an empty list both mean all.
fn wanted(keys: Option<&[String]>) -> impl Fn(&str) -> bool {
    let keys: HashSet<&str> = keys.unwrap_or_default().iter().map(String::as_str).collect();
    move |name| keys.is_empty() || keys.contains(name)
}

fn row(described: DescribedConfig, columns: Columns) -> DescribeConfigsResourceResult {
    let synonym = |s: crate::model::config::Synonym| DescribeConfigsSynonym {
        name: s.name.into(),
        value: s.value,
        source: s.source as i8,
    };
    let synonyms = if columns.synonyms { described.synonyms } else { Vec::new() };
    DescribeConfigsResourceResult {
        name: described.name.into(),
        value: described.value.filter(|_| !described.is_sensitive),
        read_only: described.read_only,
        config_source: described.source as i8,
        is_sensitive: described.is_sensitive,
        synonyms: synonyms.into_iter().map(synonym).collect(),
        config_type: described.kind as i8,
        documentation: columns.documentation.then(|| described.documentation.into()),
    }
}

/// The one logger and the most detailed level that it writes.
fn loggers(keys: Option<&[String]>) -> Vec<DescribeConfigsResourceResult> {
    let root = DescribeConfigsResourceResult {
        name: "root".into(),
        value: Some(tracing::level_filters::LevelFilter::current().to_string().to_uppercase()),
        read_only: true,
        config_source: SOURCE_BROKER_LOGGER,
        documentation: None,
        ..DescribeConfigsResourceResult::default()
    };
    if wanted(keys)("root") { vec![root] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::config::{ConfigSource, Kind, Synonym};
    use crate::wire::Message;

    const ALL: Columns = Columns { synonyms: true, documentation: true };

    fn described(name: &'static str, is_sensitive: bool) -> DescribedConfig {
        let synonym = Synonym { name, value: Some("1".into()), source: ConfigSource::StaticBroker };
        DescribedConfig {
            name,
            value: Some("1".into()),
            read_only: true,
            source: ConfigSource::StaticBroker,
            is_sensitive,
            synonyms: vec![synonym],
            kind: Kind::Int,
            documentation: "words",
        }
    }

    #[test]
    fn c109_rows_carry_what_was_asked_for() {
        let row_all = row(described("a", false), ALL);
        assert_eq!((row_all.config_source, row_all.config_type), (4, 3));
        assert_eq!(row_all.synonyms.len(), 1);
        assert_eq!(row_all.documentation.as_deref(), Some("words"));
        let bare = row(described("a", false), Columns { synonyms: false, documentation: false });
        assert!(bare.synonyms.is_empty() && bare.documentation.is_none());
        assert_eq!(row(described("secret", true), ALL).value, None);
        let rows = vec![row_all, bare];
        for version in 1..=4 {
            let resource = DescribeConfigsResource { resource_type: TOPIC, ..Default::default() };
            let results = vec![
                result(resource.clone(), Ok(rows.clone())),
                result(resource, Err((ErrorCode::InvalidRequest, "no".into()))),
            ];
            let response = DescribeConfigsResponse { results, ..Default::default() };
            response.encode(version).unwrap();
        }
    }

    #[test]
    fn c109_keys_filter_rows() {
        let names = |keys: Option<Vec<&str>>| -> Vec<String> {
            let keys: Option<Vec<String>> =
                keys.map(|keys| keys.into_iter().map(Into::into).collect());
            let all = vec![described("a", false), described("b", false)];
            select(all, keys.as_deref(), ALL).into_iter().map(|row| row.name).collect()
        };
        assert_eq!(names(None), ["a", "b"]);
        assert_eq!(names(Some(vec![])), ["a", "b"]);
        assert_eq!(names(Some(vec!["b", "zz", "b"])), ["b"]);
        assert!(names(Some(vec!["zz"])).is_empty());
        assert_eq!(loggers(None).len(), 1);
        assert!(loggers(Some(&["other".to_owned()])).is_empty());
    }

    #[test]
    fn c109_other_brokers_settings_are_not_known_here() {
        assert_eq!(is_here("1", 1), Ok(()));
        for (name, word) in [("2", "broker 2"), ("x", "not a number"), ("", "not a number")] {
            let (code, message) = is_here(name, 1).unwrap_err();
            assert_eq!(code, ErrorCode::InvalidRequest);
            assert!(message.contains(word), "{message}");
        }
    }
}
