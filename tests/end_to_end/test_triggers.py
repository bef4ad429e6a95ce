"""Limits and triggers as Spark applies them: what a batch takes, and when a query ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import Row

from harness.runs.tiers import rest_in_all
from harness.servers.stores import (
    ORDERS,
    listening_stores,
    order_row,
    source_options,
)
from harness.spark.collected import Collected
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = pytest.mark.spark

Served = tuple[EmulatedServer, ListeningServer]


@pytest.fixture
def served() -> Iterator[Served]:
    with listening_stores() as (server, listening):
        yield server, listening


def insert(server: EmulatedServer, *orders: int) -> None:
    with server.transaction() as transaction:
        for number in orders:
            transaction.insert(ORDERS, order_row((number, None, None, None)))


def run_to_the_end(stream: Collected, **trigger: Any) -> Collected:
    stream.start(**trigger)
    assert stream.query is not None
    assert stream.query.awaitTermination(60)
    return stream


def orders_of(stream: Collected) -> list[list[int]]:
    """The orders of each batch with rows."""
    return [[row["order_num"] for row in rows] for _, rows in sorted(stream._batches.items()) if rows]


def started(collect: Callable[..., Collected], served: Served, **options: str) -> Collected:
    """A stream whose anchor lies in its checkpoint, and whose query has ended."""
    return run_to_the_end(collect(source_options(served[1].port, **options)), availableNow=True)


@pytest.mark.parametrize(
    ("option", "limit", "fewest"),
    rest_in_all([("maxRowsPerTrigger", 3, 4), ("maxBytesPerTrigger", 1, 6)]),
)
def test_available_now_runs_batches_within_the_limits_and_ends(
    option: str, limit: int, fewest: int, served: Served, collect: Callable[..., Collected]
) -> None:
    stream = started(collect, served, **{option: str(limit)})
    fill(served[0])
    batches = orders_of(run_to_the_end(stream, availableNow=True))
    assert [number for batch in batches for number in batch] == list(range(1, 12))
    assert len(batches) >= fewest
    if option == "maxRowsPerTrigger":
        assert all(len(batch) <= limit or batch == [3, 4, 5, 6, 7] for batch in batches)


def fill(server: EmulatedServer) -> None:
    insert(server, 1, 2)
    insert(server, *range(3, 8))
    for number in range(8, 12):
        insert(server, number)


@pytest.mark.only_in_all
def test_once_takes_all_in_one_batch_whatever_the_limits(
    served: Served, collect: Callable[..., Collected]
) -> None:
    """Spark's deprecated trigger has one batch only: it must not leave anything behind."""
    stream = started(collect, served, maxRowsPerTrigger="1")
    fill(served[0])
    assert orders_of(run_to_the_end(stream, once=True)) == [list(range(1, 12))]


@pytest.mark.only_in_all
def test_a_batch_read_by_several_tasks_keeps_its_order(
    served: Served, collect: Callable[..., Collected]
) -> None:
    stream = started(collect, served, minPartitions="3")
    insert(served[0], *range(300))
    run_to_the_end(stream, availableNow=True)
    rows: list[Row] = stream.rows
    assert [row["order_num"] for row in rows] == list(range(300))
    assert [row["_change_ordinal"] for row in rows] == list(range(300))


@pytest.mark.only_in_all
def test_the_progress_shows_how_far_the_capture_is(
    served: Served, collect: Callable[..., Collected]
) -> None:
    stream = collect(source_options(served[1].port, maxRowsPerTrigger="2")).start()
    stream.wait_for_start()
    fill(served[0])
    stream.wait_until(lambda: len(stream.rows) == 11)
    assert stream.query is not None
    with_rows = [each for each in stream.query.recentProgress if each["numInputRows"]]
    figures = with_rows[-1]["sources"][0]["latestOffset"]
    for name in ("spoolBytes", "openTransactions", "isPaused", "reconnects", "stalls", "dataLosses"):
        assert name in figures
