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
from harness.servers.stores import DATABASE
from informix_capture_client.emulator import EmulatedServer, load_rows
from informix_capture_client.emulator.sql.statements import selects
from informix_capture_client.errors import ConnectionLost
from informix_cdc.server import connections
from informix_cdc.snapshots import reading
from informix_cdc.snapshots.connection import SnapshotConnection
from odbc_driver.build import build_drivers

pytestmark = pytest.mark.slow

LINES = "CREATE TABLE informix.lines (id INTEGER NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
SILENT_SECONDS = 4 * PATIENCE  # with a readTimeoutSeconds of 1, three of which are added


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
    monkeypatch.setattr(connections, "_SILENT_SECONDS", SILENT_SECONDS - 3)
    yield made
    made.may_go_on.set()


def fill(server: EmulatedServer) -> None:
    load_rows(server, f"{DATABASE}:informix.lines", [{"id": n, "name": "x"} for n in range(5)])


def readers() -> list[str]:
    return [each.name for each in threading.enumerate() if "snapshot of" in each.name]


@pytest.mark.fault(
    fault="a chunk's SELECT brings no row for longer than a server may be silent (a sort)",
    outcome="it is waited for, for up to an hour, while the second connection answers",
)
@pytest.mark.parametrize("transport", ["sqli", "odbc"])
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
