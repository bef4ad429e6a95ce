"""`informix-cdc alter`: one command, while the query runs; killed at each step, and repeated."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connector.commands.commands import refusal, run
from harness.capture.copied_tables import (
    KEYS,
    LINES,
    OTHER,
    PAIRS,
    change,
    deliver,
    filled,
    in_copies,
    in_tables,
    marked,
    of_stream,
)
from harness.capture.copies import Copies
from harness.capture.driving import LIMIT, Offset, meanwhile, reader, rows_of
from harness.capture.snapshots import serving_tables
from harness.runs.deaths import die_at
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import DATABASE
from harness.spark.checkpoints import run_batches
from informix_cdc.commands import alter
from informix_checkpoints import running_streams
from informix_checkpoints.requests import RequestFolder
from informix_emulator import ListeningServer

pytestmark = pytest.mark.slow

TABLE = "informix.lines"
ADD = f"ALTER TABLE {TABLE} ADD (size INTEGER DEFAULT 7)"


class Query:
    """A query that runs in a thread, and applies its rows to copies."""

    def __init__(self, listening: ListeningServer, folder: Path, **options: str) -> None:
        self.copies = Copies(KEYS)
        self.checkpoint = folder / "checkpoint"
        self._port, self._options = listening.port, {**of_stream(folder / "spool"), **options}
        with reader(self._port, **self._options) as made:
            start = deliver(made, made.initialOffset(), self.copies)
            run_batches(self.checkpoint, made.initialOffset(), start)
        self.offset: Offset = start
        self.pauses: list[float] = []  # between two batches with rows of other tables

    @property
    def requests(self) -> RequestFolder:
        return RequestFolder(Path(self._options["spoolPath"]) / self.offset["stream"])

    @contextmanager
    def running(self) -> Iterator[None]:
        stop = threading.Event()
        worker = threading.Thread(target=self._run, args=(stop,))
        with reader(self._port, **self._options) as self._made:
            worker.start()
            try:
                yield
            finally:
                stop.set()
                worker.join()

    def _run(self, stop: threading.Event) -> None:
        latest = time.monotonic()
        while not stop.is_set():
            end = self._made.latestOffset(self.offset, LIMIT)
            if end == self.offset:
                continue
            rows = rows_of(self._made, self.offset, end)
            self.copies.apply(rows)
            self.offset = end
            if any(not row["_snapshot"] and TABLE not in row["_table"] for row in rows):
                self.pauses.append(time.monotonic() - latest)
                latest = time.monotonic()

    def until_answered(self) -> None:
        """Run until nothing is requested any more."""
        with self.running():
            wait_until(lambda: not self.requests.pending(), 60)

    def finish(self, upto: int) -> None:
        with reader(self._port, **self._options) as made:
            deliver(made, self.offset, self.copies, upto)

    def arguments(self) -> list[str]:
        return [f"--checkpoint={self.checkpoint}", f"--spool={self._options['spoolPath']}", "--yes"]


@pytest.fixture
def served() -> Iterator[Any]:
    with serving_tables(LINES, PAIRS, OTHER) as served:
        filled(served[0])
        yield served


def size_of(query: Query) -> set[object]:
    return {row.pop("size") for row in query.copies.rows[TABLE].values()}


@pytest.mark.only_in_all
def test_one_command_alters_a_table_under_load(served: Any, tmp_path: Path) -> None:
    server, listening, writer = served
    query, draw = Query(listening, tmp_path), random.Random(0)
    with query.running(), meanwhile(lambda: change(writer, draw, "pairs", "other"), 0.005):
        found = run(listening, "alter", ADD, *query.arguments())
        assert found.exit_code == 0, found.output
    query.finish(marked(server))
    assert "30 rows were read again" in found.stderr
    assert size_of(query) == {7}
    assert in_copies(query.copies) == in_tables(writer)
    assert max(query.pauses) < 2


@pytest.mark.only_in_all
def test_a_masked_table_is_altered_and_stays_masked(served: Any, tmp_path: Path) -> None:
    server, listening, _ = served
    query = Query(listening, tmp_path, mask="lines.name=null,other.name=null")
    with query.running():
        found = run(listening, "alter", ADD, *query.arguments())
        assert found.exit_code == 0, found.output
    query.finish(marked(server))
    assert size_of(query) == {7}
    for table in (TABLE, "informix.other"):
        assert {row["name"] for row in query.copies.rows[table].values()} == {None}


STEPS = [
    "alter.after_request",
    "alter.before_switch_off",
    "alter.before_statement",
    "alter.after_statement",
    "alter.before_switch_on",
    "alter.before_return",
]


def run_alter(port: int, arguments: list[str]) -> None:
    run(SimpleNamespace(port=port), "alter", ADD, *arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "place",
    ["alter.after_statement", *rest_in_all(each for each in STEPS if each != "alter.after_statement")],
)
def test_a_command_that_died_is_repeated(place: str, served: Any, tmp_path: Path) -> None:
    server, listening, writer = served
    query = Query(listening, tmp_path)
    with query.running():
        die_at(place, run_alter, listening.port, query.arguments())
        other = run(listening, "alter", f"ALTER TABLE {TABLE} ADD (x INTEGER)", *query.arguments())
        assert "another change of informix.lines is in progress" in refusal(other, 2)
        found = run(listening, "alter", ADD, *query.arguments())
        assert found.exit_code == 0, found.output
    query.finish(marked(server))
    assert size_of(query) == {7}
    assert in_copies(query.copies) == in_tables(writer)
    assert server.table(f"{DATABASE}:{TABLE}").full_row_logging


def test_a_dry_run_and_locks_change_nothing(
    served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening, _ = served
    query = Query(listening, tmp_path)
    with query.running():
        shown = run(listening, "alter", ADD, *query.arguments(), "--dry-run")
        assert shown.exit_code == 0, shown.output
        assert ADD in shown.stderr
        transaction = server.begin()
        transaction.insert(f"{DATABASE}:{TABLE}", {"id": 500, "name": "x"})
        monkeypatch.setattr(alter, "LOCK_WAIT_SECONDS", 1)
        line = refusal(run(listening, "alter", ADD, *query.arguments()))
        transaction.rollback()
    assert "stores:informix.lines cannot be altered: it was locked for 1 s by 1 session: 0." in line
    assert query.requests.pending() == []


def test_a_statement_that_the_server_refuses_returns_the_table(served: Any, tmp_path: Path) -> None:
    server, listening, writer = served
    query = Query(listening, tmp_path)
    with query.running():
        wrong = f"ALTER TABLE {TABLE} ADD (name INTEGER)"
        line = refusal(run(listening, "alter", wrong, *query.arguments()))
        assert "returns to the stream unchanged" in line
    query.finish(marked(server))
    assert in_copies(query.copies) == in_tables(writer)


REFUSED = {
    "CREATE TABLE x (a INTEGER)": "none of the tables that the stream captures",
    "ALTER TABLE informix.nothing ADD (a INTEGER)": "none of the tables",
    f"BEGIN WORK; {ADD}": "statement 1 is BEGIN, which alter does not run",
    f"{ADD}; CREATE PROCEDURE p() END PROCEDURE": "statement 2 is CREATE PROCEDURE",
    " -- nothing\n;": "there is no statement to run",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_other_statements_are_refused(statement: str, served: Any, tmp_path: Path) -> None:
    _, listening, _ = served
    query = Query(listening, tmp_path)
    line = refusal(run(listening, "alter", statement, *query.arguments()), 2)
    assert REFUSED[statement] in line


def test_tables_of_a_query_that_does_not_run_are_altered_too(
    served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening, writer = served
    query, draw = Query(listening, tmp_path), random.Random(0)
    change(writer, draw)  # not delivered before
    monkeypatch.setattr(running_streams, "_GRACE_SECONDS", 0.2)
    found = run(listening, "alter", ADD, *query.arguments())
    assert found.exit_code == 0, found.output
    assert "Start the query" in found.stderr
    change(writer, draw)
    query.until_answered()
    query.finish(marked(server))
    assert size_of(query) == {7}
    assert in_copies(query.copies) == in_tables(writer)
