"""Offsets by timestamp, and what Kafka's DumpLogSegments makes of the files of a stopped broker.

Five topics, one of each codec, hold the dictionary's lines with timestamps that mostly rise, over several segments.
The dump's every offset, position and CRC is compared with what was produced and with our own reading of the bytes.
"""

import argparse
import random
import re
import shutil
import struct
import time
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

import crc32c
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPartition

from foreign.context import Context
from foreign.matrix import CODECS
from lib import corpus
from lib.broker import PEERS
from lib.checks import run_all
from lib.settings import scratch
from lib.toolhost import ToolHost

# Old enough to lie in the past at the last record, young enough for retention.
FIRST_TIME = int(time.time() - 7200) * 1000


@dataclass
class Data:
    """What was produced to each topic: timestamps and values, by offset."""

    timestamps: dict[str, list[int]]
    values: dict[str, list[bytes]]
    dice: random.Random


def produce(c: Context, records: int, seed: int) -> Data:
    """Fills the topics; a segment is as small as Kafka allows, so that there are several."""
    data = Data({}, {}, random.Random(seed))
    lines = corpus.lines()
    for codec in CODECS:
        topic = f"segments-{codec}"
        c.create(topic, 1, segment_bytes=str(1 << 20))
        producer = Producer(
            {
                "bootstrap.servers": c.bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,
                "linger.ms": 5,
                "batch.size": 32_768,
                "queue.buffering.max.messages": records,
            }
        )
        times, values, offsets = [], [], []
        for number in range(records):
            times.append(FIRST_TIME + number * 10 + data.dice.randrange(-3000, 3000))
            values.append(b"%d %s" % (number, lines[data.dice.randrange(len(lines))]))
            producer.produce(topic, values[-1], partition=0, timestamp=times[-1], on_delivery=_booked(offsets))
            producer.poll(0)
        assert producer.flush(60) == 0 and offsets == list(range(records)), f"{topic}: not all in order"
        data.timestamps[topic], data.values[topic] = times, values
    return data


def _booked(offsets: list[int]):
    return lambda error, message: offsets.append(-1 if error else message.offset())


def _scan(timestamps: list[int], asked: int) -> int | None:
    """The first offset whose record is not older than asked for, by looking at each."""
    return next((offset for offset, timestamp in enumerate(timestamps) if timestamp >= asked), None)


def _questions(data: Data, topic: str, count: int) -> list[int]:
    last = max(data.timestamps[topic])
    edges = [FIRST_TIME - 10_000, last, last + 1]
    return edges + [data.dice.randrange(FIRST_TIME - 4000, last + 4000) for _ in range(count - len(edges))]


def offsets_by_timestamp_agree_with_a_scan(c: Context, data: Data) -> None:
    """1,000 questions through kafka-python, which also tells the timestamp of the record found."""
    asked = 0
    consumer = KafkaConsumer(bootstrap_servers=c.bootstrap)
    for topic, timestamps in data.timestamps.items():
        where = PythonPartition(topic, 0)
        for question in _questions(data, topic, 1000 // len(data.timestamps)):
            answer = consumer.offsets_for_times({where: question})[where]
            expected = _scan(timestamps, question)
            got = None if answer is None or answer.offset < 0 else answer.offset
            assert got == expected, f"{topic} at {question}: {answer} instead of {expected}"
            assert got is None or answer.timestamp == timestamps[got], f"{topic} at {question}: {answer}"
            asked += 1
    consumer.close()
    print(f"{asked} timestamps")


def other_clients_find_the_same_offsets(c: Context, data: Data) -> None:
    consumer = Consumer({"bootstrap.servers": c.bootstrap, "group.id": "unused"})
    for topic, timestamps in data.timestamps.items():
        for question in _questions(data, topic, 30):
            answer = consumer.offsets_for_times([TopicPartition(topic, 0, question)], timeout=30)[0]
            expected = _scan(timestamps, question)
            # librdkafka answers "the end" (-1) when there is no such record.
            assert answer.offset == (-1 if expected is None else expected), f"{topic} at {question}: {answer}"
        question = _questions(data, topic, 4)[3]
        expected = _scan(timestamps, question)
        out = c.kcat("-Q", "-t", f"{topic}:0:{question}").stdout.decode()
        assert f"offset {len(timestamps) if expected is None else expected}" in out, f"{question}: {out}"
        out = c.tool("get-offsets", "--topic", topic, "--time", str(question)).text.strip()
        assert out == f"{topic}:0:{'' if expected is None else expected}", f"{question}: {out}"
    consumer.close()


@dataclass
class Batch:
    """One batch as we read it from a segment, by the fixed places of its header."""

    base: int
    last: int
    position: int
    size: int
    crc: int
    max_timestamp: int


def _batches(log: Path) -> list[Batch]:
    bytes_ = log.read_bytes()
    found, position = [], 0
    while position < len(bytes_):
        base, length, _epoch, magic, crc, _attributes, last, _first, newest = struct.unpack_from(
            ">qiibIhiqq", bytes_, position
        )
        size = length + 12
        assert magic == 2 and position + size <= len(bytes_), f"{log} is not whole at {position}"
        assert crc32c.crc32c(bytes_[position + 21 : position + size]) == crc, f"{log}: wrong CRC at {position}"
        found.append(Batch(base, base + last, position, size, crc, newest))
        position += size
    return found


_BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*position: (\d+) \w+: (-?\d+) size: (\d+) magic: 2 "
    r"compresscodec: (\w+) crc: (\d+) isvalid: (\w+)"
)
_RECORD = re.compile(r"\| offset: (\d+) \w+: (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)")
_COMPLAINTS = re.compile(
    r"Mismatch|mismatch|out of order|Corrupt|corrupt|invalid|Exception|Found|not found|bytes after"
)


def the_dump_tool_agrees_on_every_offset_position_and_crc(c: Context, data: Data) -> None:
    """Runs on the files of a broker that is stopped."""
    for codec in CODECS:
        topic = f"segments-{codec}"
        directory = c.broker.partition_directory(topic, 0)
        logs = sorted(directory.glob("*.log"))
        assert len(logs) > 1, f"{topic} has one segment only: nothing rolled"
        offset, indexed = 0, 0
        for log in logs:
            assert int(log.stem) == offset, f"{log} should begin at {offset}"
            offset = _compare_log(c, log, codec, data.timestamps[topic], data.values[topic], offset)
            indexed += _compare_indexes(c, log)
        assert offset == len(data.values[topic]), f"{topic} ends at {offset}"
        assert indexed > 0, f"{topic}: no index has an entry"
        print(f"{topic}: {len(logs)} segments, {offset} records, {indexed} index entries")


def the_comparison_notices_damage(c: Context, data: Data) -> None:
    """The judges are judged: a flipped byte of a log and a wrong index entry must be found out."""
    topic = "segments-none"
    healthy = min(c.broker.partition_directory(topic, 0).glob("*.log"))
    for suffix, place in ((".log", 1000), (".index", 8 * 3 + 7), (".timeindex", 12 * 3 + 7)):
        copy = c.directory / f"damage{suffix}" / healthy.name
        shutil.rmtree(copy.parent, ignore_errors=True)
        copy.parent.mkdir()
        for kind in (".log", ".index", ".timeindex"):
            shutil.copy(healthy.with_suffix(kind), copy.with_suffix(kind))
        with open(copy.with_suffix(suffix), "r+b") as file:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 0x10]))
        if suffix == ".log":
            lines = _dump(c, "--files", str(copy))
            assert any("isvalid: false" in line for line in lines), "the tool reads over a flipped byte"
            continue
        try:
            _compare_indexes(c, copy)
        except (AssertionError, KeyError):
            continue
        raise AssertionError(f"a wrong entry of {suffix} was not noticed")


def _dump(c: Context, *arguments: str) -> list[str]:
    result = c.host.run("org.apache.kafka.tools.DumpLogSegments", *arguments)
    assert "Exception" not in result.err, result.err
    return result.text.splitlines()


def _compare_log(c: Context, log: Path, codec: str, times: list[int], values: list[bytes], offset: int) -> int:
    ours = iter(_batches(log))
    for line in _dump(c, "--deep-iteration", "--files", str(log)):
        if match := _BATCH.search(line):
            batch = next(ours)
            base, last, count, position, newest, size = map(int, match.groups()[:6])
            told = (base, last, position, size, newest, int(match[8]))
            assert told == (batch.base, batch.last, batch.position, batch.size, batch.max_timestamp, batch.crc), line
            assert base == offset and count == last - base + 1, f"{log}: {line}"
            # librdkafka sends a batch that does not shrink as it is.
            assert match[7] in (codec, "none") and match[9] == "true", f"{log}: {line}"
            assert newest == max(times[base : last + 1]), f"{log}: {line}"
        elif match := _RECORD.search(line):
            at, timestamp, key_size, value_size = map(int, match.groups())
            assert at == offset and timestamp == times[at], f"{log}: {line} instead of {offset}"
            assert key_size == -1 and value_size == len(values[at]), f"{log}: {line}"
            offset += 1
        else:
            assert not _COMPLAINTS.search(line), f"{log}: {line}"
    assert next(ours, None) is None, f"{log}: the dump ends early"
    return offset


def _compare_indexes(c: Context, log: Path) -> int:
    """The tool's own checks of an index against its log, and ours of what it shows; returns the entries seen."""
    batches = _batches(log)
    positions = {batch.position: batch for batch in batches}
    entries = 0
    for kind, form in (("index", r"offset: (\d+) position: (\d+)"), ("timeindex", r"timestamp: (-?\d+) offset: (\d+)")):
        path = log.with_suffix(f".{kind}")
        assert path.exists(), f"{path} is missing"
        _assert_quiet(path, _dump(c, "--verify-index-only", "--files", str(path)))
        sanity = _dump(c, "--index-sanity-check", "--files", str(path))
        assert any("passed sanity check" in line for line in sanity), f"{path}: {sanity}"
        lines = _dump(c, "--files", str(path))
        _assert_quiet(path, lines)
        before = (-1, -1)
        for first, second in (map(int, match.groups()) for line in lines if (match := re.search(form, line))):
            if kind == "index" and (first, second) != (int(log.stem), 0):
                assert positions[second].last == first, f"{path}: {first} at {second}"
            elif kind == "timeindex" and first >= 0:
                # The newest record up to some batch: the batch that holds the offset has that timestamp.
                batch = batches[bisect_right(batches, second, key=lambda b: b.base) - 1]
                assert batch.max_timestamp == first, f"{path}: {first} at offset {second}"
            assert first >= before[0] and second >= before[1], f"{path} is not in order: {before}, {(first, second)}"
            before = (first, second)
            entries += 1
    return entries


def _assert_quiet(path: Path, lines: list[str]) -> None:
    bad = [line for line in lines if _COMPLAINTS.search(line)]
    assert not bad, f"{path}: {bad[:5]}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=PEERS, default="millstream")
    parser.add_argument("--long", action="store_true", help="300,000 records a topic instead of 100,000")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with (
        scratch("segments") as directory,
        ToolHost(directory / "tools") as host,
        PEERS[options.peer](directory / "broker") as broker,
    ):
        broker.start()
        c = Context(broker, host, directory)
        data = produce(c, 300_000 if options.long else 100_000, options.seed)
        live = [offsets_by_timestamp_agree_with_a_scan, other_clients_find_the_same_offsets]
        stopped = [the_dump_tool_agrees_on_every_offset_position_and_crc, the_comparison_notices_damage]
        run_all(live, c, data)
        broker.stop()
        run_all(stopped, c, data)
        print("again after kill -9 and a clean stop")
        broker.start()
        broker.kill()
        broker.start()
        run_all(live, c, data)
        broker.stop()
        run_all(stopped, c, data)


if __name__ == "__main__":
    main()
