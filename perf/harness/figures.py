"""What the load tool reported, reduced to medians, ratios and whether the way-points are met."""

import json
import statistics
from dataclasses import dataclass

from harness.cases import BARE, KAFKA, PER_CPU, RATE, Case, WayPoint

# Warm-up: at least and at most so many slices, and the gain below which a server has settled.
SLICES_MIN, SLICES_MAX = 3, 16
GAIN = 1.05
# CPU seconds that a server must have had in its warm-up: a JVM compiles for long, on the core that it serves with, and
# on a busy machine it may seem to have settled before it got that far.
WARM_UP_CPU_SECONDS = {"millstream": 0.0, KAFKA: 8.0}

# The kernel counts a process's CPU time in ticks: where CPU seconds are judged, a few say nothing.
CPU_SECONDS_TICK = 0.01
CPU_SECONDS_MIN = 10 * CPU_SECONDS_TICK


@dataclass(frozen=True)
class Run:
    """One measured run of one server. `amount` is in the case's unit."""

    round: int
    amount: float
    requests: int
    bytes: int
    seconds: float
    cpu: float
    load_cpu: float
    p50_us: float
    p99_us: float
    checked: str

    def figure(self, measure: str) -> float:
        return self.amount / (self.cpu if measure == PER_CPU else self.seconds)

    @property
    def cpu_us_per_request(self) -> float:
        return self.cpu / self.requests * 1e6


class Unusable(Exception):
    """A run from which no figure follows: a broker or the machine stood still."""


class Malformed(Exception):
    """Not what the load tool prints."""


def parse(text: str, case: Case, round_number: int) -> Run:
    """Reads the JSON line of `millstream-perf`."""
    try:
        found = json.loads(text)
        run = Run(
            round=round_number,
            amount=found["bytes"] / 1e6 if case.reads else found["records"],
            requests=found["requests"],
            bytes=found["bytes"],
            seconds=found["seconds"],
            cpu=found["server_cpu_s"] or 0.0,
            load_cpu=found["load_cpu_s"],
            p50_us=found["p50_us"],
            p99_us=found["p99_us"],
            checked=found["checked"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Malformed(f"the load printed {text!r}: {error!r}") from error
    cpu_min = CPU_SECONDS_MIN if case.judged_by(PER_CPU) else CPU_SECONDS_TICK
    if run.cpu < cpu_min or run.amount <= 0 or run.seconds <= 0:
        raise Unusable(f"{run.amount:.0f} {case.unit}, {run.cpu:.2f} s of CPU in {run.seconds:.2f} s")
    return run


def settled(slices: list[float], missing_cpu: float = 0.0) -> bool:
    """Whether a warm-up has done its work: the last two slices were no better than the best one before. Two, because
    on a busy machine one may be worse by chance. `missing_cpu` is what it has yet to use in any case."""
    if len(slices) >= SLICES_MAX:
        return True
    if len(slices) < SLICES_MIN or missing_cpu > 0:
        return False
    return max(slices[-2:]) <= GAIN * max(slices[:-2])


@dataclass(frozen=True)
class Verdict:
    """A way-point with what was found."""

    point: WayPoint
    ratio: float

    @property
    def met(self) -> bool:
        return self.ratio >= self.point.at_least


class Results:
    """The runs of one case, by server."""

    def __init__(self, case: Case):
        self.case = case
        self.runs: dict[str, list[Run]] = {"millstream": [], KAFKA: [], BARE: []}

    def median(self, server: str, measure: str) -> float:
        return statistics.median(run.figure(measure) for run in self.runs[server])

    def ratio(self, against: str, measure: str) -> float:
        """Median over the rounds of Millstream's figure by the other's of the same round: neighbours in time see
        the same machine."""
        ours = {run.round: run.figure(measure) for run in self.runs["millstream"]}
        return statistics.median(ours[run.round] / run.figure(measure) for run in self.runs[against])

    def verdicts(self) -> list[Verdict]:
        return [Verdict(point, self.ratio(point.against, point.measure)) for point in self.case.way_points]


def quantity(value: float) -> str:
    """Three digits, with k or M."""
    for limit, divisor, suffix in ((1e6, 1e6, " M"), (1e4, 1e3, " k")):
        if value >= limit:
            return f"{value / divisor:.3g}{suffix}" if value / divisor < 1000 else f"{value / divisor:.0f}{suffix}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def brief(run: Run, case: Case) -> str:
    """A run in a line, for who watches."""
    return (
        f"{quantity(run.figure(PER_CPU))} {case.unit} per CPU second, {quantity(run.figure(RATE))} per second, "
        f"p50 {run.p50_us:.0f} us; checked: {run.checked}"
    )


def judged_table(results: list[Results]) -> str:
    """A line per way-point: medians, the ratio, what it must be."""
    lines = [
        "| Case | Figure | Millstream | Against | Its median | Ratio | Way-point | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        for verdict in result.verdicts():
            point = verdict.point
            against = "Kafka" if point.against == KAFKA else "bare sends" if result.case.reads else "echo"
            ours, theirs = (quantity(result.median(who, point.measure)) for who in ("millstream", point.against))
            lines.append(
                f"| {result.case.name} | {result.case.unit} {point.measure} | {ours} | {against} | {theirs} "
                f"| {verdict.ratio:.2f} | {point.at_least:g} | {'met' if verdict.met else 'MISSED'} |"
            )
    return "\n".join(lines)


def detail_table(results: list[Results]) -> str:
    """A line per case and server: everything that was measured, as medians, and the spread."""
    lines = [
        "| Case | Server | Per second | Per CPU second (least to most) | CPU us per request | p50 / p99 us | Busy, load |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        for server, runs in result.runs.items():
            if not runs:
                continue

            def middle(value, runs=runs):
                return statistics.median(map(value, runs))

            per_cpu = sorted(run.figure(PER_CPU) for run in runs)
            name = ("bare sends" if result.case.reads else "echo") if server == BARE else server.capitalize()
            lines.append(
                f"| {result.case.name} | {name} | {quantity(result.median(server, RATE))} {result.case.unit} "
                f"| {quantity(result.median(server, PER_CPU))} ({quantity(per_cpu[0])} to {quantity(per_cpu[-1])}) "
                f"| {middle(lambda run: run.cpu_us_per_request):.3g} "
                f"| {middle(lambda run: run.p50_us):.0f} / {middle(lambda run: run.p99_us):.0f} "
                f"| {middle(lambda run: run.cpu / run.seconds):.0%}, "
                f"{middle(lambda run: run.load_cpu / run.seconds):.0%} |"
            )
    return "\n".join(lines)
