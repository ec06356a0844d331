"""Keys, values, headers and timestamps as each client writes them, read back by each: nulls, duplicates, raw bytes."""

from dataclasses import dataclass, field, replace

from confluent_kafka import TIMESTAMP_CREATE_TIME, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition

from foreign.clients import read_all
from foreign.context import Context

RAW = bytes([0xFF, 0x00, 0xC3, 0x28])


@dataclass
class Record:
    """One record in the form that all clients are compared in."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)

    def line(self) -> str:
        """The form that Records.java reads and writes."""
        fields = [self.key, self.value]
        for key, value in self.headers:
            fields += [key.encode(), value]
        return " ".join([str(self.timestamp)] + ["-" if f is None else "x" + f.hex() for f in fields])


RECORDS = [
    Record(1_700_000_000_000, b"key", b"value"),
    Record(1_700_000_000_001, None, b"no key"),
    Record(1_600_000_000_000, b"earlier", b""),
    Record(1_700_000_000_002, b"tombstone", None),
    Record(1_700_000_000_003, b"", RAW, [("raw", RAW)]),
    Record(1_700_000_000_004, RAW, b"v", [("twice", b"1"), ("other", b""), ("twice", b"2")]),
    Record(1_700_000_000_005, b"k", b"v", [("none", None), ("none", b"some"), ("", b"empty key"), ("\u00fc", b"text")]),
    Record(1, b"epoch", b"v" * 5000),
]


def sent_by(producer: str) -> list[Record]:
    """What a producer can send of the above: kafka-python refuses a null as the value of a header."""
    if producer != "python":
        return RECORDS
    return [replace(r, headers=[(key, value or b"") for key, value in r.headers]) for r in RECORDS]


def _confluent_produces(c: Context, topic: str) -> None:
    producer = Producer({"bootstrap.servers": c.bootstrap, "compression.type": "lz4"})
    for r in RECORDS:
        producer.produce(topic, r.value, r.key, 0, timestamp=r.timestamp, headers=r.headers)
    assert producer.flush(30) == 0


def _python_produces(c: Context, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=c.bootstrap, compression_type="zstd")
    for r in sent_by("python"):
        producer.send(topic, r.value, r.key, r.headers, partition=0, timestamp_ms=r.timestamp).get(30)
    producer.close()


def _java_produces(c: Context, topic: str) -> None:
    source = c.directory / "records"
    source.write_text("".join(r.line() + "\n" for r in RECORDS))
    c.host.run("Records", "produce", c.bootstrap, topic, "0", "snappy", stdin=source)


def _confluent_reads(c: Context, topic: str) -> list[str]:
    lines = []
    for m in read_all(c.bootstrap, topic, 1):
        kind, timestamp = m.timestamp()
        assert kind == TIMESTAMP_CREATE_TIME
        lines.append(Record(timestamp, m.key(), m.value(), m.headers() or []).line())
    return lines


def _python_reads(c: Context, topic: str) -> list[str]:
    consumer = KafkaConsumer(bootstrap_servers=c.bootstrap)
    where = PythonPartition(topic, 0)
    consumer.assign([where])
    consumer.seek_to_beginning()
    end = consumer.end_offsets([where])[where]
    lines = []
    while consumer.position(where) < end:
        for r in consumer.poll(timeout_ms=10_000).get(where, []):
            lines.append(Record(r.timestamp, r.key, r.value, list(r.headers)).line())
    consumer.close()
    return lines


def _java_reads(c: Context, topic: str) -> list[str]:
    return c.host.run("Records", "consume", c.bootstrap, topic, "0").lines()


def _kcat_reads(c: Context, topic: str) -> list[str]:
    """kcat prints lengths (-1 for null) and bytes; headers are left to the others, since it joins them as text."""
    out = c.kcat("-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%T %K %S %k%s").stdout
    lines = []
    while out:
        timestamp, key, value, rest = out.split(b" ", 3)
        parts = []
        for length in (int(key), int(value)):
            parts.append(None if length < 0 else rest[:length])
            rest = rest[max(length, 0) :]
        lines.append(Record(int(timestamp), *parts).line())
        out = rest
    return lines


PRODUCERS = {"confluent": _confluent_produces, "python": _python_produces, "java": _java_produces}
CONSUMERS = {"confluent": _confluent_reads, "python": _python_reads, "java": _java_reads, "kcat": _kcat_reads}


def nulls_duplicates_raw_bytes_and_timestamps_come_back(c: Context) -> None:
    for producer, produce in PRODUCERS.items():
        topic = f"round-{producer}"
        # The records are old: without this they would be deleted while they are compared.
        c.create(topic, retention_ms="-1")
        produce(c, topic)
        for consumer, read in CONSUMERS.items():
            got = read(c, topic)
            sent = sent_by(producer)
            expected = [(replace(r, headers=[]) if consumer == "kcat" else r).line() for r in sent]
            assert got == expected, f"{producer} to {consumer}: {got}\ninstead of {expected}"


def headers_and_null_values_of_kcat_come_back(c: Context) -> None:
    c.create("round-kcat")
    headers = ["-H", "twice=1", "-H", "other=x", "-H", "twice=2"]
    c.kcat("-P", "-t", "round-kcat", "-p", "0", "-k", "key", "-Z", *headers, stdin=b"one\n")
    c.kcat("-P", "-t", "round-kcat", "-p", "0", "-K", ":", "-Z", stdin=b"gone:\n")
    first, second = read_all(c.bootstrap, "round-kcat", 1)
    assert (first.key(), first.value()) == (b"key", b"one")
    assert first.headers() == [("twice", b"1"), ("other", b"x"), ("twice", b"2")], first.headers()
    assert (second.key(), second.value()) == (b"gone", None)
    shown = c.kcat("-C", "-t", "round-kcat", "-o", "0", "-c", "1", "-f", "%h").stdout
    assert shown == b"twice=1,other=x,twice=2", shown


CHECKS = [nulls_duplicates_raw_bytes_and_timestamps_come_back, headers_and_null_values_of_kcat_come_back]
