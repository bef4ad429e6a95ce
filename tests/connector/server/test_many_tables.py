"""What is asked of a server does not grow by a statement a table: by a stream, and by the doctor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.servers.stores import listening_stores, source_options
from informix_capture_client import statements
from informix_capture_client.errors import BadOption
from informix_capture_client.transport.base import Argument, ConnectionSettings, Row, Transport
from informix_cdc.capture.server_watch import log_facts
from informix_cdc.options.source import SourceOptions
from informix_cdc.server.connections import every_connection, open_catalog, open_connection
from informix_cdc.server.server_facts import read_table_facts
from informix_cdc.server.source_tables import describe_tables
from informix_emulator import EmulatedServer, ListeningServer
from odbc_driver.build import build_drivers

WAYS = ["sqli", "odbc"]


class Counting:
    """Counts the statements of a connection, however long their lists are."""

    def __init__(self, inner: Transport, asked: Counter[str]) -> None:
        self._inner = inner
        self._asked = asked

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        self._asked[statement.replace("?, ", "")] += 1
        return self._inner.rows(statement, *arguments)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    asked: Counter[str] = Counter()

    def wrap(transport: Transport, _: ConnectionSettings) -> Transport:
        return Counting(transport, asked)  # type: ignore[return-value]

    with every_connection(wrap):
        yield asked


def many_tables(
    server: EmulatedServer, listening: ListeningServer, count: int, way: str
) -> SourceOptions:
    for number in range(count):
        columns = "id integer primary key, note varchar(20,0)"
        server.create_table(f"stores:informix.t{number}", columns, full_row_logging=number != 7)
    changes = {"transport": way, "table": ",".join(f"informix.t{n}" for n in range(count))}
    if way == "odbc":
        driver = build_drivers().narrow
        assert driver is not None
        changes["driver"] = str(driver)
    return SourceOptions.parse(source_options(listening.port, **changes))


def asked_of(count: int, way: str = "sqli") -> Counter[str]:
    """Begin to capture so many tables, look at them once more, and ask as the doctor does."""
    with listening_stores() as (server, listening), counted() as asked:
        options = many_tables(server, listening, count, way)
        with open_catalog(options.connection) as catalog:
            source = describe_tables(options, catalog)
            assert [str(table.name) for table in source.tables] == [
                f"stores:informix.t{number}" for number in range(count)
            ]
            unlogged = ("stores:informix.t7",) if count > 7 else ()
            assert log_facts(catalog, source, 0.0).unlogged_tables == unlogged
        connection = open_connection(options.connection, options.connection.database)
        facts = read_table_facts(connection, options.connection.database, options.table_names())
        connection.close()
        assert [each.logs_full_rows for each in facts] == [number != 7 for number in range(count)]
        assert all(each.has_primary_key is True for each in facts)
        assert not any(each.has_pending_alter for each in facts)
    return asked


@pytest.mark.parametrize("way", WAYS)
def test_a_hundred_tables_take_the_statements_of_one(way: str) -> None:
    assert asked_of(100, way) == asked_of(1, way)


@pytest.mark.slow
@pytest.mark.only_in_all
def test_500_tables_take_five_statements_where_one_takes_one() -> None:
    one, many = asked_of(1), asked_of(500)
    grown = {statement: count for statement, count in many.items() if count != one[statement]}
    # the tables and their columns twice: by the stream and by the doctor; their flags as well
    assert grown == {
        statements.TABLE: 10,
        statements.COLUMNS: 10,
        statements.PARTITION_FLAGS: 10,
        statements.PRIMARY_KEY: 5,
        statements.PARTITION_VERSIONS: 5,
    }
    assert sum(many.values()) - sum(one.values()) == 32


@pytest.mark.slow
@pytest.mark.only_in_all
def test_a_table_that_is_dropped_or_made_anew_among_250_is_the_only_one_that_is_noticed() -> None:
    with listening_stores() as (server, listening):
        options = many_tables(server, listening, 250, "sqli")
        server.set_full_row_logging("stores:informix.t7", True)
        with open_catalog(options.connection) as catalog:
            source = describe_tables(options, catalog)
            assert log_facts(catalog, source, 0.0).unlogged_tables == ()
            server.drop_table("stores:informix.t150")
            assert log_facts(catalog, source, 0.0).unlogged_tables == ("stores:informix.t150",)
            with pytest.raises(BadOption, match="t150"):
                describe_tables(options, catalog)
            columns = "id integer primary key, note varchar(20,0)"
            server.create_table("stores:informix.t150", columns, full_row_logging=True)
            assert log_facts(catalog, source, 0.0).unlogged_tables == ("stores:informix.t150",)
            assert describe_tables(options, catalog).identity != source.identity
