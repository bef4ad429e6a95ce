"""Tables that go while a transaction has changed their rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.sql.asking import Asked

END = ["ROLLBACK WORK", "COMMIT WORK"]


@pytest.fixture
def table(db: Asked) -> str:
    db.run("CREATE TABLE t (id integer PRIMARY KEY)")
    return "t"


@pytest.mark.parametrize("text", ["DROP TABLE t", "TRUNCATE TABLE t", "DROP DATABASE stores"])
def test_what_another_has_changed_is_not_dropped(
    connect: Callable[..., Asked], db: Asked, table: str, text: str
) -> None:
    db.all("BEGIN WORK", f"INSERT INTO {table} VALUES (1)")
    error = connect(database="sysmaster" if "DATABASE" in text else "stores").refused(text)
    assert (error.native, error.isam) in {(-242, -106), (-425, 0)}
    db.run("ROLLBACK WORK")
    assert db.rows(f"SELECT * FROM {table}") == []


def test_a_database_that_nobody_else_has_open_is_dropped(
    connect: Callable[..., Asked], db: Asked, table: str
) -> None:
    other = connect(database="sysmaster")
    assert other.refused("DROP DATABASE stores").native == -425
    db.session.close()
    other.run("DROP DATABASE stores")
    assert "stores" not in other.server.databases


@pytest.mark.parametrize("end", END)
def test_a_temporary_table_that_is_dropped_in_a_transaction(db: Asked, end: str) -> None:
    db.all("CREATE TEMP TABLE m (n integer)", "INSERT INTO m VALUES (1)", "BEGIN WORK")
    db.all("INSERT INTO m VALUES (2)", "DELETE FROM m WHERE n = 1", "DROP TABLE m")
    assert db.refused("SELECT * FROM m").native == -206
    db.run(end)
    if end == "ROLLBACK WORK":
        assert db.rows("SELECT * FROM m") == [(1,)]
    else:
        db.run("CREATE TEMP TABLE m (x integer)")


@pytest.mark.parametrize("kind", ["TEMP", ""])
def test_the_end_of_a_session_takes_its_dropped_tables_with_it(
    connect: Callable[..., Asked], kind: str
) -> None:
    one = connect()
    one.all(
        "BEGIN WORK", f"CREATE {kind} TABLE m (n integer)", "INSERT INTO m VALUES (1)", "DROP TABLE m"
    )
    one.session.close()
    assert connect().refused("SELECT * FROM m").native == -206


def test_rows_of_a_table_that_is_gone_are_undone_without_harm(db: Asked, table: str) -> None:
    """However it went: there is nothing left that could be put back."""
    db.all(f"INSERT INTO {table} VALUES (1)", "BEGIN WORK", f"DELETE FROM {table}")
    db.run(f"INSERT INTO {table} VALUES (2)")
    engine = db.server.row_keeper
    storage = engine.storage_of(db.server.table("stores:informix.t"))  # type: ignore[union-attr]
    db.server.drop_table("stores:informix.t")
    engine.store.forget(storage)  # type: ignore[union-attr]
    db.run("ROLLBACK WORK")
    assert db.log()[-1] == "RBTX"
