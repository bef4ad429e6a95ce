"""What Spark's own settings and fewer columns make of the way from the spool to Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.benchmarks.measuring import Report, Timing
from lab.benchmarks.pipeline import fill_spool
from lab.benchmarks.workload import captured

pytestmark = pytest.mark.spark

ROWS = 1_000_000
ROUNDS, TURNS = 2, 3
SOCKET = {"spark.python.unix.domain.socket.enabled": "true"}
SETTINGS: dict[str, dict[str, str]] = {
    "default": {},
    "Unix socket": SOCKET,
    "Unix socket and pipelined": {**SOCKET, "spark.python.udf.pipelined.enabled": "true"},
}
METADATA = ("full", "minimal")


def seconds_of(settings: dict[str, str], spool: Path, folder: Path) -> dict[str, list[float]]:
    frames = {name: {"path": str(spool), "metadata": name} for name in METADATA}
    task = {"spark": settings, "frames": frames, "folder": str(folder), "times": TURNS, "rows": ROWS}
    done = subprocess.run(
        [sys.executable, "-m", "lab.benchmarks.stream_prepared", json.dumps(task)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_settings_of_spark_and_fewer_columns(report: Report, tmp_path: Path) -> None:
    fill_spool(captured(ROWS, 10), tmp_path / "spool")
    captured.cache_clear()
    seconds: dict[tuple[str, str], list[float]] = {}
    for turn in range(ROUNDS):  # settings take turns too: the machine may have other work
        for setting, chosen in SETTINGS.items():
            found = seconds_of(chosen, tmp_path / "spool", tmp_path / f"{setting} {turn}")
            for metadata, times in found.items():
                seconds.setdefault((setting, metadata), []).extend(times)
    first = Timing(tuple(seconds["default", "full"]))
    for (setting, metadata), times in seconds.items():
        timing = Timing(tuple(times))
        what = f"{setting}, metadata={metadata}"
        beside = f"{min(first.seconds) / min(timing.seconds):.2f} x default and full"
        report.add("spool -> Spark", what, timing.rate(ROWS), beside)
