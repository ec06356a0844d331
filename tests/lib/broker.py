"""A broker to test: started, stopped, killed and started again on the same directory and port.

`Millstream` is the product. `Kafka` is a development aid (`--peer kafka`): a test that Kafka fails is a wrong test.
"""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from lib import settings


class Broker:
    """What the scripts need of a broker. Its output goes to `broker.out` and `broker.log` in the directory."""

    name = "?"
    ready_within = 30.0
    stops_within = 10.0

    def __init__(self, directory: Path, durability: str = "disk", port: int | None = None):
        self.directory = directory
        self.data = directory / "data"
        self.durability = durability
        self.port = port or settings.free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.out = directory / "broker.out"
        self.log = directory / "broker.log"
        self.process: subprocess.Popen | None = None
        self.starts = 0
        directory.mkdir(parents=True, exist_ok=True)

    def command(self) -> list[str]:
        raise NotImplementedError

    def ready(self, out: str) -> bool:
        """Whether it is ready, told by what it printed on standard output since this start."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def prepare(self) -> None:
        """What must be done once before the first start."""

    def start(self) -> float:
        """Starts the broker and returns the seconds until it was ready."""
        assert self.process is None, "the broker runs already"
        self.prepare()
        began = time.monotonic()
        with open(self.out, "wb") as out, open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                env=os.environ | self.environment(),
                # A group of its own: an interrupt at the terminal reaches the script, which stops the broker.
                start_new_session=True,
            )
        self.starts += 1
        while not self.ready(self.out.read_text(errors="replace")):
            if self.process.poll() is not None:
                raise BrokerFailed(f"{self.name} ended with {self.process.returncode} before it was ready", self)
            if time.monotonic() - began > self.ready_within:
                self.kill()
                raise BrokerFailed(f"{self.name} was not ready within {self.ready_within} s", self)
            time.sleep(0.01)
        return time.monotonic() - began

    def stop(self) -> float:
        """Stops the broker cleanly and returns the seconds it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(self.stops_within)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"{self.name} did not stop within {self.stops_within} s of SIGTERM", self) from None
        self.process = None
        if code not in self.clean_codes:
            raise BrokerFailed(f"{self.name} ended with {code} after SIGTERM", self)
        return time.monotonic() - began

    clean_codes = (0,)

    def kill(self) -> None:
        """Ends the broker by SIGKILL, as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def partition_directory(self, topic: str, partition: int) -> Path:
        """Where the segments of a partition lie; there must be exactly one such directory."""
        found = [path for path in self.data.rglob(f"{topic}-{partition}") if path.is_dir()]
        assert len(found) == 1, f"{topic}-{partition} in {self.data}: {found}"
        return found[0]

    def log_tail(self, lines: int = 40) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(line[:300] for line in text.splitlines()[-lines:])

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.kill()
        if kind is not None:
            print(f"--- last lines of {self.log}\n{self.log_tail()}\n---", flush=True)


class BrokerFailed(AssertionError):
    """The broker did not start or stop as it must."""

    def __init__(self, message: str, broker: Broker):
        super().__init__(f"{message}; {broker.log_tail(1)}")


def answers(port: int) -> bool:
    """Whether something on this machine accepts connections on the port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
    except OSError:
        return False
    return True


class Millstream(Broker):
    """The broker of this project, from the release build (or MILLSTREAM_BIN)."""

    name = "millstream"

    def __init__(self, *arguments, binary: Path | None = None, env: dict[str, str] | None = None, **options):
        super().__init__(*arguments, **options)
        self.binary = binary or settings.broker_binary()
        self.extra = env or {}

    def command(self) -> list[str]:
        assert self.binary.exists(), f"{self.binary} is missing: cargo build --release"
        listen = ["--listen", self.bootstrap]
        return [str(self.binary), "serve", "--data-dir", str(self.data), *listen, "--durability", self.durability]

    def environment(self) -> dict[str, str]:
        return self.extra

    def ready(self, out: str) -> bool:
        # Standard output carries the one line that says so; everything else is on standard error.
        return out.endswith("\n")


class Kafka(Broker):
    """One Kafka node (KRaft) from the jars. Class `disk` is flush.messages=1, class `os` is Kafka's default."""

    name = "kafka"
    ready_within = 90.0
    stops_within = 60.0
    clean_codes = (0, 143)

    def java(self, *arguments: str) -> list[str]:
        log4j = settings.TESTS / "kafka" / "log4j2.xml"
        jars = f"{settings.KAFKA_JARS}/*"
        return [
            "java",
            "-Xmx768m",
            f"-Dlog4j2.configurationFile={log4j}",
            "-Dtest.log.level=warn",
            "-cp",
            jars,
            *arguments,
        ]

    def prepare(self) -> None:
        properties = self.directory / "server.properties"
        if properties.exists():
            return
        controller = f"CONTROLLER://127.0.0.1:{self.port + 1}"
        lines = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.port + 1}",
            "listeners": f"PLAINTEXT://{self.bootstrap},{controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data,
            "offsets.topic.replication.factor": 1,
        }
        if self.durability == "disk":
            lines["log.flush.interval.messages"] = 1
        properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        tool = self.java("kafka.tools.StorageTool")
        cluster = subprocess.run([*tool, "random-uuid"], check=True, capture_output=True, text=True).stdout.strip()
        subprocess.run(
            [*tool, "format", "--standalone", "-t", cluster, "-c", str(properties)], check=True, capture_output=True
        )

    def command(self) -> list[str]:
        return self.java("kafka.Kafka", str(self.directory / "server.properties"))

    def ready(self, out: str) -> bool:
        # The broker accepts connections once the controller has unfenced it.
        return answers(self.port)


PEERS = {"millstream": Millstream, "kafka": Kafka}
