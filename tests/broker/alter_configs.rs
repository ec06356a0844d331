//! IncrementalAlterConfigs and AlterConfigs through the socket: what they
//! change holds at once, and after a restart.

use millstream::wire::generated::alter_configs as whole;
use millstream::wire::generated::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource,
};
use millstream::wire::generated::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig,
    IncrementalAlterConfigsRequest,
};

use super::common::{Broker, Client};
use super::requests::{batch, create_with, produce, produce_at};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;
const TOPIC: i8 = 2;

/// A resource with what is to happen to its keys.
fn resource(kind: i8, name: &str, ops: &[(&str, i8, Option<&str>)]) -> AlterConfigsResource {
    let config = |(name, op, value): &(&str, i8, Option<&str>)| AlterableConfig {
        name: (*name).into(),
        config_operation: *op,
        value: value.map(Into::into),
    };
    AlterConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configs: ops.iter().map(config).collect(),
    }
}

fn ask(
    client: &mut Client,
    resources: Vec<AlterConfigsResource>,
    validate_only: bool,
) -> Vec<AlterConfigsResourceResponse> {
    client.ask(1, &IncrementalAlterConfigsRequest { resources, validate_only }).responses
}

/// Changes one key of a topic, which must be taken.
pub(super) fn alter(client: &mut Client, topic: &str, key: &str, op: i8, value: Option<&str>) {
    let answers = ask(client, vec![resource(TOPIC, topic, &[(key, op, value)])], false);
    assert_eq!(answers[0].error_code, 0, "{answers:?}");
}

/// Sets one key of a topic, which must be taken.
pub(super) fn set(client: &mut Client, topic: &str, key: &str, value: &str) {
    alter(client, topic, key, SET, Some(value));
}

/// Value and source of one key of a topic.
fn described(client: &mut Client, topic: &str, key: &str) -> (String, i8) {
    let resources = vec![DescribeConfigsResource {
        resource_type: TOPIC,
        resource_name: topic.into(),
        configuration_keys: Some(vec![key.into()]),
    }];
    let answer = client.ask(4, &DescribeConfigsRequest { resources, ..Default::default() });
    let row = answer.results.into_iter().next().unwrap().configs.remove(0);
    (row.value.unwrap(), row.config_source)
}

#[test]
fn c108_changes_hold_at_once_and_after_a_restart() {
    let mut broker = Broker::start();
    let mut client = broker.connect();
    create_with(&mut client, "t", 2, &[("retention.ms", "1000")]);
    let big = || batch(1, 3_000);
    produce(&mut client, "t", 0, big());
    set(&mut client, "t", "max.message.bytes", "2000");
    assert_eq!(produce_at(&mut client, 9, "t", 0, big()).error_code, 10);
    set(&mut client, "t", "message.timestamp.type", "LogAppendTime");
    let answer = produce_at(&mut client, 9, "t", 1, batch(1, 10));
    assert!(answer.error_code == 0 && answer.log_append_time_ms > 0, "{answer:?}");
    alter(&mut client, "t", "cleanup.policy", APPEND, Some("compact"));
    assert_eq!(described(&mut client, "t", "cleanup.policy").0, "delete,compact");
    alter(&mut client, "t", "cleanup.policy", SUBTRACT, Some("compact,nothing"));
    alter(&mut client, "t", "retention.ms", DELETE, None);

    for graceful in [true, false] {
        assert_eq!(described(&mut client, "t", "max.message.bytes"), ("2000".into(), 1));
        assert_eq!(described(&mut client, "t", "cleanup.policy"), ("delete".into(), 1));
        assert_eq!(described(&mut client, "t", "retention.ms"), ("-1".into(), 4));
        assert_eq!(produce_at(&mut client, 9, "t", 0, big()).error_code, 10);
        if graceful {
            assert!(broker.stop().success());
        } else {
            broker.kill();
        }
        broker.restart();
        client = broker.connect();
    }
    alter(&mut client, "t", "max.message.bytes", DELETE, None);
    produce(&mut client, "t", 0, big());
}

#[test]
fn c108_resources_fail_alone() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_with(&mut client, "good", 1, &[]);
    create_with(&mut client, "bad", 1, &[]);
    let key = "retention.ms";
    let resources = vec![
        resource(TOPIC, "good", &[(key, SET, Some("5"))]),
        resource(TOPIC, "bad", &[(key, SET, Some("5")), ("segment.bytes", SET, Some("5"))]),
        resource(TOPIC, "nowhere", &[(key, SET, Some("5"))]),
        resource(TOPIC, "bad name", &[(key, SET, Some("5"))]),
        resource(TOPIC, "", &[(key, SET, Some("5"))]),
        resource(4, "1", &[("message.max.bytes", SET, Some("5"))]),
        resource(4, "1", &[]),
        resource(99, "x", &[(key, SET, Some("5"))]),
    ];
    for validate_only in [true, false] {
        let answers = ask(&mut client, resources.clone(), validate_only);
        let codes: Vec<_> = answers.iter().map(|a| a.error_code).collect();
        assert_eq!(codes, [0, 40, 3, 17, 42, 42, 42, 42], "{answers:?}");
        let names: Vec<_> = answers.iter().map(|a| a.resource_name.as_str()).collect();
        assert_eq!(names, ["good", "bad", "nowhere", "bad name", "", "1", "1", "x"]);
        let value = if validate_only { ("-1".into(), 4) } else { ("5".into(), 1) };
        assert_eq!(described(&mut client, "good", key), value);
        assert_eq!(described(&mut client, "bad", key).1, 4, "all of a resource or nothing");
    }
    let only = ask(&mut client, vec![resource(4, "1", &[])], false);
    assert_eq!(only[0].error_code, 0, "nothing was to change");
}

#[test]
fn c110_the_old_request_replaces_everything() {
    let broker = Broker::start();
    let mut client = broker.connect();
    create_with(&mut client, "t", 1, &[("retention.ms", "5"), ("segment.ms", "6")]);
    let request = |configs: &[(&str, &str)]| whole::AlterConfigsRequest {
        resources: vec![whole::AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: "t".into(),
            configs: configs
                .iter()
                .map(|(name, value)| whole::AlterableConfig {
                    name: (*name).into(),
                    value: Some((*value).into()),
                })
                .collect(),
        }],
        validate_only: false,
    };
    for version in 0..=2 {
        let answer = client.ask(version, &request(&[("segment.ms", "7")]));
        assert_eq!(answer.responses[0].error_code, 0);
        assert_eq!(described(&mut client, "t", "segment.ms"), ("7".into(), 1));
        assert_eq!(described(&mut client, "t", "retention.ms").1, 4);
    }
    let answer = client.ask(2, &request(&[("millstream.durability", "os")]));
    assert_eq!(answer.responses[0].error_code, 40);
    assert!(answer.responses[0].error_message.as_ref().unwrap().contains("millstream.durability"));
}
