"""Machine, kernel, commit and versions: no figure without them."""

import os
import platform
import subprocess
import time
from pathlib import Path

from lib import settings


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=settings.ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    # `java -version` writes to standard error.
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines else "unknown"


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        if line.startswith(name):
            return line.split(":", 1)[1].strip()
    return "unknown"


def describe(directory: Path) -> str:
    """A table of what the figures depend on; `directory` is where the data will lie."""
    (jar,) = settings.KAFKA_JARS.glob("kafka-clients-*.jar")
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    rows = {
        "Date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "Commit": _output("git", "describe", "--always", "--dirty"),
        "Machine": f"{_field('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores, {gibibytes:.0f} GiB",
        "Load before": "{:.1f} {:.1f} {:.1f}".format(*os.getloadavg()),
        "Kernel": platform.release(),
        "File system": _output("findmnt", "-n", "-o", "FSTYPE,SOURCE", "-T", str(directory)),
        "Compiler": _output("rustc", "--version"),
        "Kafka": jar.stem.removeprefix("kafka-clients-"),
        "Java": _output("java", "-version"),
    }
    return "| | |\n|---|---|\n" + "\n".join(f"| {key} | {value} |" for key, value in rows.items())
