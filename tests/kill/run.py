"""Kills the broker at random moments under four idempotent producers that live on, then compares.

Every record that was acknowledged must be there exactly once and in order, for both durability classes: a kill takes
the process, not the page cache. At the end everything that was sent has been acknowledged.
"""

import argparse
import random
import time

from foreign.matrix import create_topics
from lib.broker import PEERS
from lib.load import ConfluentWriter, JavaWriter, check
from lib.settings import scratch

TOPIC = "kill"
PARTITIONS = 8


def run(peer: str, durability: str, kills: int, seed: int) -> None:
    """One broker of a class, killed that often."""
    dice = random.Random(seed)
    began = time.monotonic()
    with scratch("kill") as directory, PEERS[peer](directory, durability) as broker:
        broker.start()
        create_topics(broker.bootstrap, [TOPIC], PARTITIONS)
        kinds = [("java", JavaWriter)] + [(f"confluent-{i}", ConfluentWriter) for i in range(3)]
        writers = [kind(name, broker.bootstrap, TOPIC, PARTITIONS, seed) for name, kind in kinds]
        try:
            for writer in writers:
                writer.start()
            # The first kill must meet all four at work.
            wait_until(lambda: all(len(writer.acks) > 20 for writer in writers), 60, "the first acknowledgements")
            ready = []
            for _ in range(kills):
                time.sleep(dice.uniform(0.05, 1.5))
                broker.kill()
                before = acknowledged(writers)
                ready.append(broker.start())
                wait_until(lambda: acknowledged(writers) > before, 60, "progress after a kill")  # noqa: B023
                for writer in writers:
                    assert not writer.problems, f"{writer.name}: {writer.problems[0]}"
            for writer in writers:
                writer.finish(60)
                assert not writer.problems, f"{writer.name}: {writer.problems[0]}"
        finally:
            for writer in writers:
                writer.abandon()
        findings = check(broker.bootstrap, TOPIC, PARTITIONS, writers)
        broker.kill()
        broker.start()
        again = check(broker.bootstrap, TOPIC, PARTITIONS, writers)
        broker.stop()
        print(
            f"{durability}: {kills} kills, seed {seed}, ready again in {max(ready):.2f} s at most, "
            f"{time.monotonic() - began:.1f} s: {findings}",
            flush=True,
        )
        assert findings.bad() == 0 and again.bad() == 0, f"acknowledged records suffered: {findings}; {again}"
        sent = sum(len(writer.sent) for writer in writers)
        assert findings.records == findings.acknowledged == sent, f"{sent} were sent"


def acknowledged(writers: list) -> int:
    """Acknowledgements booked so far."""
    return sum(len(writer.acks) for writer in writers)


def wait_until(condition, seconds: float, what: str) -> None:
    """Waits for a condition, at most so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.01)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=PEERS, default="millstream")
    parser.add_argument("--long", action="store_true", help="50 kills of each class instead of 5")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--durability", choices=["disk", "os"], help="only this class")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    kills = options.kills or (50 if options.long else 5)
    for durability in [options.durability] if options.durability else ["disk", "os"]:
        run(options.peer, durability, kills, options.seed)


if __name__ == "__main__":
    main()
