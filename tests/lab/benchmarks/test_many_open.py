"""CPU of a row when many transactions are open: bytes to Arrow, by how many reads are joined.

A read holds 256 records. What a busy stream reads within 10 ms is joined (`read_ahead.py`), so that one
read is what 25 k records a second come to, and four are 100 k; 24 are the most that is joined.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence

from informix_capture_client.choices import DecodeRules
from informix_capture_client.records.records import TableSchema
from informix_capture_client.shapes import ChangeEncoder, change_count
from informix_capture_client.transactions.events import CommittedTransactions
from lab.benchmarks.measuring import Report, one_core
from lab.benchmarks.pipeline import events_of
from lab.benchmarks.workload import CapturedBytes, captured_in_turn, catalog_table

ROWS = 60_000
ROWS_PER_TRANSACTION = 10
OPEN = (1, 10, 50, 1000)
JOINED_READS = (1, 2, 5, 10, 24)
SEGMENT_BYTES = 16 << 20
TURNS = 3


def test_rows_of_many_open_transactions_cost_what_those_of_few_do(report: Report) -> None:
    sources = {count: captured_in_turn(ROWS, ROWS_PER_TRANSACTION, count) for count in OPEN}
    ways: dict[str, Callable[[Sequence[bytes]], int]] = {
        "bytes -> Arrow": encoded_rows,
        "assembled alone": assembled_rows,
    }
    best: dict[tuple[int, int, str], float] = {}
    gc.freeze()
    with one_core():
        for _ in range(TURNS):  # in turn: a noisy moment hits all of them
            for joined in JOINED_READS:
                for count, source in sources.items():
                    for name, way in ways.items():
                        spent, key = cpu_seconds(way, source, joined), (count, joined, name)
                        best[key] = min(best.get(key, spent), spent)
    for count in OPEN:
        for name in ways:
            costs = [best[count, joined, name] / ROWS * 1e6 for joined in JOINED_READS]
            few = [best[OPEN[0], joined, name] / ROWS * 1e6 for joined in JOINED_READS]
            ratios = [f"{cost / other:.1f}" for cost, other in zip(costs, few, strict=True)]
            report.add(
                "CPU of a row",
                f"{count:,} open, {', '.join(map(str, JOINED_READS))} reads joined: {name}",
                " / ".join(f"{cost:.2f}" for cost in costs) + " µs",
                f"one open: {' / '.join(ratios)} x",
            )


def cpu_seconds(way: Callable[[Sequence[bytes]], int], source: CapturedBytes, joined: int) -> float:
    """Return the CPU time of this thread for all rows, so many reads at a time."""
    reads = source.reads
    blocks = [b"".join(reads[n : n + joined]) for n in range(0, len(reads), joined)]
    gc.collect()
    begun = time.thread_time()
    rows = way(blocks)
    spent = time.thread_time() - begun
    assert rows == source.rows
    return spent


def assembled_rows(blocks: Sequence[bytes]) -> int:
    """Assemble everything; return how many rows that were."""
    events = [event for event in events_of(blocks) if isinstance(event, CommittedTransactions)]
    return sum(event.record_count for event in events)


def encoded_rows(blocks: Sequence[bytes]) -> int:
    """Encode everything, a segment at a time; return how many rows that were."""
    encoder = ChangeEncoder([catalog_table()], DecodeRules())
    waiting, size_bytes, rows = list[CommittedTransactions](), 0, 0
    for event in events_of(blocks):
        if isinstance(event, TableSchema):
            encoder.announce(event)
        elif isinstance(event, CommittedTransactions):
            waiting.append(event)
            size_bytes += event.bytes_in_memory
        if size_bytes >= SEGMENT_BYTES:
            rows += sum(map(change_count, encoder.encode(waiting)))
            waiting, size_bytes = [], 0
    return rows + (sum(map(change_count, encoder.encode(waiting))) if waiting else 0)
