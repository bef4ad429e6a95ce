"""The statements of chunks, and that they page through a table on the emulator."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from harness.capture.tables import make_table
from harness.servers.in_process import InProcessConnection
from informix_capture_client.incremental_snapshot import ChunkQuery, SnapshotKey, WholeTableQuery
from informix_emulator import EmulatedServer

COLUMNS = "k1 integer, k2 smallint, k3 char(4), v varchar(10,0)"
ATTRIBUTES = {
    "SERVER": "informix",
    "UID": "informix",
    "PWD": "in4mix",
    "DB_LOCALE": "en_US.utf8",
    "CLIENT_LOCALE": "en_US.utf8",
}


def query(*names: str, columns: str = COLUMNS, table: str = "orders", owner: str = "ann") -> ChunkQuery:
    described = make_table(table, columns, owner)
    by_name = {column.name: column for column in described.columns}
    return ChunkQuery(described, SnapshotKey(described.name, tuple(by_name[name] for name in names)))


def condition(*names: str) -> str:
    return query(*names).behind(9).partition(" WHERE ")[2].partition(" ORDER BY ")[0]


def test_the_first_chunk_is_of_the_first_rows_in_the_order_of_the_key() -> None:
    assert query("k2", "k1").first(500) == (
        'SELECT /*+ AVOID_FULL(t) */ FIRST 500 t."k1", t."k2", t."k3", t."v" FROM "ann"."orders" t'
        ' ORDER BY t."k2", t."k1"'
    )


def test_the_next_chunk_is_of_the_rows_behind_the_key_that_was_read_last() -> None:
    assert query("k1").behind(500) == (
        'SELECT /*+ AVOID_FULL(t) */ FIRST 500 t."k1", t."k2", t."k3", t."v" FROM "ann"."orders" t'
        ' WHERE t."k1" > ? ORDER BY t."k1"'
    )


CONDITIONS = {
    ("k1",): ('t."k1" > ?', "A"),
    ("k1", "k2"): ('t."k1" >= ? AND (t."k1" > ? OR (t."k1" = ? AND t."k2" > ?))', "AAAB"),
    ("k1", "k2", "k3"): (
        't."k1" >= ? AND (t."k1" > ? OR (t."k1" = ? AND (t."k2" > ? OR (t."k2" = ? AND t."k3" > ?))))',
        "AAABBC",
    ),
    ("k1", "k2", "k3", "v"): (
        't."k1" >= ? AND (t."k1" > ? OR (t."k1" = ? AND (t."k2" > ? OR (t."k2" = ? AND (t."k3" > ? OR'
        ' (t."k3" = ? AND t."v" > ?))))))',
        "AAABBCCD",
    ),
}


@pytest.mark.parametrize("names", CONDITIONS)
def test_a_key_of_several_columns_is_compared_column_by_column(names: tuple[str, ...]) -> None:
    text, arguments = CONDITIONS[names]
    assert condition(*names) == text
    assert query(*names).arguments(list("ABCD"[: len(names)])) == list(arguments)
    assert text.count("?") == len(arguments)


def test_a_bound_of_another_number_of_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="3 values for the key"):
        query("k1", "k2").arguments(["1", "2", "3"])
    with pytest.raises(ValueError, match="1 values for the key"):
        query("k1", "k2").arguments(["1"], ["9"])


def test_a_prefix_and_a_limit_of_the_first_column_are_inclusive() -> None:
    made = replace(query("k1", "k2", "k3"), is_limited=True)
    found = [made.behind(9, columns).partition(" WHERE ")[2] for columns in (0, 1, 2)]
    assert [text.partition(" ORDER BY ")[0] for text in found] == [
        't."k1" <= ?',
        't."k1" >= ? AND t."k1" <= ?',
        't."k1" >= ? AND (t."k1" > ? OR (t."k1" = ? AND t."k2" >= ?)) AND t."k1" <= ?',
    ]
    assert made.arguments(["A", "B"], ["Z"]) == ["A", "A", "A", "B", "Z"]


def test_a_condition_is_in_parentheses_before_the_key() -> None:
    limited = replace(query("k1"), condition="k2 > 7 OR v = 'x'")
    assert " WHERE (k2 > 7 OR v = 'x') ORDER BY" in limited.first(5)
    assert """ WHERE (k2 > 7 OR v = 'x') AND t."k1" > ? ORDER BY""" in limited.behind(5)
    whole = WholeTableQuery(limited.table, limited.condition)
    assert whole.rows.endswith(" WHERE (k2 > 7 OR v = 'x')")
    assert whole.no_rows.endswith(" WHERE (k2 > 7 OR v = 'x') AND 1 = 0")


def test_names_that_are_not_plain_are_delimited_and_the_owner_always() -> None:
    """An ANSI database reads an owner without quotes in upper case."""
    odd = query("Ship Date", columns='"Ship Date" date, "a""b" integer', table="Big", owner='o"x')
    assert odd.behind(1) == (
        'SELECT /*+ AVOID_FULL(t) */ FIRST 1 t."Ship Date", t."a""b" FROM "o""x"."Big" t'
        ' WHERE t."Ship Date" > ? ORDER BY t."Ship Date"'
    )


def test_the_places_of_the_key_are_those_in_a_row() -> None:
    assert query("v", "k1").key_places == (3, 0)


def test_a_table_without_a_key_is_locked_and_read_whole() -> None:
    whole = WholeTableQuery(make_table("orders", COLUMNS, "ann"))
    assert whole.lock == 'LOCK TABLE "ann"."orders" IN SHARE MODE'
    assert whole.rows == 'SELECT t."k1", t."k2", t."k3", t."v" FROM "ann"."orders" t'


KEYS = [("k1", "k2"), ("k3", "k2"), ("k3", "k1", "k2"), ("k2", "k3", "k1")]


@pytest.mark.parametrize("rows_at_once", [1, 2, 3, 7, 8, 100])
@pytest.mark.parametrize("names", KEYS)
def test_chunks_of_any_size_have_each_row_once(names: tuple[str, ...], rows_at_once: int) -> None:
    server = EmulatedServer()
    server.create_database("stores")
    connection = InProcessConnection(server, ATTRIBUTES, "stores")
    connection.rows("CREATE TABLE ann.orders (k1 INTEGER, k2 SMALLINT, k3 CHAR(4), v VARCHAR(10))")
    every = list(itertools.product((1, 2), (1, 2), ("a", "b")))
    for n, (k1, k2, k3) in enumerate(every):
        connection.rows("INSERT INTO ann.orders VALUES (?, ?, ?, ?)", k1, k2, k3, f"v{n}")
    # unique over these columns: the third one, where it is none of them, is always 1 or a
    others = {"k1": "k1 <> 1", "k2": "k2 <> 1", "k3": "k3 <> 'a'"}
    for name in others.keys() - set(names):
        connection.rows(f"DELETE FROM ann.orders WHERE {others[name]}")
    made = query(*names)
    read, after = [], list[str]()
    while True:
        text = made.behind(rows_at_once) if after else made.first(rows_at_once)
        chunk = connection.rows(text, *(made.arguments(after) if after else ()))
        read += chunk
        if len(chunk) < rows_at_once:
            break
        after = [str(chunk[-1][place]) for place in made.key_places]
    places = made.key_places
    expected = sorted(read, key=lambda row: [str(row[place]) for place in places])
    assert read == expected
    assert len(read) == len(set(read)) == 2 ** len(names)


def test_words_of_sql_may_be_names_of_tables_columns_and_keys() -> None:
    server = EmulatedServer()
    server.create_database("stores")
    connection = InProcessConnection(server, ATTRIBUTES, "stores")
    connection.rows('CREATE TABLE informix."select" ("order" INTEGER, "from" CHAR(4))')
    connection.rows("""INSERT INTO informix."select" VALUES (7, 'a')""")
    made = query("order", columns='"order" integer, "from" char(4)', table="select", owner="informix")
    assert connection.rows(made.first(9)) == [("7", "a   ")]
    assert connection.rows(made.behind(9), *made.arguments(["6"])) == [("7", "a   ")]
