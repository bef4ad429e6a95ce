"""The capture has ended: stored rows come first, then its error; without one a query waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.capture.driving import (
    LIMIT,
    Served,
    anchor_of,
    drained,
    failure_of,
    insert,
    next_offset,
    numbers,
    rows_of,
)
from harness.capture.shared import RunningCapture, capture_settings, capturing, shared_reader
from harness.runs.patience import wait_until
from harness.servers.stores import ORDERS, listening_stores
from informix_capture_client.errors import AccessRefused, ConnectionLost, DataLoss
from informix_cdc.capture import server_watch
from informix_cdc.reading import capture_folder as module

pytestmark = pytest.mark.slow


@pytest.fixture
def small_log() -> Iterator[Served]:
    with listening_stores(log_pages=4, log_count=3) as (server, listening):
        yield server, listening


@pytest.mark.parametrize("is_available_now", [False, True], ids=["continuous", "AvailableNow"])
@pytest.mark.fault(
    fault="the capture of a reader has ended with an error that a restart does not mend",
    outcome="all stored rows, then that error with its remedy",
)
def test_stored_rows_come_before_the_error_that_ended_the_capture(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_available_now: bool
) -> None:
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)
    server, listening = served
    with capturing(listening.port, tmp_path) as running:
        with shared_reader(tmp_path) as made:
            start = anchor_of(made)
        for number in (1, 2):
            last = insert(server, number)
        wait_until(lambda: running.process.state.spool_rows == 2)
        server.set_full_row_logging(ORDERS, False)
        wait_until(lambda: running.has_ended)
        assert isinstance(running.error, DataLoss)
    with shared_reader(tmp_path) as made:
        if is_available_now:
            made.prepareForTriggerAvailableNow()
        rows, end = drained(made, start, last)
        assert numbers(rows) == [1, 2]
        error = failure_of(lambda: next_offset(made, end))
    assert isinstance(error, DataLoss)
    assert f"the capture {tmp_path} has ended: full row logging" in str(error)
    assert error.remedy == running.error.remedy


@pytest.mark.fault(
    fault="the server's log no longer has the position of a stopped capture",
    outcome="the capture ends with IFXCDC-0006, and its readers with the same after their rows;"
    " with onDataLoss=continue both go on",
)
@pytest.mark.only_in_all
def test_a_capture_whose_log_is_gone_tells_its_readers(small_log: Served, tmp_path: Path) -> None:
    server, listening = small_log
    with capturing(listening.port, tmp_path) as running:
        with shared_reader(tmp_path) as made:
            start = anchor_of(made)
        last = insert(server, 1)
        wait_until(lambda: running.process.state.spool_rows == 1)
    for _ in range(6):
        server.switch_log()
    running = RunningCapture(capture_settings(listening.port, tmp_path))
    wait_until(lambda: running.has_ended)
    assert isinstance(running.error, DataLoss)
    with shared_reader(tmp_path) as made:
        rows, end = drained(made, start, last)
        assert numbers(rows) == [1]
        assert "has ended" in str(failure_of(lambda: next_offset(made, end)))
    goes_on = capturing(listening.port, tmp_path, onDataLoss="continue")
    with goes_on, shared_reader(tmp_path) as made:
        after = next_offset(made, end)
        while after["stream"] == end["stream"]:
            after = next_offset(made, after)
        assert numbers(drained(made, after, insert(server, 2))[0]) == [2]


def test_a_run_of_available_now_gets_stored_rows_and_then_misses_the_capture(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AWAY_SECONDS", 0.5)
    with capturing(served[1].port, tmp_path) as running:
        with shared_reader(tmp_path) as made:
            start = anchor_of(made)
        last = insert(served[0], 1)
        wait_until(lambda: running.process.state.spool_rows == 1)
    with shared_reader(tmp_path) as made:
        made.prepareForTriggerAvailableNow()
        end = made.latestOffset(start, LIMIT)
        assert end["commit"] == last
        assert numbers(rows_of(made, start, end)) == [1]
        error = failure_of(lambda: made.latestOffset(end, LIMIT))
    assert isinstance(error, ConnectionLost)
    assert f"no capture is running at {tmp_path}" in str(error)
    assert "Start informix-cdc capture" in error.remedy


@pytest.mark.only_in_all
def test_a_run_of_available_now_goes_on_when_the_capture_comes_back(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    with capturing(listening.port, tmp_path), shared_reader(tmp_path) as made:
        start = anchor_of(made)
    insert(server, 1)
    running: list[RunningCapture] = []
    back = threading.Timer(
        1.0, lambda: running.append(RunningCapture(capture_settings(listening.port, tmp_path)))
    )
    back.start()
    with shared_reader(tmp_path) as made:
        made.prepareForTriggerAvailableNow()
        rows = []
        while (end := made.latestOffset(start, LIMIT)) != start:
            rows += rows_of(made, start, end)
            start = end
    back.join()
    running[0].stop()
    assert numbers(rows) == [1]


def test_a_continuous_query_waits_for_a_capture_that_is_away(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AWAY_SECONDS", 0.0)
    monkeypatch.setattr(module, "_CHECK_SECONDS", 0.0)
    with capturing(served[1].port, tmp_path), shared_reader(tmp_path) as made:
        start = anchor_of(made)
    with shared_reader(tmp_path) as made:
        for _ in range(3):
            assert made.latestOffset(start, LIMIT) == start
        figures = made.reportLatestOffset()
        assert figures is not None
        assert figures["captureRunning"] is False
        with capturing(served[1].port, tmp_path):
            assert numbers(drained(made, start, insert(served[0], 1))[0]) == [1]


def test_a_planned_batch_that_is_not_stored_is_awaited_and_then_missed(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AWAY_SECONDS", 0.5)
    with capturing(served[1].port, tmp_path), shared_reader(tmp_path) as made:
        start = anchor_of(made)
    end = {**start, "commit": start["commit"] + (1 << 20)}
    with shared_reader(tmp_path) as made:
        assert isinstance(failure_of(lambda: rows_of(made, start, end)), ConnectionLost)


@pytest.mark.only_in_all
def test_an_error_is_gone_once_a_capture_runs_again(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capturing(served[1].port, tmp_path), shared_reader(tmp_path) as made:
        start = anchor_of(made)
    refused = RunningCapture(capture_settings(served[1].port, tmp_path, password="wrong"))
    wait_until(lambda: refused.has_ended)
    assert isinstance(refused.error, AccessRefused)
    with shared_reader(tmp_path) as made:
        assert "has ended" in str(failure_of(lambda: next_offset(made, start)))
    with capturing(served[1].port, tmp_path), shared_reader(tmp_path) as made:
        assert numbers(drained(made, start, insert(served[0], 1))[0]) == [1]
    with shared_reader(tmp_path) as made:  # a capture that was stopped leaves no error
        assert made.latestOffset(start, LIMIT) != start
