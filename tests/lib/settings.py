"""Where things are: the tree, the cache of installed judges, build output, scratch space, and the ports to use.

Environment: CARGO_TARGET_DIR (Cargo's own meaning), MILLSTREAM_BIN (a broker built elsewhere),
MILLSTREAM_TEST_PORTS (LOW-HIGH, default 20000-29999) and MILLSTREAM_TEST_KEEP=1 (keep scratch space for a look).
"""

import fcntl
import os
import random
import shutil
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
CACHE = TESTS / ".cache"
VENV_PYTHON = CACHE / "venv" / "bin" / "python"
KAFKA_JARS = CACHE / "kafka"
JAVA_CLASSES = CACHE / "classes"


def target_dir() -> Path:
    """Cargo's output directory, as an absolute path."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()


def broker_binary() -> Path:
    """The release build of the broker, or the one that MILLSTREAM_BIN names."""
    return Path(os.environ.get("MILLSTREAM_BIN") or target_dir() / "release" / "millstream")


@contextmanager
def scratch(name: str):
    """A directory of our own that is removed at the end, unless MILLSTREAM_TEST_KEEP is set."""
    path = Path(tempfile.mkdtemp(prefix=f"millstream-{name}-", dir=os.environ.get("TMPDIR")))
    try:
        yield path
    finally:
        if os.environ.get("MILLSTREAM_TEST_KEEP"):
            print(f"kept {path}", flush=True)
        else:
            shutil.rmtree(path, ignore_errors=True)


def free_ports(count: int) -> int:
    """The first of `count` neighbouring ports on which nothing listens, reserved until this process ends.

    The reservation (a locked file for each) keeps other scripts away while a broker is down between two starts.

    They lie below the range from which the kernel takes the local ports of outgoing connections: while a broker
    is down, a client that keeps trying to reach it could otherwise be given that very port and talk to itself.
    """
    low, high = map(int, os.environ.get("MILLSTREAM_TEST_PORTS", "20000-29999").split("-"))
    for _ in range(500):
        first = random.randrange(low, high - count + 2)
        if all(_reserve(port) and _is_free(port) for port in range(first, first + count)):
            return first
    raise RuntimeError(f"no {count} free neighbouring ports in {low}-{high}")


_reserved: dict[int, IO] = {}


def _reserve(port: int) -> bool:
    if port in _reserved:
        return False
    folder = Path(tempfile.gettempdir()) / f"millstream-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    # Not inherited by children (the default in Python), so a broker that outlives the script holds nothing.
    file = open(folder / str(port), "w")  # noqa: SIM115 - it stays open, and so locked
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return False
    _reserved[port] = file
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
