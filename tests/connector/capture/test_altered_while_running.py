"""A table leaves the stream, is altered, and returns, while the query runs and the others continue."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

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
from harness.capture.driving import LIMIT, Offset, meanwhile, reader, rows_of, state_of
from harness.capture.snapshots import serving_tables
from harness.capture.told import told
from harness.runs.moved_clock import MovedClock
from harness.runs.patience import patiently
from harness.runs.tiers import rest_in_all
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import DATABASE
from informix_cdc.spark.reader import InformixStreamReader
from informix_checkpoints.requests import ALTER, Request, RequestFolder
from informix_emulator import EmulatedServer

pytestmark = pytest.mark.slow

TABLE = "informix.lines"
ADD = f"ALTER TABLE {TABLE} ADD (size INTEGER)"


@pytest.fixture
def served() -> Iterator[Any]:
    with serving_tables(LINES, PAIRS, OTHER) as served:
        filled(served[0])
        yield served


def altered(server: EmulatedServer, writer: InProcessConnection, statement: str) -> None:
    """Do by hand what `informix-cdc alter` does once the table has left the stream."""
    server.set_full_row_logging(f"{DATABASE}:{TABLE}", False)
    writer.rows(statement)
    server.finish_alter(f"{DATABASE}:{TABLE}")


def step(made: InformixStreamReader, start: Offset, copies: Copies) -> Offset:
    end = made.latestOffset(start, LIMIT)
    if end != start:
        copies.apply(rows_of(made, start, end))
    return end


def until(
    made: InformixStreamReader, start: Offset, copies: Copies, is_true: Callable[[], bool]
) -> Offset:
    deadline = time.monotonic() + patiently(60)
    while not is_true():
        assert time.monotonic() < deadline
        start = step(made, start, copies)
    return start


def submitted(spool: Path, start: Offset) -> tuple[RequestFolder, Request]:
    request = Request(kind=ALTER, tables=(TABLE,), statements=(ADD,))
    folder = RequestFolder(spool / start["stream"])
    folder.submit(request)
    return folder, request


RESTARTS = {
    "none": (),
    "before the ALTER": ("ready",),
    "behind the ALTER": ("altered",),
    "everywhere": ("ready", "altered", "joined"),
}


@pytest.mark.parametrize("restarts", rest_in_all(RESTARTS))
def test_an_altered_table_equals_informix_and_the_others_continue(
    restarts: str, served: Any, tmp_path: Path
) -> None:
    """Writers of all tables go on: also of the table, while its row logging is off."""
    server, listening, writer = served
    draw, copies, sharing = random.Random(0), Copies(KEYS), threading.Lock()

    def write() -> None:
        with sharing:
            change(writer, draw)

    def alter() -> None:
        assert TABLE not in _known(made)
        with sharing:
            altered(server, writer, ADD)

    with reader(listening.port, **of_stream(tmp_path)) as made:
        start = deliver(made, made.initialOffset(), copies)
    folder, request = submitted(tmp_path, start)
    steps: list[tuple[str, Callable[[], bool], Callable[[], None]]] = [
        ("ready", lambda: folder.is_ready(request.id), alter),
        ("altered", lambda: True, lambda: folder.mark_altered(request.id)),
        ("joined", lambda: TABLE in _known(made), lambda: None),
        ("", lambda: folder.answer(request.id) is not None, lambda: None),
    ]
    with meanwhile(write, 0.01), contextlib.ExitStack() as readers:
        made = readers.enter_context(reader(listening.port, **of_stream(tmp_path)))
        for name, is_there, then in steps:
            start = until(made, start, copies, is_there)
            if name in RESTARTS[restarts]:
                readers.close()
                made = readers.enter_context(reader(listening.port, **of_stream(tmp_path)))
                for _ in range(3):
                    start = step(made, start, copies)
            then()
    upto = marked(server)
    with reader(listening.port, **of_stream(tmp_path)) as made:
        deliver(made, start, copies, upto)
    answer = folder.answer(request.id)
    assert answer is not None
    assert answer.problems == {}
    assert {row.pop("size") for row in copies.rows[TABLE].values()} == {None}
    assert in_copies(copies) == in_tables(writer)


@pytest.mark.only_in_all
def test_a_table_that_has_left_stays_out_when_the_process_ends_before_it_says_so(
    served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, listening, writer = served
    copies = Copies(KEYS)
    with reader(listening.port, **of_stream(tmp_path)) as made:
        start = deliver(made, made.initialOffset(), copies)
    folder, request = submitted(tmp_path, start)

    with monkeypatch.context() as patch, reader(listening.port, **of_stream(tmp_path)) as made:
        patch.setattr(RequestFolder, "mark_ready", lambda *_: None)
        while TABLE in start["tables"]:
            start = step(made, start, copies)
    with reader(listening.port, **of_stream(tmp_path)) as made:
        start = until(made, start, copies, lambda: folder.is_ready(request.id))
        altered(server, writer, ADD)
        folder.mark_altered(request.id)
        start = until(made, start, copies, lambda: folder.answer(request.id) is not None)
        deliver(made, start, copies, marked(server))
    assert {row.pop("size") for row in copies.rows[TABLE].values()} == {None}
    assert in_copies(copies) == in_tables(writer)


def _known(made: InformixStreamReader) -> dict[str, object]:
    spool = state_of(made).spool
    return dict(spool.manifest.present_tables) if spool else {}


def test_a_table_that_the_stream_does_not_have_is_refused(served: Any, tmp_path: Path) -> None:
    _, listening, _ = served
    copies = Copies(KEYS)
    with reader(listening.port, **of_stream(tmp_path)) as made:
        start = deliver(made, made.initialOffset(), copies)
        request = Request(kind=ALTER, tables=("informix.nothing",))
        folder = RequestFolder(tmp_path / start["stream"])
        folder.submit(request)
        until(made, start, copies, lambda: folder.answer(request.id) is not None)
    answer = folder.answer(request.id)
    assert answer is not None
    assert "does not capture informix.nothing" in answer.problems["informix.nothing"]


@pytest.mark.fault(
    fault="`informix-cdc alter` is killed after the stream has stopped capturing its table",
    outcome="`table_altering` each minute with the command, and `informix_cdc_altering_tables`; the"
    " same command continues",
)
def test_an_alter_that_does_not_end_is_reported_each_minute(
    served: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with reader(served[1].port, **of_stream(tmp_path)) as made:
        start = deliver(made, made.initialOffset(), Copies(KEYS))
    folder, request = submitted(tmp_path, start)
    clock = MovedClock()
    with reader(served[1].port, clock=clock, **of_stream(tmp_path)) as made:

        def look(is_true: Callable[[], bool]) -> None:
            deadline = time.monotonic() + patiently(30)
            while not is_true():
                assert time.monotonic() < deadline
                clock.move(5)
                made.latestOffset(start, LIMIT)

        def events() -> list[dict[str, Any]]:
            return told(caplog, "table_altering")

        look(lambda: len(events()) > 1)
        assert (made.reportLatestOffset() or {})["alteringTables"] == 1
        folder.mark_altered(request.id)
        look(lambda: (made.reportLatestOffset() or {})["alteringTables"] == 0)
    first, second = events()[:2]
    assert first["tables"] == TABLE
    assert int(first["seconds"]) >= 60
    assert int(second["seconds"]) - int(first["seconds"]) >= 60
    assert "informix-cdc alter 'ALTER TABLE informix.lines ADD (size INTEGER)'" in first["remedy"]
