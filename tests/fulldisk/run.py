"""Fills the disk under idempotent producers: they are refused, readers and deletions go on, and all comes back.

The data directory lies on a small ext4 on a loop device. While it is full, a produce gets a retriable error, what was
acknowledged can be read, and deleting a topic succeeds; then the producers go on by themselves. A stop and a start
on the full disk work too. After kill -9 nothing that was acknowledged is missing.
"""

import argparse
import os
import random
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from foreign.matrix import create_topics
from kill.run import acknowledged, wait_until
from lib.broker import Millstream
from lib.load import ConfluentWriter, check
from lib.settings import scratch
from powercut.rig import run_tool, unmount

TOPIC = "kept"
PARTITIONS = 8
WRITERS = 3
MEBIBYTES = 768
# What a deletion gives back must be more than the reserve may need.
DELETED_MEBIBYTES = 160
BULK_BYTES = 500_000


@contextmanager
def small_disk(directory: Path, mebibytes: int):
    """An ext4 of that size, mounted; yields where."""
    image, mount = directory / "image", directory / "mount"
    mount.mkdir()
    with open(image, "wb") as file:
        file.truncate(mebibytes << 20)
    run_tool("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
    run_tool("mount", "-t", "ext4", "-o", "loop", str(image), str(mount))
    try:
        yield mount
    finally:
        unmount(mount)


class Bulk:
    """Sends large records that nobody checks and that do not compress, each one once."""

    def __init__(self, bootstrap: str):
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "retries": 0,
                "linger.ms": 0,
                "batch.size": BULK_BYTES,
                "message.timeout.ms": 60_000,
                "log_level": 0,
            }
        )
        self.sent = 0
        self.error: KafkaError | None = None

    def _delivered(self, error, _message) -> None:
        self.error = self.error or error

    def send(self, topic: str, mebibytes: int) -> None:
        """Sends until that much is there or something is refused."""
        self.error = None
        for _ in range((mebibytes << 20) // BULK_BYTES):
            self.producer.produce(topic, random.randbytes(BULK_BYTES), partition=0, on_delivery=self._delivered)
            self.sent += 1
            while len(self.producer) > 8:
                self.producer.poll(0.05)
            if self.error:
                break
        self.producer.flush(60)

    def is_refused(self, topic: str) -> bool:
        """Whether one more record gets the retriable error of a full disk; another error is a fault."""
        self.send(topic, 1)
        assert self.error is None or self.error.code() == KafkaError.KAFKA_STORAGE_ERROR, self.error
        return self.error is not None


def free_bytes(mount: Path) -> int:
    """What the file system still has."""
    found = os.statvfs(mount)
    return found.f_bavail * found.f_frsize


def run(durability: str, seed: int) -> None:
    """One broker of a class through two full disks and a kill."""
    began = time.monotonic()
    with scratch("fulldisk") as directory, small_disk(directory, MEBIBYTES) as mount:
        with Millstream(directory, durability) as broker:
            broker.data = mount / "data"
            broker.start()
            live(broker, mount, seed)
            broker.stop()
    print(f"{durability}: seed {seed}, {time.monotonic() - began:.1f} s: nothing was lost on a full disk", flush=True)


def live(broker: Millstream, mount: Path, seed: int) -> None:
    bootstrap = broker.bootstrap
    create_topics(bootstrap, [TOPIC], PARTITIONS)
    create_topics(bootstrap, ["deleted", "bulk"], 1)
    bulk = Bulk(bootstrap)
    bulk.send("deleted", DELETED_MEBIBYTES)
    assert bulk.error is None, bulk.error
    names = [f"writer-{i}" for i in range(WRITERS)]
    writers = [ConfluentWriter(name, bootstrap, TOPIC, PARTITIONS, seed) for name in names]
    try:
        for writer in writers:
            writer.start()
        wait_until(lambda: all(len(writer.acks) > 20 for writer in writers), 60, "the first acknowledgements")
        bulk.send("bulk", 2 * MEBIBYTES)
        assert bulk.error and bulk.error.code() == KafkaError.KAFKA_STORAGE_ERROR, f"{bulk.sent} sent: {bulk.error}"
        wait_until(lambda: is_at_rest(writers), 60, "the refusal of every producer")
        findings = check(bootstrap, TOPIC, PARTITIONS, writers)
        print(f"  full with {free_bytes(mount)} bytes free: {findings}", flush=True)
        assert findings.bad() == 0, f"on a full disk: {findings}"

        before = acknowledged(writers)
        # The client is kept until it has answered: its end would cancel the request.
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        admin.delete_topics(["deleted"])["deleted"].result(30)
        wait_until(lambda: acknowledged(writers) > before, 60, "producers to go on after the deletion")

        start_full(broker, mount, bulk, writers)
        broker.kill()
        broker.start()
        for writer in writers:
            writer.finish(60)
            assert not writer.problems, f"{writer.name}: {writer.problems[0]}"
    finally:
        for writer in writers:
            writer.abandon()
    findings = check(bootstrap, TOPIC, PARTITIONS, writers)
    print(f"  {findings}", flush=True)
    sent = sum(len(writer.sent) for writer in writers)
    assert findings.bad() == 0 and findings.records == findings.acknowledged == sent, f"{sent} were sent: {findings}"


def start_full(broker: Millstream, mount: Path, bulk: Bulk, writers: list) -> None:
    """A stop, and a start while somebody else has taken the rest of the disk; then that is given back."""
    broker.stop()
    for reserve in broker.data.glob("journal/reserve-*"):
        # Its space too.
        reserve.unlink()
    stranger = mount / "stranger"
    with open(stranger, "wb") as file:
        try:
            while True:
                file.write(bytes(1 << 20))
                file.flush()
        except OSError:
            pass
    broker.start()
    findings = check(broker.bootstrap, TOPIC, PARTITIONS, writers)
    print(f"  started with {free_bytes(mount)} bytes free: {findings}", flush=True)
    assert findings.bad() == 0, f"after a start on a full disk: {findings}"
    assert bulk.is_refused("bulk"), "a produce was taken on a disk without room"
    before = acknowledged(writers)
    stranger.unlink()
    wait_until(lambda: acknowledged(writers) > before, 60, "producers to go on once there is room")


def is_at_rest(writers: list) -> bool:
    """Whether nothing was acknowledged for a second."""
    before = acknowledged(writers)
    time.sleep(1)
    return acknowledged(writers) == before


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="five times instead of once")
    parser.add_argument("--durability", choices=["disk", "os"], help="only this class")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    assert os.geteuid() == 0, "mounting needs root"
    # A signal must not leave a mount behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    for round_number in range(5 if options.long else 1):
        for durability in [options.durability] if options.durability else ["disk", "os"]:
            run(durability, options.seed + round_number)


if __name__ == "__main__":
    main()
