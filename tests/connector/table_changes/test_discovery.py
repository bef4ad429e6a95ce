"""A table that is created while a query runs joins its stream; one that cannot is left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.table_changes.discovering import discovering, until_commit, until_tables
from harness.capture.activations import Activation, noted_activations
from harness.capture.driving import Served, anchor_of, failure_of, next_offset
from harness.capture.snapshots import serving_tables, until_snapshots_are_done
from harness.capture.told import told
from harness.runs.patience import wait_until
from harness.servers.stores import ORDERS, listening_stores, order_row, quick_clock
from informix_capture_client.errors import ServerRefused, UnsupportedColumn
from informix_capture_client.session import CaptureSession
from informix_cdc.capture import server_watch
from informix_emulator import EmulatedServer, load_rows

pytestmark = pytest.mark.slow  # they wait for seconds of the server's clock

LATE = "stores:informix.ord_late"
PAPERS = "stores:informix.ord_papers"
BEGUN, ALL = ["informix.orders"], ["informix.orders", "informix.ord_late"]


@pytest.fixture
def served() -> Iterator[Served]:
    with listening_stores(clock=quick_clock()) as served:
        yield served


@pytest.fixture
def activations(monkeypatch: pytest.MonkeyPatch) -> list[Activation]:
    return noted_activations(monkeypatch)


def change(transaction: Any, number: int, *tables: str) -> None:
    for table in tables:
        row = order_row((number, 1, "note", None)) if table == ORDERS else {"id": number}
        transaction.insert(table, row)


def committed(server: EmulatedServer, number: int, *tables: str) -> int:
    transaction = server.begin()
    change(transaction, number, *tables)
    return int(transaction.commit())


@pytest.mark.only_in_all
def test_a_table_that_is_created_joins_and_no_row_of_another_is_lost_or_comes_twice(
    served: Served, activations: list[Activation], caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    caplog.set_level("INFO")
    with discovering(listening.port) as made:
        start = anchor_of(made)
        before = server.begin()
        change(before, 1, ORDERS)
        server.create_table(LATE, "id integer")
        # Two sessions of orders alone: the one that began the stream, and the one that waits.
        wait_until(lambda: server.table(LATE).full_row_logging and len(activations) == 2)
        rows, start = until_commit(made, start, committed(server, 2, ORDERS, LATE))
        change(before, 3, ORDERS)
        more, start = until_commit(made, start, before.commit())
        rows += more
        assert rows == [("orders", 2), ("orders", 1), ("orders", 3)]
        rows, start = until_tables(made, start, *ALL)
        more, _ = until_commit(made, start, committed(server, 4, ORDERS, LATE))
        assert rows + more == [("orders", 4), ("ord_late", 4)]
    assert [names for _, names in activations] == [{ORDERS}, {ORDERS}, {ORDERS, LATE}]
    assert [each["table"] for each in told(caplog, "table_joined")] == ["informix.ord_late"]
    assert told(caplog, "table_left_out") == []


@pytest.mark.only_in_all
def test_a_table_that_is_created_is_delivered_from_its_first_row_on(tmp_path: Path) -> None:
    key = "(id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(20))"
    options = {"initialSnapshot": "all", "snapshotChunkRows": "3", "spoolPath": str(tmp_path)}
    with serving_tables(f"CREATE TABLE informix.orders {key}") as (server, listening, writer):
        load_rows(server, ORDERS, [{"id": n, "name": "x"} for n in range(5)])
        with discovering(listening.port, **options) as made:
            rows, start = until_snapshots_are_done(made, anchor_of(made))
            assert len(rows) == 5
            writer.rows(f"CREATE TABLE informix.ord_late {key}")
            load_rows(server, LATE, [{"id": n, "name": "x"} for n in range(7)])
            found, start = until_tables(made, start, *ALL)
            assert found == []
            rows, start = until_snapshots_are_done(made, start)
            assert [row["_table"] for row in rows] == [LATE] * 7
            assert all(row["_snapshot"] for row in rows)
            place = server.position()
            writer.rows("INSERT INTO informix.ord_late VALUES (7, 'y')")
            writer.rows("INSERT INTO informix.orders VALUES (5, 'y')")
            found, start = until_commit(made, start, place + 1)
            while ("orders", 5) not in found:
                more, start = until_commit(made, start, start["commit"] + 1)
                found += more
            assert found == [("ord_late", 7), ("orders", 5)]


@pytest.mark.only_in_all
def test_a_table_that_cannot_be_captured_is_logged_once_and_the_stream_goes_on(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    with discovering(listening.port) as made:
        start = anchor_of(made)
        server.create_table(PAPERS, "id integer, body text")
        wait_until(lambda: told(caplog, "table_left_out"))
        server.create_table(LATE, "id integer")  # found by a later look, which sees both
        _, start = until_tables(made, start, *ALL)
        rows, start = until_commit(made, start, committed(server, 1, ORDERS, LATE))
        assert rows == [("orders", 1), ("ord_late", 1)]
        server.alter_table(PAPERS, "id integer")
        server.finish_alter(PAPERS)
        until_tables(made, start, *ALL, "informix.ord_papers")
    (left_out,) = told(caplog, "table_left_out")
    assert left_out["table"] == PAPERS
    assert UnsupportedColumn.code in left_out["reason"]


def test_a_table_without_a_usable_key_for_its_snapshot_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"initialSnapshot": "all", "spoolPath": str(tmp_path)}
    first = "CREATE TABLE informix.orders (id INTEGER NOT NULL PRIMARY KEY)"
    with (
        serving_tables(first) as (_, listening, writer),
        discovering(listening.port, **options) as made,
    ):
        start = anchor_of(made)
        writer.rows("CREATE TABLE informix.ord_papers (id INTEGER)")
        wait_until(lambda: told(caplog, "table_left_out"))
        writer.rows("CREATE TABLE informix.ord_late (id INTEGER NOT NULL PRIMARY KEY)")
        until_tables(made, start, *ALL)
    (left_out,) = told(caplog, "table_left_out")
    assert left_out["table"] == PAPERS
    assert "snapshotKey" in left_out["reason"]


@pytest.mark.only_in_all
def test_an_excluded_table_does_not_join(served: Served) -> None:
    server, listening = served
    with discovering(listening.port, table="informix.ord*,!informix.*papers") as made:
        start = anchor_of(made)
        server.create_table("stores:informix.ord_a_papers", "id integer")
        server.create_table(LATE, "id integer")
        _, end = until_tables(made, start, *ALL)  # one look has seen both
    assert sorted(end["tables"]) == sorted(ALL)


def test_a_table_that_a_session_refuses_is_left_out_and_tried_again(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    switch_on, refusals = CaptureSession.log_full_rows, iter(range(2))

    def refusing(session: CaptureSession, table: str) -> None:
        if table == LATE and next(refusals, None) is not None:
            raise ServerRefused("the table is locked.")
        switch_on(session, table)

    monkeypatch.setattr(CaptureSession, "log_full_rows", refusing)
    with discovering(listening.port) as made:
        start = anchor_of(made)
        server.create_table(LATE, "id integer")
        rows, start = until_tables(made, start, *ALL)
        more, _ = until_commit(made, start, committed(server, 1, ORDERS, LATE))
    assert rows + more == [("orders", 1), ("ord_late", 1)]
    assert [each["table"] for each in told(caplog, "table_left_out")] == [LATE]
    assert next(refusals, None) is None


def test_a_dropped_table_leaves_and_joins_again_once_it_is_there_again(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)
    server, listening = served
    server.create_table(LATE, "id integer")
    with discovering(listening.port) as made:
        rows, start = until_commit(made, anchor_of(made), committed(server, 1, ORDERS, LATE))
        server.set_full_row_logging(LATE, False)
        server.drop_table(LATE)
        more, start = until_tables(made, start, *BEGUN)
        rows += more
        more, start = until_commit(made, start, committed(server, 2, ORDERS))
        rows += more
        server.create_table(LATE, "id integer, name char(3)")
        more, start = until_tables(made, start, *ALL)
        rows += more
        more, _ = until_commit(made, start, committed(server, 3, ORDERS, LATE))
        rows += more
    assert rows == [
        *[("orders", 1), ("ord_late", 1), ("orders", 2)],
        *[("orders", 3), ("ord_late", 3)],
    ]
    (left_out,) = told(caplog, "table_left_out")
    assert left_out["table"] == LATE
    assert "dropped" in left_out["reason"]


@pytest.mark.only_in_all
def test_a_table_that_is_dropped_while_it_joins_is_left_out(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)
    server, listening = served
    with discovering(listening.port) as made:
        start = anchor_of(made)
        before = server.begin()
        change(before, 1, ORDERS)
        server.create_table(LATE, "id integer")
        wait_until(lambda: server.table(LATE).full_row_logging)
        rows, start = until_commit(made, start, committed(server, 2, ORDERS))
        server.set_full_row_logging(LATE, False)
        server.drop_table(LATE)
        wait_until(lambda: told(caplog, "table_left_out"))
        more, end = until_commit(made, start, before.commit())
    assert rows + more == [("orders", 2), ("orders", 1)]
    assert [*end["tables"]] == BEGUN


@pytest.mark.only_in_all
def test_the_last_table_does_not_leave(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_watch, "INTERVAL_SECONDS", 0.1)
    server, listening = served
    with discovering(listening.port) as made:
        start = anchor_of(made)
        server.set_full_row_logging(ORDERS, False)
        server.drop_table(ORDERS)
        error = failure_of(lambda: next_offset(made, start))
    assert "dropped" in str(error)


@pytest.mark.only_in_all
def test_tables_that_have_joined_stay_when_the_connection_is_lost(served: Served) -> None:
    server, listening = served
    with discovering(listening.port) as made:
        start = anchor_of(made)
        server.create_table(LATE, "id integer")
        rows, start = until_tables(made, start, *ALL)
        listening.disconnect_all()
        more, _ = until_commit(made, start, committed(server, 1, ORDERS, LATE))
    assert rows + more == [("orders", 1), ("ord_late", 1)]
