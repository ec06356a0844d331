"""Writers whose acknowledgements are booked, and the check of what a broker kept against the books.

A record names its writer and its number, and its body follows from both, so that a reader can tell a torn record from
a whole one, and a lost, repeated or displaced one from the rest, without having kept what was sent.
"""

import random
import subprocess
import threading
import time
import zlib
from collections import defaultdict
from dataclasses import dataclass, field

from confluent_kafka import Producer

from foreign.clients import read_all
from lib import corpus
from lib.toolhost import java_command

_TEXT = b" ".join(corpus.lines()[:20_000])


def record(writer: str, number: int) -> bytes:
    """The value that a writer sends as its record of that number: mostly small, some of several pages, few large."""
    head = b"%s %d " % (writer.encode(), number)
    dice = zlib.crc32(head)
    scale = (300, 300, 300, 300, 300, 300, 300, 9_000, 9_000, 100_000 if dice % 7 == 0 else 300)[dice % 10]
    start = dice % (len(_TEXT) - 100_000)
    return head + _TEXT[start : start + dice // 10 % scale]


class Writer(threading.Thread):
    """Sends numbered records to random partitions, until `finish`, with a bounded number unacknowledged.

    Subclasses say how to send; they call `acknowledged` once for each record that the broker took.
    """

    window = 400

    def __init__(self, name: str, partitions: int, seed: int):
        super().__init__(name=name, daemon=True)
        self.dice = random.Random(f"{name} {seed}")
        self.partitions = partitions
        self.sent: list[int] = []
        self.acks: dict[int, int] = {}
        self.problems: list[str] = []
        self.enough = threading.Event()

    def run(self) -> None:
        try:
            while not self.enough.is_set() and not self.problems:
                for _ in range(self.dice.randrange(1, 20)):
                    if len(self.sent) - len(self.acks) < self.window:
                        partition = self.dice.randrange(self.partitions)
                        number = len(self.sent)
                        self.sent.append(partition)
                        self.send(partition, number, record(self.name, number))
                self.breathe(self.dice.uniform(0, 0.03))
        except Exception as error:  # noqa: BLE001 - reported by the main thread
            self.problems.append(repr(error))

    def breathe(self, seconds: float) -> None:
        time.sleep(seconds)

    def send(self, partition: int, number: int, value: bytes) -> None:
        raise NotImplementedError

    def acknowledged(self, number: int, offset: int) -> None:
        if number in self.acks:
            self.problems.append(f"record {number} acknowledged twice")
        self.acks[number] = offset

    def finish(self, seconds: float) -> None:
        """Stops sending and waits until every record is acknowledged; not to be is a problem."""
        self.enough.set()
        self.join()
        deadline = time.monotonic() + seconds
        while len(self.acks) < len(self.sent) and not self.problems and time.monotonic() < deadline:
            self.breathe(0.05)
        if len(self.acks) < len(self.sent):
            self.problems.append(f"{len(self.sent) - len(self.acks)} records are still not acknowledged")
        self.close()

    def abandon(self) -> None:
        """Stops at once, without waiting for acknowledgements: the broker has lost its power."""
        self.enough.set()
        if self.is_alive():
            self.join()
        self.close()

    def close(self) -> None:
        """Lets go of the client; may be called twice."""


class ConfluentWriter(Writer):
    """An idempotent producer of confluent-kafka that outlives restarts of the broker."""

    def __init__(self, name: str, bootstrap: str, topic: str, partitions: int, seed: int):
        super().__init__(name, partitions, seed)
        self.topic = topic
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "message.timeout.ms": 0,
                "linger.ms": 2,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 200,
                "compression.type": self.dice.choice(["none", "lz4", "zstd"]),
                "error_cb": self._error,
                "log_level": 0,
            }
        )

    def _error(self, error) -> None:
        if error.fatal():
            self.problems.append(f"fatal: {error}")

    def send(self, partition: int, number: int, value: bytes) -> None:
        def delivered(error, message):
            if error is None:
                self.acknowledged(number, message.offset())
            elif not self.enough.is_set():
                self.problems.append(f"record {number}: {error}")

        self.producer.produce(self.topic, value, partition=partition, on_delivery=delivered)

    def breathe(self, seconds: float) -> None:
        self.producer.poll(seconds)

    def close(self) -> None:
        self.producer.purge()
        self.producer.poll(0)


class JavaWriter(Writer):
    """The Java client with its defaults, which make it idempotent (foreign/java/Writer.java)."""

    def __init__(self, name: str, bootstrap: str, topic: str, partitions: int, seed: int):
        super().__init__(name, partitions, seed)
        command = java_command("Writer", bootstrap, topic)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            number, offset = line.split(b" ", 1)
            if number == b"error":
                self.problems.append(offset.decode())
            else:
                self.acknowledged(int(number), int(offset))

    def send(self, partition: int, number: int, value: bytes) -> None:
        self.process.stdin.write(b"%d %d %s\n" % (partition, number, value))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Findings:
    """What a check found; all lists but none of the counts must be empty."""

    records: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    displaced: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)

    def bad(self) -> int:
        return len(self.lost) + len(self.torn) + len(self.displaced) + len(self.repeated)

    def __str__(self) -> str:
        faults = {"lost": self.lost, "torn": self.torn, "displaced": self.displaced, "repeated": self.repeated}
        counts = ", ".join(f"{len(found)} {name}" for name, found in faults.items())
        first = "".join(f"\n  {name}: {found[0]}" for name, found in faults.items() if found)
        return f"{self.records} records, {self.acknowledged} acknowledged: {counts}{first}"


def check(bootstrap: str, topic: str, partitions: int, writers: list[Writer]) -> Findings:
    """Reads the topic and compares: each acknowledged record once, whole, at its offset, each writer's in order.

    A record that was not acknowledged may be there or not, but only once and in order.
    """
    # Writers may go on meanwhile.
    acks = {writer.name: writer.acks.copy() for writer in writers}
    findings = Findings(acknowledged=sum(map(len, acks.values())))
    newest: dict[tuple[str, int], int] = defaultdict(lambda: -1)
    seen: dict[tuple[str, int], int] = {}
    by_name = {writer.name: writer for writer in writers}
    for message in read_all(bootstrap, topic, partitions):
        findings.records += 1
        where = f"partition {message.partition()} offset {message.offset()}"
        value = message.value()
        name, number = value.split(b" ", 2)[:2]
        name, number = name.decode(), int(number)
        if name not in by_name or value != record(name, number):
            findings.torn.append(f"{where}: {value[:60]}")
            continue
        key = (name, message.partition())
        if (name, number) in seen:
            findings.repeated.append(f"{where}: {name} {number}")
        elif number < newest[key] or by_name[name].sent[number] != message.partition():
            findings.displaced.append(f"{where}: {name} {number} after {newest[key]}")
        newest[key] = max(number, newest[key])
        seen[name, number] = message.offset()
    for writer in writers:
        for number, offset in acks[writer.name].items():
            at = seen.get((writer.name, number))
            if at is None:
                findings.lost.append(f"partition {writer.sent[number]}: {writer.name} {number}, offset {offset}")
            elif offset >= 0 and at != offset:
                # Clients report a negative offset where the broker did not tell one again.
                findings.displaced.append(f"{writer.name} {number} at {at}, acknowledged at {offset}")
    return findings
