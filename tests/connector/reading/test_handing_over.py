"""A stream changes hands: from the capture of a query to a shared one and back, with one checkpoint."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness.capture.driving import (
    Offset,
    Served,
    anchor_of,
    drained,
    failure_of,
    insert,
    next_offset,
    numbers,
    reader,
    rows_of,
)
from harness.capture.shared import RunningCapture, capture_settings, capturing, shared_reader
from harness.runs.patience import wait_until
from informix_capture_client.errors import BadOption
from informix_checkpoints.shared_captures import PreviousStream, load_published, save_published


def checkpoint_of(folder: Path, planned: list[Offset], committed: int) -> str:
    """Write a checkpoint as Spark does, with these batches."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number, offset in enumerate(planned):
        text = json.dumps(offset, separators=(",", ":"))
        (folder / "offsets" / str(number)).write_text(f"v1\n{{}}\n{text}")
        if number < committed:
            (folder / "commits" / str(number)).write_text("v1\n{}")
    return str(folder)


@pytest.mark.parametrize("spool", ["spool", "other"], ids=["the same folder", "another folder"])
@pytest.mark.parametrize("is_committed", [True, False])
def test_a_stream_goes_to_a_shared_capture_and_back(
    served: Served, tmp_path: Path, spool: str, *, is_committed: bool
) -> None:
    server, listening = served
    with reader(listening.port, spoolPath=str(tmp_path / "spool")) as made:
        start = anchor_of(made)
        insert(server, 1)
        end = next_offset(made, start)
        rows = rows_of(made, start, end)
    insert(server, 2)
    checkpoint = checkpoint_of(tmp_path / "checkpoint", [start, end], 2 if is_committed else 1)
    folder = tmp_path / spool
    with capturing(listening.port, folder, continues=checkpoint) as running:
        assert running.process.state.stream == start["stream"]
        with shared_reader(folder) as made:
            if not is_committed:  # Spark runs the planned batch again
                assert rows_of(made, start, end) == rows
            more, there = drained(made, end, insert(server, 3))
            made.commit(there)
    assert numbers(rows + more) == [1, 2, 3]
    insert(server, 4)
    with reader(listening.port, spoolPath=str(tmp_path / "back")) as made:
        back, _ = drained(made, there, insert(server, 5))
    assert numbers(back) == [4, 5]


def test_two_streams_never_become_one(served: Served, tmp_path: Path) -> None:
    server, listening = served
    with reader(listening.port) as made:
        start = anchor_of(made)
        insert(server, 1)
        end = next_offset(made, start)
    checkpoint = checkpoint_of(tmp_path / "checkpoint", [start, end], 2)
    folder = tmp_path / "spool"
    with capturing(listening.port, folder):
        pass
    running = RunningCapture(capture_settings(listening.port, folder), checkpoint)
    wait_until(lambda: running.has_ended)
    assert isinstance(running.error, BadOption)
    assert "Two streams cannot become one" in str(running.error)


@pytest.mark.only_in_all
def test_a_start_that_continues_a_checkpoint_may_be_repeated(served: Served, tmp_path: Path) -> None:
    server, listening = served
    with reader(listening.port) as made:
        start = anchor_of(made)
        insert(server, 1)
        end = next_offset(made, start)
    checkpoint = checkpoint_of(tmp_path / "checkpoint", [start, end], 2)
    for number in (2, 3):
        folder = tmp_path / "spool"
        shared = capturing(listening.port, folder, continues=checkpoint)
        with shared, shared_reader(folder) as made:
            rows, end = drained(made, end, insert(server, number))
            assert numbers(rows) == [number]


@pytest.mark.only_in_all
def test_later_starts_ignore_a_checkpoint_that_is_gone(served: Served, tmp_path: Path) -> None:
    server, listening = served
    with reader(listening.port) as made:
        start = anchor_of(made)
        insert(server, 1)
        end = next_offset(made, start)
    checkpoint = checkpoint_of(tmp_path / "checkpoint", [start, end], 2)
    folder = tmp_path / "spool"
    with capturing(listening.port, folder, continues=checkpoint):
        pass
    shutil.rmtree(checkpoint)
    with capturing(listening.port, folder, continues=checkpoint) as running:
        assert running.process.state.stream == start["stream"]


def test_later_starts_ignore_a_checkpoint_from_before_a_data_loss(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    with reader(listening.port) as made:
        start = anchor_of(made)
        insert(server, 1)
        end = next_offset(made, start)
    checkpoint = checkpoint_of(tmp_path / "checkpoint", [start, end], 2)
    folder = tmp_path / "spool"
    with capturing(listening.port, folder, continues=checkpoint):
        pass
    published = load_published(folder)
    assert published is not None
    assert published.offset is not None
    previous = {start["stream"]: PreviousStream((end["commit"], 0), "0123456789abcdef")}
    later = replace(published.offset, stream="0123456789abcdef")
    save_published(replace(published, offset=later, previous=previous), folder)
    with capturing(listening.port, folder, continues=checkpoint) as running:
        assert running.process.state.stream == "0123456789abcdef"


@pytest.mark.only_in_all
def test_a_query_that_still_runs_keeps_its_folder(served: Served, tmp_path: Path) -> None:
    server, listening = served
    with reader(
        listening.port, spoolPath=str(tmp_path / "spool"), connection__read_timeout_seconds=1
    ) as made:
        start = anchor_of(made)
        insert(server, 1)
        end = next_offset(made, start)
        checkpoint = checkpoint_of(tmp_path / "checkpoint", [start, end], 2)
        running = RunningCapture(capture_settings(listening.port, tmp_path / "spool"), checkpoint)
        wait_until(lambda: running.has_ended, 40)
        assert "another query is writing to the spool" in str(running.error)
        rows, _ = drained(made, end, insert(server, 2))
    assert numbers(rows) == [2]


def test_options_of_the_capture_are_refused_in_a_reader(served: Served, tmp_path: Path) -> None:
    _, listening = served
    with capturing(listening.port, tmp_path):

        def make() -> None:
            with shared_reader(tmp_path, lobs="content", host="db1"):
                pass

        refused = failure_of(make)
    assert "option 'lobs' cannot be used with captureAt" in str(refused)
    assert "option 'host' cannot be used with captureAt" in str(refused)
