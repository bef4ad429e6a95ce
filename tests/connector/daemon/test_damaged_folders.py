"""A folder of a capture that is full, read-only or damaged: errors say so, and nothing is lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from connector.reading.test_handing_over import checkpoint_of
from harness.capture.driving import (
    Served,
    anchor_of,
    drained,
    failure_of,
    insert,
    next_offset,
    numbers,
)
from harness.capture.shared import RunningCapture, capture_settings, capturing, shared_reader
from harness.capture.told import told
from harness.runs.patience import wait_until
from informix_capture_client.errors import AccessRefused, DataLoss
from informix_checkpoints import readers, shared_captures
from informix_checkpoints.readers import Readers
from informix_checkpoints.shared_captures import FILE_NAME
from informix_checkpoints.spool import segments

pytestmark = pytest.mark.slow

REFUSALS = {
    errno.ENOSPC: "Free space on its disk",
    errno.EROFS: "mounted read-only",
    errno.EACCES: "Let the user of this process write there",
}


@contextmanager
def refusing(module: Any, name: str, number: int) -> Iterator[None]:
    """Let the system refuse what a module writes."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, refuse)
        yield


@pytest.mark.parametrize("number", REFUSALS, ids=[errno.errorcode[each] for each in REFUSALS])
@pytest.mark.fault(
    fault="the disk of a shared capture is full, read-only or not writable",
    outcome="the capture ends, and its readers after their rows, with folder and remedy;"
    " then nothing is missing",
)
@pytest.mark.only_in_all
def test_rows_that_cannot_be_stored_end_the_capture_and_are_captured_later(
    number: int, served: Served, tmp_path: Path
) -> None:
    server, listening = served
    with capturing(listening.port, tmp_path) as running:
        with shared_reader(tmp_path) as made:
            start = anchor_of(made)
        stored = insert(server, 1)
        wait_until(lambda: running.process.state.spool_rows == 1)
        with refusing(segments, "sync", number):
            last = insert(server, 2)
            wait_until(lambda: running.has_ended)
    assert isinstance(running.error, AccessRefused)
    assert str(tmp_path) in str(running.error)
    assert REFUSALS[number] in running.error.remedy
    with shared_reader(tmp_path) as made:
        rows, start = drained(made, start, stored)
        error = failure_of(lambda: next_offset(made, start))
        assert f"the capture {tmp_path} has ended" in str(error)
        assert REFUSALS[number] in error.remedy
    with capturing(listening.port, tmp_path), shared_reader(tmp_path) as made:
        assert numbers(rows + drained(made, start, last)[0]) == [1, 2]


@pytest.mark.only_in_all
def test_news_that_cannot_be_written_end_the_capture_and_lose_nothing(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    with capturing(listening.port, tmp_path) as running:
        with shared_reader(tmp_path) as made:
            start = anchor_of(made)
        with refusing(shared_captures, "replace_file", errno.ENOSPC):
            last = insert(server, 1)
            wait_until(lambda: running.process.state.spool_rows == 1)
            running.process.publication.written_at = float("-inf")  # as after some seconds
            wait_until(lambda: running.has_ended)
    assert isinstance(running.error, AccessRefused)
    assert "Free space on its disk" in running.error.remedy
    with capturing(listening.port, tmp_path), shared_reader(tmp_path) as made:
        assert numbers(drained(made, start, last)[0]) == [1]


def test_a_place_that_cannot_be_written_ends_the_query_and_loses_nothing(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    with capturing(listening.port, tmp_path):
        with shared_reader(tmp_path) as made:
            start = anchor_of(made)
            rows, end = drained(made, start, insert(server, 1))
            with refusing(readers, "replace_file", errno.ENOSPC):
                error = failure_of(lambda: made.commit(end))
            assert isinstance(error, AccessRefused)
            assert str(tmp_path) in str(error)
            assert "Free space on its disk" in error.remedy
        with shared_reader(tmp_path) as made:
            assert numbers(rows + drained(made, end, insert(server, 2))[0]) == [1, 2]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\0" * 80, b'{"version": 9}'], ids=repr)
@pytest.mark.fault(
    fault="the file of a reader's place is damaged",
    outcome="all rows stay until the query starts again, or until the reader is removed; nothing lost",
)
def test_a_damaged_place_holds_all_rows_back(
    content: bytes, served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    with capturing(listening.port, tmp_path) as running:
        with shared_reader(tmp_path, "hurt") as made:
            start = anchor_of(made)
        with shared_reader(tmp_path, "well") as well:
            begun = anchor_of(well)
            (tmp_path / "readers" / "hurt.json").write_bytes(content)
            _, end = drained(well, begun, insert(server, 1))
            well.commit(end)
        wait_until(lambda: {each.stream for each in running.process.readers} == {"", end["stream"]})
        wait_until(lambda: told(caplog, "reader_not_readable"))
        wait_until(lambda: running.process.state.spool_rows == 1)
        with shared_reader(tmp_path, "hurt") as made:
            rows, start = drained(made, start, end["commit"])
            assert numbers(rows) == [1]
            made.commit(start)
            wait_until(lambda: running.process.state.spool_rows == 0)
    assert told(caplog, "reader_not_readable")[0]["reader"] == "hurt"


def test_a_running_reader_whose_place_is_damaged_is_not_called_another_query(
    served: Served, tmp_path: Path
) -> None:
    with capturing(served[1].port, tmp_path), shared_reader(tmp_path, "hurt") as made:
        start = anchor_of(made)
        (tmp_path / "readers" / "hurt.json").write_bytes(b"{")
        refused = failure_of(lambda: next_offset(made, start))
    assert isinstance(refused, AccessRefused)
    assert "cannot be read" in str(refused)
    assert "Start the query again" in str(refused)


@pytest.mark.only_in_all
def test_a_damaged_place_of_a_reader_that_is_gone_can_be_removed(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    with capturing(listening.port, tmp_path) as running, shared_reader(tmp_path) as made:
        (tmp_path / "readers").mkdir(exist_ok=True)
        (tmp_path / "readers" / "gone.json").write_bytes(b"garbage")
        _, end = drained(made, anchor_of(made), insert(server, 1))
        made.commit(end)
        wait_until(lambda: len(running.process.readers) == 2)
        wait_until(lambda: running.process.state.spool_rows == 1)
        assert Readers(tmp_path).remove("gone")
        wait_until(lambda: running.process.state.spool_rows == 0)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 9, "checksum": 0}'], ids=repr)
@pytest.mark.fault(
    fault="capture.json is damaged",
    outcome="capture and readers name the file and the remedy; after it nothing is missing or twice",
)
def test_a_damaged_publication_is_mended_as_its_error_says(
    content: bytes, served: Served, tmp_path: Path
) -> None:
    server, listening = served
    folder = tmp_path / "spool"
    with capturing(listening.port, folder) as running:
        with shared_reader(folder) as made:
            start = anchor_of(made)
            rows, end = drained(made, start, insert(server, 1))
            made.commit(start)
        insert(server, 2)
        wait_until(lambda: running.process.state.spool_rows == 2)
    (folder / FILE_NAME).write_bytes(content)
    refused = RunningCapture(capture_settings(listening.port, folder))
    wait_until(lambda: refused.has_ended)
    with shared_reader_of(folder, made) as hurt:
        errors = [refused.error, failure_of(lambda: next_offset(hurt, end))]
    for error in errors:
        assert isinstance(error, DataLoss)
        assert str(folder / FILE_NAME) in str(error)
        assert "move it away, and start the capture with --continue" in error.remedy
    (folder / FILE_NAME).unlink()
    checkpoint = checkpoint_of(tmp_path / "checkpoint", [start, end], 2)
    with capturing(listening.port, folder, continues=checkpoint), shared_reader(folder) as made:
        more, _ = drained(made, end, insert(server, 3))
    assert numbers(rows + more) == [1, 2, 3]


@contextmanager
def shared_reader_of(folder: Path, before: Any) -> Iterator[Any]:
    """Return a reader as a new run of a query that began before the damage."""
    made = type(before)(before._options, before._schema)
    try:
        yield made
    finally:
        made.stop()


def test_a_wall_clock_that_jumps_removes_no_rows_of_a_running_capture(
    served: Served, tmp_path: Path
) -> None:
    server, listening = served
    with capturing(listening.port, tmp_path, {"retention": "1 hour"}) as running:
        with shared_reader(tmp_path) as made:
            start = anchor_of(made)
        now = running.process._retention.wall()
        for number, years in ((1, 10), (2, -10)):
            running.process._retention.wall = lambda at=years: now + at * 31e6  # type: ignore[misc]
            last = insert(server, number)
            wait_until(lambda at=number: running.process.state.spool_rows == at)  # type: ignore[misc]
            running.process.step()
        with shared_reader(tmp_path) as made:
            assert numbers(drained(made, start, last)[0]) == [1, 2]
