"""One process that captures one transaction of any size into a spool: how large does it get?

    python -m lab.benchmarks.one_transaction FOLDER MEBIBYTES LIMIT_MEBIBYTES [--never-ends]
                                                                          [--three-tables]

Prints one line of JSON: what was read, what it took, and how large the process was before and at most.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from informix_capture_client.choices import DecodeRules
from informix_capture_client.records.records import RecordKind
from informix_capture_client.shapes import ChangeEncoder
from informix_capture_client.stream.event_stream import Begun, ChangeStream
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.spilling import MemoryLimit
from informix_cdc.capture.loop import capture
from informix_cdc.capture.pending import Pending
from informix_cdc.capture.state import CaptureState
from informix_checkpoints.spool.spill_files import SpillFiles
from informix_checkpoints.spool.spool import Spool
from informix_emulator.log import records as build
from lab.benchmarks.endless_stream import memory
from lab.benchmarks.pipeline import START, open_spool
from lab.benchmarks.workload import captured_of_tables, catalog_tables

PREPARED_ROWS = 2_500
_SEQUENCE_AT = 16  # behind the four words that all records have in common


@dataclass(frozen=True)
class Prepared:
    """The records of one transaction, cut where it can be made longer."""

    before: bytes  # a TABSCHEMA for each table, and BEGINTX
    rows: bytes
    sequence_places: np.ndarray[Any, np.dtype[np.int64]]  # in `rows`, eight for each
    commit: bytes

    def turn(self, number: int) -> bytes:
        """Return the rows again, with sequence numbers that go on."""
        data = np.frombuffer(self.rows, np.uint8).copy()
        numbers = data[self.sequence_places].view(">u8")[:, 0]
        raised = (numbers + np.uint64(number << 32)).astype(">u8")
        data[self.sequence_places] = raised[:, None].view(np.uint8)
        return data.tobytes()


@cache
def prepared(tables: int = 1) -> Prepared:
    stream = b"".join(captured_of_tables(tables, PREPARED_ROWS, PREPARED_ROWS).reads)
    starts, front = list(_starts(stream)), tables + 1
    first, last = starts[front], starts[front + PREPARED_ROWS]
    rows = np.array(starts[front : front + PREPARED_ROWS])
    places = rows[:, None] - first + _SEQUENCE_AT + np.arange(8)
    return Prepared(stream[:first], stream[first:last], places, stream[last:])


def _starts(stream: bytes) -> Iterator[int]:
    at = 0
    while at < len(stream):
        yield at
        at += int.from_bytes(stream[at : at + 4]) + int.from_bytes(stream[at + 4 : at + 8])


def turns_of(mebibytes: int) -> int:
    """Return how often the prepared rows make so many bytes."""
    return -(-(mebibytes << 20) // len(prepared().rows))


def reads(turns: int, never_ends: bool, tables: int) -> Iterator[bytes]:
    """Yield what a session returns: one transaction, and then that there is no more."""
    source = prepared(tables)
    yield source.before
    for number in range(turns):
        yield source.turn(number)
    last = int.from_bytes(source.commit[_SEQUENCE_AT : _SEQUENCE_AT + 8]) + (turns << 32)
    if not never_ends:
        yield source.commit[:_SEQUENCE_AT] + last.to_bytes(8) + source.commit[_SEQUENCE_AT + 8 :]
    yield build.timeout(last)


class _Session:
    """Stands in for a capture session."""

    record_kinds = {int(kind): kind for kind in RecordKind}  # noqa: RUF012 - never changed
    codes = SimpleNamespace()

    def __init__(self, turns: int, never_ends: bool, tables: int) -> None:
        self._reads = reads(turns, never_ends, tables)

    def read(self) -> memoryview:
        if (read := next(self._reads, None)) is None:
            time.sleep(0.01)
            return memoryview(b"")
        return memoryview(read)

    def close(self) -> None:
        return None


class _Passed(threading.Event):
    """Set once the end of the stream, or the TIMEOUT behind it, is known to the spool."""

    def __init__(self, spool: Spool) -> None:
        super().__init__()
        self._spool = spool

    def is_set(self) -> bool:
        return self._spool.manifest.high_watermark.restart > 0


def main() -> None:
    folder, mebibytes, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    turns, tables = turns_of(mebibytes), 3 if "--three-tables" in sys.argv else 1
    session: Any = _Session(turns, "--never-ends" in sys.argv, tables)
    assembler = TransactionAssembler(START)
    assembler.limit_memory(MemoryLimit(limit << 20, SpillFiles(folder)))
    encoder = ChangeEncoder(catalog_tables(tables), DecodeRules())
    spool = open_spool(folder / "spool")
    gc.freeze()  # as the product does in the process that holds the capture
    before, begun_at = memory(), time.monotonic()
    stream = ChangeStream(lambda: Begun(session, assembler), lambda: None)
    capture(stream, encoder, Pending(spool, lambda _: spool), CaptureState(spool=spool), _Passed(spool))
    stream.stop(5)
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
    sys.stdout.write(json.dumps(told) + "\n")
    spool.close()


if __name__ == "__main__":
    main()
