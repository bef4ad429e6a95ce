"""Tables are made, altered, renamed and dropped; the catalogue says so; what is undone is as it was."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from emulator.sql.asking import Asked

TABLE = "stores:informix.t"


@pytest.fixture
def table(db: Asked) -> Asked:
    db.run("CREATE TABLE t (id integer PRIMARY KEY, a varchar(9) DEFAULT 'none', b integer)")
    db.all("INSERT INTO t (id, b) VALUES (1, 10)", "INSERT INTO t VALUES (2, 'two', NULL)")
    return db


def columns(db: Asked) -> list[object]:
    rows = db.rows(
        "SELECT c.colname FROM systables t, syscolumns c WHERE t.tabid = c.tabid AND tabname = 't'"
        " ORDER BY c.colno"
    )
    return [name for (name,) in rows]


# alteration, the columns it leaves, the rows
ALTERATIONS: dict[str, tuple[list[str], list[tuple[object, ...]]]] = {
    "ADD c decimal(4,1) DEFAULT 2.5": (
        ["id", "a", "b", "c"],
        [(1, "none", 10, Decimal("2.5")), (2, "two", None, Decimal("2.5"))],
    ),
    "ADD (c integer BEFORE b, d integer)": (
        ["id", "a", "c", "d", "b"],
        [(1, "none", None, None, 10), (2, "two", None, None, None)],
    ),
    "DROP (a)": (["id", "b"], [(1, 10), (2, None)]),
    "MODIFY (b char(4))": (["id", "a", "b"], [(1, "none", "10  "), (2, "two", None)]),
    "DROP a, ADD (a integer)": (["id", "b", "a"], [(1, 10, None), (2, None, None)]),
    "LOCK MODE (ROW)": (["id", "a", "b"], [(1, "none", 10), (2, "two", None)]),
}


@pytest.mark.parametrize("end", ["COMMIT WORK", "ROLLBACK WORK"])
@pytest.mark.parametrize("text", ALTERATIONS)
def test_an_altered_table_keeps_the_rows_that_fit(table: Asked, text: str, end: str) -> None:
    before = columns(table), table.rows("SELECT * FROM t"), table.server.table(TABLE).partnum
    table.all("BEGIN WORK", f"ALTER TABLE t {text}")
    assert (columns(table), table.rows("SELECT * FROM t ORDER BY id")) == ALTERATIONS[text]
    table.run(end)
    if end == "ROLLBACK WORK":
        after = columns(table), table.rows("SELECT * FROM t"), table.server.table(TABLE).partnum
        assert after == before
    table.run("INSERT INTO t (id) VALUES (3)")
    assert table.refused("INSERT INTO t (id) VALUES (3)").native == -268


def test_what_does_not_fit_any_more_is_refused_and_nothing_altered(table: Asked) -> None:
    assert table.refused("ALTER TABLE t MODIFY (a integer)").native == -1213
    assert table.refused("ALTER TABLE t MODIFY (b integer NOT NULL)").argument == "b"
    assert table.rows("SELECT * FROM t") == [(1, "none", 10), (2, "two", None)]


def test_a_column_has_another_name_and_the_same_values(table: Asked) -> None:
    versions = table.server.table(TABLE).versions
    table.run("RENAME COLUMN t.a TO z")
    assert table.rows("SELECT z FROM t WHERE id = 2") == [("two",)]
    table.run("INSERT INTO t (id) VALUES (3)")
    assert table.rows("SELECT z FROM t WHERE id = 3") == [("none",)]
    assert table.server.table(TABLE).versions == versions


def test_a_table_that_logs_whole_rows_is_neither_altered_nor_dropped(table: Asked) -> None:
    table.server.set_full_row_logging(TABLE, True)
    for text in ("ALTER TABLE t DROP a", "DROP TABLE t", "RENAME COLUMN t.a TO z"):
        assert table.refused(text).native == -19816, text
    table.run("TRUNCATE t")  # the capture API has a record for that
    assert table.rows("SELECT * FROM t") == []


def test_a_table_that_is_dropped_and_rolled_back_is_there_again(table: Asked) -> None:
    tabid = table.server.table(TABLE).tabid
    table.all("BEGIN WORK", "DROP TABLE t", "CREATE TABLE t (x integer)", "INSERT INTO t VALUES (5)")
    assert table.rows("SELECT * FROM t") == [(5,)]
    table.run("ROLLBACK WORK")
    assert table.rows("SELECT id FROM t") == [(1,), (2,)]
    assert table.server.table(TABLE).tabid == tabid
    table.run("DROP TABLE t")
    assert columns(table) == []


def test_a_prepared_statement_meets_the_table_as_it_is_now(table: Asked) -> None:
    same = table.session.prepare("SELECT id FROM t WHERE b = 10")
    other = table.session.prepare("SELECT * FROM t")
    table.run("ALTER TABLE t ADD (c integer)")
    assert list(same.run((), lambda: None).rows) == [(1,)]
    with pytest.raises(Exception, match="altered"):
        other.run((), lambda: None)


def test_indexes_are_in_the_catalogue_and_undone(table: Asked) -> None:
    keys = "SELECT i.idxtype, i.part1, i.part2 FROM sysindexes i, systables t WHERE i.tabid = t.tabid"
    table.all("BEGIN WORK", "CREATE UNIQUE INDEX ix ON t (b, a DESC)")
    assert table.rows(f"{keys} ORDER BY 1, 3") == [("U", 1, 0), ("U", 3, 2)]
    assert table.refused("INSERT INTO t VALUES (9, 'none', 10)").native == -239
    table.run("ROLLBACK WORK")
    assert table.rows(keys) == [("U", 1, 0)]
    table.run("INSERT INTO t VALUES (9, 'none', 10)")
    assert table.refused("CREATE UNIQUE INDEX ix ON t (b, a)").native == -371
    table.run("CREATE INDEX ix ON t (b)")


def test_a_view_is_in_the_catalogue_and_cannot_be_read(table: Asked) -> None:
    table.run("CREATE VIEW v AS SELECT id, b + 1 AS c FROM t WHERE b IS NOT NULL")
    kinds = "SELECT tabname, tabtype FROM systables WHERE tabid > 99 ORDER BY tabid"
    assert table.rows(kinds) == [("t", "T"), ("v", "V")]
    assert table.refused("SELECT * FROM v").native == -206
    table.run("DROP VIEW v")
    assert table.rows(kinds) == [("t", "T")]


def test_a_serial_column_counts_on_from_the_highest(db: Asked) -> None:
    db.run("CREATE TABLE n (id serial(100), x integer)")
    given = [db.run(f"INSERT INTO n VALUES ({value}, 1)").serial for value in (0, 0, 200, 150, 0)]
    assert given == [100, 101, 200, 150, 201]
    assert db.run("INSERT INTO n (x) SELECT x FROM n").serial == 206


@pytest.mark.parametrize("key", ["UNIQUE", "INDEX"])
def test_a_unique_key_takes_one_null(db: Asked, key: str) -> None:
    db.run("CREATE TABLE n (a integer, b varchar(9)" + (", UNIQUE (a, b))" if key == "UNIQUE" else ")"))
    if key == "INDEX":
        db.run("CREATE UNIQUE INDEX both ON n (a, b)")
    db.all(
        "INSERT INTO n VALUES (1, NULL)",
        "INSERT INTO n VALUES (2, NULL)",
        "INSERT INTO n VALUES (1, '')",
    )
    expected = -268 if key == "UNIQUE" else -239
    assert db.refused("INSERT INTO n VALUES (1, NULL)").native == expected
    assert db.refused("UPDATE n SET a = 1 WHERE a = 2").native == expected
    db.all("INSERT INTO n VALUES (NULL, NULL)", "DELETE FROM n WHERE a = 1 AND b IS NULL")
    assert db.refused("INSERT INTO n VALUES (NULL, NULL)").native == expected
    db.run("INSERT INTO n VALUES (1, NULL)")


def test_a_unique_index_over_two_nulls_is_refused_and_leaves_nothing(db: Asked) -> None:
    db.all("CREATE TABLE n (a integer)", "INSERT INTO n VALUES (NULL)", "INSERT INTO n VALUES (NULL)")
    assert db.refused("CREATE UNIQUE INDEX one ON n (a)").native == -371
    db.run("DELETE FROM n")
    db.run("CREATE UNIQUE INDEX one ON n (a)")
    db.run("INSERT INTO n VALUES (NULL)")


def test_the_python_api_alters_a_table_whose_name_has_capitals(connect: Callable[..., Asked]) -> None:
    db = connect(delimits_names=True)
    db.all('CREATE TABLE "Mixed Up" (id integer)', 'INSERT INTO "Mixed Up" VALUES (1)')
    db.server.alter_table('stores:informix."Mixed Up"', "id integer, more integer")
    assert db.rows('SELECT * FROM "Mixed Up"') == [(1, None)]


def test_names_with_capitals_need_quotes_and_keep_them(connect: Callable[..., Asked]) -> None:
    db = connect(delimits_names=True)
    db.run('CREATE TABLE "Mixed" ("Id" integer, "a b" integer)')
    db.run('INSERT INTO "Mixed" ("a b") VALUES (5)')
    assert db.rows('SELECT "a b" FROM "Mixed"') == [(5,)]
    assert db.refused("SELECT * FROM mixed").native == -206
