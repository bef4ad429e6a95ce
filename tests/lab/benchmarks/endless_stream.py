"""One process that captures a long stream into a spool, trimmed as Spark would: how large is it?

    python -m lab.benchmarks.endless_stream 10000000 1000000 5000000 10000000

Prints one line of JSON after each of the numbers of rows that are named behind the total.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path

from informix_checkpoints.spool.spool import Spool
from lab.benchmarks.pipeline import (
    START,
    PreparedSession,
    numbers_of,
    open_spool,
    raised,
    run_capture,
    starts_of,
)
from lab.benchmarks.processes import memory, report_json
from lab.benchmarks.workload import captured, catalog_table

PREPARED_ROWS = 100_000
ROWS_PER_TRANSACTION = 10
_TRIM_SECONDS = 0.1


def read_on_and_on() -> Iterator[bytes]:
    """Yield prepared reads again and again, each time with sequence numbers that go on."""
    first, *others = captured(PREPARED_ROWS, ROWS_PER_TRANSACTION).reads
    schema_bytes = sum(int.from_bytes(first[at : at + 4]) for at in (0, 4))
    reads = [first[schema_bytes:], *others]
    starts = [starts_of(read) for read in reads]
    numbers = [numbers_of(*both) for both in zip(reads, starts, strict=True)]
    step = max(int(of.max()) for of in numbers) - min(int(of.min()) for of in numbers) + (1 << 12)
    yield first[:schema_bytes]
    for turn in count():
        for read, at in zip(reads, starts, strict=True):
            yield raised(read, at, turn * step)


class Reader(threading.Thread):
    """Takes what is in the spool and lets go of it, as Spark does with its micro-batches."""

    def __init__(self, spool: Spool, total: int, milestones: Sequence[int]) -> None:
        super().__init__(daemon=True)
        self._spool = spool
        self._total = total
        self._milestones = list(milestones)
        self.is_done = threading.Event()

    def run(self) -> None:
        after, rows, begun_at = START.place, 0, time.monotonic()
        while rows < self._total:
            time.sleep(_TRIM_SECONDS)
            upto = self._spool.manifest.end.place
            rows += sum(wanted.end - wanted.first for wanted in self._spool.between(after, upto))
            self._spool.trim(upto)
            after = upto
            while self._milestones and rows >= self._milestones[0]:
                seconds = time.monotonic() - begun_at
                report_json({"rows": self._milestones.pop(0), "seconds": seconds, **memory()})
        self.is_done.set()


def main() -> None:
    total, *milestones = map(int, sys.argv[1:])
    reads = read_on_and_on()
    session = PreparedSession(chain([next(reads)], reads))  # all is prepared before any clock starts
    with tempfile.TemporaryDirectory() as folder:
        spool = open_spool(Path(folder) / "spool")
        reader = Reader(spool, total, milestones)
        reader.start()
        run_capture(session, [catalog_table()], spool, reader.is_done)
        spool.close()


if __name__ == "__main__":
    main()
