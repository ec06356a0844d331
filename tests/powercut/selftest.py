"""Shows that the rig can tell: synchronous writes survive its cuts, others do not.

Without this, a rig that loses nothing would pass every broker. It also shows that this kernel's loop driver passes
flushes down to FUSE.
"""

import mmap
import os
import struct
import threading
import time
from pathlib import Path

from powercut.rig import Rig

BLOCK = 4096
BLOCKS = 4000


def _block(number: int) -> bytes:
    return struct.pack("<QQ", number, ~number & 0xFFFFFFFFFFFFFFFF) * (BLOCK // 16)


def _write(path: Path, flags: int, written: list[int]) -> None:
    # Written over in place, so that what is lost are the file's blocks and not its length.
    with open(path, "wb") as file:
        file.write(b"\1" * BLOCK * BLOCKS)
        file.flush()
        os.fsync(file.fileno())
    descriptor = os.open(path, os.O_WRONLY | os.O_DIRECT | flags)
    buffer = mmap.mmap(-1, BLOCK)
    try:
        for number in range(BLOCKS):
            buffer[:] = _block(number)
            os.pwrite(descriptor, buffer, number * BLOCK)
            written.append(number)
    except OSError:
        pass  # the power is off
    finally:
        os.close(descriptor)


def lost_after_cut(rig: Rig, flags: int, seed: int) -> tuple[int, int]:
    """Writes blocks with the open flags until the power is cut; returns how many were written, and how many lost."""
    rig.power_on(seed)
    path = rig.mount / "blocks"
    written: list[int] = []
    writer = threading.Thread(target=_write, args=(path, flags, written))
    writer.start()
    deadline = time.monotonic() + 20
    while len(written) < 200 and time.monotonic() < deadline:
        time.sleep(0.002)
    print("  " + rig.cut(), flush=True)
    writer.join()
    rig.power_off()
    rig.power_on(seed + 1)
    kept = path.read_bytes()
    lost = sum(kept[n * BLOCK : (n + 1) * BLOCK] != _block(n) for n in written)
    rig.power_off()
    return len(written), lost


def selftest(rig: Rig, seed: int) -> None:
    """Fails unless O_DSYNC loses nothing and plain writes lose something."""
    written, lost = lost_after_cut(rig, os.O_DSYNC, seed)
    print(f"rig: {written} blocks written with O_DSYNC, {lost} lost by the cut", flush=True)
    assert written >= 200 and lost == 0, "the rig loses what was synced"
    written, lost = lost_after_cut(rig, 0, seed + 2)
    print(f"rig: {written} blocks written without, {lost} lost by the cut", flush=True)
    assert written >= 200 and lost > 0, "the rig keeps what was not synced"
