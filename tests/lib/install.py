"""Installs what the tests need, by the ordinary clients, and only what is absent. Standard library only.

A second run finds everything in place and needs no network. Whatever cannot be installed is an error:
no test is left out because its judge is missing.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from lib import settings

# A command and the Debian package that brings it.
COMMANDS = {
    "cc": "build-essential",
    "kcat": "kcat",
    "javac": "default-jdk-headless",
    "mvn": "maven",
    "fusermount3": "fuse3",
    "losetup": "mount",
    "mkfs.ext4": "e2fsprogs",
}

# A file and the Debian package that brings it.
FILES = {
    "/usr/share/dictd/gcide.dict.dz": "dict-gcide",
}

_updated = False


def ensure(*names: str) -> None:
    """Makes each named thing available: a command or file of the tables above, `venv`, `kafka`,
    `classes` or `definitions`."""
    special = {"venv": _venv, "kafka": _kafka, "classes": _classes, "definitions": _definitions}
    packages = []
    for name in names:
        if name in COMMANDS and not _which(name):
            packages.append(COMMANDS[name])
        elif name in FILES and not os.path.exists(name):
            packages.append(FILES[name])
        elif name not in COMMANDS and name not in FILES and name not in special:
            raise KeyError(name)
    _apt(packages)
    for name in names:
        if (name in COMMANDS and not _which(name)) or (name in FILES and not os.path.exists(name)):
            raise RuntimeError(f"{name} is still missing after its package was installed")
        if name in special:
            special[name]()


def _which(command: str) -> str | None:
    # Tools of the administrator are not on everybody's path.
    return shutil.which(command, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def _run(*command: str, **options) -> None:
    print("+", " ".join(command), flush=True)
    subprocess.run(command, check=True, stdout=sys.stderr, **options)


def _apt(packages: list[str]) -> None:
    global _updated
    if not packages:
        return
    prefix = [] if os.geteuid() == 0 else ["sudo"]
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    if not _updated:
        _run(*prefix, "apt-get", "update", "-qq", env=env)
        _updated = True
    wanted = sorted(set(packages))
    _run(*prefix, "apt-get", "install", "-qq", "-y", "--no-install-recommends", *wanted, env=env)


def _stamp(path: Path, inputs: list[Path]) -> tuple[Path, str]:
    digest = hashlib.sha256(b"".join(p.read_bytes() for p in inputs)).hexdigest()
    return path / ".installed-from", digest


def _current(stamp: Path, digest: str) -> bool:
    return stamp.exists() and stamp.read_text() == digest


def _venv() -> None:
    requirements = settings.TESTS / "kafka" / "requirements.txt"
    venv = settings.CACHE / "venv"
    stamp, digest = _stamp(venv, [requirements])
    if _current(stamp, digest):
        return
    if importlib.util.find_spec("ensurepip") is None:
        _apt(["python3-venv"])
    shutil.rmtree(venv, ignore_errors=True)
    _run(sys.executable, "-m", "venv", str(venv))
    pip = str(venv / "bin" / "pip")
    _run(pip, "install", "-q", "--disable-pip-version-check", "-r", str(requirements))
    stamp.write_text(digest)


def _kafka() -> None:
    pom = settings.TESTS / "kafka" / "pom.xml"
    stamp, digest = _stamp(settings.KAFKA_JARS, [pom])
    if _current(stamp, digest):
        return
    ensure("javac", "mvn")
    shutil.rmtree(settings.KAFKA_JARS, ignore_errors=True)
    settings.KAFKA_JARS.mkdir(parents=True)
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    _run("mvn", "-q", "-B", "-f", str(pom), *goal, f"-DoutputDirectory={settings.KAFKA_JARS}")
    stamp.write_text(digest)


def _definitions() -> None:
    """Unpacks Kafka's message definitions, with which the tests of the wire layer compare our schema."""
    _kafka()
    (jar,) = settings.KAFKA_JARS.glob("kafka-clients-*.jar")
    folder = settings.CACHE / jar.stem
    if folder.exists():
        return
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(jar) as archive:
        names = [name for name in archive.namelist() if name.startswith("common/message/")]
        archive.extractall(partial, names)
    partial.rename(folder)


def _classes() -> None:
    """Compiles the small Java programs of tests/foreign/java."""
    _kafka()
    sources = sorted((settings.TESTS / "foreign" / "java").glob("*.java"))
    stamp, digest = _stamp(settings.JAVA_CLASSES, sources)
    if _current(stamp, digest):
        return
    shutil.rmtree(settings.JAVA_CLASSES, ignore_errors=True)
    settings.JAVA_CLASSES.mkdir(parents=True)
    jars = f"{settings.KAFKA_JARS}/*"
    _run("javac", "-Xlint:all,-classfile", "-cp", jars, "-d", str(settings.JAVA_CLASSES), *map(str, sources))
    stamp.write_text(digest)
