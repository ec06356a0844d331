"""Kafka's command line tools, one after another in one JVM: the start of a JVM costs more than most of their work."""

import queue
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from lib import settings


@dataclass
class Result:
    """How one tool ended: exit code, standard output (bytes, as written) and standard error."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    def lines(self) -> list[str]:
        return self.text.splitlines()


def java_command(*arguments: str) -> list[str]:
    """A JVM with Kafka's jars and our own helpers."""
    log4j = settings.TESTS / "kafka" / "log4j2.xml"
    path = f"{settings.JAVA_CLASSES}:{settings.KAFKA_JARS}/*"
    return ["java", "-Xmx512m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={log4j}", "-cp", path, *arguments]


class ToolHost:
    """The JVM (see foreign/java/ToolHost.java). Not for use by two threads."""

    def __init__(self, directory: Path):
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.errors = directory / "toolhost.log"
        with open(self.errors, "ab") as errors:
            self.process = subprocess.Popen(
                java_command("ToolHost"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.replies: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.replies.put(line)
        self.replies.put("end")

    def run(self, main: str, *arguments: str, stdin: Path | None = None, timeout: float = 120, check=True) -> Result:
        """Runs the main method of a class; a non-zero exit is an error unless `check` is false."""
        out, err = self.directory / "stdout", self.directory / "stderr"
        fields = [str(stdin or "/dev/null"), str(out), str(err), main, *map(str, arguments)]
        self.process.stdin.write("\x1f".join(fields) + "\n")
        self.process.stdin.flush()
        try:
            reply = self.replies.get(timeout=timeout).split()
        except queue.Empty:
            self.process.kill()
            raise AssertionError(f"{main} {arguments} hangs: {err.read_text(errors='replace')}") from None
        assert reply[0] == "exit", f"the JVM died running {main} {arguments}: {self.errors.read_text()}"
        result = Result(int(reply[1]), out.read_bytes(), err.read_text(errors="replace"))
        if check and result.code != 0:
            raise AssertionError(f"{main} {arguments} exited with {result.code}:\n{result.text}\n{result.err}")
        return result

    def tool(self, name: str, bootstrap: str, *arguments: str, **options) -> Result:
        """Runs a tool by the name of Kafka's script, without its `kafka-`, against a broker."""
        return self.run(TOOLS[name], "--bootstrap-server", bootstrap, *arguments, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


TOOLS = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "configs": "org.apache.kafka.tools.ConfigCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
