//! IncrementalAlterConfigs and AlterConfigs, for topics (checklist 108, 110).

use std::collections::BTreeMap;

use super::controller::{Controller, ErrorReply};
use super::image::Image;
use super::records::MetadataRecord;
use crate::model::config::{Key, Kind, list_items, topic_key};
use crate::model::limits::CONFIG_CHANGES_PER_REQUEST_MAX;
use crate::model::{ErrorCode, TopicConfig, topic_name};

/// What happens to one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigOp {
    /// It gets this value.
    Set(String),
    /// It follows the broker again.
    Delete,
    /// The items of this list join its own; lists only.
    Append(String),
    /// The items of this list leave its own; lists only.
    Subtract(String),
}

impl ConfigOp {
    const fn name(&self) -> &'static str {
        match self {
            Self::Set(_) => "SET",
            Self::Delete => "DELETE",
            Self::Append(_) => "APPEND",
            Self::Subtract(_) => "SUBTRACT",
        }
    }
}

/// What happens to the configs of a topic; all of it or nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigChange {
    /// These keys change, the others stay (KIP-339). No key twice.
    Keys(Vec<(String, ConfigOp)>),
    /// These are all that it has from now on.
    Whole(BTreeMap<String, String>),
}

/// A topic whose configs changed, or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlterConfigsResult {
    /// Its name.
    pub topic: String,
    /// Why nothing changed.
    pub error: Option<ErrorReply>,
}

type Configs = BTreeMap<String, String>;

fn bad(message: String) -> ErrorReply {
    ErrorReply::new(ErrorCode::InvalidConfig, message)
}

impl Controller {
    /// One result per change, in the request's order. No topic occurs twice.
    pub(super) fn alter_configs(
        &self,
        image: &Image,
        changes: Vec<(String, ConfigChange)>,
    ) -> (Vec<MetadataRecord>, Vec<AlterConfigsResult>) {
        let mut records = Vec::new();
        let mut results = Vec::with_capacity(changes.len());
        for (topic, change) in changes {
            let altered = self.alter_topic(image, &topic, change).and_then(|more| {
                if records.len() + more.len() <= CONFIG_CHANGES_PER_REQUEST_MAX {
                    records.extend(more);
                    return Ok(());
                }
                let message = format!(
                    "a request may change at most {CONFIG_CHANGES_PER_REQUEST_MAX} values; split it"
                );
                Err(ErrorReply::new(ErrorCode::InvalidRequest, message))
            });
            results.push(AlterConfigsResult { topic, error: altered.err() });
        }
        (records, results)
    }

    /// The values are judged before the topic is looked for, as in Kafka.
    fn alter_topic(
        &self,
        image: &Image,
        name: &str,
        change: ConfigChange,
    ) -> Result<Vec<MetadataRecord>, ErrorReply> {
        if name.is_empty() {
            let message = "topics have no common configs; name a topic, or set the broker's \
                           defaults at its start";
            return Err(ErrorReply::new(ErrorCode::InvalidRequest, message));
        }
        topic_name::validate(name)
            .map_err(|e| ErrorReply::new(ErrorCode::InvalidTopicException, e.to_string()))?;
        let topic = image.topic(name);
        let before = topic.map(|topic| topic.configs.clone()).unwrap_or_default();
        let after = match change {
            ConfigChange::Whole(configs) => configs,
            ConfigChange::Keys(ops) => self.with_ops(&before, ops)?,
        };
        self.config.check_topic(&after).map_err(|error| bad(error.to_string()))?;
        let topic = topic.ok_or_else(|| {
            let message = format!("topic '{name}' does not exist");
            ErrorReply::new(ErrorCode::UnknownTopicOrPartition, message)
        })?;
        self.check_class(name, &before, &after)?;
        let record = |key: &String, value| MetadataRecord::TopicConfig {
            id: topic.id,
            key: key.clone(),
            value,
        };
        let unset = before.keys().filter(|key| !after.contains_key(*key)).map(|k| record(k, None));
        let set = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
        Ok(unset.chain(set.map(|(key, value)| record(key, Some(value.clone())))).collect())
    }

    fn with_ops(
        &self,
        before: &Configs,
        ops: Vec<(String, ConfigOp)>,
    ) -> Result<Configs, ErrorReply> {
        let mut after = before.clone();
        for (key, op) in ops {
            let what = op.name();
            match op {
                ConfigOp::Set(value) => drop(after.insert(key, value)),
                ConfigOp::Delete => drop(after.remove(&key)),
                ConfigOp::Append(items) => {
                    let mut list = self.list_of(before, &key, what)?;
                    for item in list_items(&items) {
                        if !list.iter().any(|known| known == item) {
                            list.push(item.to_owned());
                        }
                    }
                    after.insert(key, list.join(","));
                }
                ConfigOp::Subtract(items) => {
                    let mut list = self.list_of(before, &key, what)?;
                    list.retain(|known| !list_items(&items).any(|item| item == known));
                    after.insert(key, list.join(","));
                }
            }
        }
        Ok(after)
    }

    /// The items of a list as they hold now, the broker's default included.
    fn list_of(&self, own: &Configs, key: &str, what: &str) -> Result<Vec<String>, ErrorReply> {
        let is_list = |key: &&Key| key.kind == Kind::List;
        let row = topic_key(key).filter(is_list).ok_or_else(|| {
            bad(format!("{what} is for lists, and configuration {key} is none; use SET"))
        })?;
        let value = self.config.topic_value(row, own).unwrap_or_default();
        Ok(list_items(&value).map(str::to_owned).collect())
    }

    /// A log's frames are in the journal of its class: it keeps that.
    fn check_class(&self, name: &str, before: &Configs, after: &Configs) -> Result<(), ErrorReply> {
        let class = |configs| TopicConfig::resolve(&self.config, configs).durability.name();
        let (is, wanted) = (class(before), class(after));
        if is == wanted {
            return Ok(());
        }
        Err(bad(format!(
            "millstream.durability of topic '{name}' is {is} and cannot become {wanted}: create \
             another topic with that class"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Command, Ctx, Reply};
    use crate::model::TopicId;
    use crate::model::config::BrokerConfig;

    fn own(text: &str) -> Configs {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn image() -> Image {
        let mut image = Image::default();
        let id = TopicId([1; 16]);
        image.apply(&MetadataRecord::Topic { name: "t".to_owned(), id }).unwrap();
        for (key, value) in own("retention.ms=1000 cleanup.policy=compact") {
            image.apply(&MetadataRecord::TopicConfig { id, key, value: Some(value) }).unwrap();
        }
        image
    }

    /// The answer, and the image after it.
    fn alter(change: (&str, ConfigChange), validate_only: bool) -> (AlterConfigsResult, Image) {
        let mut broker = BrokerConfig::default();
        broker.set("log.retention.bytes", "5").unwrap();
        let mut image = image();
        let changes = vec![(change.0.to_owned(), change.1)];
        let command = Command::AlterConfigs { changes, validate_only };
        let mut ctx = Ctx { random: &mut || 0 };
        let step = Controller::new(broker).step(&image, command, &mut ctx);
        for record in &step.records {
            image.apply(record).unwrap();
        }
        match step.reply {
            Reply::AlterConfigs(mut results) => (results.remove(0), image),
            other => panic!("{other:?}"),
        }
    }

    fn ops(text: &str) -> Vec<(String, ConfigOp)> {
        let op = |words: &str| {
            let words: Vec<_> = words.split_whitespace().collect();
            let value = || words[2].to_owned();
            let op = match words[1] {
                "SET" => ConfigOp::Set(value()),
                "DELETE" => ConfigOp::Delete,
                "APPEND" => ConfigOp::Append(value()),
                "SUBTRACT" => ConfigOp::Subtract(value()),
                other => panic!("{other}"),
            };
            (words[0].to_owned(), op)
        };
        text.split(';').map(op).collect()
    }

    #[test]
    fn c108_incremental_changes_by_table() {
        for row in include_str!("fixtures/alter_configs.txt").lines() {
            if row.starts_with('#') {
                continue;
            }
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let [topic, asked, code, after] = cells[..] else { panic!("{row}") };
            let (result, image) = alter((topic, ConfigChange::Keys(ops(asked))), false);
            let found = result.error.as_ref().map_or(0, |error| error.code.code());
            assert_eq!(found.to_string(), code, "{row}: {result:?}");
            if topic == "t" {
                assert_eq!(image.topic("t").unwrap().configs, own(after), "{row}");
            }
        }
    }

    #[test]
    fn c108_refusals_name_the_key_and_the_remedy() {
        for (asked, word) in [
            ("retention.ms APPEND 5", "APPEND is for lists, and configuration retention.ms"),
            ("retention.ms SET soon", "'soon' is no value for configuration retention.ms"),
            ("a.b SET 1", "no topic configuration 'a.b'"),
            ("millstream.durability SET os", "millstream.durability of topic 't' is disk"),
        ] {
            let (result, _) = alter(("t", ConfigChange::Keys(ops(asked))), false);
            let message = result.error.unwrap().message;
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn c108_validate_only_changes_nothing() {
        let asked = || ConfigChange::Keys(ops("retention.ms SET 5"));
        let (result, after) = alter(("t", asked()), true);
        assert_eq!((result.error, after), (None, image()));
        let (refused, _) = alter(("t", ConfigChange::Keys(ops("retention.ms SET x"))), true);
        assert!(refused.error.is_some());
    }

    #[test]
    fn c110_the_whole_set_is_replaced() {
        let wanted = own("segment.bytes=1048576 retention.ms=1000");
        let (result, after) = alter(("t", ConfigChange::Whole(wanted.clone())), false);
        assert_eq!((result.error, &after.topic("t").unwrap().configs), (None, &wanted));
        let (result, after) = alter(("t", ConfigChange::Whole(own(""))), false);
        assert_eq!((result.error, after.topic("t").unwrap().configs.len()), (None, 0));
        let (result, after) = alter(("t", ConfigChange::Whole(own("segment.bytes=1"))), false);
        assert!(result.error.is_some() && after == image());
    }

    #[test]
    fn c108_an_appended_list_begins_with_the_brokers() {
        let mut broker = BrokerConfig::default();
        broker.set("log.cleanup.policy", "compact").unwrap();
        let controller = Controller::new(broker);
        let asked = ops("cleanup.policy APPEND delete");
        let after = controller.with_ops(&Configs::new(), asked).unwrap();
        assert_eq!(after, own("cleanup.policy=compact,delete"));
    }

    #[test]
    fn c108_the_changes_of_a_request_are_bounded() {
        let mut image = Image::default();
        let keys = ["retention.ms", "segment.ms"];
        let topics = CONFIG_CHANGES_PER_REQUEST_MAX / keys.len() + 1;
        let change = |n: usize| {
            let ops = keys.map(|key| (key.to_owned(), ConfigOp::Set("5".to_owned())));
            (format!("t{n}"), ConfigChange::Keys(ops.to_vec()))
        };
        for n in 0..topics {
            let id = TopicId((n as u128 + 1).to_be_bytes());
            image.apply(&MetadataRecord::Topic { name: format!("t{n}"), id }).unwrap();
        }
        let controller = Controller::new(BrokerConfig::default());
        let changes = (0..topics).map(change).collect();
        let (records, results) = controller.alter_configs(&image, changes);
        assert_eq!(records.len(), CONFIG_CHANGES_PER_REQUEST_MAX);
        let refused: Vec<_> = results.iter().filter(|r| r.error.is_some()).collect();
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].topic, format!("t{}", topics - 1));
    }
}
