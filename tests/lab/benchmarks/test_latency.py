"""How old a committed row is when the sink has it, at 50 transactions a second of ten rows."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from connector.jvm.java_reader import has_javac
from lab.benchmarks.emulated_source import Plan
from lab.benchmarks.measuring import Report, percentiles
from lab.benchmarks.processes import answer_of, ask, emulated_source, program
from lab.benchmarks.watch_rows import WAYS

pytestmark = pytest.mark.spark

PER_SECOND = 50
WARM_UP_SECONDS, MEASURED_SECONDS = 8, 20
FIRST, LAST = next(iter(WAYS)), next(reversed(WAYS))
DEFAULT: dict[str, str] = {}
RECOMMENDED = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


@dataclass(frozen=True)
class Watched:
    """What a query took while it was watched.

    Attributes:
        ages: seconds, of each transaction.
        cpu: seconds, of the JVM.
    """

    ages: list[float]
    cpu: float

    @property
    def middle(self) -> float:
        return sorted(self.ages)[len(self.ages) // 2]


def watched(settings: dict[str, str], folder: Path, way: str, *, wait_to_fill: bool = False) -> Watched:
    """Stream steady writing through a query in its own process."""
    count = PER_SECOND * (WARM_UP_SECONDS + MEASURED_SECONDS)
    plan = Plan(transactions=count, per_second=PER_SECOND, wait_to_fill=wait_to_fill)
    with emulated_source(plan) as source:
        task = {
            "way": way,
            "options": source.options(),
            "spark": settings,
            "folder": str(folder),
            "transactions": count,
        }
        with program("watch_rows", json.dumps(task), errors=subprocess.DEVNULL) as watching:
            assert answer_of(watching) == "ready"
            source.start_writing()
            time.sleep(WARM_UP_SECONDS)
            ask(watching)
            source.wait_until_written()
            ask(watching)
            found = answer_of(watching)
    assert len(found["ages"]) == count
    return Watched(found["ages"][PER_SECOND * WARM_UP_SECONDS :], found["cpu"])


@pytest.mark.parametrize("manner", ["answers at once", "waits until 256 records or 1 s"])
@pytest.mark.parametrize("settings", ["default", "recommended"])
def test_rows_are_seen_soon_after_their_commit(
    report: Report, settings: str, manner: str, tmp_path: Path
) -> None:
    chosen = RECOMMENDED if settings == "recommended" else DEFAULT
    found = watched(chosen, tmp_path, FIRST, wait_to_fill=manner.startswith("waits"))
    what = f"{settings} Spark settings, a read {manner}"
    report.add("commit -> row seen", what, percentiles(found.ages), f"{PER_SECOND} transactions/s")


@pytest.mark.skipif(not has_javac(), reason="there is no javac")
def test_each_way_into_a_sink_beside_the_others(report: Report, tmp_path: Path) -> None:
    """One after the other in one run, with the recommended settings and default options."""
    found = {way: watched(RECOMMENDED, tmp_path / str(number), way) for number, way in enumerate(WAYS)}
    for way, one in found.items():
        times = found[FIRST].middle / one.middle
        cpu = f"{one.cpu / MEASURED_SECONDS:.2f} cores in the JVM"
        report.add("commit -> row seen", way, percentiles(one.ages), f"{times:.1f} x; {cpu}")
    assert found[LAST].middle < found[FIRST].middle
