"""Clocks and the table of results."""

from __future__ import annotations

import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

REPEATS = 5


@dataclass(frozen=True)
class Timing:
    """How long the same work took, several times."""

    seconds: tuple[float, ...]

    def rate(self, amount: int) -> str:
        """Return amount per second, of the best run and of the median."""
        best, median = amount / min(self.seconds), amount / statistics.median(self.seconds)
        return f"{_short(best)}/s ({_short(median)}/s)"

    def times_faster_than(self, other: Timing) -> str:
        """Return the ratio of the best runs."""
        return f"{min(other.seconds) / min(self.seconds):.1f} x"


def median_and_spread(rates: Sequence[float]) -> str:
    """Return the median of rates per second, with the lowest and the highest."""
    middle, low, high = (_short(rate) for rate in (statistics.median(rates), min(rates), max(rates)))
    return f"median {middle}/s ({low} to {high})"


def busy_seconds(spans: Iterable[tuple[float, float]]) -> float:
    """Return for how long at least one of several pieces of work was going on.

    Args:
        spans: when each of them began and ended; they may overlap.
    """
    busy, covered_until = 0.0, -math.inf
    for begun, ended in sorted(spans):
        busy += max(0.0, ended - max(begun, covered_until))
        covered_until = max(covered_until, ended)
    return busy


def timed(work: Callable[[], object]) -> float:
    """Return how long something takes, in seconds."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def repeated(work: Callable[[], object], times: int = REPEATS) -> Timing:
    """Time the same work several times."""
    return Timing(tuple(timed(work) for _ in range(times)))


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this thread, and the threads that it starts, on one core."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def percentiles(seconds: Sequence[float]) -> str:
    """Return p50 and p95."""
    ordered = sorted(seconds)
    middle, high = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
    return f"p50 {middle * 1000:.0f} ms, p95 {high * 1000:.0f} ms"


@dataclass
class Report:
    """One table of everything that was measured, in Markdown."""

    lines: list[tuple[str, str, str, str]] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)

    def add(self, stage: str, what: str, result: str, beside: str = "") -> None:
        """Add a line."""
        self.lines.append((stage, what, result, beside))

    def text(self) -> str:
        """Return the table and the machine it was measured on."""
        table = [("Stage", "What", "Best (median)", "Beside it"), *self.lines]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        drawn = [_line([cell.ljust(w) for cell, w in zip(line, widths, strict=True)]) for line in table]
        drawn.insert(1, _line(["-" * width for width in widths]))
        minutes = (time.monotonic() - self.begun) / 60
        run = f"Measured in one run of {minutes:.0f} minutes, {time.strftime('%Y-%m-%d')}: {machine()}."
        return "\n".join([*drawn, "", run])


def machine() -> str:
    """Describe what this runs on."""
    import pyarrow
    import pyspark

    load = os.getloadavg()[2]  # of the last 15 minutes: this run's own, and that of others
    return (
        f"{os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()},"
        f" PySpark {pyspark.__version__}, PyArrow {pyarrow.__version__}"
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    return f"{value / 1e3:.0f} k" if value >= 1e3 else f"{value:.0f}"
