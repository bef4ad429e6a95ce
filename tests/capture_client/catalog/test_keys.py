"""What the catalog says of a table's keys and row locks, asked of the emulator."""

from __future__ import annotations

import pytest

from capture_client.incremental_snapshot.test_chunk_query import ATTRIBUTES
from harness.capture.tables import make_table
from harness.servers.in_process import InProcessConnection
from harness.servers.scripted_transport import ScriptedTransport
from informix_capture_client import statements
from informix_capture_client.catalog import Catalog, RowLocks, TableKeys
from informix_capture_client.catalog.many_at_once import about
from informix_capture_client.sql_names import TableName
from informix_emulator import EmulatedServer

ORDERS = TableName("stores", "ann", "orders")


@pytest.fixture
def server() -> EmulatedServer:
    server = EmulatedServer()
    server.create_database("stores")
    return server


@pytest.fixture
def connection(server: EmulatedServer) -> InProcessConnection:
    return InProcessConnection(server, ATTRIBUTES, "stores")


def keys_of(connection: InProcessConnection, *definitions: str) -> TableKeys:
    for text in definitions:
        connection.rows(text)
    catalog = Catalog(connection, "stores")  # type: ignore[arg-type]
    (keys,) = catalog.keys([catalog.table(ORDERS)])
    return keys


TABLE = "CREATE TABLE ann.orders (id INTEGER NOT NULL, line SMALLINT, code CHAR(8) NOT NULL, d DATE"


def test_a_primary_key_is_told_with_the_order_of_its_columns(connection: InProcessConnection) -> None:
    keys = keys_of(connection, f"{TABLE}, PRIMARY KEY (line, id))")
    assert keys.primary == ("line", "id")
    assert keys.unique == ()
    assert "d" in keys.nullable
    assert "code" not in keys.nullable


def test_unique_constraints_and_indexes_are_told_and_indexes_of_duplicates_are_not(
    connection: InProcessConnection,
) -> None:
    keys = keys_of(
        connection,
        f"{TABLE}, PRIMARY KEY (id), UNIQUE (code, line))",
        "CREATE UNIQUE INDEX ann.ix1 ON ann.orders (d DESC, id)",
        "CREATE INDEX ann.ix2 ON ann.orders (line)",
    )
    assert keys.primary == ("id",)
    assert keys.unique == (("code", "line"), ("d", "id"))


def test_a_table_may_have_no_key(connection: InProcessConnection) -> None:
    keys = keys_of(connection, f"{TABLE})")
    assert keys == TableKeys((), (), frozenset({"line", "d"}))


@pytest.mark.parametrize("disabled", ["u100_1", "ix1"])
def test_what_is_disabled_is_no_key(
    server: EmulatedServer, connection: InProcessConnection, disabled: str
) -> None:
    made = (f"{TABLE}, PRIMARY KEY (id))", "CREATE UNIQUE INDEX ann.ix1 ON ann.orders (code)")
    keys_of(connection, *made)
    server.databases["stores"].tables["ann", "orders"].disabled.add(disabled)
    keys = keys_of(connection)
    assert keys.primary == (() if disabled == "u100_1" else ("id",))
    assert keys.unique == (() if disabled == "ix1" else (("code",),))


def test_a_column_that_descends_and_blanks_of_a_driver_are_understood() -> None:
    """As a live server shows them: a part below zero descends."""
    answers: dict[str, list[tuple[str | None, ...]]] = {
        about(statements.CONSTRAINTS, 1): [("100", "U ", "uc  ", " 100_7  ")],
        about(statements.UNIQUE_INDEXES, 1): [
            ("100", " 100_7  ", "-2", " 1", *["0"] * 14),
            ("100", "other", "1", "2", *["0"] * 14),
        ],
        about(statements.DISABLED, 1): [("100", "I", "other ")],
        about(statements.COLUMN_NUMBERS, 1): [("100", "1", "a ", "258"), ("100", " 2", "b", "2 ")],
    }

    class Live(ScriptedTransport):
        def rows(self, statement: str, *arguments: int | str) -> list[tuple[str | None, ...]]:
            assert arguments == (100,)
            return answers[statement]

    (keys,) = Catalog(Live(), "stores").keys([make_table("orders", "a integer, b integer")])
    assert keys == TableKeys((), (("b", "a"),), frozenset({"b"}))


def test_the_index_of_a_disabled_constraint_is_no_key() -> None:
    answers: dict[str, list[tuple[str | None, ...]]] = {
        about(statements.CONSTRAINTS, 1): [("100", "P", "pk", " 100_7")],
        about(statements.UNIQUE_INDEXES, 1): [("100", " 100_7", "1", *["0"] * 15)],
        about(statements.DISABLED, 1): [("100", "C", "pk")],
        about(statements.COLUMN_NUMBERS, 1): [("100", "1", "a", "258")],
    }

    class Live(ScriptedTransport):
        def rows(self, statement: str, *arguments: int | str) -> list[tuple[str | None, ...]]:
            return answers[statement]

    (keys,) = Catalog(Live(), "stores").keys([make_table("orders", "a integer")])
    assert keys == TableKeys()


LEVELS = [("R", False), ("P", True), ("B", True), ("P ", True)]


@pytest.mark.parametrize(("level", "by_page"), LEVELS)
def test_a_table_says_whether_its_rows_are_locked_by_page(level: str, by_page: bool) -> None:
    class Live(ScriptedTransport):
        def rows(self, statement: str, *arguments: int | str) -> list[tuple[str | None, ...]]:
            assert statement == about(statements.ROW_LOCKS, 1)
            return [("100", level, "1200000.00000000")]

    (locks,) = Catalog(Live(), "stores").row_locks([make_table("orders", "a integer")])
    assert (locks.by_page, locks.row_estimate) == (by_page, 1_200_000)


def test_row_locks_are_asked_of_the_catalog(connection: InProcessConnection) -> None:
    connection.rows(f"{TABLE})")
    catalog = Catalog(connection, "stores")  # type: ignore[arg-type]
    (locks,) = catalog.row_locks([catalog.table(ORDERS)])
    assert isinstance(locks, RowLocks)
    assert not locks.by_page


@pytest.mark.parametrize("ignores_case", [False, True])
def test_a_database_says_whether_it_ignores_case(
    server: EmulatedServer, connection: InProcessConnection, ignores_case: bool
) -> None:
    server.databases["stores"].ignores_case = ignores_case
    assert Catalog(connection, "stores").ignores_case() == ignores_case  # type: ignore[arg-type]
