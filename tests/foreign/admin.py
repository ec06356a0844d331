"""Administration through three libraries and Kafka's own tools, and what producers meet outside the straight path."""

import re
import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType
from kafka import KafkaAdminClient, KafkaProducer
from kafka import errors as kafka_python_errors
from kafka.admin import ConfigResource as PythonConfigResource

from foreign.clients import read_all
from foreign.context import Context
from lib.checks import eventually


def kcat_lists_brokers_and_topics(c: Context) -> None:
    c.create("listed", 3)
    metadata = c.metadata()
    assert [broker["name"] for broker in metadata["brokers"]] == [c.bootstrap], metadata["brokers"]
    node = metadata["brokers"][0]["id"]
    topic = next(topic for topic in metadata["topics"] if topic["topic"] == "listed")
    assert [partition["partition"] for partition in topic["partitions"]] == [0, 1, 2]
    for partition in topic["partitions"]:
        assert partition["leader"] == node and partition["replicas"] == partition["isrs"] == [{"id": node}]


def confluent_admin(c: Context) -> None:
    admin = AdminClient({"bootstrap.servers": c.bootstrap, "log_level": 0})
    new = NewTopic("by-confluent", 2, 1, config={"retention.ms": "86400000"})
    admin.create_topics([new])["by-confluent"].result(30)
    _expect(KafkaError.TOPIC_ALREADY_EXISTS, admin.create_topics([new])["by-confluent"])
    _expect(KafkaError.INVALID_PARTITIONS, admin.create_topics([NewTopic("zero", 0, 1)])["zero"])
    _expect(KafkaError.INVALID_REPLICATION_FACTOR, admin.create_topics([NewTopic("many", 1, 99)])["many"])
    _expect(KafkaError.TOPIC_EXCEPTION, admin.create_topics([NewTopic("a name", 1, 1)])["a name"])
    bad = NewTopic("bad-config", 1, 1, config={"retention.ms": "soon"})
    _expect(KafkaError.INVALID_CONFIG, admin.create_topics([bad])["bad-config"])
    admin.create_topics([NewTopic("dry", 1, 1)], validate_only=True)["dry"].result(30)
    assert "dry" not in c.topics()

    admin.create_partitions([NewPartitions("by-confluent", 5)])["by-confluent"].result(30)
    eventually("five partitions", lambda: c.topics()["by-confluent"] == 5)
    _expect(KafkaError.INVALID_PARTITIONS, admin.create_partitions([NewPartitions("by-confluent", 5)])["by-confluent"])

    described = admin.describe_topics(TopicCollection(["by-confluent"]))["by-confluent"].result(30)
    assert len(described.partitions) == 5 and str(described.topic_id) != "AAAAAAAAAAAAAAAAAAAAAA"
    cluster = admin.describe_cluster().result(30)
    assert cluster.cluster_id and [f"{n.host}:{n.port}" for n in cluster.nodes] == [c.bootstrap]

    resource = ConfigResource(ResourceType.TOPIC, "by-confluent")
    configs = admin.describe_configs([resource])[resource].result(30)
    assert configs["retention.ms"].value == "86400000" and not configs["retention.ms"].is_default
    assert configs["max.message.bytes"].value == "1048588" and configs["max.message.bytes"].is_default
    missing = ConfigResource(ResourceType.TOPIC, "missing")
    _expect(KafkaError.UNKNOWN_TOPIC_OR_PART, admin.describe_configs([missing])[missing])
    node = ConfigResource(ResourceType.BROKER, str(cluster.nodes[0].id))
    assert len(admin.describe_configs([node])[node].result(30)) > 20

    admin.delete_topics(["by-confluent"])["by-confluent"].result(30)
    eventually("the topic is gone", lambda: "by-confluent" not in c.topics())
    _expect(KafkaError.UNKNOWN_TOPIC_OR_PART, admin.delete_topics(["by-confluent"])["by-confluent"])


def _expect(code: int, future) -> None:
    try:
        future.result(30)
    except KafkaException as error:
        assert error.args[0].code() == code, error
        return
    raise AssertionError(f"error {code} was expected")


def kafka_python_admin(c: Context) -> None:
    admin = KafkaAdminClient(bootstrap_servers=c.bootstrap)
    try:
        admin.create_topics({"by-python": {"num_partitions": 4, "replication_factor": 1}})
        admin.wait_for_topics(["by-python"])
        described = admin.describe_topics(["by-python"])
        assert len(described[0]["partitions"]) == 4, described
        resource = PythonConfigResource("topic", "by-python")
        configs = admin.describe_configs([resource], config_filter="all")
        assert "1048588" in str(configs), configs
        cluster = admin.describe_cluster()
        assert str(c.broker.port) in str(cluster["brokers"]), cluster
        admin.delete_topics(["by-python"])
        eventually("the topic is gone", lambda: "by-python" not in admin.list_topics())
    finally:
        admin.close()


def java_topics_tool(c: Context) -> None:
    create = ["--create", "--topic", "by-java", "--partitions", "2", "--replication-factor", "1"]
    c.tool("topics", *create, "--config", "max.message.bytes=2000")
    again = c.tool("topics", *create, check=False)
    assert again.code != 0 and "TopicExistsException" in again.text + again.err, again
    c.tool("topics", *create, "--if-not-exists")
    assert "by-java" in c.tool("topics", "--list").lines()
    described = c.tool("topics", "--describe", "--topic", "by-java").text
    assert "PartitionCount: 2" in described and "max.message.bytes=2000" in described, described
    assert re.search(r"TopicId: [A-Za-z0-9_-]{22}\b", described), described
    c.tool("topics", "--alter", "--topic", "by-java", "--partitions", "3")
    described = c.tool("topics", "--describe", "--topic", "by-java").text
    assert "PartitionCount: 3" in described, described
    fewer = c.tool("topics", "--alter", "--topic", "by-java", "--partitions", "1", check=False)
    assert fewer.code != 0, fewer
    c.tool("topics", "--delete", "--topic", "by-java")
    eventually("the topic is gone", lambda: "by-java" not in c.tool("topics", "--list").lines())


def java_configs_tool(c: Context) -> None:
    c.create("configured", 1, segment_bytes="2097152")
    topic = c.tool("configs", "--describe", "--entity-type", "topics", "--entity-name", "configured").text
    assert "segment.bytes=2097152" in topic and "DYNAMIC_TOPIC_CONFIG" in topic, topic
    every = c.tool("configs", "--describe", "--all", "--entity-type", "topics", "--entity-name", "configured").text
    assert every.count("=") > 25 and "cleanup.policy=delete" in every, every
    node = c.metadata()["brokers"][0]["id"]
    broker = c.tool("configs", "--describe", "--all", "--entity-type", "brokers", "--entity-name", str(node)).text
    assert "sensitive=false" in broker, broker


def java_other_tools(c: Context) -> None:
    c.create("counted", 2)
    for _ in range(3):
        c.send("counted", b"x")
    offsets = c.tool("get-offsets", "--topic", "counted").lines()
    assert sorted(offsets) == ["counted:0:3", "counted:1:0"], offsets
    earliest = c.tool("get-offsets", "--topic", "counted", "--time", "earliest").lines()
    assert sorted(earliest) == ["counted:0:0", "counted:1:0"], earliest
    versions = c.tool("broker-api-versions").text
    for api in ("Produce(0)", "Fetch(1)", "Metadata(3)", "InitProducerId(22)"):
        assert re.search(re.escape(api) + r": [0-9]+ to [0-9]+ \[usable: [0-9]+\]", versions), f"{api} in {versions}"
    identity = c.host.run("org.apache.kafka.tools.ClusterTool", "cluster-id", "--bootstrap-server", c.bootstrap).text
    assert "Cluster ID: " in identity, identity


def kcat_queries_offsets_by_time(c: Context) -> None:
    c.create("timed", 1)
    start = int(time.time() * 1000)
    for _ in range(3):
        c.send("timed", b"x")
        time.sleep(0.02)
    stamps = [m.timestamp()[1] for m in read_all(c.bootstrap, "timed", 1)]
    for asked, expected in [(start - 1000, 0), (stamps[1], 1), (stamps[1] + 1, 2), (-1, 3), (-2, 0)]:
        out = c.kcat("-Q", "-t", f"timed:0:{asked}").stdout.decode()
        assert f"offset {expected}" in out, f"asked for {asked}, expected {expected}: {out}"


def each_acks_setting_is_stored(c: Context) -> None:
    c.create("acks", 1)
    for acks in ("0", "1", "all"):
        c.send("acks", acks.encode(), acks=acks)
        producer = KafkaProducer(
            bootstrap_servers=c.bootstrap, acks=acks if acks == "all" else int(acks), enable_idempotence=False
        )
        producer.send("acks", acks.encode(), partition=0).get(20)
        producer.close()
        source = c.directory / "line"
        source.write_text(acks + "\n")
        options = ["--topic", "acks", "--request-required-acks", acks, "--command-property", "enable.idempotence=false"]
        c.tool("console-producer", *options, stdin=source)
        c.kcat("-P", "-t", "acks", "-p", "0", "-X", f"topic.acks={acks}", stdin=acks.encode())
    # Records sent with acks=0 arrive when they arrive.
    eventually("all records", lambda: c.tool("get-offsets", "--topic", "acks").lines() == ["acks:0:12"])
    values = [message.value() for message in read_all(c.bootstrap, "acks", 1)]
    assert sorted(values) == sorted([b"0"] * 4 + [b"1"] * 4 + [b"all"] * 4), values


def a_missing_topic_is_created_by_its_first_record(c: Context) -> None:
    assert c.send("auto-confluent", b"x") == 0
    producer = KafkaProducer(bootstrap_servers=c.bootstrap)
    assert producer.send("auto-python", b"x").get(30).offset == 0
    producer.close()
    source = c.directory / "line"
    source.write_text("x\n")
    c.tool("console-producer", "--topic", "auto-java", stdin=source)
    c.kcat("-P", "-t", "auto-kcat", stdin=b"x")
    for topic in ("auto-confluent", "auto-python", "auto-java", "auto-kcat"):
        values = [message.value() for message in read_all(c.bootstrap, topic, c.topics()[topic])]
        assert values == [b"x"], f"{topic}: {values}"


def a_record_that_is_too_large_is_refused(c: Context) -> None:
    c.create("small", 1, max_message_bytes="2000")
    big = b"0123456789" * 1000
    try:
        c.send("small", big)
        raise AssertionError("confluent-kafka got the large record acknowledged")
    except KafkaException as error:
        assert error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE, error
    producer = KafkaProducer(bootstrap_servers=c.bootstrap)
    try:
        producer.send("small", big, partition=0).get(20)
        raise AssertionError("kafka-python got the large record acknowledged")
    except kafka_python_errors.MessageSizeTooLargeError:
        pass
    finally:
        producer.close()
    source = c.directory / "line"
    source.write_bytes(big + b"\n")
    told = c.tool("console-producer", "--topic", "small", stdin=source, check=False)
    assert "RecordTooLargeException" in told.err, told
    told = c.kcat("-P", "-t", "small", "-p", "0", stdin=big, check=False)
    assert b"too large" in told.stderr.lower(), told
    assert c.send("small", b"fits") == 0, "a refused record took an offset"


CHECKS = [
    kcat_lists_brokers_and_topics,
    confluent_admin,
    kafka_python_admin,
    java_topics_tool,
    java_configs_tool,
    java_other_tools,
    kcat_queries_offsets_by_time,
    each_acks_setting_is_stored,
    a_missing_topic_is_created_by_its_first_record,
    a_record_that_is_too_large_is_refused,
]
