"""Steps of streams that begin with a snapshot: what is there, what comes, what a table is then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.capture.driving import LIMIT, Offset, anchor_of, reader, rows_of
from harness.runs.patience import patiently
from harness.servers.in_process import LOGIN, InProcessConnection
from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND, quick_clock
from informix_cdc.clock import MONOTONIC, Clock
from informix_cdc.spark.reader import InformixStreamReader
from informix_emulator import EmulatedServer, ListeningServer

Rows = list[dict[str, Any]]


def are_done(offset: Offset) -> bool:
    """Tell whether all snapshots that an offset knows of are done."""
    tables = offset.get("tables", {}).values()
    return bool(tables) and all(table.get("snapshot", {}).get("done") for table in tables)


def until_snapshots_are_done(
    made: InformixStreamReader, start: Offset, seconds: float = 20
) -> tuple[Rows, Offset]:
    """Take batches until an offset says that all snapshots are done; what came, and that offset."""
    rows: Rows = []
    deadline = time.monotonic() + patiently(seconds)
    while not are_done(start):
        assert time.monotonic() < deadline, f"the snapshot is not done: {start}"
        if (end := made.latestOffset(start, LIMIT)) != start:
            rows += rows_of(made, start, end)
            start = end
    return rows, start


@contextmanager
def serving_tables(
    *statements: str, database: dict[str, bool] | None = None, **arguments: object
) -> Iterator[tuple[EmulatedServer, ListeningServer, InProcessConnection]]:
    """Serve tables that SQL has made; with the connection that made them."""
    settings: dict[str, Any] = {"timeout_seconds": SHORT_SECOND, "clock": quick_clock(), **arguments}
    server = EmulatedServer("informix", {"informix": PASSWORD}, **settings)
    server.create_database(DATABASE, logged=True, locale="en_US.utf8", **(database or {}))
    writer = InProcessConnection(server, LOGIN, DATABASE)
    for statement in statements:
        writer.rows(statement)
    with ListeningServer(server) as listening:
        yield server, listening, writer


def snapshot_of(
    port: int,
    folder: Path,
    table: str = "informix.lines",
    *,
    clock: Clock = MONOTONIC,
    **changes: str,
) -> tuple[Rows, Offset]:
    """Begin a stream with a snapshot, and stop it once that is done; what came, and the last offset."""
    options = {"initialSnapshot": "all", "spoolPath": str(folder), **changes}
    with reader(port, clock=clock, table=table, **options) as made:
        return until_snapshots_are_done(made, anchor_of(made))
