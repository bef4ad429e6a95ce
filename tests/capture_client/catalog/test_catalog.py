"""What the catalog says of tables, over scripted connections."""

from __future__ import annotations

import pytest

from harness.servers.scripted_transport import ScriptedTransport
from informix_capture_client import statements
from informix_capture_client.catalog.catalog import Catalog
from informix_capture_client.catalog.many_at_once import MOST_AT_ONCE, about
from informix_capture_client.catalog.set_up import DatabaseLogging
from informix_capture_client.catalog.tables import Table
from informix_capture_client.errors import ServerRefused
from informix_capture_client.sql_names import TableName

NAME = TableName("stores", "informix", "orders")
LOGGED, PLAIN = str(0x04000000 | 2), "2"


def logs_full_rows(fragments: dict[str, str], partition_number: int = 0) -> bool:
    """Ask of a table whose partitions have these flags."""

    class Partitions(ScriptedTransport):
        def rows(self, statement: str, *arguments: int | str) -> list[tuple[str | None, ...]]:
            if statement == statements.FRAGMENTS:
                return [("100", number) for number in fragments]
            assert statement == about(statements.PARTITION_FLAGS, len(arguments))
            return [(str(number), fragments[str(number)]) for number in arguments]

    table = Table(NAME, 100, partition_number, "01/01/2026", ())
    return Catalog(Partitions(), "stores").logs_full_rows(table)


def test_a_fragmented_table_logs_full_rows_when_every_fragment_does() -> None:
    assert logs_full_rows({"7": LOGGED, "8": LOGGED})
    assert not logs_full_rows({"7": LOGGED, "8": PLAIN})
    assert not logs_full_rows({"7": PLAIN, "8": LOGGED})


def test_a_table_in_one_partition_has_a_flag_of_its_own() -> None:
    assert logs_full_rows({"9": LOGGED}, partition_number=9)
    assert not logs_full_rows({"9": PLAIN}, partition_number=9)


def test_a_table_without_any_partition_is_not_taken_for_one_that_logs_full_rows() -> None:
    with pytest.raises(ServerRefused, match="no partition of stores"):
        logs_full_rows({})


@pytest.mark.parametrize("one", ["1", "1   ", " 1", "1\n"])
def test_a_database_is_logged_however_the_driver_pads_its_numbers(one: str) -> None:
    answers: list[tuple[str | None, ...]] = [(one, f"{0:5}", None)]

    class Padding(ScriptedTransport):
        def rows(self, statement: str, *arguments: int | str) -> list[tuple[str | None, ...]]:
            assert (statement, arguments) == (statements.DATABASE_LOGGING, ("stores",))
            return answers

    assert Catalog(Padding(), "stores").database_logging() == DatabaseLogging(is_logged=True)


VERSIONS = [
    ("one layout", "3", "3", False),
    ("two layouts", "2", "3", True),
    ("padded", "3 ", "3", False),
]


@pytest.mark.parametrize(
    ("oldest", "newest", "pending"), [v[1:] for v in VERSIONS], ids=lambda v: str(v)
)
def test_an_in_place_alter_is_pending_while_two_layouts_are_named(
    oldest: str, newest: str, pending: bool
) -> None:
    class Partitions(ScriptedTransport):
        def rows(self, statement: str, *arguments: int | str) -> list[tuple[str | None, ...]]:
            if statement == statements.FRAGMENTS:
                return [("100", "7"), ("100", "8")]
            assert statement == about(statements.PARTITION_VERSIONS, len(arguments))
            found = {7: ("7", "0", "0"), 8: ("8 ", oldest, newest)}
            return [found[int(number)] for number in arguments]

    for partition_number in (0, 8):
        table = Table(NAME, 100, partition_number, "01/01/2026", ())
        assert Catalog(Partitions(), "stores").pending_alters([table]) == [pending]


class ManyTables(ScriptedTransport):
    """Has tables t0, t1, ... of partitions 1000, 1001, ...; every third is in two fragments.

    Answers come in another order than the questions, and every seventh partition logs no full rows.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []

    def rows(self, statement: str, *arguments: int | str) -> list[tuple[str | None, ...]]:
        assert statement.count("?") == len(arguments) == len(set(arguments)) <= MOST_AT_ONCE
        self.asked.append(statement)
        numbers = sorted((int(str(each).removeprefix("t")) for each in arguments), reverse=True)
        return [row for n in numbers for row in self._about(statement.partition("IN (")[0], n)]

    def _about(self, question: str, n: int) -> list[tuple[str | None, ...]]:
        rows: dict[str, list[tuple[str | None, ...]]] = {
            statements.TABLE: [
                (f"t{n}", "other ", "1", "1", "", "V", "0"),
                (f"t{n}", "ann   ", str(n), str(1000 + n) if n % 3 else "0", "d", "T ", "0"),
            ],
            statements.COLUMNS: [
                (str(n), f"a{n} ", "2", "4", "0", "0"),
                (str(n), "shadow", "2", "4", "0", "5"),
                (str(n), "b", "2", "4", "0", None),
            ],
            statements.FRAGMENTS: [(str(n), str(1000 + n)), (str(n), str(5000 + n))],
            statements.PARTITION_FLAGS: [(str(n), LOGGED if n % 7 else PLAIN)],
        }
        return next(found for text, found in rows.items() if text.startswith(question))


@pytest.mark.parametrize("count", [1, 100, 101, 500])
def test_many_tables_are_looked_up_in_lists_of_a_hundred(count: int) -> None:
    server = ManyTables()
    catalog = Catalog(server, "stores")
    names = [TableName("stores", "ann", f"t{number}") for number in range(count)]
    tables = catalog.tables(names)
    assert [table.name for table in tables] == names
    columns = [[column.name for column in table.columns] for table in tables]
    assert columns == [[f"a{number}", "b"] for number in range(count)]
    assert [table.partition_number for table in tables] == [
        1000 + number if number % 3 else 0 for number in range(count)
    ]
    assert len(server.asked) == 2 * -(-count // MOST_AT_ONCE)


def test_the_flags_of_500_tables_take_nine_statements_and_name_those_without() -> None:
    server = ManyTables()
    tables = [
        Table(TableName("stores", "ann", f"t{n}"), n, 1000 + n if n % 3 else 0, "", ())
        for n in range(500)
    ]
    off = Catalog(server, "stores").without_row_logging(tables)
    fragments = {n: [1000 + n] if n % 3 else [1000 + n, 5000 + n] for n in range(500)}
    expected = [n for n in range(500) if any(number % 7 == 0 for number in fragments[n])]
    assert [table.table_id for table in off] == expected
    assert len(server.asked) == 2 + 7  # of 167 tables the fragments, of 667 partitions the flags
    assert max(map(len, server.asked)) < 500


def test_a_name_that_two_owners_have_is_the_one_of_its_owner() -> None:
    there = TableName("stores", "ann", "t1")
    found, view = Catalog(ManyTables(), "stores").find_tables(
        [there, TableName("stores", "other", "t1")]
    )
    assert found.table is not None
    assert (found.kind, found.table.table_id, view.kind, view.table) == ("table", 1, "view", None)
