"""Memory of the process that captures, over a stream of ten million rows."""

from __future__ import annotations

import json
import subprocess
import sys

from lab.benchmarks.measuring import Report

SEGMENT_KIB = 4  # of memory, with all copies of the list
CAPTURE_SECONDS, PER_SECOND = 240, 300
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


def test_memory_of_a_shared_capture_grows_by_its_list_of_segments_only(report: Report) -> None:
    """One of two readers has stopped, so that all rows stay stored."""
    arguments = [str(CAPTURE_SECONDS), str(PER_SECOND)]
    command = [sys.executable, "-m", "lab.benchmarks.long_capture", *arguments]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    told = [json.loads(line) for line in output.splitlines()]
    third = len(told) // 3
    early, late = (max(line["anonymous"] for line in part) for part in (told[:third], told[-third:]))
    segments = told[-1]["segments"] - told[third]["segments"]
    assert late - early < 5 + segments * SEGMENT_KIB / 1024
    sizes = ", ".join(f"{line['seconds']:.0f} s: {line['anonymous']:.0f} MiB" for line in told[::third])
    beside = f"{told[-1]['rows'] / 10**6:.1f} M rows in {told[-1]['segments']} segments"
    report.add("memory", f"shared capture, {PER_SECOND} transactions/s", sizes, beside)
