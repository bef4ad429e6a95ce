"""Shapes as Spark shows them: nested columns, and NULL structs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import Row

from harness.servers.stores import (
    CUSTOMERS,
    ORDERS,
    listening_stores,
    order_row,
    source_options,
)
from harness.spark.collected import Collected
from informix_emulator import EmulatedServer, ListeningServer

pytestmark = pytest.mark.spark

OLD, NEW = order_row((1, 7, "old", None)), order_row((1, 7, "new", None))


@pytest.fixture
def served() -> Iterator[tuple[EmulatedServer, ListeningServer]]:
    with listening_stores() as (server, listening):
        yield server, listening


def changed(server: EmulatedServer) -> int:
    """Insert, update and delete one order in one transaction; return its commit."""
    transaction = server.begin(user_id=501)
    transaction.insert(ORDERS, OLD)
    transaction.update(ORDERS, OLD, NEW)
    transaction.delete(ORDERS, NEW)
    return transaction.commit()


def arrived(server: EmulatedServer, stream: Collected, records: int) -> tuple[int, list[Row]]:
    stream.start().wait_for_start()
    commit = changed(server)
    stream.wait_until(lambda: len(stream.rows) >= records)
    return commit, stream.rows


def test_an_envelope_is_debeziums(
    served: tuple[EmulatedServer, ListeningServer], collect: Callable[..., Collected]
) -> None:
    server, listening = served
    stream = collect(source_options(listening.port, shape="envelope"))
    commit, rows = arrived(server, stream, 3)
    assert rows[0].__fields__ == ["before", "after", "source", "op", "ts_ms", "transaction"]
    assert [row.op for row in rows] == ["c", "u", "d"]
    assert [row.before and row.before.note for row in rows] == [None, "old", "new"]
    assert [row.after and row.after.note for row in rows] == ["old", "new", None]
    assert {row.source.commit_lsn for row in rows} == {str(commit)}
    assert [row.transaction.total_order for row in rows] == [1, 3, 4]  # an update is two changes


@pytest.mark.only_in_all
def test_an_envelope_of_several_tables_has_a_struct_for_each(
    served: tuple[EmulatedServer, ListeningServer], collect: Callable[..., Collected]
) -> None:
    server, listening = served
    tables = ",".join(name.partition(":")[2] for name in (ORDERS, CUSTOMERS))
    stream = collect(source_options(listening.port, shape="envelope", table=tables))
    _, rows = arrived(server, stream, 3)
    assert [row.after and (row.after.orders.note, row.after.customers) for row in rows] == [
        ("old", None),
        ("new", None),
        None,
    ]
