"""Administration, produce settings and what records carry, against one broker: `python -m foreign.checks`."""

import argparse

from foreign import admin, configs, roundtrip
from foreign.context import Context
from lib.broker import PEERS
from lib.checks import run_all
from lib.settings import scratch
from lib.toolhost import ToolHost


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=PEERS, default="millstream")
    parser.add_argument("--long", action="store_true", help="the same: these checks have one size")
    parser.add_argument("--match", default="", help="only the checks whose name contains this")
    options = parser.parse_args()
    every = admin.CHECKS + configs.CHECKS + roundtrip.CHECKS
    checks = [check for check in every if options.match in check.__name__]
    assert checks, f"no check is named like {options.match!r}"
    with (
        scratch("checks") as directory,
        ToolHost(directory / "tools") as host,
        PEERS[options.peer](directory / "broker") as broker,
    ):
        broker.start()
        run_all(checks, Context(broker, host, directory))
        broker.stop()


if __name__ == "__main__":
    main()
