"""Prepared bytes through the product's own stages, with a stand-in for the session alone."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from informix_capture_client.catalog.tables import Table
from informix_capture_client.choices import DecodeRules
from informix_capture_client.positions import Position
from informix_capture_client.records.framing import RecordCutter
from informix_capture_client.records.records import RecordKind, TableSchema, parse_block
from informix_capture_client.shapes import ChangeEncoder
from informix_capture_client.stream.event_stream import Begun, ChangeStream
from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.events import CommittedTransactions, StreamEvent
from informix_cdc.capture.loop import capture
from informix_cdc.capture.pending import Pending
from informix_cdc.capture.state import CaptureState
from informix_checkpoints.spool.spool import Spool
from lab.benchmarks.workload import CapturedBytes, catalog_table

START = Position(0, 0)
_SEQUENCE_AT = 16  # behind the four words that all records have in common


def events_of(reads: Sequence[bytes]) -> Iterator[StreamEvent]:
    """Cut, parse and assemble what a session returned."""
    cutter, assembler = RecordCutter(), TransactionAssembler(START)
    for read in reads:
        if (raw := cutter.feed(read)) is not None:
            yield from assembler.feed(parse_block(raw))


def prepared(source: CapturedBytes) -> tuple[ChangeEncoder, TableSchema, list[CommittedTransactions]]:
    """Return an encoder that knows the table, what announced it, and all transactions."""
    encoder = ChangeEncoder([catalog_table()], DecodeRules())
    events = list(events_of(source.reads))
    [announced] = [event for event in events if isinstance(event, TableSchema)]
    encoder.announce(announced)
    return encoder, announced, [event for event in events if isinstance(event, CommittedTransactions)]


def open_spool(folder: Path, *, durable: bool = False) -> Spool:
    """Open the spool of the benchmarks' one stream."""
    return Spool(folder, "bench", "bench", START, durable=durable)


def fill_spool(source: CapturedBytes, folder: Path, *, durable: bool = False) -> None:
    """Run the capture loop, its reading thread included, until every row is in the spool."""
    spool = open_spool(folder, durable=durable)
    session = PreparedSession(source.reads)
    is_full = Once(lambda: spool.manifest.row_count >= source.rows)
    run_capture(session, [catalog_table()], spool, is_full)
    spool.close()


def run_capture(
    session: Any,
    tables: Sequence[Table],
    spool: Any,
    is_done: threading.Event,
    assembler: TransactionAssembler | None = None,
    state: CaptureState | None = None,
) -> None:
    """Run the capture loop over a session until an event is set."""
    gc.freeze()  # as the product does in the process that holds the capture
    begun = Begun(session, assembler or TransactionAssembler(START))
    stream = ChangeStream(lambda: begun, lambda: None)
    pending = Pending(spool, lambda _: spool)
    encoder = ChangeEncoder(tables, DecodeRules())
    capture(stream, encoder, pending, state or CaptureState(spool=spool), is_done)
    assert stream.stop(5)


class PreparedSession:
    """Stands in for a capture session: each read returns what was prepared, then nothing more."""

    record_kinds = {int(kind): kind for kind in RecordKind}  # noqa: RUF012 - never changed
    codes = SimpleNamespace()

    def __init__(self, reads: Iterable[bytes]) -> None:
        self._reads = iter(reads)

    def read(self) -> memoryview:
        if (read := next(self._reads, None)) is None:
            time.sleep(0.01)
            return memoryview(b"")
        return memoryview(read)

    def close(self) -> None:
        return None


class Once(threading.Event):
    """An event that is set once something is so."""

    def __init__(self, is_so: Callable[[], bool]) -> None:
        super().__init__()
        self._is_so = is_so

    def is_set(self) -> bool:
        return self._is_so()


def starts_of(data: bytes) -> NDArray[np.int64]:
    """Return where each record begins."""
    starts, at = [], 0
    while at < len(data):
        starts.append(at)
        at += int.from_bytes(data[at : at + 4]) + int.from_bytes(data[at + 4 : at + 8])
    return np.array(starts, np.int64)


def numbers_of(data: bytes, starts: NDArray[np.int64]) -> NDArray[Any]:
    """Return the sequence number of each record."""
    return np.frombuffer(data, np.uint8)[_places(starts)].view(">u8")[:, 0]


def raised(data: bytes, starts: NDArray[np.int64], step: int) -> bytes:
    """Return the same records with sequence numbers that are higher by a step."""
    changed = np.frombuffer(data, np.uint8).copy()
    numbers = (numbers_of(data, starts) + np.uint64(step)).astype(">u8")
    changed[_places(starts)] = numbers[:, None].view(np.uint8)
    return changed.tobytes()


def _places(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    return starts[:, None] + _SEQUENCE_AT + np.arange(8)
