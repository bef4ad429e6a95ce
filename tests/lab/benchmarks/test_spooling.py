"""Bytes to spool: the capture loop with its reading thread, on one core."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lab.benchmarks.measuring import REPEATS, Report, Timing, one_core, timed
from lab.benchmarks.pipeline import fill_spool, open_spool
from lab.benchmarks.workload import CapturedBytes, captured


@pytest.mark.parametrize(
    ("rows", "together", "durable"),
    [(200_000, 10, False), (200_000, 10, True), (100_000, 1, False), (200_000, 100_000, False)],
)
def test_bytes_become_segments(
    report: Report, rows: int, together: int, durable: bool, tmp_path: Path
) -> None:
    source, folder = captured(rows, together), tmp_path / "spool"

    with one_core():
        timing = Timing(tuple(seconds_to_fill(source, folder, durable) for _ in range(REPEATS)))
    spool = open_spool(folder)
    assert spool.manifest.row_count == rows
    spool.close()
    what = f"transactions of {together:,} rows{', synced to disk' if durable else ''}"
    report.add("bytes -> spool", what, timing.rate(rows), "one core")


def seconds_to_fill(source: CapturedBytes, folder: Path, durable: bool) -> float:
    """Return how long it takes until every row is in a new spool."""
    shutil.rmtree(folder, ignore_errors=True)
    return timed(lambda: fill_spool(source, folder, durable=durable))
