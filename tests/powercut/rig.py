"""The disk whose power can be cut: cutfs, a loop device over its file, and ext4 on that.

It unmounts and detaches only what it made itself, in the reverse order, also when the script fails or is ended by a
signal.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from lib import settings


class Rig:
    """One disk that lives through many cuts. `mount` is where the data directory goes."""

    def __init__(self, directory: Path, mebibytes: int):
        self.mebibytes = mebibytes
        self.backing = directory / "backing"
        self.fuse = directory / "fuse"
        self.mount = directory / "mount"
        self.fuse.mkdir(parents=True)
        self.mount.mkdir()
        self.cutfs: subprocess.Popen | None = None
        self.loop: str | None = None
        self.mounted = False
        self.formatted = False
        # A signal must not leave a mount behind: end by an exception, which runs every `finally`.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: sys.exit(1))

    def power_on(self, seed: int) -> None:
        """Attaches and mounts the disk, which makes ext4 replay its journal after a cut."""
        binary = settings.target_dir() / "debug" / "examples" / "cutfs"
        assert binary.exists(), f"{binary} is missing: cargo build --example cutfs"
        command = [str(binary), str(self.backing), str(self.fuse), str(self.mebibytes), str(seed)]
        self.cutfs = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # An interrupt at the terminal must reach the script only, which then takes the disk apart in order.
            start_new_session=True,
        )
        answer = self.cutfs.stdout.readline()
        assert answer == "mounted\n", f"cutfs did not start: {answer!r}"
        self.loop = run_tool("losetup", "--find", "--show", str(self.fuse / "disk")).strip()
        if not self.formatted:
            lazy = "lazy_itable_init=0,lazy_journal_init=0"
            run_tool("mkfs.ext4", "-q", "-F", "-m", "0", "-E", lazy, self.loop)
            self.formatted = True
        run_tool("mount", "-t", "ext4", self.loop, str(self.mount))
        self.mounted = True

    def cut(self) -> str:
        """Takes the power away and says what became of the blocks that were not synced."""
        self.cutfs.stdin.write("cut\n")
        self.cutfs.stdin.flush()
        answer = self.cutfs.stdout.readline().strip()
        assert answer.startswith("cut: "), f"cutfs answered {answer!r}"
        return answer

    def power_off(self) -> None:
        """Takes the layers apart; whatever still uses the disk must have ended before."""
        if self.mounted:
            unmount(self.mount)
            self.mounted = False
        if self.loop is not None:
            run_tool("losetup", "--detach", self.loop)
            self._await_detached()
            self.loop = None
        if self.cutfs is not None:
            unmount(self.fuse)
            self.cutfs.stdin.close()
            try:
                self.cutfs.wait(20)
            except subprocess.TimeoutExpired:
                self.cutfs.kill()
                self.cutfs.wait()
            self.cutfs = None

    def _await_detached(self) -> None:
        deadline = time.monotonic() + 20
        # The kernel detaches when the last user has closed it; until then the number must not be used again.
        backing = Path("/sys/block") / Path(self.loop).name / "loop" / "backing_file"
        ours = os.fspath(self.fuse)
        while backing.exists() and ours in _read(backing):
            assert time.monotonic() < deadline, f"{self.loop} is still attached"
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.power_off()


def unmount(path: Path) -> None:
    """Unmounts what nobody should use any more.

    The kernel lets go of files a little after their process has ended, above all of those that an io_uring held, so
    a refusal is tried again; a lazy unmount is the last resort.
    """
    deadline = time.monotonic() + 10
    while True:
        try:
            run_tool("umount", str(path))
            return
        except AssertionError:
            if time.monotonic() > deadline:
                run_tool("umount", "--lazy", str(path))
                return
            time.sleep(0.05)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def run_tool(*command: str) -> str:
    env = os.environ | {"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} exited with {done.returncode}: {done.stderr}")
    return done.stdout
