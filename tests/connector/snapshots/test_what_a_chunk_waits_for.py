"""A chunk waits for its marker, and for those who were open at a restart; it says what it waits for."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.capture.driving import anchor_of, failure_of, reader
from harness.capture.snapshots import serving_tables, snapshot_of, until_snapshots_are_done
from harness.runs.moved_clock import MovedClock
from harness.runs.patience import PATIENCE, wait_until
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import DATABASE
from informix_capture_client.errors import AccessRefused, ServerRefused
from informix_capture_client.incremental_snapshot import Barrier, Slots
from informix_capture_client.records import RecordKind
from informix_capture_client.statements import MAKE_MARKER
from informix_capture_client.transport import SqliTransport, Transport
from informix_cdc.snapshots.awaited_ends import is_idle
from informix_cdc.snapshots.connection import SnapshotConnection
from informix_emulator import load_rows
from odbc_driver.build import build_drivers

LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
PULSE = "CREATE TABLE informix.pulse (n INTEGER)"
NO_TABLE = ("CREATE TEMP TABLE informix_cdc_marker (n NO_SUCH_TYPE)",)


def given(count: int) -> list[dict[str, object]]:
    return [{"id": n, "name": "x"} for n in range(count)]


def sleeps(writer: InProcessConnection, seconds: float) -> None:
    time.sleep(seconds)


def locks(writer: InProcessConnection, seconds: float) -> None:
    writer.rows("BEGIN WORK")
    writer.rows("LOCK TABLE informix.lines IN EXCLUSIVE MODE")
    threading.Timer(seconds, lambda: writer.rows("ROLLBACK WORK")).start()


def give_each_chunk_its_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = SnapshotConnection.chunk

    def slow(self: SnapshotConnection, *query: Any) -> Any:
        time.sleep(0.15 * PATIENCE)  # the server's second, of a quick clock, is another one
        return chunk(self, *query)

    monkeypatch.setattr(SnapshotConnection, "chunk", slow)


@pytest.mark.slow
@pytest.mark.parametrize("hinder", [sleeps, locks])
def test_a_chunk_passes_while_the_next_one_is_locked_or_read_slowly(
    hinder: Callable[[InProcessConnection, float], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody wrote its marker meanwhile: the query ended for a stream that had nothing to show."""
    chunk, calls, barrier_seconds = SnapshotConnection.chunk, list[object](), 3
    with serving_tables(LINES) as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.lines", given(10))

        def second_is_hindered(self: SnapshotConnection, *query: Any) -> Any:
            calls.append(query)
            if len(calls) == 2:
                hinder(writer, barrier_seconds + 1)
            return chunk(self, *query)

        monkeypatch.setattr(SnapshotConnection, "chunk", second_is_hindered)
        options = {"snapshotChunkRows": "5", "snapshots__standstill_seconds": barrier_seconds}
        rows, _ = snapshot_of(listening.port, tmp_path, **options)
    assert [row["id"] for row in rows] == list(range(10))


def test_the_last_chunk_passes_within_a_second_of_the_server(tmp_path: Path) -> None:
    """All records have the same time: only the pages of the log prove that they are later."""
    with serving_tables(LINES, clock=lambda: 1_700_000_000.0) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", given(10))
        rows, _ = snapshot_of(listening.port, tmp_path, snapshotChunkRows="4")
    assert [row["id"] for row in rows] == list(range(10))


@pytest.mark.parametrize("is_buffered", [False, True], ids=["unbuffered log", "buffered log"])
def test_pages_prove_nothing_if_a_commit_may_be_in_the_buffer(
    is_buffered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a chunk waits for the server's next second."""
    near_barrier, barriers = SnapshotConnection.near_barrier, list[Barrier | None]()

    def noted(self: SnapshotConnection) -> Barrier | None:
        barriers.append(near_barrier(self))
        return barriers[-1]

    monkeypatch.setattr(SnapshotConnection, "near_barrier", noted)
    with serving_tables(LINES, database={"buffered": is_buffered}) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", given(10))
        rows, _ = snapshot_of(listening.port, tmp_path, snapshotChunkRows="4")
    assert [row["id"] for row in rows] == list(range(10))
    assert [barrier is None for barrier in barriers] == [is_buffered]


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["sqli", "odbc"])
def test_in_an_ansi_database_every_marker_is_a_transaction_of_its_own(
    transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one was in the transaction of the first, over a driver, and passed no chunk."""
    give_each_chunk_its_marker(monkeypatch)
    driver = {"driver": str(build_drivers().narrow)} if transport == "odbc" else {}
    with serving_tables(LINES, "COMMIT WORK", database={"ansi": True}) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", given(6))
        options = {"snapshotChunkRows": "2", "snapshots__standstill_seconds": 3, "transport": transport}
        rows, _ = snapshot_of(listening.port, tmp_path, **options, **driver)
    assert [row["id"] for row in rows] == list(range(6))


@pytest.mark.slow
@pytest.mark.parametrize("is_buffered", [False, True], ids=["unbuffered log", "buffered log"])
def test_a_marker_that_is_refused_once_is_written_again(
    is_buffered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where its dbspace is full for a moment, or where definitions wait for a lock."""
    marker, calls = SnapshotConnection._markers, list[int]()

    def refused_once(self: SnapshotConnection) -> Iterator[Sequence[str]]:
        calls.append(1)
        return iter([NO_TABLE]) if len(calls) == 1 else marker(self)

    monkeypatch.setattr(SnapshotConnection, "_markers", refused_once)
    with serving_tables(LINES, database={"buffered": is_buffered}) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", given(10))
        rows, _ = snapshot_of(
            listening.port, tmp_path, snapshotChunkRows="4", snapshots__standstill_seconds=5
        )
    assert [row["id"] for row in rows] == list(range(10))
    assert len(calls) > 1


@pytest.mark.slow
@pytest.mark.parametrize("is_ansi", [False, True], ids=["usual database", "ANSI database"])
def test_a_marker_that_was_refused_half_way_is_written_whole_the_next_time(
    is_ansi: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its table was there and had not been dropped: so each later one was refused as well."""
    marker, calls = SnapshotConnection._markers, list[int]()

    def refused_half_way(self: SnapshotConnection) -> Iterator[Sequence[str]]:
        calls.append(1)
        ((make, _),) = marker(self)
        return iter([(make, *NO_TABLE)]) if len(calls) == 1 else marker(self)

    monkeypatch.setattr(SnapshotConnection, "_markers", refused_half_way)
    give_each_chunk_its_marker(monkeypatch)
    made = (LINES, "COMMIT WORK") if is_ansi else (LINES,)
    with serving_tables(*made, database={"ansi": is_ansi}) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", given(10))
        options = {"snapshotChunkRows": "4", "snapshots__standstill_seconds": 4}
        rows, _ = snapshot_of(listening.port, tmp_path, **options)
    assert [row["id"] for row in rows] == list(range(10))
    assert len(calls) > 1


@pytest.mark.slow
def test_nobody_asks_who_holds_the_locks_while_a_marker_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are said over one connection, and each would have got the other's answer."""
    chunk, write_marker, holders = (
        SnapshotConnection.chunk,
        SnapshotConnection.write_marker,
        SnapshotConnection.holders,
    )
    chunks, said = list[object](), list[str]()

    def slow_mark(self: SnapshotConnection) -> ServerRefused | None:
        said.append("marker begins")
        time.sleep(1.5 * PATIENCE)
        said.append("marker ends")
        return write_marker(self)

    def told_holders(self: SnapshotConnection) -> str:
        said.append("who holds them")
        return holders(self)

    def second_is_locked(self: SnapshotConnection, *query: Any) -> Any:
        chunks.append(query)
        if len(chunks) == 2:
            writer.rows("BEGIN WORK")
            writer.rows("LOCK TABLE informix.lines IN EXCLUSIVE MODE")
        return chunk(self, *query)

    monkeypatch.setattr("informix_cdc.snapshots.connection.LOCK_WAIT", "SET LOCK MODE TO WAIT 1")
    monkeypatch.setattr(SnapshotConnection, "chunk", second_is_locked)
    monkeypatch.setattr(SnapshotConnection, "write_marker", slow_mark)
    monkeypatch.setattr(SnapshotConnection, "holders", told_holders)
    with serving_tables(LINES) as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.lines", given(10))
        options = {"snapshotChunkRows": "5", "snapshots__lock_seconds": 2}
        failure = failure_of(lambda: snapshot_of(listening.port, tmp_path, **options))
    assert isinstance(failure, ServerRefused)
    assert "have been locked" in failure.message
    assert said[said.index("who holds them") - 1] == "marker ends"


@pytest.mark.slow
def test_a_marker_that_is_always_refused_is_what_the_error_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(SnapshotConnection, "_markers", lambda _: iter([NO_TABLE]))
    clock = MovedClock()
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", given(3))
        with clock.running():
            failure = failure_of(lambda: snapshot_of(listening.port, tmp_path, clock=clock))
    assert isinstance(failure, ServerRefused)
    assert "the marker could not be written" in failure.message
    assert failure.facts["table"] == "informix.lines"
    told = [record.getMessage() for record in caplog.records]
    assert sum("event=marker_refused" in text for text in told) == 1


def forbid_markers(monkeypatch: pytest.MonkeyPatch, calls: list[int]) -> None:
    """The user has no right to make the temporary table of a marker."""
    rows = SqliTransport.rows

    def refused(self: SqliTransport, statement: str, *arguments: Any) -> Any:
        if statement != MAKE_MARKER:
            return rows(self, statement, *arguments)
        calls.append(1)
        raise AccessRefused("no right to make a temporary table", "GRANT it.")

    monkeypatch.setattr(SqliTransport, "rows", refused)


@pytest.mark.slow
def test_a_user_who_may_write_no_marker_waits_for_the_changes_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[int]()

    forbid_markers(monkeypatch, calls)
    give_each_chunk_its_marker(monkeypatch)
    with serving_tables(LINES, PULSE) as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.lines", given(3))
        ended = threading.Event()

        def change() -> None:
            while not ended.wait(0.5):
                if calls:  # earlier ones might let chunks pass before a marker is due
                    writer.rows("INSERT INTO informix.pulse VALUES (1)")

        others = threading.Thread(target=change)
        others.start()
        try:
            rows, _ = snapshot_of(listening.port, tmp_path, snapshotChunkRows="1")
        finally:
            ended.set()
            others.join()
    assert [row["id"] for row in rows] == [0, 1, 2]
    assert len(calls) == 1, "the right was asked for again"


@pytest.mark.slow
def test_a_right_that_is_missing_is_what_the_error_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It blamed the server, which shows a session the transactions of captured tables alone."""

    forbid_markers(monkeypatch, [])
    clock = MovedClock()
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", given(3))
        with clock.running():
            failure = failure_of(lambda: snapshot_of(listening.port, tmp_path, clock=clock))
    assert "no right to make a temporary table" in str(failure)
    told = [record.getMessage() for record in caplog.records]
    assert sum("event=marker_refused" in text for text in told) == 1


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["sqli", "odbc"])
def test_a_server_that_cannot_be_reached_behind_a_marker_forbids_none(
    transport: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It was taken for a missing right: no marker was written any more, and the query ended."""
    connected, calls = SnapshotConnection._connected_to_ask, list[int]()

    def once_not_answered(self: SnapshotConnection) -> Transport:
        calls.append(1)
        if len(calls) != 2:
            return connected(self)
        reached, self._connection = self._connection, replace(self._connection, port=1)
        try:
            return connected(self)
        finally:
            self._connection = reached

    monkeypatch.setattr(SnapshotConnection, "_connected_to_ask", once_not_answered)
    give_each_chunk_its_marker(monkeypatch)
    driver = {"driver": str(build_drivers().narrow)} if transport == "odbc" else {}
    with serving_tables(LINES, database={"buffered": True}) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", given(6))
        server.buffer_log()
        options = {"snapshotChunkRows": "2", "snapshots__standstill_seconds": 5, "transport": transport}
        rows, _ = snapshot_of(listening.port, tmp_path, **options, **driver)
    assert {row["id"] for row in rows} == set(range(6))
    assert len(calls) > 3
    told = [record.getMessage() for record in caplog.records]
    assert not any("event=marker_refused" in text for text in told)
    assert sum("event=connection_lost" in text for text in told) == 1


@pytest.mark.slow
@pytest.mark.fault(
    fault="a foreign transaction that the server does not show is open when the query starts",
    outcome="no chunk is delivered before it has ended, and `snapshot_waits` names it",
)
def test_chunks_tell_whom_they_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("informix_cdc.snapshots.snapshots._TELL_SECONDS", 1.0)

    def is_told() -> bool:
        told = [record.getMessage() for record in caplog.records]
        return any("event=snapshot_waits transactions=1" in text for text in told)

    def ends_once_it_is_told() -> None:
        with contextlib.suppress(AssertionError):  # the test itself says so
            wait_until(is_told, 30)
        other.commit()

    options = {"heartbeatTable": "informix.pulse"}
    options |= {"table": "informix.lines", "initialSnapshot": "all", "spoolPath": str(tmp_path)}
    with serving_tables(LINES, PULSE, foreign_transactions=False) as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.lines", given(3))
        writer.rows("INSERT INTO informix.pulse VALUES (1)")
        with reader(listening.port, **options) as made:
            start = anchor_of(made)
        other = server.begin()
        with reader(listening.port, **options) as made:
            threading.Thread(target=ends_once_it_is_told).start()
            rows, _ = until_snapshots_are_done(made, start, 60)
    assert [row["id"] for row in rows] == [0, 1, 2]
    assert is_told()


def test_slots_name_whom_they_do_not_know() -> None:
    slots = Slots([7, 8])
    assert (slots.settled(100, [8]), slots.unknown) == (None, {8})
    assert (slots.settled(100, []), slots.unknown) == (100, frozenset())


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        ((RecordKind.TIMEOUT,), True),
        ((RecordKind.BEGINTX, RecordKind.COMMTX, RecordKind.TIMEOUT), True),
        ((RecordKind.TIMEOUT, RecordKind.BEGINTX), False),
        ((), False),
    ],
)
def test_a_server_has_nothing_more_if_a_timeout_came_last(
    kinds: tuple[RecordKind, ...], says: bool
) -> None:
    class Raw:
        pass

    answer: Any = Raw()
    answer.events, answer.block = [], Raw()
    answer.block.raw = Raw()
    answer.block.raw.kinds = np.array(kinds, np.int64)
    assert is_idle(answer) is says
