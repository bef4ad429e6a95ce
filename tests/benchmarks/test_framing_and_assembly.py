"""Bytes to transactions: cutting, parsing and sorting records, no row decoded."""

from __future__ import annotations

import pytest

from benchmarks.measuring import Report, one_core, repeated
from benchmarks.pipeline import events_of
from benchmarks.workload import captured
from informix_cdc.capture_client.committed import Transactions


@pytest.mark.parametrize(("rows", "together"), [(200_000, 10), (100_000, 1), (200_000, 100_000)])
def test_records_are_framed_and_assembled(report: Report, rows: int, together: int) -> None:
    source = captured(rows, together)
    delivered = [event for event in events_of(source.reads) if isinstance(event, Transactions)]
    assert sum(map(len, delivered)) == source.transactions
    assert sum(transaction.record_count for transaction in delivered) == rows
    with one_core():
        timing = repeated(lambda: list(events_of(source.reads)))
    result = timing.rate(source.records).replace("/s", " records/s")
    report.add("framing + assembly", f"transactions of {together:,} rows", result)
