"""Cuts the power under acks=all load at class `disk`: nothing that was acknowledged may be lost, torn or displaced.

First the rig proves itself (selftest.py). Then the broker lives through its cuts. Last, a broker that does not sync
its journal must be found out by the same check: for the product a build with the feature `planted-bugs`, told by
MILLSTREAM_PLANTED_BUG=no-journal-sync; for Kafka (a development aid) its default flush settings.
"""

import argparse
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

from foreign.matrix import create_topics
from lib import settings
from lib.broker import PEERS, BrokerFailed, Kafka, Millstream
from lib.load import ConfluentWriter, check
from powercut.rig import Rig
from powercut.selftest import selftest

TOPIC = "cut"
PARTITIONS = 8
WRITERS = 4
# Cuts within which the broker without syncs must have lost something.
UNSYNCED_CUTS = 10


def survive(rig: Rig, broker, cuts: int, seed: int) -> str:
    """Lets the broker live through the cuts and returns the first fault that the check found, or nothing."""
    dice = random.Random(seed)
    writers: list[ConfluentWriter] = []
    for cut in range(cuts + 1):
        rig.power_on(dice.randrange(1 << 63))
        try:
            seconds = broker.start()
        except BrokerFailed as failure:
            return f"cut {cut}: {failure}"
        if cut == 0:
            create_topics(broker.bootstrap, [TOPIC], PARTITIONS)
        else:
            findings = check(broker.bootstrap, TOPIC, PARTITIONS, writers)
            print(f"cut {cut}: ready in {seconds:.2f} s: {findings}", flush=True)
            if findings.bad():
                return str(findings)
        if cut == cuts:
            broker.stop()
            rig.power_off()
            return ""
        names = [f"writer-{cut}-{i}" for i in range(WRITERS)]
        lives = [ConfluentWriter(name, broker.bootstrap, TOPIC, PARTITIONS, seed) for name in names]
        writers += lives
        for writer in lives:
            writer.start()
        deadline = time.monotonic() + 60
        while not all(len(writer.acks) > 5 for writer in lives):
            assert time.monotonic() < deadline, "no acknowledgements"
            time.sleep(0.005)
        time.sleep(dice.uniform(0.0, 1.5))
        print("  " + rig.cut(), flush=True)
        # With the power, the process goes; what it still answers is booked as acknowledged.
        broker.kill()
        for writer in lives:
            writer.abandon()
        rig.power_off()
    raise AssertionError("unreachable")


def planted_binary(directory: Path) -> Path:
    """A test build in which the journal's sync can be left out, copied away from where the next build would land."""
    # Together with an example it has the features of the tests, so that it is there already when they are.
    command = ["cargo", "build", "--bin", "millstream", "--example", "cutfs", "--features", "planted-bugs"]
    subprocess.run(command, cwd=settings.ROOT, check=True)
    return Path(shutil.copy(settings.target_dir() / "debug" / "millstream", directory / "millstream-planted"))


def synced(peer: str, rig: Rig, directory: Path):
    """The broker that must survive: its data on the rig, its log beside it."""
    broker = PEERS[peer](directory, "disk")
    broker.data = rig.mount / "data"
    return broker


def unsynced(peer: str, rig: Rig, directory: Path):
    """The broker that must be found out."""
    if peer == Kafka.name:
        broker = Kafka(directory, "os")
    else:
        env = {"MILLSTREAM_PLANTED_BUG": "no-journal-sync"}
        broker = Millstream(directory, "disk", binary=planted_binary(directory), env=env)
    broker.data = rig.mount / "data"
    return broker


def run(peer: str, cuts: int, seed: int, only: str | None) -> None:
    """The three steps, each on a disk of its own."""
    with settings.scratch("powercut") as directory:
        if only in (None, "rig"):
            with Rig(directory / "rig", 64) as rig:
                selftest(rig, seed)
        for step, make, count in (("synced", synced, cuts), ("unsynced", unsynced, UNSYNCED_CUTS)):
            if only not in (None, step):
                continue
            place = directory / step
            place.mkdir()
            with Rig(place, 2048) as rig, make(peer, rig, place) as broker:
                fault = survive(rig, broker, count, seed)
            if step == "synced":
                assert not fault, f"after a power cut (seed {seed}): {fault}"
                print(
                    f"synced: {count} cuts, seed {seed}: nothing acknowledged was lost, torn or displaced", flush=True
                )
            else:
                assert fault, f"{count} cuts without syncing lost nothing (seed {seed}): this check sees nothing"
                print(f"unsynced: found out, as it must be: {fault}", flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=PEERS, default="millstream")
    parser.add_argument("--long", action="store_true", help="50 cuts instead of 5")
    parser.add_argument("--cuts", type=int)
    parser.add_argument("--only", choices=["rig", "synced", "unsynced"])
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    assert os.geteuid() == 0, "mounting needs root"
    run(options.peer, options.cuts or (50 if options.long else 5), options.seed, options.only)


if __name__ == "__main__":
    main()
