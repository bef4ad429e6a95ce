"""Memory of the process that captures, over one transaction of a gibibyte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.benchmarks.measuring import Report
from lab.benchmarks.processes import reported_by

MEBIBYTES = 1024
LIMIT_MEBIBYTES = 128  # the default of maxTransactionMemoryBytes
MOST_MEBIBYTES = 512


def told_of(folder: Path, *more: str) -> dict[str, Any]:
    (told,) = reported_by("one_transaction", folder, MEBIBYTES, LIMIT_MEBIBYTES, *more)
    return told


def test_a_gibibyte_in_one_transaction_passes_in_half_of_that(report: Report, tmp_path: Path) -> None:
    told = told_of(tmp_path)
    assert (told["transactions"], told["spilled_transactions"]) == (1, 1)
    assert told["peak"] < MOST_MEBIBYTES
    rate = f"{told['rows'] / told['seconds'] / 1000:.0f} k rows/s, peak {told['peak']:.0f} MiB"
    put_aside = f"{told['spilled_bytes'] / (1 << 20):.0f} MiB spilled on the way"
    report.add("memory", f"one transaction of 1 GiB, {told['rows']:,} rows", rate, put_aside)


def test_a_transaction_that_never_ends_is_bounded_too(report: Report, tmp_path: Path) -> None:
    told = told_of(tmp_path, "--never-ends")
    assert (told["transactions"], told["open_transactions"]) == (0, 1)
    assert told["open_bytes_in_memory"] <= LIMIT_MEBIBYTES << 20
    assert told["peak"] < MOST_MEBIBYTES
    rate = f"{told['rows'] / told['seconds'] / 1000:.0f} k rows/s, peak {told['peak']:.0f} MiB"
    put_aside = f"{told['open_bytes_spilled'] / (1 << 20):.0f} MiB on the disk"
    report.add("memory", "one transaction of 1 GiB that never ends", rate, put_aside)
