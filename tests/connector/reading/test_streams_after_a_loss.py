"""The capture goes on with a new stream after a data loss: readers get the previous one first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from connector.reading.test_handing_over import checkpoint_of
from harness.capture.driving import (
    LIMIT,
    Offset,
    Served,
    anchor_of,
    begun_and_stopped,
    drained,
    failure_of,
    insert,
    next_offset,
    numbers,
    rows_of,
)
from harness.capture.shared import RunningCapture, capturing, shared_reader
from harness.capture.told import told
from harness.runs.patience import wait_until
from harness.servers.stores import ORDERS
from informix_capture_client.errors import DataLoss
from informix_cdc.capture import server_watch
from informix_cdc.spark.reader import InformixStreamReader

pytestmark = pytest.mark.slow

GOES_ON = {"onDataLoss": "continue"}


@pytest.fixture(autouse=True)
def _often_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)


def published_stream(running: RunningCapture) -> str:
    published = running.process.publication.published
    assert published is not None
    assert published.offset is not None
    return published.offset.stream


def lose(served: Served, running: RunningCapture) -> str:
    """Let the stream lose data; return the new one."""
    before = published_stream(running)
    served[0].set_full_row_logging(ORDERS, False)
    wait_until(lambda: published_stream(running) != before)
    return published_stream(running)


def insert_stored(served: Served, running: RunningCapture, *orders: int) -> int:
    """Insert, and wait until it is stored."""
    commit = insert(served[0], *orders)
    wait_until(lambda: (spool := running.process.state.spool) and spool.manifest.end.commit >= commit)
    return commit


def until_stream(
    made: InformixStreamReader, start: Offset, stream: str
) -> tuple[list[dict[str, Any]], Offset]:
    """Run batches until a stream has begun; return what came, and its first offset."""
    rows: list[dict[str, Any]] = []
    while start["stream"] != stream:
        end = next_offset(made, start)
        rows += rows_of(made, start, end)
        made.commit(end)
        start = end
    return rows, start


@pytest.mark.fault(
    fault="the capture of several readers loses data; one reader is away",
    outcome="each reader gets all rows of the previous stream first; its folder goes after the last",
)
@pytest.mark.only_in_all
def test_each_reader_gets_the_previous_stream_before_the_new_one(
    served: Served, tmp_path: Path
) -> None:
    with capturing(served[1].port, tmp_path, **GOES_ON) as running:
        former = published_stream(running)
        with shared_reader(tmp_path, "away") as away:
            behind = anchor_of(away)
        with shared_reader(tmp_path, "here") as here:
            start = anchor_of(here)
            rows, start = drained(here, start, insert_stored(served, running, 1))
            insert_stored(served, running, 2)
            stream = lose(served, running)
            last = insert_stored(served, running, 3)
            more, start = until_stream(here, start, stream)
            rows += more + drained(here, start, last)[0]
        wait_until(lambda: {each.stream for each in running.process.readers} == {former, stream})
        assert numbers(rows) == [1, 2, 3]
        assert (tmp_path / former).is_dir()
        with shared_reader(tmp_path, "away") as away:
            rows, behind = until_stream(away, behind, stream)
            assert numbers(rows + drained(away, behind, last)[0]) == [1, 2, 3]
        wait_until(lambda: not (tmp_path / former).exists())


@pytest.mark.only_in_all
def test_a_reader_that_was_away_for_two_losses_gets_all_three_streams(
    served: Served, tmp_path: Path
) -> None:
    with capturing(served[1].port, tmp_path, **GOES_ON) as running:
        with shared_reader(tmp_path, "away") as away:
            start = anchor_of(away)
        insert_stored(served, running, 1)
        second = lose(served, running)
        insert_stored(served, running, 2)
        third = lose(served, running)
        last = insert_stored(served, running, 3)
        wait_until(lambda: running.process.readers)
        for _ in range(3):
            running.process._remove_previous_streams()
        with shared_reader(tmp_path, "away") as away:
            rows, start = until_stream(away, start, second)
            more, start = until_stream(away, start, third)
            assert numbers(rows + more + drained(away, start, last)[0]) == [1, 2, 3]


@pytest.mark.fault(
    fault="a reader is away during a loss, and until the first rows of the next stream are removed",
    outcome="the previous stream, then IFXCDC-0006; with onDataLoss=continue from the first stored row",
)
@pytest.mark.parametrize("goes_on", [False, True], ids=["fail", "continue"])
def test_rows_that_were_removed_from_the_next_stream_are_missed(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture, goes_on: bool
) -> None:
    most_bytes = 12_000  # of a few segments of one row
    few = {"retentionBytes": str(most_bytes)}
    with capturing(served[1].port, tmp_path, few, **GOES_ON) as running:
        with shared_reader(tmp_path, "away") as away:
            start = anchor_of(away)
        insert_stored(served, running, 1)
        stream = lose(served, running)
        last = [insert_stored(served, running, number) for number in range(2, 14)][-1]
        wait_until(lambda: told(caplog, "reader_left_behind"))
        # Else rows are removed once more while they are read, which is another loss.
        wait_until(lambda: running.process.state.spool_bytes <= most_bytes)
        policy = GOES_ON if goes_on else {}
        with shared_reader(tmp_path, "away", **policy) as away:
            end = next_offset(away, start)
            assert numbers(rows_of(away, start, end)) == [1]
            if not goes_on:
                lost = failure_of(lambda: until_stream(away, end, stream))
                assert isinstance(lost, DataLoss)
                assert "reader away has not read" in str(lost)
            else:
                rows, begun = until_stream(away, end, stream)
                assert rows == []
                kept = numbers(drained(away, begun, last)[0])
                assert kept == [*range(14 - len(kept), 14)]
                assert 1 <= len(kept) < 12
    assert [each["reader"] for each in told(caplog, "rows_removed")] == ["away"] * goes_on


@pytest.mark.only_in_all
def test_a_planned_batch_of_the_previous_stream_comes_again_after_the_loss(
    served: Served, tmp_path: Path
) -> None:
    with capturing(served[1].port, tmp_path, **GOES_ON) as running:
        with shared_reader(tmp_path) as made:
            start = anchor_of(made)
            insert_stored(served, running, 1)
            end = next_offset(made, start)
            rows = rows_of(made, start, end)
        stream = lose(served, running)
        with shared_reader(tmp_path) as made:
            assert rows_of(made, start, end) == rows
            _, after = until_stream(made, end, stream)
        with shared_reader(tmp_path) as made:  # the batch that leads to the new stream
            assert rows_of(made, end, after) == []
            last = insert_stored(served, running, 2)
            assert numbers(drained(made, after, last)[0]) == [2]
    assert numbers(rows) == [1]


def test_a_run_of_available_now_ends_with_the_end_of_the_new_stream(
    served: Served, tmp_path: Path
) -> None:
    with capturing(served[1].port, tmp_path, **GOES_ON) as running:
        with shared_reader(tmp_path) as made:
            start = anchor_of(made)
        insert_stored(served, running, 1)
        lose(served, running)
        insert_stored(served, running, 2)
        with shared_reader(tmp_path) as made:
            made.prepareForTriggerAvailableNow()
            rows = []
            while (end := made.latestOffset(start, LIMIT)) != start:
                rows += rows_of(made, start, end)
                start = end
    assert numbers(rows) == [1, 2]


def test_positions_of_another_log_release_no_rows_of_the_new_stream(
    served: Served, tmp_path: Path
) -> None:
    """A server that was set up anew has lower positions: where a reader was says nothing there."""
    server, listening = served
    server.set_full_row_logging(ORDERS, True)
    anchor = begun_and_stopped(listening.port)
    far = {**anchor, "commit": anchor["commit"] + (9 << 32), "restart": anchor["restart"] + (9 << 32)}
    checkpoint = checkpoint_of(tmp_path / "checkpoint", [far], 1)
    folder = tmp_path / "spool"
    with capturing(listening.port, folder, continues=checkpoint, **GOES_ON) as running:
        wait_until(lambda: published_stream(running) != far["stream"])
        stream = published_stream(running)
        with shared_reader(folder) as made:
            made.latestOffset(far, LIMIT)
            made.commit(far)  # as Spark does for the last batch
            start = next_offset(made, far)
            assert rows_of(made, far, start) == []
            made.latestOffset(start, LIMIT)
            wait_until(lambda: [each.stream for each in running.process.readers] == [stream])
            last = insert_stored(served, running, 1)
            running.process._looked_at = float("-inf")
            rows, _ = drained(made, start, last)
    assert numbers(rows) == [1]


def test_a_previous_stream_that_is_too_old_is_left_out_loudly(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with capturing(served[1].port, tmp_path, **GOES_ON) as running:
        with shared_reader(tmp_path) as made:
            start = anchor_of(made)
        first = published_stream(running)
        insert_stored(served, running, 1)
        second = lose(served, running)
        insert_stored(served, running, 2)
        third = lose(served, running)
        last = insert_stored(served, running, 3)
    for stream in (first, second):
        os.utime(tmp_path / stream, (1e9, 1e9))
    with capturing(served[1].port, tmp_path, **GOES_ON):
        wait_until(lambda: not any((tmp_path / stream).exists() for stream in (first, second)))
        with shared_reader(tmp_path) as made:
            assert isinstance(failure_of(lambda: next_offset(made, start)), DataLoss)
        with shared_reader(tmp_path, onDataLoss="continue") as made:
            rows, start = until_stream(made, start, third)
            assert numbers(rows + drained(made, start, last)[0]) == [3]
    assert {each["stream"] for each in told(caplog, "rows_removed")} == {first, second}
