"""The cases of the comparison and their way-points: what is loaded how, and how much better it must be."""

from dataclasses import dataclass, field

# What a figure is compared with.
KAFKA, BARE = "kafka", "bare"
# Which figure: work per CPU second of the server, or per second.
PER_CPU, RATE = "per CPU second", "per second"


@dataclass(frozen=True)
class WayPoint:
    """Millstream must reach at least `at_least` times the figure `measure` of `against`."""

    against: str
    measure: str
    at_least: float


@dataclass(frozen=True)
class Case:
    """A load. Reads are of what a fill of `fill_requests` produced before."""

    name: str
    title: str
    connections: int
    partitions: int
    way_points: tuple[WayPoint, ...]
    durability: str = "os"
    in_flight: int = 1
    records: int = 1
    record_bytes: int = 100
    fill_requests: int = 0
    # Configs of the topic at both brokers: the same sizes, and nothing is deleted by age or size.
    configs: dict[str, str] = field(
        default_factory=lambda: {"segment.bytes": str(1 << 30), "retention.ms": "-1", "retention.bytes": "-1"}
    )

    @property
    def reads(self) -> bool:
        return self.fill_requests > 0

    def judged_by(self, measure: str) -> bool:
        return any(point.measure == measure for point in self.way_points)

    @property
    def unit(self) -> str:
        return "MB" if self.reads else "records"

    def configs_for(self, broker: str) -> dict[str, str]:
        """The topic's configs, with equal durability: Kafka's default is class `os`, `flush.messages=1` is `disk`."""
        if broker == "millstream":
            return self.configs | {"millstream.durability": self.durability}
        return self.configs | ({"flush.messages": "1"} if self.durability == "disk" else {})


# 512 records of 100 B make a batch of 56 KB.
BIG_BATCH = 512

CASES = [
    Case(
        name="batches-1",
        title="56 KB batches of 100 B records, 1 partition, 1 connection x 5 in flight",
        connections=1,
        in_flight=5,
        partitions=1,
        records=BIG_BATCH,
        way_points=(WayPoint(KAFKA, PER_CPU, 3.5),),
    ),
    Case(
        name="batches-16",
        title="56 KB batches of 100 B records, 16 partitions, 4 x 5",
        connections=4,
        in_flight=5,
        partitions=16,
        records=BIG_BATCH,
        way_points=(WayPoint(KAFKA, PER_CPU, 3.5),),
    ),
    Case(
        name="single",
        title="one 100 B record a request, 1 partition, 64 x 1",
        connections=64,
        partitions=1,
        way_points=(WayPoint(KAFKA, PER_CPU, 2.0), WayPoint(BARE, PER_CPU, 0.9)),
    ),
    Case(
        name="pipelined",
        title="one 100 B record a request, 100 partitions, 8 x 32",
        connections=8,
        in_flight=32,
        partitions=100,
        way_points=(WayPoint(KAFKA, PER_CPU, 15.0),),
    ),
    Case(
        name="read",
        title="hot read of 115 MB, 4 partitions, 4 x 1",
        connections=4,
        in_flight=5,
        partitions=4,
        records=BIG_BATCH,
        # Within the memory that a default broker keeps the newest records in.
        fill_requests=2000,
        way_points=(WayPoint(KAFKA, PER_CPU, 1.0), WayPoint(BARE, PER_CPU, 0.8)),
    ),
    Case(
        name="disk",
        title="one 1 KiB record a request, class disk, 100 partitions, 64 x 1",
        connections=64,
        partitions=100,
        record_bytes=1024,
        durability="disk",
        way_points=(WayPoint(KAFKA, RATE, 5.0),),
    ),
]


def order(rounds: int) -> list[list[str]]:
    """What runs in each round. Every round has both brokers, in turns the one and the other first, so that a drift
    of the machine favours neither; every second one has the bare server as well."""
    pair = ["millstream", KAFKA]
    return [(pair if number % 2 == 0 else pair[::-1]) + [BARE] * (number % 2 == 0) for number in range(rounds)]
