"""One process that captures one transaction of any size into a spool: how large does it get?

    python -m lab.benchmarks.one_transaction FOLDER MEBIBYTES LIMIT_MEBIBYTES [--never-ends]
                                                                          [--three-tables]

Prints one line of JSON: what was read, what it took, and how large the process was before and at most.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path

from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.spilling import MemoryLimit
from informix_checkpoints.spool.spill_files import SpillFiles
from informix_emulator.log import records as build
from lab.benchmarks.pipeline import (
    START,
    Once,
    PreparedSession,
    numbers_of,
    open_spool,
    raised,
    run_capture,
    starts_of,
)
from lab.benchmarks.processes import memory, report_json
from lab.benchmarks.workload import captured_of_tables, catalog_tables

PREPARED_ROWS = 2_500


@cache
def prepared(tables: int = 1) -> tuple[bytes, bytes, bytes]:
    """Return the records of one transaction: up to its BEGINTX, its rows, and its COMMTX."""
    stream = b"".join(captured_of_tables(tables, PREPARED_ROWS, PREPARED_ROWS).reads)
    starts = starts_of(stream)
    first, last = starts[tables + 1], starts[tables + 1 + PREPARED_ROWS]
    return stream[:first], stream[first:last], stream[last:]


def turns_of(mebibytes: int) -> int:
    """Return how often the prepared rows make so many bytes."""
    return -(-(mebibytes << 20) // len(prepared()[1]))


def reads(turns: int, never_ends: bool, tables: int) -> Iterator[bytes]:
    """Yield what a session returns: one transaction, and then that there is no more."""
    before, rows, commit = prepared(tables)
    yield before
    starts = starts_of(rows)
    for number in range(turns):
        yield raised(rows, starts, number << 32)
    end = raised(commit, starts_of(commit), turns << 32)
    if not never_ends:
        yield end
    yield build.timeout(int(numbers_of(end, starts_of(end))[0]))


def main() -> None:
    folder, mebibytes, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    turns, tables = turns_of(mebibytes), 3 if "--three-tables" in sys.argv else 1
    session = PreparedSession(reads(turns, "--never-ends" in sys.argv, tables))
    assembler = TransactionAssembler(START)
    assembler.limit_memory(MemoryLimit(limit << 20, SpillFiles(folder)))
    spool = open_spool(folder / "spool")
    has_passed = Once(lambda: spool.manifest.high_watermark.restart > 0)
    before, begun_at = memory(), time.monotonic()
    run_capture(session, catalog_tables(tables), spool, has_passed, assembler)
    told = {
        "rows": turns * PREPARED_ROWS,
        "seconds": time.monotonic() - begun_at,
        "before": before["rss"],
        "peak": memory()["peak"],
        "open_transactions": assembler.open_count,
        "open_bytes_in_memory": assembler.open_bytes[0],
        "open_bytes_spilled": assembler.open_bytes[1],
        **asdict(assembler.counters),
    }
    report_json(told)
    spool.close()


if __name__ == "__main__":
    main()
