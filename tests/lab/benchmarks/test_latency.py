"""How old a committed row is when foreachBatch has it in its hands, at 50 transactions a second."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lab.benchmarks.emulated_source import Plan
from lab.benchmarks.measuring import Report, percentiles
from lab.benchmarks.processes import emulated_source

pytestmark = pytest.mark.spark

PER_SECOND = 50
WARM_UP_SECONDS, MEASURED_SECONDS = 8, 20
DEFAULT: dict[str, str] = {}
RECOMMENDED = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def ages_of_rows(settings: dict[str, str], wait_to_fill: bool, checkpoint: Path) -> list[float]:
    """Stream steady writing through a query in its own process; return every transaction's age."""
    count = PER_SECOND * (WARM_UP_SECONDS + MEASURED_SECONDS)
    plan = Plan(transactions=count, per_second=PER_SECOND, wait_to_fill=wait_to_fill)
    with emulated_source(plan) as source:
        task = {
            "options": source.options(),
            "spark": settings,
            "checkpoint": str(checkpoint),
            "transactions": count,
        }
        command = [sys.executable, "-m", "lab.benchmarks.watch_rows", json.dumps(task)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as watching:
            assert watching.stdout is not None
            assert watching.stdout.readline() == "ready\n"
            source.start_writing()
            ages: list[float] = json.loads(watching.stdout.readline())
    assert len(ages) == count
    return ages[PER_SECOND * WARM_UP_SECONDS :]


@pytest.mark.parametrize("manner", ["answers at once", "waits until 256 records or 1 s"])
@pytest.mark.parametrize("settings", ["default", "recommended"])
def test_rows_are_seen_soon_after_their_commit(
    report: Report, settings: str, manner: str, tmp_path: Path
) -> None:
    chosen = RECOMMENDED if settings == "recommended" else DEFAULT
    ages = ages_of_rows(chosen, manner.startswith("waits"), tmp_path / "checkpoint")
    what = f"{settings} Spark settings, a read {manner}"
    report.add("commit -> row seen", what, percentiles(ages), f"{PER_SECOND} transactions/s")
