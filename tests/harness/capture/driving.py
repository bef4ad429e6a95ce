"""Drive the stream reader by hand, as Spark does: the steps of the tests beside this file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from harness.runs.background import meanwhile
from harness.runs.patience import patiently
from harness.servers.options import parsed
from harness.servers.stores import ORDERS, order_row, source_options
from harness.spark.checkpoints import offset
from informix_capture_client.errors import AccessRefused, InformixCdcError
from informix_cdc.capture import CaptureState
from informix_cdc.clock import MONOTONIC, Clock
from informix_cdc.reading.own_capture import OwnCapture, OwnReader
from informix_cdc.server.source_tables import look_up_tables
from informix_cdc.spark.reader import InformixStreamReader
from informix_cdc.spark.schema import to_spark
from informix_cdc.spark.versions import ReadMaxRows
from informix_emulator import EmulatedServer, ListeningServer

Offset = Mapping[str, Any]
Served = tuple[EmulatedServer, ListeningServer]
LIMIT = ReadMaxRows((1 << 63) - 1)  # what Spark hands back where nothing is limited
GOES_ON = {"onDataLoss": "continue"}
NOT_STARTED = offset(0, 0, stream="", source="")


@contextmanager
def reader(port: int, *, clock: Clock = MONOTONIC, **changes: Any) -> Iterator[InformixStreamReader]:
    """A reader as a new process of Spark's would have it."""
    options = parsed(source_options(port, **changes))
    try:
        schema = to_spark(look_up_tables(options).schema())
    except AccessRefused:  # a test that does not get as far as a connection
        schema = StructType()
    made = InformixStreamReader(options, schema, clock=clock)
    try:
        yield made
    finally:
        made.stop()


def anchor_of(made: InformixStreamReader) -> Offset:
    """Return where a stream begins; a first answer may be that it has not, after half a minute."""
    return next_offset(made, made.initialOffset(), seconds=30)


def begun_and_stopped(port: int, **changes: str) -> Offset:
    """Begin a stream and stop it again: what happens before its next start is missed for now."""
    with reader(port, **changes) as made:
        return anchor_of(made)


def figure(made: InformixStreamReader, name: str) -> Any:
    figures = made.reportLatestOffset()
    assert figures is not None
    return figures[name]


def next_offset(made: InformixStreamReader, start: Offset, seconds: float = 10) -> Offset:
    """Ask as Spark does until there is something new."""
    deadline = time.monotonic() + patiently(seconds)
    while time.monotonic() < deadline:
        if (end := made.latestOffset(start, LIMIT)) != start:
            if "lost" in end:
                made.partitions(start, end)  # Spark plans it, and is told here
            return end
    raise AssertionError(f"nothing new after {start}: {made.reportLatestOffset()}")


def rows_of(made: InformixStreamReader, start: Offset, end: Offset) -> list[dict[str, Any]]:
    batches = [batch for part in made.partitions(start, end) for batch in made.read(part)]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def drained(
    made: InformixStreamReader, start: Offset, upto: int
) -> tuple[list[dict[str, Any]], Offset]:
    rows: list[dict[str, Any]] = []
    while start["commit"] < upto:
        end = next_offset(made, start)
        rows += rows_of(made, start, end)
        start = end
    return rows, start


def jumped(made: InformixStreamReader, start: Offset) -> Offset:
    """Ask until another stream goes on, and check that nothing comes on the way there."""
    end = start
    while end["stream"] == start["stream"]:
        begun, end = end, next_offset(made, end)
        assert rows_of(made, begun, end) == []
    return end


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [row["order_num"] for row in rows]


def insert(server: EmulatedServer, *orders: int) -> int:
    transaction = server.begin()
    for number in orders:
        transaction.insert(ORDERS, order_row((number, 1, "note", None)))
    return transaction.commit()


def failure_of(ask: Callable[[], object]) -> InformixCdcError:
    try:
        ask()
    except InformixCdcError as reason:
        return reason
    raise AssertionError("it did not fail")


def foreign_traffic(server: EmulatedServer) -> AbstractContextManager[None]:
    """Let the log move on by pages."""
    return meanwhile(lambda: [server.begin().commit() for _ in range(40)], pause_seconds=0.01)


def own_capture_of(made: InformixStreamReader) -> OwnCapture:
    """Return the capture of a reader."""
    assert isinstance(made.captured.reader, OwnReader)
    return made.captured.reader.capture


def state_of(made: InformixStreamReader) -> CaptureState:
    """Return the state of a reader's capture; a new one if it has not begun."""
    return own_capture_of(made).state or CaptureState()


def restart_in_spool(made: InformixStreamReader) -> int:
    """Return the restart position that the capture has found last; 0 before it has begun."""
    spool = state_of(made).spool
    return spool.manifest.high_watermark.restart if spool else 0


def quiet_pair(made: InformixStreamReader, server: EmulatedServer, start: Offset) -> Offset:
    """Let a transaction without captured rows go by, and return the pair that it moves."""
    server.switch_log()  # restart positions are beginnings of pages
    server.begin().commit()
    return next_offset(made, start)
