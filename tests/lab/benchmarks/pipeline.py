"""Prepared bytes through the product's own stages, with a stand-in for the session alone."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


def events_of(reads: Sequence[bytes]) -> Iterator[StreamEvent]:
    """Cut, parse and assemble what a session returned."""
    cutter, assembler = RecordCutter(), TransactionAssembler(START)
    for read in reads:
        if (raw := cutter.feed(read)) is not None:
            yield from assembler.feed(parse_block(raw))


def prepared(source: CapturedBytes) -> tuple[ChangeEncoder, TableSchema, list[CommittedTransactions]]:
    """Return an encoder that knows the table, what announced it, and all transactions."""
    encoder = ChangeEncoder([catalog_table(source.columns)], DecodeRules())
    events = list(events_of(source.reads))
    [announced] = [event for event in events if isinstance(event, TableSchema)]
    encoder.announce(announced)
    return encoder, announced, [event for event in events if isinstance(event, CommittedTransactions)]


def open_spool(folder: Path, *, durable: bool = False) -> Spool:
    """Open the spool of the benchmarks' one stream."""
    return Spool(folder, "bench", "bench", START, durable=durable)


def fill_spool(source: CapturedBytes, folder: Path, *, durable: bool = False) -> None:
    """Run the capture loop, its reading thread included, until every row is in the spool."""
    gc.freeze()  # as the product does in the process that holds the capture
    spool = open_spool(folder, durable=durable)
    session: Any = _PreparedSession(source.reads)
    stream = ChangeStream(lambda: Begun(session, TransactionAssembler(START)), lambda: None)
    encoder = ChangeEncoder([catalog_table(source.columns)], DecodeRules())
    is_full = _StopFlag(spool, source.rows)
    capture(stream, encoder, Pending(spool, lambda _: spool), CaptureState(spool=spool), is_full)
    stream.stop(5)
    spool.close()


class _PreparedSession:
    """Stands in for a capture session: each read returns what was prepared, then nothing more."""

    record_kinds = {int(kind): kind for kind in RecordKind}  # noqa: RUF012 - never changed
    codes = SimpleNamespace()

    def __init__(self, reads: Sequence[bytes]) -> None:
        self._reads = iter(reads)

    def read(self) -> memoryview:
        if (read := next(self._reads, None)) is None:
            time.sleep(0.01)
            return memoryview(b"")
        return memoryview(read)

    def close(self) -> None:
        return None


class _StopFlag(threading.Event):
    def __init__(self, spool: Spool, rows: int) -> None:
        super().__init__()
        self._spool = spool
        self._rows = rows

    def is_set(self) -> bool:
        return self._spool.manifest.row_count >= self._rows
