"""Runs a list of checks against one broker, prints each with its seconds, and fails at the end if any did."""

import time
import traceback


def run_all(checks: list, *arguments) -> None:
    """Calls every check with the arguments; one that fails does not keep the next from running."""
    failed = []
    for check in checks:
        began = time.monotonic()
        name = check.__name__.replace("_", " ")
        try:
            check(*arguments)
            verdict = "ok  "
        except Exception:  # noqa: BLE001 - printed, counted and raised below
            traceback.print_exc()
            failed.append(name)
            verdict = "FAIL"
        print(f"{time.monotonic() - began:7.2f} s  {verdict}  {name}", flush=True)
    if failed:
        raise SystemExit(f"{len(failed)} of {len(checks)} checks failed: {', '.join(failed)}")


def eventually(what: str, condition, seconds: float = 15) -> None:
    """Waits until a condition holds: admin changes reach other connections a little later in any Kafka."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
