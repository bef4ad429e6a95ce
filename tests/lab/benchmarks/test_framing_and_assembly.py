"""Bytes to transactions: cutting, parsing and sorting records, no row decoded."""

from __future__ import annotations

import pytest

from informix_capture_client.session.read_ahead import JOINED_BYTES
from informix_capture_client.transactions.events import CommittedTransactions
from lab.benchmarks.measuring import Report, Timing, one_core, repeated
from lab.benchmarks.pipeline import events_of
from lab.benchmarks.workload import CapturedBytes, captured, joined


@pytest.mark.parametrize(
    ("rows", "together", "at_once"),
    [(200_000, 10, 1), (200_000, 10, 50), (200_000, 10, 1000), (100_000, 1, 1), (200_000, 100_000, 1)],
)
def test_records_are_framed_and_assembled(
    report: Report, rows: int, together: int, at_once: int
) -> None:
    source = captured(rows, together, at_once)
    blocks = joined(source.reads, JOINED_BYTES)
    for reads in (source.reads, blocks):
        delivered = [event for event in events_of(reads) if isinstance(event, CommittedTransactions)]
        assert sum(map(len, delivered)) == source.transactions
        assert sum(transactions.record_count for transactions in delivered) == rows
    with one_core():
        under_load = repeated(lambda: list(events_of(blocks)))
        read_by_read = repeated(lambda: list(events_of(source.reads)))
    what = f"transactions of {together:,} rows{f', {at_once:,} at once' * (at_once > 1)}"
    beside = f"256 records at a time {_records(read_by_read, source)}"
    report.add("framing + assembly", what, _records(under_load, source), beside)


def _records(timing: Timing, source: CapturedBytes) -> str:
    return timing.rate(source.records).replace("/s", " records/s")
