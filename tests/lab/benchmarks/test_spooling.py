"""Bytes to spool: the capture loop with its reading thread, on one core."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lab.benchmarks.measuring import REPEATS, Report, Timing, one_core, timed
from lab.benchmarks.pipeline import fill_spool, open_spool
from lab.benchmarks.shapes import null_rows, wide_columns, wide_rows
from lab.benchmarks.workload import COLUMNS, CapturedBytes, captured, captured_from


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


def test_other_tables_become_segments_as_quickly_per_byte(report: Report, tmp_path: Path) -> None:
    sources = {
        "ten columns": captured(200_000, 10),
        "a hundred columns": captured_from(wide_rows(20_000), wide_columns(), 20_000, 10),
        "ten columns, all NULL": captured_from(null_rows(200_000), COLUMNS, 200_000, 10),
    }
    folder = tmp_path / "spool"
    best = dict.fromkeys(sources, float("inf"))
    with one_core():
        for _ in range(REPEATS):  # in turn: a noisy moment hits all of them
            for name, source in sources.items():
                best[name] = min(best[name], seconds_to_fill(source, folder, durable=True))
    rates = {name: sources[name].size_bytes / seconds / 1e6 for name, seconds in best.items()}
    for name, rate in rates.items():
        beside = f"{rate / rates['ten columns']:.1f} x"
        report.add("bytes -> spool", f"{name}, synced, in bytes", f"{rate:.0f} MB/s", beside)
