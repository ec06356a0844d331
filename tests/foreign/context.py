"""What the checks of one broker share."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from lib.broker import Broker
from lib.toolhost import Result, ToolHost


@dataclass
class Context:
    """A running broker, a JVM for Kafka's tools, and room for files."""

    broker: Broker
    host: ToolHost
    directory: Path

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    def tool(self, name: str, *arguments: str, **options) -> Result:
        return self.host.tool(name, self.bootstrap, *arguments, **options)

    def kcat(self, *arguments: str, stdin: bytes = b"", check: bool = True) -> subprocess.CompletedProcess:
        """Runs kcat; a non-zero exit is an error unless `check` is false."""
        command = ["kcat", "-b", self.bootstrap, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, timeout=60)
        if check and done.returncode != 0:
            raise AssertionError(f"{command} exited with {done.returncode}: {done.stderr.decode()}")
        return done

    def metadata(self) -> dict:
        """What `kcat -L` says, as JSON."""
        return json.loads(self.kcat("-L", "-J").stdout)

    def topics(self) -> dict[str, int]:
        """Partition counts by topic, as kcat sees them."""
        return {topic["topic"]: len(topic["partitions"]) for topic in self.metadata()["topics"]}

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        """Creates a topic through confluent-kafka; an underscore in a config's name stands for a dot."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        config = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(topic, partitions, 1, config=config)
        admin.create_topics([new], operation_timeout=30)[topic].result(60)

    def send(self, topic: str, value: bytes, **config) -> int:
        """Sends one record to partition 0 through confluent-kafka; returns the offset or raises what it was told."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "message.timeout.ms": 20_000, **config})
        told = []
        producer.produce(topic, value, partition=0, on_delivery=lambda error, message: told.append((error, message)))
        producer.flush(30)
        error, message = told[0]
        if error is not None:
            raise KafkaException(error)
        return message.offset()
