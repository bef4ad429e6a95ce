"""Memory of the process that captures, over a stream of ten million rows."""

from __future__ import annotations

from lab.benchmarks.measuring import Report
from lab.benchmarks.processes import reported_by

TOTAL = 10_000_000
MILESTONES = (1_000_000, 5_000_000, TOTAL)


def test_memory_stays_flat_over_ten_million_rows(report: Report) -> None:
    told = reported_by("endless_stream", TOTAL, *MILESTONES)
    assert [line["rows"] for line in told] == list(MILESTONES)
    assert told[-1]["rss"] < 1.2 * told[0]["rss"]
    sizes = ", ".join(f"{line['rows'] // 10**6} M: {line['rss']:.0f} MiB" for line in told)
    beside = f"peak {told[-1]['peak']:.0f} MiB, {TOTAL / told[-1]['seconds'] / 1000:.0f} k/s"
    report.add("memory", "transactions of 10 rows, RSS after", sizes, beside)
