"""What the capture does beside capturing works for its readers: snapshots, new tables, requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from connector.capture.test_requests import LINES, NAME, TABLE, intervals, until_answered
from connector.capture.test_requests import insert as insert_lines
from connector.table_changes.discovering import (
    ORDERS_AND_LATE,
    SECONDS,
    until_commit,
    until_tables,
)
from connector.table_changes.test_discovery import ALL, LATE, committed
from harness.capture.driving import LIMIT, anchor_of, drained
from harness.capture.shared import (
    RunningCapture,
    capture_settings,
    capturing,
    of_capture,
    of_reader,
    shared_reader,
)
from harness.capture.snapshots import serving_tables, until_snapshots_are_done
from harness.runs.patience import wait_until
from harness.servers.stores import ORDERS, listening_stores, quick_clock
from informix_checkpoints.requests import RESYNC, Request, RequestFolder
from informix_emulator import load_rows

pytestmark = pytest.mark.slow

WITH_SNAPSHOT = {"table": TABLE, "initialSnapshot": "all", "snapshotChunkRows": "3"}


@pytest.mark.only_in_all
def test_each_reader_gets_the_snapshot_and_the_changes(tmp_path: Path) -> None:
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(10)])
        with capturing(listening.port, tmp_path, **WITH_SNAPSHOT):
            for name in ("one", "two"):
                with shared_reader(tmp_path, name) as made:
                    rows, end = until_snapshots_are_done(made, anchor_of(made))
                    assert sorted(row["id"] for row in rows if row["_snapshot"]) == list(range(10))
            last = insert_lines(server, 99)
            for name in ("one", "two"):
                with shared_reader(tmp_path, name) as made:
                    made.commit(end)  # only now: what all known readers have is removed
                    assert [row["id"] for row in drained(made, end, last)[0]] == [99]


@pytest.mark.only_in_all
def test_a_run_of_available_now_ends_with_the_snapshot(tmp_path: Path) -> None:
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(10)])
        with capturing(listening.port, tmp_path, **WITH_SNAPSHOT), shared_reader(tmp_path) as made:
            made.prepareForTriggerAvailableNow()
            rows: list[dict[str, Any]] = []
            start = made.initialOffset()
            while (end := made.latestOffset(start, LIMIT)) != start:
                for part in made.partitions(start, end):
                    rows += [row for batch in made.read(part) for row in batch.to_pylist()]
                start = end
    assert sorted(row["id"] for row in rows) == list(range(10))


@pytest.mark.only_in_all
def test_a_snapshot_goes_on_after_a_restart_of_the_capture(tmp_path: Path) -> None:
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(30)])
        with capturing(listening.port, tmp_path, **WITH_SNAPSHOT) as running:
            wait_until(lambda: running.process.state.spool_rows >= 3)
        with capturing(listening.port, tmp_path, **WITH_SNAPSHOT), shared_reader(tmp_path) as made:
            rows, end = until_snapshots_are_done(made, anchor_of(made))
            more, _ = drained(made, end, insert_lines(server, 99))
    assert sorted(row["id"] for row in rows) == list(range(30))
    assert [row["id"] for row in more] == [99]


@pytest.mark.only_in_all
def test_a_table_that_is_created_joins_the_stream_of_all_readers(tmp_path: Path) -> None:
    with listening_stores(clock=quick_clock()) as (server, listening):
        as_json = of_reader(ORDERS_AND_LATE)
        with looking_often(listening.port, tmp_path), shared_reader(tmp_path, **as_json) as made:
            start = anchor_of(made)
            rows, start = until_commit(made, start, committed(server, 1, ORDERS))
            server.create_table(LATE, "id integer")
            more, start = until_tables(made, start, *ALL)
            rows += more
            more, start = until_commit(made, start, committed(server, 2, ORDERS, LATE))
            rows += more
        with (
            looking_often(listening.port, tmp_path),
            shared_reader(tmp_path, "two", **as_json) as made,
        ):
            again, _ = until_commit(made, anchor_of(made), start["commit"])
    assert rows == [("orders", 1), ("orders", 2), ("ord_late", 2)]
    assert again == rows  # the first reader has released nothing


@contextmanager
def looking_often(port: int, folder: Path) -> Iterator[RunningCapture]:
    """Run a capture that looks its patterns up every few hundredths of a second."""
    settings = capture_settings(port, folder, **of_capture(ORDERS_AND_LATE))
    seconds = cast("Any", SECONDS)  # the option has whole ones
    running = RunningCapture(
        replace(settings, source=replace(settings.source, discovery_seconds=seconds))
    )
    try:
        wait_until(running.has_published)
        yield running
    finally:
        running.stop()


@pytest.mark.only_in_all
def test_a_table_is_read_again_on_request(tmp_path: Path) -> None:
    options = {"table": "informix.*", "tableEvents": "true", "snapshotChunkRows": "3"}
    rows_as = {"shape": "json", "tableEvents": "true", "truncate": "emit"}
    with serving_tables(LINES) as (server, listening, _):
        load_rows(server, NAME, [{"id": n, "name": "x"} for n in range(7)])
        with (
            capturing(listening.port, tmp_path, **options),
            shared_reader(tmp_path, **rows_as) as made,
        ):
            start = anchor_of(made)
            folder = RequestFolder(tmp_path / start["stream"])
            request = Request(kind=RESYNC, tables=(TABLE,))
            folder.submit(request)
            rows, end, answer = until_answered(made, folder, request, start)
            more, _ = drained(made, end, insert_lines(server, 100))
    assert [*intervals(rows)] == [
        ("range_start", None, 2, [0, 1, 2]),
        ("range_start", 2, 5, [3, 4, 5]),
        ("range_start", 5, None, [6]),
    ]
    assert (answer.rows, answer.problems) == ({TABLE: 7}, {})
    assert more[-1]["_change_type"] == "insert"
