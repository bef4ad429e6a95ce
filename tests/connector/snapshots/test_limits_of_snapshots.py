"""What a snapshot is refused for, what it waits for, and that no writer waits for it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from harness.capture.driving import anchor_of, failure_of, next_offset, reader, rows_of
from harness.capture.snapshots import serving_tables, snapshot_of, until_snapshots_are_done
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.in_process import LOGIN, InProcessConnection
from harness.servers.stores import DATABASE
from informix_capture_client.errors import AccessRefused, BadOption, ServerRefused
from informix_cdc.snapshots import connection as snapshot_connection
from informix_emulator import EmulatedServer, load_rows

pytestmark = pytest.mark.slow  # they wait for seconds of the server's clock

LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
HEAP = "CREATE TABLE informix.heap (id INTEGER, name VARCHAR(20))"
PULSE = "CREATE TABLE informix.pulse (n INTEGER)"


def fill(server: EmulatedServer, table: str, count: int) -> None:
    load_rows(server, f"{DATABASE}:informix.{table}", ({"id": n, "name": "x"} for n in range(count)))


@pytest.mark.parametrize(
    "is_buffered", rest_in_all([False, True]), ids=["unbuffered log", "buffered log"]
)
@pytest.mark.only_in_all
def test_on_an_idle_server_ten_chunks_come(is_buffered: bool, tmp_path: Path) -> None:
    """The markers of the snapshot itself move the log, and out of its buffer."""
    with serving_tables(LINES, database={"buffered": is_buffered}) as (server, listening, _):
        fill(server, "lines", 10)
        if is_buffered:
            server.buffer_log()
        rows, _ = snapshot_of(listening.port, tmp_path, snapshotChunkRows="1")
    assert [row["id"] for row in rows] == list(range(10))


HIDDEN: dict[str, Any] = {"foreign_transactions": False}


def test_where_foreign_transactions_are_hidden_the_error_names_the_option(tmp_path: Path) -> None:
    with serving_tables(LINES, **HIDDEN) as (server, listening, _):
        fill(server, "lines", 3)
        failure = failure_of(
            lambda: snapshot_of(listening.port, tmp_path, snapshots__standstill_seconds=2)
        )
    assert isinstance(failure, ServerRefused)
    assert "heartbeatTable" in str(failure)


def test_where_they_are_hidden_an_update_of_the_heartbeat_table_will_do(tmp_path: Path) -> None:
    with serving_tables(LINES, PULSE, **HIDDEN) as (server, listening, writer):
        writer.rows("INSERT INTO informix.pulse VALUES (1)")
        fill(server, "lines", 3)
        rows, _ = snapshot_of(
            listening.port,
            tmp_path,
            snapshotChunkRows="2",
            heartbeatTable="informix.pulse",
        )
    assert [row["id"] for row in rows] == [0, 1, 2]


def test_a_table_without_a_key_is_refused_with_three_remedies(tmp_path: Path) -> None:
    with serving_tables(HEAP) as (_, listening, _writer):
        failure = failure_of(lambda: snapshot_of(listening.port, tmp_path, "informix.heap"))
    assert isinstance(failure, BadOption)
    assert all(word in str(failure) for word in ("snapshotKey", "initialSnapshot", "lock"))


@pytest.mark.parametrize("table", ["informix.heap", 'informix."Mixed; Case"'])
def test_a_table_that_may_not_be_read_is_refused_before_the_stream_begins(
    table: str, tmp_path: Path
) -> None:
    """Also where another table could be read: no row of any has come."""
    keyed = HEAP.replace("INTEGER,", "INTEGER PRIMARY KEY,").replace("informix.heap", table)
    with serving_tables(LINES, keyed) as (server, listening, writer):
        fill(server, "lines", 3)
        server.users["joe"] = server.users["informix"]
        server.cdc_users = frozenset({"informix", "joe"})
        writer.rows(f"REVOKE SELECT ON {table} FROM public")
        failure = failure_of(
            lambda: snapshot_of(
                listening.port, tmp_path, f"informix.lines,{table}", user="joe", shape="json"
            )
        )
    assert isinstance(failure, AccessRefused)
    assert f"GRANT SELECT ON {table} to" in str(failure)


@pytest.mark.only_in_all
def test_with_lock_writers_wait_and_the_result_is_exact(tmp_path: Path) -> None:
    with serving_tables(HEAP) as (server, listening, writer):
        fill(server, "heap", 5)
        writer.rows("SET LOCK MODE TO WAIT 20")
        stop = threading.Event()

        def write() -> None:
            number = 100
            while not stop.wait(0.01):
                writer.rows(f"INSERT INTO informix.heap VALUES ({number}, 'w')")
                number += 1

        beside = threading.Thread(target=write)
        options = {"initialSnapshot": "all", "spoolPath": str(tmp_path), "snapshotWithoutKey": "lock"}
        with reader(listening.port, table="informix.heap", **options) as made:
            start = anchor_of(made)
            beside.start()
            rows, end = until_snapshots_are_done(made, start)
            stop.set()
            beside.join()
            there = writer.rows("SELECT id FROM informix.heap")
            wanted = sorted(int(row[0] or 0) for row in there)
            while len(rows) < len(wanted):
                start, end = end, next_offset(made, end)
                rows += rows_of(made, start, end)
    read = [row["id"] for row in rows if row["_snapshot"]]
    assert sorted(read) == wanted[: len(read)]  # numbers rise: all that were there, each once
    assert sorted(row["id"] for row in rows) == wanted  # and no change of before a second time
    assert server.lock_waits.seen, "no writer has waited"


def test_a_lock_that_stays_is_named_with_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_connection, "LOCK_WAIT", "SET LOCK MODE TO NOT WAIT")
    options = {"initialSnapshot": "all", "spoolPath": str(tmp_path), "snapshots__lock_seconds": 0}
    with serving_tables(LINES) as (server, listening, writer):
        fill(server, "lines", 3)
        with reader(listening.port, table="informix.lines", **options) as made:
            start = anchor_of(made)
            writer.rows("BEGIN WORK")
            writer.rows("LOCK TABLE informix.lines IN EXCLUSIVE MODE")
            failure = failure_of(lambda: until_snapshots_are_done(made, start))
        writer.rows("ROLLBACK WORK")
    assert isinstance(failure, ServerRefused)
    assert "informix.lines" in str(failure)
    assert "hold locks on it" in str(failure)


def test_a_table_that_is_locked_at_the_start_is_no_table_that_may_not_be_read(tmp_path: Path) -> None:
    with serving_tables(LINES) as (server, listening, writer):
        fill(server, "lines", 3)
        writer.rows("BEGIN WORK")
        writer.rows("LOCK TABLE informix.lines IN EXCLUSIVE MODE")
        options = {"initialSnapshot": "all", "spoolPath": str(tmp_path)}

        def let_go() -> None:
            wait_until(lambda: bool(server.lock_waits.seen))
            writer.rows("COMMIT WORK")

        with reader(listening.port, table="informix.lines", **options) as made:
            beside = threading.Thread(target=let_go)
            beside.start()
            rows, _ = until_snapshots_are_done(made, anchor_of(made))
            beside.join()
    assert [row["id"] for row in rows] == [0, 1, 2]


def test_a_lock_that_goes_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_connection, "LOCK_WAIT", "SET LOCK MODE TO NOT WAIT")
    with serving_tables(LINES) as (server, listening, writer):
        fill(server, "lines", 3)
        server.table(f"{DATABASE}:informix.lines").locks_pages = True
        options = {"initialSnapshot": "all", "spoolPath": str(tmp_path)}
        with reader(listening.port, table="informix.lines", **options) as made:
            start = anchor_of(made)
            writer.rows("BEGIN WORK")
            writer.rows("UPDATE informix.lines SET name = 'y' WHERE id = 1")
            wait_until(lambda: bool(server.lock_waits.seen))
            writer.rows("COMMIT WORK")
            rows, _ = until_snapshots_are_done(made, start)
    state = {row["id"]: row["name"] for row in rows if row["_change_type"] != "update_preimage"}
    assert state == {0: "x", 1: "y", 2: "x"}


def test_a_snapshot_that_is_asked_for_too_late_is_not_made_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving_tables(LINES) as (server, listening, _):
        fill(server, "lines", 3)
        with reader(listening.port, table="informix.lines", spoolPath=str(tmp_path)) as made:
            start = anchor_of(made)
        options = {"initialSnapshot": "all", "spoolPath": str(tmp_path)}
        with reader(listening.port, table="informix.lines", **options) as made:
            writer = InProcessConnection(server, LOGIN, DATABASE)
            writer.rows("INSERT INTO informix.lines VALUES (9, 'new')")
            end = next_offset(made, start)
    assert "snapshot" not in end["tables"]["informix.lines"]
    assert "snapshot_not_made" in caplog.text
