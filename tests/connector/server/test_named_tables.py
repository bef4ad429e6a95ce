"""Option `table` with patterns: looked up once, told, and what cannot be captured matches nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.capture.driving import Served, anchor_of, drained, failure_of, next_offset, reader
from harness.capture.told import told
from harness.servers.stores import listening_stores, order_row, source_options
from informix_capture_client.errors import BadOption
from informix_cdc.options.source import SourceOptions
from informix_cdc.server import (
    look_up_tables,
    named_tables,
    open_catalog,
    with_named_tables,
)


@pytest.fixture
def served() -> Iterator[Served]:
    """Orders and customers, and beside them an order log, a RAW table and a table of another owner."""
    with listening_stores() as (server, listening):
        server.create_table("stores:informix.order_log", "id integer")
        server.create_table("stores:informix.ordersraw", "id integer", kind="raw")
        server.create_table("stores:informix.ord_view", "id integer", kind="view")
        server.create_table('stores:hr."Order Lines"', "id integer")
        yield server, listening


def names(served: Served, table: str, **changes: str) -> list[str]:
    changes = {"shape": "json", **changes}
    options = SourceOptions.parse(source_options(served[1].port, table=table, **changes))
    with open_catalog(options.connection) as catalog:
        return [str(name).removeprefix("stores:") for name in named_tables(options, catalog)]


ORDERS_AND_LOG = ["informix.order_log", "informix.orders"]
BOTH = ["informix.customers", "informix.orders"]
ALL = ["informix.customers", *ORDERS_AND_LOG]


@pytest.mark.parametrize(
    ("table", "changes", "expected"),
    [
        ("informix.orders", {}, ["informix.orders"]),
        ("informix.ord*", {}, ORDERS_AND_LOG),
        ("stores:informix.ord*", {}, ORDERS_AND_LOG),
        ("informix.*s", {}, BOTH),
        ("informix.*", {}, ALL),
        ("informix.ord*,informix.*", {}, ALL),
        (
            "informix.orders,informix.*",
            {},
            ["informix.orders", "informix.customers", "informix.order_log"],
        ),
        (
            "informix.*, !informix.order_log",
            {},
            ["informix.customers", "informix.orders"],
        ),
        ("!informix.ord*,informix.*", {}, ["informix.customers"]),
        (
            "informix.*",
            {"heartbeatTable": "informix.order_log"},
            ["informix.customers", "informix.orders"],
        ),
        ("*.Order*", {}, ['hr."Order Lines"']),
    ],
    ids=str,
)
def test_a_pattern_stands_for_the_tables_that_can_be_captured(
    served: Served, table: str, changes: dict[str, str], expected: list[str]
) -> None:
    assert names(served, table, **changes) == expected


@pytest.mark.parametrize(
    ("table", "changes", "message"),
    [
        ("informix.x*", {}, r"no table of database stores matches informix\.x\*"),
        ("other:informix.*", {}, "is not a table pattern for database 'stores'"),
        ("informix.a*b.c", {}, "is not a table pattern"),
        ("informix.orders,!informix.customers", {}, "no pattern to exclude"),
        (
            "informix.orders,informix.*,! informix.orders",
            {},
            r"lists stores:informix\.orders, and excludes it",
        ),
        ("informix.cust*", {"shape": "rows"}, r"only stores:informix\.customers matches"),
    ],
    ids=str,
)
def test_what_a_pattern_cannot_be_is_refused(
    served: Served, table: str, changes: dict[str, str], message: str
) -> None:
    with pytest.raises(BadOption, match=message):
        names(served, table, **changes)


@pytest.mark.only_in_all
def test_a_table_with_a_column_that_cannot_be_captured_is_refused_until_it_is_excluded(
    served: Served,
) -> None:
    server, listening = served
    server.create_table("stores:informix.papers", "id integer, body text")
    changes = {"table": "informix.*", "shape": "json"}
    with pytest.raises(Exception, match="papers"), reader(listening.port, **changes):
        pass
    with reader(listening.port, **{**changes, "table": "informix.*,!informix.papers"}) as made:
        assert "informix.papers" not in anchor_of(made)["tables"]


def test_what_was_looked_up_names_its_tables_one_by_one(served: Served) -> None:
    options = SourceOptions.parse(
        source_options(served[1].port, table="*.Order*,informix.orders", shape="json")
    )
    with open_catalog(options.connection) as catalog:
        found = with_named_tables(options, catalog)
    assert found.tables.listed == ("informix.orders", 'hr."Order Lines"')
    assert with_named_tables(found, None) is found  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.only_in_all
def test_what_matches_is_told_and_a_new_match_joins_at_the_next_start(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    server, listening = served
    changes = {"table": "informix.ord*", "shape": "json"}
    caplog.set_level("INFO")
    with reader(listening.port, **changes) as first:
        start = anchor_of(first)
        server.create_table("stores:informix.order_notes", "id integer")
        transaction = server.begin()
        transaction.insert("stores:informix.orders", order_row((1, 1, "note", None)))
        _, start = drained(first, start, transaction.commit())
        assert list(start["tables"]) == ORDERS_AND_LOG
    assert told(caplog, "tables_matched")[0]["count"] == "2"
    with reader(listening.port, **changes) as made:
        while len(start["tables"]) == 2:
            start = next_offset(made, start)
    assert list(start["tables"]) == ["informix.order_log", "informix.order_notes", "informix.orders"]


def test_a_pattern_without_a_server_is_no_mistake_and_a_list_in_brackets_is(served: Served) -> None:
    error = failure_of(lambda: SourceOptions.parse(source_options(1, table="informix.(a|b)")))
    assert "Patterns support only *" in str(error)
    assert SourceOptions.parse(source_options(1, table="informix.*")).table_names() == ()


def test_a_name_that_ends_in_a_no_break_space_is_another_name(served: Served) -> None:
    served[0].create_table('stores:informix."orders\u00a0"', "id integer")
    found = names(served, "informix.orders*")
    assert found == ["informix.orders", 'informix."orders\u00a0"']
    options = SourceOptions.parse(
        source_options(served[1].port, table="informix.orders*", shape="json")
    )
    assert [str(each.name) for each in look_up_tables(options).tables] == [f"stores:{n}" for n in found]
