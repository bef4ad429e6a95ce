"""A table joins a running stream, and one leaves: no other is read again, comes twice or late.

Three tables, and transactions over all of them that are open while one joins. The emulator notes at
which place sessions are activated, and for which tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.capture.activations import Activation, noted_activations
from harness.capture.driving import (
    LIMIT,
    Offset,
    Served,
    anchor_of,
    drained,
    failure_of,
    next_offset,
    reader,
    rows_of,
)
from harness.runs.patience import wait_until
from harness.runs.tiers import rest_in_all
from harness.servers.stores import (
    CUSTOMER_COLUMNS,
    CUSTOMERS,
    ORDERS,
    listening_stores,
    order_row,
    quick_clock,
)
from informix_capture_client.errors import BadOption, DataLoss
from informix_cdc.spark.reader import InformixStreamReader
from informix_emulator import EmulatedServer

pytestmark = pytest.mark.slow  # they wait for seconds of the server's clock

LATE = "stores:informix.late"
TWO, THREE = "informix.orders,informix.customers", "informix.orders,informix.customers,informix.late"
NOON = 1_800_000_000.0
PAGE = 4096  # where a log ends is known within a page
Rows = list[dict[str, Any]]


@contextmanager
def serving(used_pages: str = "flushed", **settings: Any) -> Iterator[Served]:
    with listening_stores(**{"clock": quick_clock(), **settings}) as (server, listening):
        server.used_pages = used_pages
        server.create_table(LATE, "id integer")
        yield server, listening


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as found:
        yield found


# Where the end of the log is found, and with all records in one second.
@pytest.fixture(params=rest_in_all(["full, in one second", "flushed", "begun", "full"]))
def any_served(request: pytest.FixtureRequest) -> Iterator[Served]:
    used_pages, _, in_one_second = request.param.partition(", ")
    with serving(used_pages, **({"clock": lambda: NOON} if in_one_second else {})) as found:
        yield found


@pytest.fixture
def activations(monkeypatch: pytest.MonkeyPatch) -> list[Activation]:
    """Note each activation: its place, and the tables that the session captures."""
    return noted_activations(monkeypatch)


def change(transaction: Any, number: int, *tables: str) -> None:
    rows: dict[str, dict[str, object]] = {
        ORDERS: order_row((number, 1, "note", None)),
        CUSTOMERS: {"customer_num": number, "name": "Ann", "city": "Oslo"},
        LATE: {"id": number},
    }
    for table in tables:
        transaction.insert(table, rows[table])


def committed(server: EmulatedServer, number: int, *tables: str) -> int:
    transaction = server.begin()
    change(transaction, number, *tables)
    return int(transaction.commit())


def of(rows: Rows, *names: str) -> list[tuple[str, int]]:
    """Return the table and the number of each row of some tables."""
    keys = {"orders": "order_num", "customers": "customer_num", "late": "id"}
    return [(name, row[name][keys[name]]) for row in rows for name in names if row.get(name)]


def until_joined(made: InformixStreamReader, start: Offset) -> tuple[Rows, Offset]:
    """Take batches until the late table is in the stream."""
    rows: Rows = []
    while "informix.late" not in start["tables"]:
        end = next_offset(made, start, seconds=20)
        found = rows_of(made, start, end)
        assert not (found and "informix.late" in end["tables"])  # no batch is over two lists of tables
        rows, start = rows + found, end
    return rows, start


def wait_for_row_logging(server: EmulatedServer) -> None:
    wait_until(lambda: server.table(LATE).full_row_logging, 10)


def begun(served: Served, **changes: str) -> Offset:
    """A stream of two tables that has delivered one transaction, and ended."""
    server, listening = served
    with reader(listening.port, table=TWO, **changes) as first:
        rows, start = drained(first, anchor_of(first), committed(server, 1, ORDERS, CUSTOMERS))
    assert of(rows, "orders", "customers") == [("orders", 1), ("customers", 1)]
    return start


@pytest.mark.parametrize("is_kept", [True, False], ids=["spool kept", "spool lost"])
def test_a_table_joins_while_transactions_over_all_are_open_before_and_after(
    any_served: Served, activations: list[Activation], tmp_path: Path, is_kept: bool
) -> None:
    server, listening = any_served
    kept = {"spoolPath": str(tmp_path)} if is_kept else {}
    start = begun(any_served, **kept)
    before = server.begin()
    change(before, 2, ORDERS, LATE)
    switched_at = server.log.end()
    with reader(listening.port, table=THREE, **kept) as made:
        known = len(activations)
        made.latestOffset(start, LIMIT)  # begins to capture
        wait_for_row_logging(server)
        # Who begins before it is asked who is open is waited for, like those that were open before.
        wait_until(lambda: len(activations) > known, 10)
        after = server.begin()
        change(after, 3, LATE, CUSTOMERS)
        rows, start = drained(made, start, committed(server, 4, ORDERS, LATE))
        assert "informix.late" not in start["tables"]  # one that was open before has not ended
        change(before, 2, CUSTOMERS, LATE)
        more, start = drained(made, start, before.commit())
        then, start = until_joined(made, start)
        last, start = drained(made, start, after.commit())
        rows += more + then + last
        last, end = drained(made, start, committed(server, 5, ORDERS, CUSTOMERS, LATE))
        rows += last
    assert of(rows, "orders", "customers") == [
        *[("orders", 4), ("orders", 2), ("customers", 2), ("customers", 3)],
        *[("orders", 5), ("customers", 5)],
    ]
    assert of(rows, "late") == [("late", 3), ("late", 5)]
    whole = [place for place, names in activations if LATE in names]
    assert len(whole) == 1
    assert whole[0] >= switched_at - switched_at % PAGE - PAGE
    with reader(listening.port, table=THREE, **kept) as again:  # the same batch, in another process
        assert of(rows_of(again, start, end), "orders", "customers", "late") == [
            ("orders", 5),
            ("customers", 5),
            ("late", 5),
        ]
    assert min(place for place, names in activations if LATE in names) >= whole[0]


@pytest.mark.only_in_all
def test_a_table_joins_on_an_idle_server_and_its_first_change_comes(any_served: Served) -> None:
    server, listening = any_served
    start = begun(any_served)
    with reader(listening.port, table=THREE) as made:
        _, start = until_joined(made, start)
        rows, _ = drained(made, start, committed(server, 2, LATE))
    assert of(rows, "late") == [("late", 2)]


@pytest.mark.only_in_all
def test_a_run_of_available_now_does_not_end_before_a_table_has_joined(served: Served) -> None:
    _, listening = served
    start = begun(served)
    with reader(listening.port, table=THREE) as made:
        made.prepareForTriggerAvailableNow()
        end = start
        while (then := made.latestOffset(end, LIMIT)) != end:
            end = then
    assert "informix.late" in end["tables"]


@pytest.mark.only_in_all
def test_who_has_joined_is_told(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    _, listening = served
    start = begun(served)
    caplog.set_level("INFO")
    with reader(listening.port, table=THREE) as made:
        _, start = until_joined(made, start)
    assert "event=table_joined" in caplog.text
    assert start["tables"]["informix.late"]["since"] == start["commit"]
    assert start["tables"]["informix.orders"]["since"] == 0


def test_a_planned_batch_comes_before_a_table_joins(served: Served) -> None:
    server, listening = served
    start = begun(served)
    with reader(listening.port, table=TWO) as first:
        committed(server, 2, ORDERS, CUSTOMERS)
        end = next_offset(first, start)
        expected = of(rows_of(first, start, end), "orders", "customers")
    with reader(listening.port, table=THREE) as made:
        assert of(rows_of(made, start, end), "orders", "customers") == expected
        rows, then = until_joined(made, end)
        assert rows == []
        assert then["tables"].keys() == {"informix.orders", "informix.customers", "informix.late"}
        assert rows_of(made, end, then) == []
    with reader(listening.port, table=THREE) as again:
        assert rows_of(again, end, then) == []  # what leads over a change of tables has no rows


def test_a_table_leaves_by_being_taken_out_and_may_join_again(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    start = begun(served)
    caplog.set_level("INFO")
    with reader(listening.port, table="informix.orders") as made:
        end = next_offset(made, start)
        assert (rows_of(made, start, end), list(end["tables"])) == ([], ["informix.orders"])
        rows, end = drained(made, end, committed(server, 2, ORDERS, CUSTOMERS))
        assert [row["order_num"] for row in rows] == [2]
    assert "event=table_left" in caplog.text
    with reader(listening.port, table=TWO) as made:
        rows = []
        while len(end["tables"]) < 2:
            then = next_offset(made, end)
            rows, end = rows + rows_of(made, end, then), then
        more, _ = drained(made, end, committed(server, 3, ORDERS, CUSTOMERS))
    assert of(rows + more, "orders", "customers") == [("orders", 3), ("customers", 3)]


@pytest.mark.parametrize("has_left", [False, True])
def test_a_stream_goes_on_without_the_table_that_changed_last(has_left: bool, tmp_path: Path) -> None:
    """A server that hides transactions on other tables does not show its commit again."""
    with serving(foreign_transactions=False) as (server, listening):
        spool = str(tmp_path / "spool")
        with reader(listening.port, table=TWO, spoolPath=spool) as made:
            rows, end = drained(made, anchor_of(made), committed(server, 1, CUSTOMERS))
        assert of(rows, "customers") == [("customers", 1)]
        if has_left:  # at an earlier start
            with reader(listening.port, spoolPath=spool) as made:
                end = next_offset(made, end)
        last = committed(server, 2, ORDERS)
        with reader(listening.port, spoolPath=spool) as made:
            rows, _ = drained(made, end, last)
        assert [row["order_num"] for row in rows] == [2]


def test_a_table_does_not_leave_while_a_batch_with_its_rows_is_planned(served: Served) -> None:
    server, listening = served
    start = begun(served)
    with reader(listening.port, table=TWO) as first:
        committed(server, 2, ORDERS, CUSTOMERS)
        end = next_offset(first, start)
    with reader(listening.port, table="informix.orders") as made:
        error = failure_of(lambda: made.partitions(start, end))
    assert isinstance(error, BadOption)
    assert "informix.customers" in error.message
    assert "previous options" in error.remedy


def test_a_table_does_not_leave_while_its_snapshot_is_under_way(served: Served) -> None:
    _, listening = served
    start = begun(served)
    states = {**start["tables"]}
    states["informix.customers"] = {
        **states["informix.customers"],
        "snapshot": {"key": ["id"], "after": ["5"], "rows": 5},
    }
    with reader(listening.port, table="informix.orders") as made:
        error = failure_of(lambda: next_offset(made, {**start, "tables": states}))
    assert isinstance(error, BadOption)
    assert "its snapshot is not finished" in error.message


def test_rows_of_a_snapshot_that_were_planned_and_are_gone_cannot_be_made_again(served: Served) -> None:
    start = begun(served)
    with reader(served[1].port, table=TWO) as made:
        error = failure_of(lambda: made.partitions(start, {**start, "chunk": 1}))
    assert isinstance(error, DataLoss)
    assert "snapshot rows" in error.message


@pytest.mark.only_in_all
def test_what_is_known_of_a_snapshot_is_passed_on(served: Served) -> None:
    server, listening = served
    start = begun(served)
    known = {"done": True, "rows": 5}
    states = {name: {**state, "snapshot": known} for name, state in start["tables"].items()}
    with reader(listening.port, table=TWO) as made:
        _, end = drained(made, {**start, "tables": states}, committed(server, 2, ORDERS))
    assert end["tables"] == states


@pytest.mark.only_in_all
def test_a_table_under_a_known_name_that_is_another_one_is_refused(served: Served) -> None:
    server, listening = served
    start = begun(served)
    server.set_full_row_logging(CUSTOMERS, False)
    server.drop_table(CUSTOMERS)
    server.create_table(CUSTOMERS, CUSTOMER_COLUMNS)
    with reader(listening.port, table=THREE) as made:
        error = failure_of(lambda: next_offset(made, start))
    assert isinstance(error, DataLoss)
    assert "informix.customers" in error.message


@pytest.mark.parametrize("shape", ["json", "envelope"])
@pytest.mark.only_in_all
def test_a_table_joins_in_every_shape(served: Served, shape: str) -> None:
    server, listening = served
    with reader(listening.port, table=TWO, shape=shape) as first:
        _, start = drained(first, anchor_of(first), committed(server, 1, ORDERS, CUSTOMERS))
    with reader(listening.port, table=THREE, shape=shape) as made:
        _, start = until_joined(made, start)
        rows, _ = drained(made, start, committed(server, 2, ORDERS, LATE))
    assert len(rows) == 2


@pytest.mark.only_in_all
def test_rows_kept_from_before_a_table_joined_have_null_there(served: Served, tmp_path: Path) -> None:
    server, listening = served
    kept = {"spoolPath": str(tmp_path)}
    start = begun(served, **kept)
    with reader(listening.port, table=TWO, **kept) as first:
        committed(server, 2, ORDERS, CUSTOMERS)
        end = next_offset(first, start)
    turned = "informix.late,informix.customers,informix.orders"  # and in another order
    with reader(listening.port, table=turned, **kept) as made:
        rows = rows_of(made, start, end)
    assert of(rows, "orders", "customers", "late") == [("orders", 2), ("customers", 2)]
    assert all(row["late"] is None for row in rows)
    assert [row["_table"] for row in rows] == [ORDERS, CUSTOMERS]
