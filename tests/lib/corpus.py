"""The text that the judges carry: the GNU Collaborative International Dictionary of English (package dict-gcide)."""

import gzip
from pathlib import Path

SOURCE = "/usr/share/dictd/gcide.dict.dz"


def lines() -> list[bytes]:
    """The dictionary's lines that are not blank and valid UTF-8 without control characters.

    Tools that read lines drop empty ones, take a carriage return for an end of line, and decode UTF-8.
    """
    kept = []
    with gzip.open(SOURCE) as source:
        text_lines = source.read().split(b"\n")
    for line in text_lines:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            continue
        if not text.isspace() and text.replace("\t", " ").isprintable() and text:
            kept.append(line)
    return kept


class Corpus:
    """Records made of the dictionary: numbered lines, dealt to partitions in runs of uneven length."""

    def __init__(self, directory: Path, records: int, partitions: int = 8):
        source = lines()
        self.source_lines = len(source)
        self.records = records
        self.partitions = partitions
        self.by_partition: list[list[bytes]] = [[] for _ in range(partitions)]
        self.order: list[tuple[int, bytes]] = []
        for number in range(records):
            # Neighbours mostly go to the same partition, as text of one source would; 7 is no divisor of a batch.
            partition = (number // 7 * 5 + number % 3) % partitions
            record = b"%d %s" % (number, source[number % len(source)])
            self.by_partition[partition].append(record)
            self.order.append((partition, record))
        # The same records for tools that read a file: KEY <tab> VALUE, where the key selects the partition.
        self.keyed = directory / "keyed.txt"
        with open(self.keyed, "wb") as file:
            for partition, record in self.order:
                file.write(KEYS[partition] + b"\t" + record + b"\n")

    def check(self, got: list[list[bytes]], what: str) -> None:
        """Fails, naming the first difference, unless each partition holds exactly its records in order."""
        for partition, expected in enumerate(self.by_partition):
            if got[partition] == expected:
                continue
            pairs = zip(got[partition], expected, strict=False)
            at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(got[partition]), len(expected)))
            raise AssertionError(
                f"{what}: partition {partition} has {len(got[partition])} records instead of {len(expected)}, "
                f"the first difference is at {at}: {got[partition][at : at + 1]} instead of {expected[at : at + 1]}"
            )


def _murmur2(data: bytes) -> int:
    """Kafka's hash of a key (the default partitioner of Java, also offered by librdkafka and kafka-python)."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def _keys(partitions: int) -> list[bytes]:
    """For each partition a key that the default partitioner of Java sends there."""
    found: dict[int, bytes] = {}
    number = 0
    while len(found) < partitions:
        key = b"k%d" % number
        found.setdefault((_murmur2(key) & 0x7FFFFFFF) % partitions, key)
        number += 1
    return [found[partition] for partition in range(partitions)]


KEYS = _keys(8)
