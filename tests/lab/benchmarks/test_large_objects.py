"""Contents of large objects a second over both transports, and how long other tables' rows wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.benchmarks.measuring import Report
from lab.benchmarks.processes import reported_by
from odbc_driver.build import build_drivers

MEBIBYTE = 1 << 20
MOST_MEBIBYTES = 512


def told_of(folder: Path, count: int, size: int, transport: str) -> dict[str, Any]:
    driver = [str(build_drivers().narrow)] if transport == "odbc" else []
    (told,) = reported_by("large_object_run", folder, count, size, transport, *driver)
    return told


@pytest.mark.parametrize("transport", ["sqli", "odbc"])
def test_contents_over_a_transport(report: Report, tmp_path: Path, transport: str) -> None:
    for count, size, what in ((2000, 1024, "2,000 of 1 KiB"), (1000, MEBIBYTE, "1,000 of 1 MiB")):
        told = told_of(tmp_path / str(size), count, size, transport)
        assert (told["read"], told["read_bytes"]) == (count, count * size)
        assert told["peak"] < MOST_MEBIBYTES
        rate = (
            f"{count / told['seconds']:.0f} contents/s, {count * size / told['seconds'] / 1e6:.0f} MB/s"
        )
        waits = f"a row behind them after {told['behind']:.2f} s ({told['alone']:.2f} s alone)"
        more = f"{waits}; peak {told['peak']:.0f} MiB"
        report.add("large objects", f"{what} in one transaction, {transport}", rate, more)
