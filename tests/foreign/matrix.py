"""Every client reads what every client wrote, in every codec, also after a clean restart and after kill -9.

Normal run: 100,000 records a cell and a covering design in which each pair of (producer, consumer), (producer,
codec) and (consumer, codec) occurs. `--long`: all cells, 1,000,000 records each.
"""

import argparse
import time

from confluent_kafka.admin import AdminClient, NewTopic

from foreign.clients import all_clients
from lib.broker import PEERS
from lib.corpus import Corpus
from lib.settings import scratch
from lib.toolhost import ToolHost

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def consumers_of(producer: int, codec: int, clients: int, full: bool) -> list[int]:
    """Which clients read the topic that a producer wrote in a codec."""
    return list(range(clients)) if full else [(producer + codec) % clients]


def create_topics(bootstrap: str, names: list[str], partitions: int) -> None:
    """Creates the topics and waits until the broker says that they exist."""
    # The client is kept until all have answered: its end would cancel the requests.
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    created = admin.create_topics([NewTopic(name, partitions, 1) for name in names], operation_timeout=30)
    for future in created.values():
        future.result(60)


def timed(label: str, action, *arguments):
    """Runs an action and prints what it was and the seconds it took."""
    began = time.monotonic()
    result = action(*arguments)
    print(f"{time.monotonic() - began:7.2f} s  {label}", flush=True)
    return result


def run(peer: str, full: bool, records: int) -> None:
    """All cells against one broker of class `disk`."""
    with scratch("matrix") as directory, ToolHost(directory / "tools") as host:
        corpus = timed("corpus", Corpus, directory, records)
        print(
            f"corpus: {corpus.source_lines} lines of the dictionary, "
            f"{records} records over {corpus.partitions} partitions"
        )
        with PEERS[peer](directory / "broker") as broker:
            print(f"{broker.start():7.2f} s  {peer} ready", flush=True)
            clients = all_clients(broker.bootstrap, host)
            topics = {
                (p, c): f"{clients[p].name}-{codec}" for p in range(len(clients)) for c, codec in enumerate(CODECS)
            }
            create_topics(broker.bootstrap, list(topics.values()), corpus.partitions)
            cells = 0
            for (producer, codec), topic in topics.items():
                timed(
                    f"{clients[producer].name} produces {CODECS[codec]}",
                    clients[producer].produce,
                    topic,
                    CODECS[codec],
                    corpus,
                )
                for consumer in consumers_of(producer, codec, len(clients), full):
                    what = f"{clients[consumer].name} consumes {topic}"
                    corpus.check(timed(what, clients[consumer].consume, topic, corpus), what)
                    cells += 1
            reader = clients[1]
            for how, end in (("a clean restart", broker.stop), ("kill -9", broker.kill)):
                end()
                print(f"{broker.start():7.2f} s  ready after {how}", flush=True)
                for topic in topics.values():
                    what = f"{reader.name} consumes {topic} after {how}"
                    corpus.check(timed(what, reader.consume, topic, corpus), what)
            broker.stop()
            print(
                f"matrix: {cells} cells of {records} records, "
                f"{len(topics)} topics read again after each restart: all identical"
            )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=PEERS, default="millstream")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--records", type=int, help="records a cell, instead of 100,000 or 1,000,000")
    options = parser.parse_args()
    run(options.peer, options.long, options.records or (1_000_000 if options.long else 100_000))


if __name__ == "__main__":
    main()
