"""What each way to read a stream promises: a query's own capture, a folder, and Flight."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from connector.reading.conftest import SharedPlace
from harness.capture.driving import (
    Offset,
    Served,
    anchor_of,
    drained,
    insert,
    next_offset,
    numbers,
    reader,
    rows_of,
)
from harness.capture.scraping import free_port
from informix_cdc.spark.reader import InformixStreamReader


@dataclass(frozen=True)
class Way:
    """How a query reads: its own capture in a folder, or a shared one."""

    port: int
    folder: Path
    shared: SharedPlace | None

    def reader(self, **options: str) -> AbstractContextManager[InformixStreamReader]:
        """Return the reader of a new process of the query."""
        if self.shared is not None:
            return self.shared.reader(**options)
        return reader(self.port, spoolPath=str(self.folder), **options)


@pytest.fixture(params=["own", "folder", "flight"])
def way(request: pytest.FixtureRequest, served: Served, tmp_path: Path) -> Iterator[Way]:
    _, listening = served
    if request.param == "own":
        yield Way(listening.port, tmp_path / "own", None)
        return
    shared = SharedPlace(tmp_path / "shared", free_port() if request.param == "flight" else 0)
    with shared.capturing(listening.port):
        yield Way(listening.port, tmp_path, shared)


@contextmanager
def begun(way: Way, **options: str) -> Iterator[tuple[InformixStreamReader, Offset]]:
    with way.reader(**options) as made:
        yield made, anchor_of(made)


def test_each_row_arrives_once_over_restarts(way: Way, served: Served) -> None:
    server, _ = served
    with begun(way) as (made, start):
        rows, start = drained(made, start, insert(server, 1, 2))
    for number in (3, 4, 5):
        commit = insert(server, number)
        with way.reader() as made:
            more, start = drained(made, start, commit)
            made.commit(start)
        rows += more
    assert numbers(rows) == [1, 2, 3, 4, 5]


def test_a_planned_batch_has_the_same_rows_again(way: Way, served: Served) -> None:
    server, _ = served
    with begun(way) as (made, start):
        insert(server, 1, 2)
        end = next_offset(made, start)
        rows = rows_of(made, start, end)
        insert(server, 3)
    with way.reader() as made:
        assert rows_of(made, start, end) == rows
        more, _ = drained(made, end, insert(server, 4))
    assert (numbers(rows), numbers(more)) == ([1, 2], [3, 4])


def test_a_limit_ends_batches_between_transactions(way: Way, served: Served) -> None:
    server, _ = served
    with begun(way, maxRowsPerTrigger="3") as (made, start):
        commits = [insert(server, *range(10 * n, 10 * n + n)) for n in (1, 2, 2, 5)]
    sizes = []
    with way.reader(maxRowsPerTrigger="3") as made:
        made.prepareForTriggerAvailableNow()
        while start["commit"] < commits[-1]:
            end = next_offset(made, start)
            sizes.append(len(rows_of(made, start, end)))
            start = end
    assert sizes == [3, 2, 5]


def test_a_run_of_available_now_ends_with_what_was_committed_before_it(
    way: Way, served: Served
) -> None:
    server, _ = served
    with begun(way) as (_, start):
        insert(server, 1)
        insert(server, 2)
    rows = []
    with way.reader() as made:
        made.prepareForTriggerAvailableNow()
        limit = made.getDefaultReadLimit()
        while (end := made.latestOffset(start, limit)) != start:
            rows += rows_of(made, start, end)
            start = end
    assert numbers(rows) == [1, 2]
