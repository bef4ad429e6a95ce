"""A table leaves the stream, is altered, and returns, while the query runs and the others continue."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.capture.copied_tables import CopiedTables, copied_tables
from harness.capture.driving import LIMIT, state_of
from harness.capture.told import told
from harness.runs.background import meanwhile
from harness.runs.moved_clock import MovedClock
from harness.runs.patience import patiently
from harness.runs.tiers import rest_in_all
from harness.servers.in_process import InProcessConnection
from harness.servers.stores import DATABASE
from informix_cdc.spark.reader import InformixStreamReader
from informix_checkpoints.requests import RequestFolder
from informix_emulator import EmulatedServer

pytestmark = pytest.mark.slow

TABLE = "informix.lines"
ADD = f"ALTER TABLE {TABLE} ADD (size INTEGER)"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CopiedTables]:
    with copied_tables(tmp_path) as world:
        yield world.begin()


def altered(server: EmulatedServer, writer: InProcessConnection, statement: str) -> None:
    """Do by hand what `informix-cdc alter` does once the table has left the stream."""
    server.set_full_row_logging(f"{DATABASE}:{TABLE}", False)
    writer.rows(statement)
    server.finish_alter(f"{DATABASE}:{TABLE}")


def _known(made: InformixStreamReader) -> dict[str, object]:
    spool = state_of(made).spool
    return dict(spool.manifest.present_tables) if spool else {}


RESTARTS = {
    "none": (),
    "before the ALTER": ("ready",),
    "behind the ALTER": ("altered",),
    "everywhere": ("ready", "altered", "joined"),
}


@pytest.mark.parametrize("restarts", rest_in_all(RESTARTS))
def test_an_altered_table_equals_informix_and_the_others_continue(
    restarts: str, world: CopiedTables
) -> None:
    """Writers of all tables go on: also of the table, while its row logging is off."""
    sharing = threading.Lock()

    def write() -> None:
        with sharing:
            world.change()

    def alter() -> None:
        assert TABLE not in _known(made)
        with sharing:
            altered(world.server, world.writer, ADD)

    folder, request = world.requests, world.submitted(ADD)
    steps: list[tuple[str, Callable[[], bool], Callable[[], None]]] = [
        ("ready", lambda: folder.is_ready(request.id), alter),
        ("altered", lambda: True, lambda: folder.mark_altered(request.id)),
        ("joined", lambda: TABLE in _known(made), lambda: None),
        ("", lambda: folder.answer(request.id) is not None, lambda: None),
    ]
    with meanwhile(write, 0.01), contextlib.ExitStack() as readers:
        made = readers.enter_context(world.reader())
        for name, is_there, then in steps:
            world.until(made, is_there)
            if name in RESTARTS[restarts]:
                readers.close()
                made = readers.enter_context(world.reader())
                for _ in range(3):
                    world.step(made)
            then()
    world.finish()
    answer = folder.answer(request.id)
    assert answer is not None
    assert answer.problems == {}
    assert world.sizes() == {None}
    world.require_equal()


@pytest.mark.only_in_all
def test_a_table_that_has_left_stays_out_when_the_process_ends_before_it_says_so(
    world: CopiedTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, request = world.requests, world.submitted(ADD)
    with monkeypatch.context() as patch, world.reader() as made:
        patch.setattr(RequestFolder, "mark_ready", lambda *_: None)
        world.until(made, lambda: TABLE not in world.offset["tables"])
    with world.reader() as made:
        world.until(made, lambda: folder.is_ready(request.id))
        altered(world.server, world.writer, ADD)
        folder.mark_altered(request.id)
        world.until(made, lambda: folder.answer(request.id) is not None)
    world.finish()
    assert world.sizes() == {None}
    world.require_equal()


def test_a_table_that_the_stream_does_not_have_is_refused(world: CopiedTables) -> None:
    request = world.submitted(table="informix.nothing")
    with world.reader() as made:
        world.until(made, lambda: world.requests.answer(request.id) is not None)
    answer = world.requests.answer(request.id)
    assert answer is not None
    assert "does not capture informix.nothing" in answer.problems["informix.nothing"]


@pytest.mark.fault(
    fault="`informix-cdc alter` is killed after the stream has stopped capturing its table",
    outcome="`table_altering` each minute with the command, and `informix_cdc_altering_tables`; the"
    " same command continues",
)
def test_an_alter_that_does_not_end_is_reported_each_minute(
    world: CopiedTables, caplog: pytest.LogCaptureFixture
) -> None:
    request, start, clock = world.submitted(ADD), world.offset, MovedClock()
    with world.reader(clock) as made:

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
        world.requests.mark_altered(request.id)
        look(lambda: (made.reportLatestOffset() or {})["alteringTables"] == 0)
    first, second = events()[:2]
    assert first["tables"] == TABLE
    assert int(first["seconds"]) >= 60
    assert int(second["seconds"]) - int(first["seconds"]) >= 60
    assert "informix-cdc alter 'ALTER TABLE informix.lines ADD (size INTEGER)'" in first["remedy"]
