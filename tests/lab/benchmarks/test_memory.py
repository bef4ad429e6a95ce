"""Memory of the process that captures, over a stream of ten million rows."""

from __future__ import annotations

import json
import subprocess
import sys

from lab.benchmarks.measuring import Report

TOTAL = 10_000_000
MILESTONES = (1_000_000, 5_000_000, TOTAL)


def test_memory_stays_flat_over_ten_million_rows(report: Report) -> None:
    command = [sys.executable, "-m", "lab.benchmarks.endless_stream", str(TOTAL), *map(str, MILESTONES)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    told = [json.loads(line) for line in output.splitlines()]
    assert [line["rows"] for line in told] == list(MILESTONES)
    assert told[-1]["rss"] < 1.2 * told[0]["rss"]
    sizes = ", ".join(f"{line['rows'] // 10**6} M: {line['rss']:.0f} MiB" for line in told)
    beside = f"peak {told[-1]['peak']:.0f} MiB, {TOTAL / told[-1]['seconds'] / 1000:.0f} k/s"
    report.add("memory", "transactions of 10 rows, RSS after", sizes, beside)
