"""A SELECT may take longer than a server may be silent: another connection shows that it lives."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.capture.driving import anchor_of, reader
from harness.capture.snapshots import serving_tables, snapshot_of, until_snapshots_are_done
from harness.runs.patience import PATIENCE, wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import DATABASE
from informix_capture_client.errors import ConnectionLost
from informix_capture_client.transport import Transport
from informix_cdc.options import ConnectionOptions
from informix_cdc.server import connections
from informix_cdc.snapshots import reading
from informix_cdc.snapshots.connection import SnapshotConnection
from informix_emulator import EmulatedServer, load_rows
from informix_emulator.connection import Connection
from informix_emulator.sql.statements import selects
from odbc_driver.build import build_drivers

pytestmark = pytest.mark.slow

LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
SILENT_SECONDS = 4 * PATIENCE


class SlowSelects:
    """Lets each SELECT of the table wait before its first row."""

    def __init__(self) -> None:
        self.begun, self.may_go_on = threading.Event(), threading.Event()
        self.most_seconds = 60.0

    def __call__(self, original: Any) -> Any:
        def pages(selecting: Any, query: Any, *others: Any) -> Iterator[Any]:
            if "LIMIT" in query.sql:  # of a chunk
                self.begun.set()
                self.may_go_on.wait(self.most_seconds)
            yield from original(selecting, query, *others)

        return pages


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowSelects]:
    made = SlowSelects()
    monkeypatch.setattr(selects.Selects, "_pages", made(selects.Selects._pages))
    monkeypatch.setattr(connections, "_connect", sooner_lost(connections._connect))
    yield made
    made.may_go_on.set()


def sooner_lost(connect: Any) -> Any:
    """Let the connection that reads chunks, where it waits as long as any, wait less; no other one."""

    def connected(connection: ConnectionOptions, *others: Any) -> Transport:
        *_, most_seconds = others
        if most_seconds == connections.silent_seconds(connection):
            others = (*others[:-1], SILENT_SECONDS)
        made: Transport = connect(connection, *others)
        return made

    return connected


def fill(server: EmulatedServer) -> None:
    load_rows(server, f"{DATABASE}:informix.lines", [{"id": n, "name": "x"} for n in range(5)])


def readers() -> list[str]:
    return [each.name for each in threading.enumerate() if "snapshot of" in each.name]


@pytest.mark.fault(
    fault="a chunk's SELECT brings no row for longer than a server may be silent (a sort)",
    outcome="it is waited for, for up to an hour, while the second connection answers",
)
@pytest.mark.parametrize("transport", rest_in_all(["sqli", "odbc"]))
@pytest.mark.only_in_all
def test_a_select_may_take_longer_than_a_server_may_be_silent(
    transport: str, slow: SlowSelects, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The query failed with "did not answer in time", after it had been tried seven times."""
    slow.most_seconds = SILENT_SECONDS + 2
    driver = {"driver": str(build_drivers().narrow)} if transport == "odbc" else {}
    with serving_tables(LINES) as (server, listening, _):
        fill(server)
        rows, _ = snapshot_of(listening.port, tmp_path, transport=transport, **driver)
    assert [row["id"] for row in rows] == list(range(5))
    assert not [record for record in caplog.records if "connection_lost" in record.getMessage()]


def test_a_query_that_stops_ends_the_select_it_waits_for(slow: SlowSelects, tmp_path: Path) -> None:
    """Its thread, and the server's work, would go on for as long as the SELECT takes."""
    with serving_tables(LINES) as (server, listening, _):
        fill(server)
        options = {"table": "informix.lines", "initialSnapshot": "all", "spoolPath": str(tmp_path)}
        with reader(listening.port, **options) as made:
            anchor_of(made)
            wait_until(slow.begun.is_set)
            assert readers()
        wait_until(lambda: not readers(), complaint=lambda: f"{readers()} still wait")
        slow.may_go_on.set()


@pytest.mark.fault(
    fault="a server answers nothing more, the SELECT of a chunk neither",
    outcome="the reading ends once the second connection is not answered; the stream connects again",
)
def test_a_server_that_answers_nobody_is_no_slow_select(
    slow: SlowSelects,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, lost = SnapshotConnection.clock, list[float]()

    def not_answered_once(self: SnapshotConnection) -> int:
        if not lost and slow.begun.is_set():
            lost.append(time.monotonic())
            raise ConnectionLost("informix did not answer in time.")
        return clock(self)

    monkeypatch.setattr(SnapshotConnection, "clock", not_answered_once)
    monkeypatch.setattr(reading, "_ASK_SECONDS", 0.5)
    with serving_tables(LINES) as (server, listening, _):
        fill(server)
        options = {"table": "informix.lines", "initialSnapshot": "all", "spoolPath": str(tmp_path)}
        with reader(listening.port, **options) as made:
            start = anchor_of(made)
            wait_until(lambda: any("connection_lost" in each.getMessage() for each in caplog.records))
            slow.may_go_on.set()
            rows, _ = until_snapshots_are_done(made, start)
    assert [row["id"] for row in rows] == list(range(5))
    told = [each.getMessage() for each in caplog.records if "connection_lost" in each.getMessage()]
    assert len(told) == 1
    assert "informix did not answer in time" in told[0]


@pytest.mark.only_in_all
def test_a_connection_that_is_dead_shows_when_a_select_is_prepared(
    slow: SlowSelects,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A firewall had forgotten it between two chunks: the second one was waited for for an hour."""
    session, forgotten = Connection.session, list[str]()

    class Forgetting:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def prepare(self, text: str) -> Any:
            if "FIRST" in text and "WHERE" in text and not forgotten:  # the second chunk's
                forgotten.append(text)
                slow.may_go_on.wait(60)
            return self._inner.prepare(text)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    monkeypatch.setattr(Connection, "session", lambda self: Forgetting(session(self)))
    slow.most_seconds = 0
    with serving_tables(LINES) as (server, listening, _):
        fill(server)
        rows, _ = snapshot_of(listening.port, tmp_path, snapshotChunkRows="2")
        slow.may_go_on.set()
    assert forgotten
    assert [row["id"] for row in rows] == list(range(5))
    told = [each.getMessage() for each in caplog.records if "connection_lost" in each.getMessage()]
    assert len(told) == 1


@pytest.mark.only_in_all
def test_a_lock_that_a_long_select_meets_at_its_end_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seconds in which the server had looked for rows counted as if they had been locked."""
    chunk, calls = SnapshotConnection.chunk, list[object]()
    monkeypatch.setattr("informix_cdc.snapshots.connection.LOCK_WAIT", "SET LOCK MODE TO WAIT 1")
    with serving_tables(LINES) as (server, listening, writer):
        fill(server)

        def late(self: SnapshotConnection, *query: Any) -> Any:
            calls.append(query)
            if len(calls) == 1:
                time.sleep(6)
                writer.rows("BEGIN WORK")
                writer.rows("LOCK TABLE informix.lines IN EXCLUSIVE MODE")
                threading.Timer(1.5, lambda: writer.rows("ROLLBACK WORK")).start()
            return chunk(self, *query)

        monkeypatch.setattr(SnapshotConnection, "chunk", late)
        rows, _ = snapshot_of(listening.port, tmp_path, snapshots__lock_seconds=5)
    assert [row["id"] for row in rows] == list(range(5))
    assert len(calls) > 1


@pytest.mark.only_in_all
def test_over_odbc_a_stopped_query_locks_no_table_for_an_hour(
    slow: SlowSelects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that is read whole is locked for as long as its SELECT is waited for."""
    options = {"table": "informix.heap", "initialSnapshot": "all", "snapshotWithoutKey": "lock"}
    options |= {"transport": "odbc", "driver": str(build_drivers().narrow), "spoolPath": str(tmp_path)}
    whole, begun, was_released = SnapshotConnection.whole, threading.Event(), list[bool]()

    def marked(self: SnapshotConnection, *query: Any) -> Any:
        begun.set()
        return whole(self, *query)

    def scan_step() -> None:
        if begun.is_set():
            was_released.append(slow.may_go_on.wait(60))

    monkeypatch.setattr(SnapshotConnection, "whole", marked)
    with serving_tables("CREATE TABLE informix.heap (id INTEGER)") as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.heap", [{"id": n} for n in range(3)])
        server.rows_per_scan_step, server.between_scan_steps = 1, scan_step
        with reader(listening.port, **options) as made:
            anchor_of(made)
            wait_until(begun.is_set)
        wait_until(lambda: not readers(), 30, lambda: f"{readers()} still wait")
        slow.may_go_on.set()
        writer.rows("SET LOCK MODE TO WAIT 60")
        writer.rows("INSERT INTO informix.heap VALUES (9)")
    assert all(was_released)
