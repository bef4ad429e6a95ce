"""A query reads what another process captures: nothing is lost, and each reader has its own place.

The same over a shared folder and over Flight.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from connector.reading.conftest import SharedPlace
from harness.capture.driving import (
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
from harness.runs.patience import wait_until
from informix_capture_client.errors import AccessRefused, DataLoss
from informix_checkpoints.readers import Readers
from informix_checkpoints.spool import load_manifest


@pytest.mark.only_in_all
def test_a_reader_gets_what_is_committed_while_it_is_away(served: Served, at: SharedPlace) -> None:
    server, listening = served
    with at.capturing(listening.port):
        with at.reader() as made:
            start = anchor_of(made)
            rows, start = drained(made, start, insert(server, 1))
            made.commit(start)
        last = [insert(server, number) for number in range(2, 5)][-1]
        with at.reader() as made:
            more, _ = drained(made, start, last)
    assert numbers(rows + more) == [1, 2, 3, 4]


@pytest.mark.only_in_all
def test_the_same_offsets_give_the_same_rows(served: Served, at: SharedPlace) -> None:
    server, listening = served
    with at.capturing(listening.port):
        with at.reader() as made:
            start = anchor_of(made)
            insert(server, 1)
            end = next_offset(made, start)
            rows = rows_of(made, start, end)
        with at.reader() as made:
            assert rows_of(made, start, end) == rows
    if not at.served_port:
        with at.reader() as made:  # the capture is away
            assert rows_of(made, start, end) == rows


def test_rows_are_kept_for_the_slowest_reader(served: Served, at: SharedPlace) -> None:
    server, listening = served
    with (
        at.capturing(listening.port) as running,
        at.reader("fast") as fast,
        at.reader("slow") as slow,
    ):
        start = behind = anchor_of(fast)
        assert anchor_of(slow)["commit"] == start["commit"]  # `settling` may differ
        for number in range(1, 6):
            rows, start = drained(fast, start, insert(server, number))
            assert numbers(rows) == [number]
            fast.commit(start)
        spool = running.process.state.spool
        assert spool is not None
        wait_until(lambda: len(running.process.readers) == 2)
        # The capture replaces the file first, and then the manifest that it has in memory.
        wait_until(lambda: spool.manifest.row_count == 5)
        rows, behind = drained(slow, behind, start["commit"])
        slow.commit(behind)
        wait_until(lambda: spool.manifest.row_count == 0)
    assert numbers(rows) == [1, 2, 3, 4, 5]


def stored_rows(folder: Path) -> int | None:
    """Return how many rows other processes see in a spool."""
    manifest = load_manifest(folder)
    return None if manifest is None else manifest.row_count


@pytest.mark.parametrize("at", ["folder", "flight"], indirect=True)
def test_a_removed_reader_holds_nothing_back_and_is_refused(served: Served, at: SharedPlace) -> None:
    server, listening = served
    with at.capturing(listening.port) as running:
        with at.reader("gone") as gone, at.reader("other") as other:
            start = anchor_of(gone)
            anchor_of(other)
            _, end = drained(other, start, insert(server, 1))
            other.commit(end)
            assert Readers(at.folder).remove("gone")
            spool = running.process.state.spool
            assert spool is not None
            wait_until(lambda: stored_rows(spool.folder) == 0)
            refused = failure_of(lambda: next_offset(gone, start))
            assert isinstance(refused, AccessRefused)
            assert "was removed" in str(refused)
        with at.reader("gone") as gone:
            lost = failure_of(lambda: next_offset(gone, start))
    assert isinstance(lost, DataLoss)
    assert "reader gone has not read" in str(lost)


@pytest.mark.parametrize("at", ["folder", "flight"], indirect=True)
def test_two_queries_cannot_be_one_reader(served: Served, at: SharedPlace) -> None:
    _, listening = served
    one, other = at.reader, at.reader
    with at.capturing(listening.port), one() as first, other() as second:
        start = anchor_of(first)
        anchor_of(second)
        refused = failure_of(lambda: next_offset(first, start))
    assert "another query has registered as reader one" in str(refused)


def test_a_checkpoint_of_another_stream_is_refused(served: Served, at: SharedPlace) -> None:
    server, listening = served
    with reader(listening.port) as made:
        start = anchor_of(made)
        insert(server, 1)
        end = next_offset(made, start)
    with at.capturing(listening.port), at.reader() as made:
        assert "offsets of two streams" in str(failure_of(lambda: next_offset(made, start)))
        assert "offsets of two streams" in str(failure_of(lambda: rows_of(made, start, end)))


@pytest.mark.only_in_all
def test_capture_and_query_start_again_in_either_order(served: Served, at: SharedPlace) -> None:
    server, listening = served
    got: list[int] = []
    with at.capturing(listening.port), at.reader() as made:
        start = anchor_of(made)
    for first in range(10, 40, 10):
        commits = [insert(server, first + each) for each in range(3)]
        with ExitStack() as query:
            with at.capturing(listening.port):
                made = query.enter_context(at.reader())
                rows, start = drained(made, start, commits[1])
                made.commit(start)
                got += numbers(rows)
            commits.append(insert(server, first + 3))
            with at.capturing(listening.port):  # the capture alone starts again
                rows, start = drained(made, start, commits[-1])
                got += numbers(rows)
    assert got == [first + each for first in range(10, 40, 10) for each in range(4)]


def test_a_capture_begins_where_its_rows_end(served: Served, at: SharedPlace) -> None:
    server, listening = served
    with at.capturing(listening.port) as running:
        stream = running.process.state.stream
        insert(server, 1)
        wait_until(lambda: running.process.state.spool_rows == 1)
    insert(server, 2)
    with at.capturing(listening.port) as running:
        assert running.process.state.stream == stream
        wait_until(lambda: running.process.state.spool_rows == 2)
    assert stream is not None
    manifest = load_manifest(at.folder / stream)
    assert manifest is not None
    assert [segment.rows for segment in manifest.segments] == [1, 1]


@pytest.mark.only_in_all
def test_a_run_of_available_now_ends_with_what_is_committed(served: Served, at: SharedPlace) -> None:
    server, listening = served
    with at.capturing(listening.port):
        start = None
        for number in range(1, 4):
            with at.reader() as made:
                made.prepareForTriggerAvailableNow()
                start = start or anchor_of(made)
                insert(server, number)
                rows = []
                while (end := made.latestOffset(start, made.getDefaultReadLimit())) != start:
                    rows += rows_of(made, start, end)
                    start = end
            assert number in numbers(rows) or number == 1
        with at.reader() as made:
            made.prepareForTriggerAvailableNow()
            assert rows_of(made, start, made.latestOffset(start, made.getDefaultReadLimit())) == []
