"""What must not cost a row of a snapshot, or end it: a lost lock, a locked marker, other options."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.capture.driving import (
    Offset,
    anchor_of,
    drained,
    failure_of,
    next_offset,
    reader,
    rows_of,
)
from harness.capture.snapshots import serving_tables, until_snapshots_are_done
from harness.runs.patience import wait_until
from harness.servers.stores import DATABASE
from informix_capture_client.errors import BadOption
from informix_capture_client.incremental_snapshot import WholeTableQuery
from informix_cdc.snapshots.connection import RowsRead, SnapshotConnection
from informix_cdc.spark.reader import InformixStreamReader
from informix_emulator import ListeningServer, load_rows

pytestmark = pytest.mark.slow
LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
PARTS = "CREATE TABLE informix.parts (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
HEAP = "CREATE TABLE informix.heap (id INTEGER, name VARCHAR(20))"
PULSE = "CREATE TABLE informix.pulse (n INTEGER)"


def given(count: int) -> list[dict[str, object]]:
    return [{"id": n, "name": "x"} for n in range(count)]


def end_session_of(connection: SnapshotConnection, listening: ListeningServer) -> None:
    """Do as `onmode -z` does to the session that reads."""
    reading: Any = connection._reading
    port = reading._wire._socket.getsockname()[1]
    for client in list(listening._clients):
        if client.getpeername()[1] == port:
            client.shutdown(socket.SHUT_RDWR)


@pytest.mark.fault(
    fault="the session that has locked a table without a key ends while its chunk waits, and a writer"
    " that waited goes on",
    outcome="the table is read again: the state of a consumer is exact",
)
def test_a_lock_that_was_lost_costs_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, written = SnapshotConnection.whole, list[str]()
    with serving_tables(HEAP) as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.heap", given(3))

        def read_and_lose(connection: SnapshotConnection, query: WholeTableQuery) -> RowsRead:
            read = whole(connection, query)
            if not written:
                end_session_of(connection, listening)
                wait_until(
                    lambda: (
                        not writer.rows(
                            "SELECT FIRST 1 1 FROM sysmaster:syslocks WHERE tabname = 'heap'"
                        )
                    )
                )
                writer.rows("INSERT INTO informix.heap VALUES (100, 'w')")
                writer.rows("DELETE FROM informix.heap WHERE id = 1")
                written.append("both")
            return read

        monkeypatch.setattr(SnapshotConnection, "whole", read_and_lose)
        options = {"initialSnapshot": "all", "snapshotWithoutKey": "lock", "spoolPath": str(tmp_path)}
        with reader(listening.port, table="informix.heap", **options) as made:
            rows, end = until_snapshots_are_done(made, anchor_of(made), 40)
            last = server.begin()
            last.insert(f"{DATABASE}:informix.heap", {"id": 99, "name": "end"})
            more, _ = drained(made, end, last.commit())
    state = list[int]()
    for row in rows + more:
        (state.append if row["_change_type"] == "insert" else state.remove)(row["id"])
    assert (sorted(state), written) == ([0, 2, 99, 100], ["both"])


@pytest.mark.only_in_all
def test_a_row_of_the_heartbeat_table_that_is_locked_is_waited_for(tmp_path: Path) -> None:
    with serving_tables(LINES, PULSE) as (server, listening, writer):
        writer.rows("INSERT INTO informix.pulse VALUES (1)")
        load_rows(server, f"{DATABASE}:informix.lines", given(3))
        options = {"heartbeatTable": "informix.pulse"}
        with reader(
            listening.port,
            table="informix.lines",
            initialSnapshot="all",
            spoolPath=str(tmp_path),
            **options,
        ) as made:
            start = anchor_of(made)
            for statement in ("BEGIN WORK", "UPDATE informix.pulse SET n = n + 1"):
                writer.rows(statement)
            released = threading.Timer(7, lambda: writer.rows("COMMIT WORK"))  # longer than one wait
            released.start()
            rows, _ = until_snapshots_are_done(made, start, 40)
            released.join()
    assert [row["id"] for row in rows] == [0, 1, 2]


def planned_chunk(made: InformixStreamReader) -> tuple[Offset, Offset, list[dict[str, Any]]]:
    """Return where the first batch with rows of a snapshot begins and ends, and its rows."""
    start = anchor_of(made)
    end = next_offset(made, start)
    while not end.get("chunk"):
        start, end = end, next_offset(made, end)
    return start, end, rows_of(made, start, end)


@pytest.mark.parametrize(
    "changes",
    [{"table": "informix.lines,informix.parts"}, {"metadata": "minimal"}],
    ids=["a second table", "fewer columns of metadata"],
)
def test_a_planned_batch_comes_in_the_columns_of_other_options(
    changes: dict[str, str], tmp_path: Path
) -> None:
    """The spool has its changes, which depend on neither of these options."""
    with serving_tables(LINES, PARTS) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", given(5))
        options = {"table": "informix.lines", "initialSnapshot": "all", "spoolPath": str(tmp_path)}
        with reader(listening.port, **options) as made:
            start, end, planned = planned_chunk(made)
        with reader(listening.port, **{**options, **changes}) as made:
            again = rows_of(made, start, end)
    shown = [{**row.pop("lines", {}), **row} for row in again]
    assert [row["id"] for row in shown] == [0, 1, 2, 3, 4]
    assert {row.pop("parts", None) for row in shown} == {None}
    assert shown == [{name: row[name] for name in shown[0]} for row in planned]


def test_options_that_store_other_values_leave_a_planned_batch_as_it_is(tmp_path: Path) -> None:
    """The log does not have its rows: what the spool holds of them was deleted."""
    with serving_tables(LINES, PARTS) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", given(5))
        options = {"table": "informix.lines", "initialSnapshot": "all", "spoolPath": str(tmp_path)}
        with reader(listening.port, **options) as made:
            start, end, planned = planned_chunk(made)
        with reader(listening.port, **options, trailingBlanks="keep") as made:
            failure = failure_of(lambda: rows_of(made, start, end))
        assert isinstance(failure, BadOption)
        assert "once with the previous options" in failure.remedy
        with reader(listening.port, **options) as made:
            assert rows_of(made, start, end) == planned
    assert [row["id"] for row in planned] == [0, 1, 2, 3, 4]
