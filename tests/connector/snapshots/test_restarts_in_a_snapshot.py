"""A query starts again in the middle of a snapshot, and something is not as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.capture.driving import Offset, anchor_of, drained, failure_of, next_offset, reader, rows_of
from harness.capture.snapshots import serving_tables, until_snapshots_are_done
from harness.runs.patience import patiently
from harness.servers.stores import DATABASE
from informix_capture_client.errors import BadOption
from informix_cdc.capture.end_of_log import JOIN_SECONDS
from informix_cdc.snapshots.connection import SnapshotConnection
from informix_emulator import ListeningServer, load_rows

pytestmark = pytest.mark.slow

LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
OTHER_KEY = LINES.replace("id", "no")
PARTS = LINES.replace("lines", "parts")
HEAP = "CREATE TABLE informix.heap (id INTEGER NOT NULL, name VARCHAR(20) NOT NULL)"
OTHER = "CREATE TABLE informix.other (id INTEGER)"


@contextmanager
def chunks_are_held(monkeypatch: pytest.MonkeyPatch, behind: int) -> Iterator[None]:
    """Let a snapshot come no further than so many chunks."""
    chunk, calls, released = SnapshotConnection.chunk, list[object](), threading.Event()

    def held(self: SnapshotConnection, *query: Any) -> Any:
        calls.append(query)
        if len(calls) > behind:
            released.wait(patiently(60))
        return chunk(self, *query)

    with monkeypatch.context() as patches:
        patches.setattr(SnapshotConnection, "chunk", held)
        try:
            yield
        finally:
            released.set()


def after_one_chunk(
    listening: ListeningServer, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> Offset:
    """Deliver the first chunk of table lines, and stop."""
    with chunks_are_held(monkeypatch, behind=1), reader(listening.port, **options) as made:
        start = anchor_of(made)
        end = next_offset(made, start)
        while not end["tables"]["informix.lines"]["snapshot"].get("after"):
            start, end = end, next_offset(made, end)
        assert len(rows_of(made, start, end)) == 4
    return end


def of_lines(folder: Path, **more: str) -> dict[str, str]:
    options = {"table": "informix.lines", "initialSnapshot": "all", "spoolPath": str(folder)}
    return {**options, "snapshotChunkRows": "4", **more}


@pytest.mark.parametrize(("statement", "column"), [(LINES, "id"), (OTHER_KEY, "no")])
@pytest.mark.only_in_all
def test_a_table_that_was_made_again_is_read_from_its_first_row(
    statement: str, column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went on behind the last key of the former table, by its key: the first rows never came."""
    options = of_lines(tmp_path, onDataLoss="continue")
    with serving_tables(LINES) as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.lines", [{"id": n, "name": "x"} for n in range(10)])
        end = after_one_chunk(listening, monkeypatch, options)
        server.set_full_row_logging(f"{DATABASE}:informix.lines", False)
        writer.rows("DROP TABLE informix.lines")
        writer.rows(statement)
        load_rows(server, f"{DATABASE}:informix.lines", [{column: n, "name": "new"} for n in range(6)])
        with reader(listening.port, **options) as made:
            start, begun = end, end["stream"]
            while start["stream"] == begun:
                before, start = start, next_offset(made, start, 20)
                assert not rows_of(made, before, start)
            rows, _ = until_snapshots_are_done(made, start)
    assert [(row[column], row["name"]) for row in rows] == [(n, "new") for n in range(6)]


@pytest.mark.only_in_all
def test_a_join_that_waits_holds_no_other_snapshot_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = JOIN_SECONDS / 3
    options = of_lines(tmp_path, shape="json")
    with serving_tables(LINES, PARTS, OTHER) as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.lines", [{"id": n, "name": "x"} for n in range(10)])
        end = after_one_chunk(listening, monkeypatch, options)
        writer.rows("BEGIN WORK")
        writer.rows("INSERT INTO informix.other VALUES (1)")
        options["table"] += ",informix.parts"
        with reader(listening.port, **options) as made:
            rows, end = until_snapshots_are_done(made, end, seconds)
            assert "informix.parts" not in end["tables"]
            writer.rows("COMMIT WORK")
            while not end["tables"].get("informix.parts", {}).get("snapshot", {}).get("done"):
                end = next_offset(made, end, 30)
    assert len(rows) == 6


def test_what_began_by_a_key_is_not_locked_and_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that had come as a change, and was deleted before the one chunk, stayed for ever."""
    options = {"table": "informix.heap", "initialSnapshot": "all", "spoolPath": str(tmp_path)}
    keyed = {**options, "snapshotKey": "informix.heap(id)"}
    with serving_tables(HEAP) as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.heap", [{"id": n, "name": "x"} for n in range(3)])
        with chunks_are_held(monkeypatch, behind=0), reader(listening.port, **keyed) as made:
            start = anchor_of(made)
            writer.rows("INSERT INTO informix.heap VALUES (50, 'new')")
            end = next_offset(made, start)
            rows = rows_of(made, start, end)
        assert end["tables"]["informix.heap"]["snapshot"] == {"key": ["id"], "after": [], "rows": 0}
        writer.rows("DELETE FROM informix.heap WHERE id = 50")
        with reader(listening.port, **options, snapshotWithoutKey="lock") as made:
            failure = failure_of(lambda: next_offset(made, end))
        assert isinstance(failure, BadOption)
        assert (failure.facts["option"], "started with its key (id)" in failure.message) == (
            "snapshotKey",
            True,
        )
        other = {**options, "snapshotKey": "informix.heap(id,name)"}  # no chunk has come: it may be
        with reader(listening.port, **other) as made:
            more, end = until_snapshots_are_done(made, end)
            last = server.begin()
            last.insert(f"{DATABASE}:informix.heap", {"id": 99, "name": "end"})
            rest, _ = drained(made, end, last.commit())
    state = set[int]()
    for row in rows + more + rest:
        (state.add if row["_change_type"] == "insert" else state.remove)(row["id"])
    assert state == {0, 1, 2, 99}


@pytest.mark.only_in_all
def test_what_began_locked_may_go_on_by_a_key(tmp_path: Path) -> None:
    options = {"table": "informix.heap", "initialSnapshot": "all", "spoolPath": str(tmp_path)}
    with serving_tables(HEAP, OTHER) as (server, listening, writer):
        load_rows(server, f"{DATABASE}:informix.heap", [{"id": n, "name": "x"} for n in range(3)])
        with reader(listening.port, **options, snapshotWithoutKey="lock") as made:
            start = anchor_of(made)
            assert start["tables"]["informix.heap"]["snapshot"]["key"] == []
        writer.rows("INSERT INTO informix.heap VALUES (50, 'new')")
        with reader(listening.port, **options, snapshotKey="informix.heap(id)") as made:
            rows, _ = until_snapshots_are_done(made, start)
    assert {row["id"] for row in rows} == {0, 1, 2, 50}


def test_a_snapshot_that_is_not_finished_needs_its_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = of_lines(tmp_path)
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, f"{DATABASE}:informix.lines", [{"id": n, "name": "x"} for n in range(10)])
        end = after_one_chunk(listening, monkeypatch, options)
        changed = {**options, "initialSnapshot": "none"}
        del changed["spoolPath"]
        with reader(listening.port, **changed) as made:
            failure = failure_of(lambda: next_offset(made, end))
        assert isinstance(failure, BadOption)
        assert failure.facts["option"] == "spoolPath"
        assert "is not finished" in failure.message
        with reader(listening.port, **options) as made:
            rows, _ = until_snapshots_are_done(made, end)
    assert [row["id"] for row in rows] == [4, 5, 6, 7, 8, 9]
