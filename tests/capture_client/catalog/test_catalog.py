"""What the catalog says of tables, over scripted connections."""

from __future__ import annotations

import pytest

from harness.servers.scripted_transport import ScriptedTransport
from informix_capture_client import statements
from informix_capture_client.catalog.catalog import Catalog, Table
from informix_capture_client.catalog.set_up import DatabaseLogging
from informix_capture_client.errors import ServerRefused
from informix_capture_client.sql_names import TableName

NAME = TableName("stores", "informix", "orders")
LOGGED, PLAIN = str(0x04000000 | 2), "2"


def logs_full_rows(fragments: dict[str, str], partition_number: int = 0) -> bool:
    """Ask of a table whose partitions have these flags."""

    class Partitions(ScriptedTransport):
        def rows(self, statement: str, *arguments: int | str) -> list[tuple[str | None, ...]]:
            if statement == statements.FRAGMENTS:
                return [(number,) for number in fragments]
            assert statement == statements.PARTITION_FLAGS
            return [(fragments[str(arguments[0])],)]

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
                return [("7",), ("8",)]
            assert statement == statements.PARTITION_VERSIONS
            return [(oldest, newest)] if arguments == (8,) else [("0", "0")]

    for partition_number in (0, 8):
        table = Table(NAME, 100, partition_number, "01/01/2026", ())
        assert Catalog(Partitions(), "stores").has_pending_alter(table) is pending
