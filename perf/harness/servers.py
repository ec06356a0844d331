"""The servers of a comparison, each pinned to the servers' core: both brokers, and the two bare ones of the load tool."""

import os
import signal
import subprocess
import time
from pathlib import Path

from lib import broker, settings

# What Kafka's own start script gives its JVM, and no more.
KAFKA_JVM = [
    "-Xms1g",
    "-Xmx1g",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
]

# Files of deleted topics go soon, before the next case.
KAFKA_PROPERTIES = "log.segment.delete.delay.ms=100\n"

# Seconds for the files of a deleted topic to go.
DELETED_WITHIN = 60


def pinned(core: int, command: list[str]) -> list[str]:
    """Pins every thread from the start, so that a JVM counts one processor and sizes itself for it."""
    return ["taskset", "-c", str(core), *command]


class Millstream(broker.Millstream):
    """The broker with its defaults, on one core."""

    def __init__(self, *arguments, core: int, **options):
        super().__init__(*arguments, durability="os", env={"MILLSTREAM_LOG": "warn"}, **options)
        self.core = core

    def command(self) -> list[str]:
        return pinned(self.core, [*super().command(), "--cores", str(self.core)])


class Kafka(broker.Kafka):
    """Kafka with its defaults and those of its start script, on one core."""

    def __init__(self, *arguments, core: int, **options):
        super().__init__(*arguments, durability="os", **options)
        self.core = core

    def prepare(self) -> None:
        super().prepare()
        properties = self.directory / "server.properties"
        if KAFKA_PROPERTIES not in properties.read_text():
            with open(properties, "a") as file:
                file.write(KAFKA_PROPERTIES)

    def command(self) -> list[str]:
        # The last of two settings of a heap wins.
        java, *rest = super().command()
        main = rest.index("kafka.Kafka")
        class_path = rest[main - 2 :]
        return pinned(self.core, [java, *rest[: main - 2], *KAFKA_JVM, *class_path])


def await_deletion(server: broker.Broker, topic: str) -> None:
    """Waits until no file of a deleted topic is left, so that its end is no part of the next measurement."""
    until = time.monotonic() + DELETED_WITHIN
    while left := directories(server.data, f"{topic}-"):
        if time.monotonic() > until:
            raise RuntimeError(f"{server.name} has not removed {left[0]} {DELETED_WITHIN} s after its deletion")
        time.sleep(0.1)


def directories(parent: Path, prefix: str) -> list[str]:
    """Paths of directories below `parent` whose names begin so. They may go while it looks, which is no error."""
    return [os.path.join(root, name) for root, names, _ in os.walk(parent) for name in names if name.startswith(prefix)]


class Bare:
    """`millstream-perf echo` or `send`, which print their address when they serve."""

    def __init__(self, mode: str, *options: str, core: int):
        port = settings.free_ports(1)
        command = [str(load_binary()), mode, "--listen", f"127.0.0.1:{port}", "--pin", str(core), *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        line = self.process.stdout.readline()
        if not line.startswith(f"millstream-perf {mode}: "):
            self.stop()
            raise RuntimeError(f"{' '.join(command)} is not ready: {line!r}")
        self.bootstrap = line.split()[-1]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def load_binary() -> Path:
    """The release build of the load tool."""
    return settings.target_dir() / "release" / "millstream-perf"


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, all its threads, those of the kernel's io_uring workers and dead ones included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
