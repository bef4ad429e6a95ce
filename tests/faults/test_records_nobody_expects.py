"""Records that a sound server does not send: each has its defined end, and no row before it is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.capture.followed import account, followed, stores_behind_proxy
from harness.servers.stores import (
    CUSTOMERS,
    ORDER_COLUMNS,
    ORDERS,
    Workload,
    order_row,
)
from informix_capture_client.errors import DataLoss, InformixCdcError, ProtocolViolation
from informix_emulator import EmulatedServer

ROW = order_row((1, 1, "one", None))
Disturb = Callable[[EmulatedServer], object]


def error_after_sound_rows(disturb: Disturb) -> InformixCdcError:
    """Deliver a workload, then disturb; everything before is delivered, and again by a new query."""
    with stores_behind_proxy() as stores:
        workload = Workload(stores.server, seed=20)
        with followed(stores.proxy.port) as stream:
            workload.run(20)
            disturb(stores.server)
            error = stream.failure()
            assert stream.delivered == account(workload)
        return error


def half_an_update(write: str) -> Disturb:
    def disturb(server: EmulatedServer) -> None:
        with server.transaction() as transaction:
            transaction.insert(ORDERS, ROW)
            getattr(transaction, write)(ORDERS, ROW)

    return disturb


def unknown_record(server: EmulatedServer) -> None:
    with server.transaction() as transaction:
        transaction.insert(ORDERS, ROW)
        transaction.write_unknown(77)


@pytest.mark.fault(
    fault="an update of which one image is missing (UPDBEF or UPDAFT alone)",
    outcome="IFXCDC-0006 with its sequence number; the transaction is not delivered in part",
)
@pytest.mark.parametrize("write", ["update_before_only", "update_after_only"])
@pytest.mark.only_in_all
def test_half_an_update_is_data_loss(write: str) -> None:
    error = error_after_sound_rows(half_an_update(write))
    assert isinstance(error, DataLoss)
    assert str(error).startswith("IFXCDC-0006: the update at 1:")
    assert "has only one row image" in str(error)


@pytest.mark.fault(
    fault="an update of which one image is missing, undone by a savepoint or a rollback",
    outcome="nothing: a failed UPDATE may leave half a pair; rows as committed",
)
def test_half_an_update_that_is_undone_is_nothing() -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        transaction = stores.server.begin()
        transaction.insert(ORDERS, ROW)
        mark = transaction.savepoint()
        transaction.update_before_only(ORDERS, ROW)
        transaction.rollback_to(mark)
        commit = transaction.commit()
        rolled_back = stores.server.begin()
        rolled_back.update_after_only(ORDERS, ROW)
        rolled_back.rollback()
        stream.upto(commit)
        ((_, changes),) = stream.delivered
        assert [kind for kind, _ in changes] == ["insert"]


@pytest.mark.fault(
    fault="a record of a type that is not in syscdcrectypes",
    outcome="IFXCDC-0007 with record number and stream byte, also in every new query: the log has it",
)
def test_a_record_of_an_unknown_type_stops_the_query() -> None:
    error = error_after_sound_rows(unknown_record)
    assert isinstance(error, ProtocolViolation)
    assert "record 77 at stream byte" in str(error)


@pytest.mark.slow
@pytest.mark.fault(
    fault="the same record in a new query",
    outcome="IFXCDC-0007 again: nothing is skipped",
)
@pytest.mark.only_in_all
def test_a_record_of_an_unknown_type_stops_the_next_query_too() -> None:
    with stores_behind_proxy() as stores:
        with followed(stores.proxy.port) as stream:
            unknown_record(stores.server)
            first = stream.failure()
        with followed(stores.proxy.port, stream) as again:
            second = again.failure()
    for error in (first, second):
        assert isinstance(error, ProtocolViolation)
        assert "record 77" in str(error)


@pytest.mark.fault(
    fault="a TABSCHEMA whose columns are not the catalog's (schema change seen)",
    outcome="IFXCDC-0007 naming the table and the columns announced; rows before it are delivered",
)
@pytest.mark.parametrize(
    "columns",
    [
        f"{ORDER_COLUMNS}, more char(3)",
        ORDER_COLUMNS.replace("integer", "bigint"),
        ORDER_COLUMNS.partition(", amount")[0],
    ],
    ids=["one more", "another type", "one less"],
)
@pytest.mark.only_in_all
def test_a_table_announced_with_other_columns_stops_the_query(columns: str) -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        workload = Workload(stores.server, seed=21)
        workload.run(20)
        stream.upto(workload.committed[-1].commit)
        stores.server.announce_as(None, ORDERS, columns)
        error = stream.failure()
        assert stream.delivered == account(workload)
    assert isinstance(error, ProtocolViolation)
    assert str(error).startswith(
        "IFXCDC-0007: the server announces table stores:informix.orders with columns that differ"
    )
    assert "start a new stream" in str(error)


@pytest.mark.fault(
    fault="a second TABSCHEMA that says the same, or only lengthens a VARCHAR: rows keep their layout",
    outcome="nothing: rows as committed",
)
@pytest.mark.parametrize(
    "columns", [ORDER_COLUMNS, ORDER_COLUMNS.replace("60", "80")], ids=["same", "longer"]
)
@pytest.mark.only_in_all
def test_a_table_announced_again_in_the_same_layout_changes_nothing(columns: str) -> None:
    with stores_behind_proxy() as stores, followed(stores.proxy.port) as stream:
        workload = Workload(stores.server, seed=22)
        for _ in range(3):
            workload.run(5)
            stores.server.announce_as(None, ORDERS, columns)
        stream.upto(workload.committed[-1].commit)
        assert stream.delivered == account(workload)


@pytest.mark.slow
@pytest.mark.fault(
    fault="a captured table is truncated, option truncate=fail",
    outcome="IFXCDC-0006 naming table and place; rows before it are delivered",
)
def test_a_truncate_that_may_not_be_is_data_loss() -> None:
    def truncate(server: EmulatedServer) -> None:
        with server.transaction() as transaction:
            transaction.truncate(CUSTOMERS)  # nobody captures it
        with server.transaction() as transaction:
            transaction.truncate(ORDERS)

    error = error_after_sound_rows(truncate)
    assert isinstance(error, DataLoss)
    assert "was truncated" in str(error)
