"""Four unmodified clients behind one interface: produce the whole corpus to a topic, and read a topic back.

`produce(topic, codec, corpus)` sends every record to its partition, in order, and returns when all are acknowledged.
`consume(topic, corpus)` reads all partitions by assignment, without a group, up to the ends that the broker reports,
checks that the offsets count up from 0 without a gap, and returns the values of each partition.
"""

import subprocess
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition

from lib.corpus import KEYS, Corpus
from lib.toolhost import ToolHost


class Collected:
    """The values read so far from each partition; checks each offset as it comes."""

    def __init__(self, who: str, partitions: int):
        self.who = who
        self.values: list[list[bytes]] = [[] for _ in range(partitions)]

    def add(self, partition: int, offset: int, value: bytes) -> None:
        values = self.values[partition]
        if offset != len(values):
            raise AssertionError(f"{self.who}: offset {offset} of partition {partition} follows {len(values) - 1}")
        values.append(value)


class Kcat:
    """kcat, the command line client on librdkafka."""

    name = "kcat"

    def __init__(self, bootstrap: str):
        self.bootstrap = bootstrap

    def _run(self, *arguments: str, stdin: Path | None = None, timeout: float = 600) -> bytes:
        command = ["kcat", "-b", self.bootstrap, *arguments]
        with open(stdin or "/dev/null", "rb") as source:
            done = subprocess.run(command, stdin=source, capture_output=True, timeout=timeout)
        if done.returncode != 0:
            raise AssertionError(f"{command} exited with {done.returncode}: {done.stderr.decode()}")
        return done.stdout

    def produce(self, topic: str, codec: str, corpus: Corpus) -> None:
        settings = ["-X", "topic.partitioner=murmur2_random", "-X", "linger.ms=20", "-z", codec]
        self._run("-P", "-t", topic, "-K", "\t", *settings, stdin=corpus.keyed)

    def consume(self, topic: str, corpus: Corpus) -> list[list[bytes]]:
        got = Collected(self.name, corpus.partitions)
        for partition in range(corpus.partitions):
            where = ["-t", topic, "-p", str(partition), "-o", "beginning", "-e", "-q"]
            out = self._run("-C", *where, "-X", "check.crcs=true", "-X", "fetch.wait.max.ms=20", "-f", "%o\t%k\t%s\n")
            for line in out.splitlines():
                offset, key, value = line.split(b"\t", 2)
                assert key in (KEYS[partition], b""), f"{key} came back from partition {partition}"
                got.add(partition, int(offset), value)
        return got.values


class Confluent:
    """confluent-kafka for Python, on librdkafka."""

    name = "confluent-kafka"

    def __init__(self, bootstrap: str):
        self.bootstrap = bootstrap

    def produce(self, topic: str, codec: str, corpus: Corpus) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,
                "linger.ms": 20,
                "queue.buffering.max.messages": 200_000,
            }
        )
        failed = []

        def delivered(error, _message):
            if error is not None:
                failed.append(error)

        for partition, value in corpus.order:
            while True:
                try:
                    producer.produce(topic, value, KEYS[partition], partition, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        left = producer.flush(300)
        assert not failed and not left, f"{len(failed)} records failed, {left} left: {failed[:3]}"

    def consume(self, topic: str, corpus: Corpus) -> list[list[bytes]]:
        got = Collected(self.name, corpus.partitions)
        for message in read_all(self.bootstrap, topic, corpus.partitions):
            got.add(message.partition(), message.offset(), message.value())
        return got.values


def read_all(bootstrap: str, topic: str, partitions: int, **options):
    """Yields every message of a topic through confluent-kafka, up to the ends at the time of the call."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.queue.backoff.ms": 5,
            **options,
        }
    )
    try:
        left = {}
        for partition in range(partitions):
            end = _end(consumer, TopicPartition(topic, partition))
            if end > 0:
                left[partition] = end - 1
        consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
        unread = sum(last + 1 for last in left.values())
        progress = time.monotonic()
        while left:
            # The call waits for as many as it is asked for, so it must never be asked for more than there are.
            messages = consumer.consume(max(1, min(unread, 10_000)), timeout=0.5)
            if messages:
                progress = time.monotonic()
            assert time.monotonic() < progress + 30, f"confluent-kafka waits in vain for {left} of {topic}"
            for message in messages:
                if message.error() is not None:
                    if _passes(message.error()):
                        continue
                    raise AssertionError(f"confluent-kafka read {message.error()} from {topic}")
                unread -= 1
                # Records appended after the ends were asked for are not wanted.
                if message.offset() <= left.get(message.partition(), -1):
                    yield message
                    if message.offset() == left[message.partition()]:
                        del left[message.partition()]
    finally:
        consumer.close()


def _end(consumer: Consumer, partition: TopicPartition) -> int:
    """The partition's end; unlike reads, this call does not repeat itself on a retriable error after a restart."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return consumer.get_watermark_offsets(partition, timeout=30)[1]
        except KafkaException as error:
            if not _passes(error.args[0]) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _passes(error: KafkaError) -> bool:
    """Whether the error goes away by itself when a broker has just started."""
    return error.retriable() or error.code() in _RETRIABLE


_RETRIABLE = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._TRANSPORT,
    KafkaError._UNKNOWN_PARTITION,
)


class KafkaPython:
    """kafka-python, a client of its own in pure Python."""

    name = "kafka-python"

    def __init__(self, bootstrap: str):
        self.bootstrap = bootstrap

    def produce(self, topic: str, codec: str, corpus: Corpus) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            linger_ms=20,
            batch_size=128 * 1024,
        )
        try:
            sent = [
                producer.send(topic, value, key=KEYS[partition], partition=partition)
                for partition, value in corpus.order
            ]
            producer.flush(timeout=300)
            for future in sent:
                future.get(timeout=1)
        finally:
            producer.close()

    def consume(self, topic: str, corpus: Corpus) -> list[list[bytes]]:
        got = Collected(self.name, corpus.partitions)
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, check_crcs=True, max_poll_records=10_000)
        try:
            where = [KafkaPythonPartition(topic, partition) for partition in range(corpus.partitions)]
            consumer.assign(where)
            consumer.seek_to_beginning()
            ends = consumer.end_offsets(where)
            while any(consumer.position(partition) < ends[partition] for partition in where):
                polled = consumer.poll(timeout_ms=30_000)
                assert polled, f"kafka-python waits in vain for {topic}"
                for partition, records in polled.items():
                    for record in records:
                        got.add(partition.partition, record.offset, record.value)
        finally:
            consumer.close()
        return got.values


class Console:
    """The console producer and consumer of Kafka 4.4, on the Java client (idempotent by default)."""

    name = "java-console"

    def __init__(self, bootstrap: str, host: ToolHost):
        self.bootstrap = bootstrap
        self.host = host

    def produce(self, topic: str, codec: str, corpus: Corpus) -> None:
        options = ["--topic", topic, "--compression-codec", codec, "--reader-property", "parse.key=true"]
        # The tool reports a failed record on standard error only.
        result = self.host.tool("console-producer", self.bootstrap, *options, stdin=corpus.keyed, timeout=600)
        assert "ERROR" not in result.err and "Exception" not in result.err, result.err[:2000]

    def consume(self, topic: str, corpus: Corpus) -> list[list[bytes]]:
        got = Collected(self.name, corpus.partitions)
        for partition, expected in enumerate(corpus.by_partition):
            where = ["--topic", topic, "--partition", str(partition), "--offset", "earliest"]
            # One record too many would go unseen here; the offsets' end is checked by the other consumers.
            stop = ["--max-messages", str(len(expected)), "--timeout-ms", "30000"]
            show = ["--formatter-property", "print.offset=true"]
            out = self.host.tool("console-consumer", self.bootstrap, *where, *stop, *show, timeout=600).out
            for line in out.splitlines():
                offset, value = line.split(b"\t", 1)
                got.add(partition, int(offset.removeprefix(b"Offset:")), value)
        return got.values


def all_clients(bootstrap: str, host: ToolHost) -> list:
    """The judges, in the order that the covering design of the matrix counts in."""
    return [Kcat(bootstrap), Confluent(bootstrap), KafkaPython(bootstrap), Console(bootstrap, host)]
