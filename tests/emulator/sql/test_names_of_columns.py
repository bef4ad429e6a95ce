"""Names that are more than names: columns named like built-in functions, and shadow columns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.sql.asking import Asked

NAMES = ("user", "today", "current", "sitename", "dbservername", "current_user", "sysdate")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("written", ["{}", '"{}"'])
def test_only_a_qualified_name_is_a_column_that_is_named_like_a_function(
    connect: Callable[..., Asked], name: str, written: str
) -> None:
    db = connect(delimits_names=True)
    column = written.format(name)
    db.all(
        f'CREATE TABLE odd (id integer, "{name}" varchar(30))',
        f"INSERT INTO odd (id, {column}) VALUES (1, 'written')",
    )
    assert db.rows(f"SELECT t.{column} FROM odd t WHERE t.{column} = 'written'") == [("written",)]
    assert db.rows(f"SELECT odd.{column} FROM odd ORDER BY odd.{column}") == [("written",)]
    ((function,),) = db.rows(f"SELECT {column} FROM odd")
    assert function != "written"
    db.run(f"UPDATE odd t SET {column} = 'again' WHERE t.{column} = 'written'")
    assert db.rows("SELECT * FROM odd") == [(1, "again")]


def test_an_unqualified_delete_by_such_a_column_takes_every_row(
    connect: Callable[..., Asked],
) -> None:
    """As measured by others on a live server: the condition compares the login with itself."""
    db = connect(delimits_names=True)
    db.all('CREATE TABLE odd ("user" char(32))', "INSERT INTO odd VALUES ('josh')")
    ((login,),) = db.rows("SELECT user FROM systables WHERE tabid = 1")
    db.run(f"DELETE FROM odd WHERE \"user\" = '{login}'")
    assert db.rows("SELECT count(*) FROM odd") == [(0,)]


def test_shadow_columns_are_in_the_catalog_and_not_in_a_star(db: Asked) -> None:
    db.all(
        "CREATE TABLE versioned (id integer, v varchar(9)) WITH VERCOLS",
        "INSERT INTO versioned VALUES (1, 'x')",
        "INSERT INTO versioned SELECT * FROM versioned",
    )
    assert db.rows("SELECT * FROM versioned") == [(1, "x"), (1, "x")]
    assert db.rows("SELECT t.ifx_row_version FROM versioned t") == [(None,), (None,)]
    asked = (
        "SELECT c.colname, c.colattr FROM syscolumns c, systables t"
        " WHERE c.tabid = t.tabid AND t.tabname = 'versioned' ORDER BY c.colno"
    )
    shadows = [("ifx_insert_checksum", 5), ("ifx_row_version", 3)]
    assert db.rows(asked) == [("id", 0), ("v", 0), *shadows]
