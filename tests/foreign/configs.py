"""Configs that change at run time, records that are deleted, and log directories, through three libraries and tools."""

import json

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka import KafkaAdminClient
from kafka import TopicPartition as PythonTopicPartition
from kafka.admin import ConfigResource as PythonConfigResource

from foreign.context import Context


def _described(c: Context, topic: str) -> dict[str, tuple[str, bool]]:
    """Value of each config of a topic, and whether it is a default."""
    admin = AdminClient({"bootstrap.servers": c.bootstrap, "log_level": 0})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource].result(30)
    return {name: (entry.value, entry.is_default) for name, entry in entries.items()}


def _read(c: Context, topic: str) -> list[str]:
    """Offset and value of each record that there still is, through kcat."""
    return c.kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%o %s\n").stdout.decode().splitlines()


def _refused(c: Context, topic: str, value: bytes) -> None:
    try:
        c.send(topic, value)
    except KafkaException as error:
        assert error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE, error
        return
    raise AssertionError("the large record was acknowledged")


def java_configs_tool_changes_topics(c: Context) -> None:
    c.create("altered", 1)
    topic = ["--alter", "--entity-type", "topics", "--entity-name", "altered"]
    c.tool("configs", *topic, "--add-config", "max.message.bytes=2000,cleanup.policy=[compact,delete]")
    found = _described(c, "altered")
    assert found["max.message.bytes"] == ("2000", False) and found["cleanup.policy"] == ("compact,delete", False), found
    c.tool("configs", *topic, "--delete-config", "cleanup.policy")
    assert _described(c, "altered")["cleanup.policy"] == ("delete", True)
    # It holds for the running log.
    _refused(c, "altered", b"0123456789" * 1000)
    c.tool("configs", *topic, "--delete-config", "max.message.bytes")
    assert c.send("altered", b"0123456789" * 1000) == 0
    told = c.tool("configs", *topic, "--add-config", "retention.ms=soon", check=False)
    assert told.code != 0 and "retention.ms" in told.text + told.err, told
    missing = ["--alter", "--entity-type", "topics", "--entity-name", "missing", "--add-config", "retention.ms=5"]
    told = c.tool("configs", *missing, check=False)
    assert told.code != 0, told


def java_configs_tool_is_refused_what_needs_a_start(c: Context) -> None:
    node = str(c.metadata()["brokers"][0]["id"])
    broker = ["--alter", "--entity-type", "brokers", "--entity-name", node]
    told = c.tool("configs", *broker, "--add-config", "log.dirs=/elsewhere", check=False)
    assert told.code != 0 and "log.dirs" in told.text + told.err, told


def confluent_alters_single_keys(c: Context) -> None:
    c.create("alter-confluent", 1, retention_ms="86400000")
    admin = AdminClient({"bootstrap.servers": c.bootstrap, "log_level": 0})

    def alter(*operations, **options):
        entries = [ConfigEntry(name, value, incremental_operation=op) for name, op, value in operations]
        resource = ConfigResource(ResourceType.TOPIC, "alter-confluent", incremental_configs=entries)
        return admin.incremental_alter_configs([resource], **options)[resource]

    kinds = AlterConfigOpType
    alter(("segment.bytes", kinds.SET, "2097152"), ("cleanup.policy", kinds.APPEND, "compact")).result(30)
    found = _described(c, "alter-confluent")
    assert found["segment.bytes"][0] == "2097152" and found["cleanup.policy"][0] == "delete,compact", found
    assert found["retention.ms"] == ("86400000", False), "what is not named stays"
    alter(("cleanup.policy", kinds.SUBTRACT, "compact"), ("retention.ms", kinds.DELETE, None)).result(30)
    found = _described(c, "alter-confluent")
    assert found["cleanup.policy"][0] == "delete" and found["retention.ms"] == ("604800000", True), found
    alter(("segment.bytes", kinds.SET, "4194304"), validate_only=True).result(30)
    assert _described(c, "alter-confluent")["segment.bytes"][0] == "2097152", "it was only checked"
    for operation in [("retention.ms", kinds.SET, "soon"), ("no.such.key", kinds.SET, "1")]:
        _expect(KafkaError.INVALID_CONFIG, alter(operation))
    _expect(KafkaError.INVALID_CONFIG, alter(("retention.ms", kinds.APPEND, "5")))


def _expect(code: int, future) -> None:
    try:
        future.result(30)
    except KafkaException as error:
        assert error.args[0].code() == code, error
        return
    raise AssertionError(f"error {code} was expected")


def kafka_python_alters_and_deletes(c: Context) -> None:
    c.create("alter-python", 1)
    for _ in range(5):
        c.send("alter-python", b"x")
    admin = KafkaAdminClient(bootstrap_servers=c.bootstrap)
    try:
        admin.alter_configs([PythonConfigResource("topic", "alter-python", configs={"retention.ms": "7200000"})])
        assert _described(c, "alter-python")["retention.ms"] == ("7200000", False)
        partition = PythonTopicPartition("alter-python", 0)
        deleted = admin.delete_records({partition: 2})
        assert "2" in str(deleted), deleted
        directories = str(admin.describe_log_dirs(["alter-python"]))
        assert "alter-python" in directories, directories
    finally:
        admin.close()
    assert _read(c, "alter-python") == ["2 x", "3 x", "4 x"]


def records_are_deleted(c: Context) -> None:
    c.create("shortened", 1)
    for number in range(6):
        c.send("shortened", b"%d" % number)
    orders = c.directory / "orders.json"
    orders.write_text(json.dumps({"version": 1, "partitions": [{"topic": "shortened", "partition": 0, "offset": 2}]}))
    told = c.tool("delete-records", "--offset-json-file", str(orders)).text
    assert "shortened-0" in told and "low_watermark: 2" in told, told
    assert c.tool("get-offsets", "--topic", "shortened", "--time", "earliest").lines() == ["shortened:0:2"]
    assert _read(c, "shortened") == ["2 2", "3 3", "4 4", "5 5"]
    admin = AdminClient({"bootstrap.servers": c.bootstrap, "log_level": 0})

    def delete(offset: int):
        partition = TopicPartition("shortened", 0, offset)
        return admin.delete_records([partition])[partition]

    assert delete(4).result(30).low_watermark == 4
    assert delete(1).result(30).low_watermark == 4, "a log start never goes back"
    _expect(KafkaError.OFFSET_OUT_OF_RANGE, delete(7))
    assert delete(-1).result(30).low_watermark == 6
    assert c.send("shortened", b"next") == 6
    c.create("keyed", 1, cleanup_policy="compact")
    partition = TopicPartition("keyed", 0, 0)
    _expect(KafkaError.POLICY_VIOLATION, admin.delete_records([partition])[partition])


def java_log_dirs_tool(c: Context) -> None:
    c.create("sized", 2)
    for _ in range(3):
        c.send("sized", b"x" * 1000)
    told = c.tool("log-dirs", "--describe", "--topic-list", "sized").lines()
    brokers = json.loads(next(line for line in told if line.startswith("{")))["brokers"]
    assert len(brokers) == 1 and len(brokers[0]["logDirs"]) == 1, told
    directory = brokers[0]["logDirs"][0]
    assert directory["error"] is None and directory["logDir"] == str(c.broker.data), directory
    sizes = {row["partition"]: row["size"] for row in directory["partitions"]}
    assert sizes["sized-1"] == 0 and 3000 < sizes["sized-0"] < 4000, sizes
    assert not any(row["isFuture"] or row["offsetLag"] for row in directory["partitions"]), directory
    everything = c.tool("log-dirs", "--describe").text
    assert "sized-0" in everything, everything


CHECKS = [
    java_configs_tool_changes_topics,
    java_configs_tool_is_refused_what_needs_a_start,
    confluent_alters_single_keys,
    kafka_python_alters_and_deletes,
    records_are_deleted,
    java_log_dirs_tool,
]
