//! The table against what Kafka 4.4's jars say of the same keys.

use std::collections::BTreeMap;

use super::*;
use crate::model::TopicConfig;

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('|').collect())
}

fn own(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn same_kind_and_default(key: &Key, kind: &str, default: &str) {
    assert_eq!(key.kind.name().to_uppercase(), kind, "{}", key.name);
    let none = ["null", "<none>"].contains(&default);
    let ours = key.default;
    // Ours by intent: where data lives, and which node this is.
    if !["log.dir", "node.id", "broker.id"].contains(&key.name) {
        assert_eq!(ours, (!none).then_some(default), "{}", key.name);
    }
}

#[test]
fn c109_every_topic_key_of_kafka_with_its_type_and_default() {
    let mut ours: Vec<_> = topic_keys().iter().map(|key| key.name).collect();
    for row in rows(include_str!("fixtures/topic_keys.txt")) {
        let key = topic_key(row[0]).unwrap_or_else(|| panic!("{} is missing", row[0]));
        same_kind_and_default(key, row[1], row[2]);
        ours.retain(|name| *name != key.name);
    }
    assert_eq!(ours, ["millstream.durability"]);
}

#[test]
fn c109_broker_keys_agree_with_kafka_where_kafka_has_them() {
    let kafka: BTreeMap<_, _> = rows(include_str!("fixtures/broker_keys.txt"))
        .map(|row| (row[0], (row[1], row[2], row[3])))
        .collect();
    let mut shared = 0;
    for key in broker_keys() {
        let Some((kind, default, importance)) = kafka.get(key.name) else {
            assert!(key.name.starts_with("millstream."), "{} is nobody's", key.name);
            continue;
        };
        same_kind_and_default(key, kind, default);
        assert_eq!(format!("{:?}", key.importance).to_uppercase(), *importance, "{}", key.name);
        shared += 1;
    }
    assert!(shared > 150, "{shared}");
}

#[test]
fn the_table_is_sorted_and_its_defaults_and_synonyms_hold() {
    assert!(topic_keys().is_sorted_by(|a, b| a.name < b.name));
    let broker: Vec<_> = broker_keys().collect();
    assert!(broker.is_sorted_by(|a, b| a.name < b.name));
    for key in topic_keys().iter().chain(broker) {
        if let Some(default) = key.default {
            assert_eq!(value::canonical(key, default).as_deref(), Ok(default), "{}", key.name);
        }
        for (synonym, factor) in key.synonyms {
            assert!(broker_key(synonym).is_some(), "{synonym} of {}", key.name);
            assert!(*factor > 0);
        }
        assert!(key.doc.ends_with('.'), "{}", key.name);
    }
}

#[test]
fn c103_topic_values_are_taken_and_refused_as_kafka_does() {
    let broker = BrokerConfig::default();
    for row in rows(include_str!("fixtures/topic_values.txt")) {
        let answer = broker.check_topic(&own(&[(row[0], row[1])]));
        assert_eq!(answer.is_ok(), row[2] == "ok", "{row:?}: {answer:?}");
        if let Err(error) = answer {
            let text = error.to_string();
            let names_value = topic_key(row[0]).is_none() || text.contains(row[1].trim());
            assert!(text.contains(row[0]) && names_value, "{text}");
        }
    }
    let both = own(&[("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")]);
    assert!(broker.check_topic(&both).is_err());
    assert!(broker.check_topic(&own(&[("remote.storage.enable", "true")])).is_err());
}

#[test]
fn a_refusal_names_key_value_and_what_is_allowed() {
    let error = BrokerConfig::default().check_topic(&own(&[("segment.bytes", "12")]));
    assert_eq!(
        error.unwrap_err().to_string(),
        "'12' is no value for configuration segment.bytes: int values from 1048576 on are allowed"
    );
    let error = BrokerConfig::default().set("num.partition", "1").unwrap_err();
    assert_eq!(error.to_string(), "there is no broker configuration 'num.partition'");
}

#[test]
fn c109_topics_follow_the_broker_and_say_so() {
    let mut broker = BrokerConfig::default();
    broker.set("log.retention.hours", "2").unwrap();
    let own = own(&[("segment.bytes", "2097152")]);
    let rows = broker.describe_topic(&own);
    let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();

    let retention = row("retention.ms");
    assert_eq!(retention.value.as_deref(), Some("7200000"));
    assert_eq!(retention.source, ConfigSource::StaticBroker);
    let synonyms: Vec<_> =
        retention.synonyms.iter().map(|s| (s.name, s.value.as_deref(), s.source)).collect();
    assert_eq!(
        synonyms,
        [
            ("log.retention.hours", Some("2"), ConfigSource::StaticBroker),
            ("log.retention.hours", Some("168"), ConfigSource::Default),
        ]
    );

    let segment = row("segment.bytes");
    assert_eq!((segment.value.as_deref(), segment.source), (Some("2097152"), ConfigSource::Topic));
    assert_eq!(segment.synonyms[0].name, "segment.bytes");
    assert_eq!(segment.synonyms[1].name, "log.segment.bytes");
    assert!(!segment.read_only);

    broker.set("log.retention.ms", "-1").unwrap();
    assert_eq!(TopicConfig::resolve(&broker, &own).retention_ms, -1);
    assert_eq!(TopicConfig::resolve(&broker, &own).segment_bytes, 2 << 20);
}

#[test]
fn c109_broker_rows_say_what_can_change_and_hide_nothing_else() {
    let mut broker = BrokerConfig::default();
    broker.set("num.partitions", " 3 ").unwrap();
    let rows = broker.describe_broker();
    assert_eq!(rows.len(), broker_keys().count());
    let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
    assert_eq!(row("num.partitions").value.as_deref(), Some("3"));
    assert_eq!(row("num.partitions").source, ConfigSource::StaticBroker);
    assert!(row("num.partitions").read_only);
    assert!(!row("message.max.bytes").read_only);
    assert_eq!(row("log.retention.ms").value, None);
    assert_eq!(row("log.retention.ms").synonyms[0].name, "log.retention.hours");
    assert!(rows.iter().all(|row| !row.is_sensitive));
}

#[test]
fn settings_without_effect_are_named() {
    let mut broker = BrokerConfig::default();
    broker.set("num.io.threads", "4").unwrap();
    broker.set("num.partitions", "4").unwrap();
    let names: Vec<_> = broker.without_effect().map(|key| key.name).collect();
    assert_eq!(names, ["num.io.threads"]);
    let topic = own(&[("flush.ms", "1"), ("segment.ms", "1")]);
    let names: Vec<_> = topic_keys_without_effect(&topic).map(|key| key.name).collect();
    assert_eq!(names, ["flush.ms"]);
    assert!(matrix().contains("`flush.ms`") && !matrix().contains("`segment.ms`"));
    assert!(reference().contains("### `segment.ms`"));
}

#[test]
fn numbers_and_sizes_are_read() {
    let mut broker = BrokerConfig::default();
    assert_eq!(broker.number("millstream.memory"), 512 << 20);
    broker.set("millstream.memory", "1G").unwrap();
    assert_eq!(broker.number("millstream.memory"), 1 << 30);
    assert!(broker.set("millstream.memory", "1m").is_err());
    assert!(broker.set("millstream.memory", "99999999999999999999g").is_err());
    assert!(broker.flag("auto.create.topics.enable"));
    assert_eq!(broker.number("producer.id.expiration.ms"), 86_400_000);
}

#[test]
fn a_topic_without_configs_is_kafkas_default() {
    let config = TopicConfig::default();
    assert_eq!(config.max_message_bytes, 1_048_588);
    assert_eq!(config.durability, crate::model::DurabilityClass::Disk);
    assert_eq!(config.compression, crate::model::CompressionType::Producer);
    assert!(config.cleanup.delete && !config.cleanup.compact);
    let compacted = own(&[("cleanup.policy", "compact"), ("segment.ms", "garbage")]);
    let config = TopicConfig::resolve(&BrokerConfig::default(), &compacted);
    assert!(config.cleanup.compact && !config.cleanup.delete);
    assert_eq!(config.segment_ms, 604_800_000);
}
