"""A stream begins with the rows that were there: each once, and as the changes beside it leave it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.capture.driving import LIMIT, Offset, anchor_of, next_offset, reader, rows_of
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import DATABASE, PASSWORD, SHORT_SECOND
from informix_cdc.spark.reader import InformixStreamReader
from informix_emulator import EmulatedServer, ListeningServer, load_rows

LOGIN = {"SERVER": "informix", "UID": "informix", "PWD": PASSWORD, "DB_LOCALE": "en_US.utf8"}
TABLE = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
LINES = f"{DATABASE}:informix.lines"


@pytest.fixture
def served() -> Iterator[tuple[EmulatedServer, ListeningServer]]:
    server = EmulatedServer("informix", {"informix": PASSWORD}, timeout_seconds=SHORT_SECOND)
    server.create_database(DATABASE, logged=True, locale="en_US.utf8")
    writer = InProcessConnection(server, LOGIN, DATABASE)
    writer.rows(TABLE)
    with ListeningServer(server) as listening:
        yield server, listening


def until_done(made: InformixStreamReader, start: Offset) -> tuple[list[dict[str, Any]], Offset]:
    rows: list[dict[str, Any]] = []
    while not all(table.get("snapshot", {}).get("done") for table in start["tables"].values()):
        end = next_offset(made, start)
        rows += rows_of(made, start, end)
        start = end
    return rows, start


@pytest.mark.slow
@pytest.mark.only_in_all
def test_rows_that_were_there_are_delivered_as_inserts(
    served: tuple[EmulatedServer, ListeningServer], tmp_path: Path
) -> None:
    server, listening = served
    load_rows(server, LINES, ({"id": n, "name": f"n{n}"} for n in range(10)))
    with reader(
        listening.port,
        table="informix.lines",
        initialSnapshot="all",
        spoolPath=str(tmp_path),
        snapshotChunkRows="4",
    ) as made:
        rows, _ = until_done(made, anchor_of(made))
    assert [(row["id"], row["name"]) for row in rows] == [(n, f"n{n}") for n in range(10)]
    assert {row["_change_type"] for row in rows} == {"insert"}
    assert {row["_snapshot"] for row in rows} == {True}


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_run_of_available_now_ends_with_the_snapshot_though_the_spool_has_room_for_a_part(
    served: tuple[EmulatedServer, ListeningServer], tmp_path: Path
) -> None:
    server, listening = served
    load_rows(server, LINES, ({"id": n, "name": f"n{n}" * 4} for n in range(20_000)))
    with reader(
        listening.port,
        table="informix.lines",
        initialSnapshot="all",
        spoolPath=str(tmp_path),
        snapshotChunkRows="1000",
        snapshots__chunk_bytes=64 << 10,
        maxSpoolBytes="1m",
    ) as made:
        made.prepareForTriggerAvailableNow()
        rows, start = [], made.initialOffset()
        while (end := made.latestOffset(start, LIMIT)) != start:
            rows += rows_of(made, start, end)
            start = end
    assert [row["id"] for row in rows] == list(range(20_000))
    assert start["tables"]["informix.lines"]["snapshot"] == {"done": True, "rows": 20_000}
