"""Bytes to spool: the capture loop with its reading thread, on one core."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.measuring import Report, one_core, repeated
from benchmarks.pipeline import fill_spool, open_spool
from benchmarks.workload import captured


@pytest.mark.parametrize(
    ("rows", "together", "durable"),
    [(200_000, 10, False), (200_000, 10, True), (100_000, 1, False), (200_000, 100_000, False)],
)
def test_bytes_become_segments(
    report: Report, rows: int, together: int, durable: bool, tmp_path: Path
) -> None:
    source, folder = captured(rows, together), tmp_path / "spool"

    def fill() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        fill_spool(source, folder, durable=durable)

    with one_core():
        timing = repeated(fill)
    spool = open_spool(folder)
    assert spool.rows == rows
    spool.close()
    what = f"transactions of {together:,} rows{', synced to disk' if durable else ''}"
    report.add("bytes -> spool", what, timing.rate(rows), "one core")
