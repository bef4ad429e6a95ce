"""What SQL writes is in the log, with whole images."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.sql.asking import Asked
from informix_emulator import EmulatedServer

TABLE = "stores:informix.t"


@pytest.fixture
def table(db: Asked) -> Asked:
    db.run("CREATE TABLE t (id serial PRIMARY KEY, n varchar(20), q integer DEFAULT 7)")
    db.server.set_full_row_logging(TABLE, True)
    return db


def encoded(db: Asked, **row: object) -> tuple[bytes, bytes]:
    """Return a row as the log holds it, by the table that holds it."""
    return db.server.table(TABLE).encode(row)


def test_each_change_has_its_records_and_whole_rows(table: Asked) -> None:
    assert table.run("INSERT INTO t (n) VALUES ('a')").serial == 1
    assert table.run("UPDATE t SET q = q + 1 WHERE n = 'a'").row_count == 1
    assert table.run("DELETE FROM t").row_count == 1
    table.run("TRUNCATE TABLE t")
    before, after = encoded(table, id=1, n="a", q=7), encoded(table, id=1, n="a", q=8)
    assert table.images(TABLE) == [
        ("INSERT", *before),
        ("UPDBEF", *before),
        ("UPDAFT", *after),
        ("DELETE", *after),
        ("TRUNCATE", b"", b""),
    ]


def test_a_truncate_that_is_rolled_back_gives_the_rows_back(table: Asked) -> None:
    table.run("INSERT INTO t (n) VALUES ('a')")
    table.all("BEGIN WORK", "TRUNCATE TABLE t", "ROLLBACK WORK")
    assert table.rows("SELECT n, q FROM t") == [("a", 7)]


def test_without_begin_each_statement_is_a_transaction(table: Asked) -> None:
    start = len(table.log())
    table.run("INSERT INTO t (n) VALUES ('a')")
    table.run("UPDATE t SET q = 1")
    table.run("UPDATE t SET q = 1 WHERE n = 'nobody'")
    table.run("SELECT * FROM t")
    expected = ["BEGINTX", "INSERT", "COMMTX", "BEGINTX", "UPDBEF", "UPDAFT", "COMMTX"]
    assert table.log()[start:] == expected


def test_a_transaction_is_committed_or_rolled_back_as_a_whole(table: Asked) -> None:
    start = len(table.log())
    table.all("BEGIN WORK", "INSERT INTO t (n) VALUES ('a')", "COMMIT WORK")
    table.all("BEGIN", "INSERT INTO t (n) VALUES ('b')", "UPDATE t SET q = 0", "ROLLBACK WORK")
    assert table.rows("SELECT n, q FROM t") == [("a", 7)]
    assert table.log()[start:] == [
        *("BEGINTX", "INSERT", "COMMTX"),
        *("BEGINTX", "INSERT", "UPDBEF", "UPDAFT", "UPDBEF", "UPDAFT", "RBTX"),
    ]


def test_rolling_back_to_a_savepoint_is_a_discard(table: Asked) -> None:
    table.run("INSERT INTO t (n) VALUES ('kept')")
    start = len(table.log())
    table.all(
        "BEGIN WORK",
        "SAVEPOINT one",
        "UPDATE t SET q = 1",
        "SAVEPOINT two UNIQUE",
        "DELETE FROM t",
        "ROLLBACK WORK TO SAVEPOINT two",
        "SAVEPOINT three",
        "ROLLBACK TO SAVEPOINT one",
        "COMMIT WORK",
    )
    assert table.rows("SELECT n, q FROM t") == [("kept", 7)]
    changes = ["UPDBEF", "UPDAFT", "DELETE", "DISCARD", "DISCARD"]
    assert table.log()[start:] == ["BEGINTX", *changes, "COMMTX"]


def test_savepoints_are_known_by_name_until_they_go(table: Asked) -> None:
    table.all("BEGIN WORK", "SAVEPOINT one", "SAVEPOINT two UNIQUE", "SAVEPOINT one")
    assert table.refused("SAVEPOINT two").native == -880
    assert table.refused("ROLLBACK WORK TO SAVEPOINT nobody").argument == "nobody"
    table.session.release("two")  # and with it the later one
    assert table.refused("ROLLBACK WORK TO SAVEPOINT one").native == -881
    table.run("ROLLBACK WORK")


@pytest.mark.parametrize(
    ("is_begun", "undone"), [(True, "DISCARD"), (False, "RBTX")], ids=["in a transaction", "alone"]
)
def test_a_statement_that_fails_half_way_leaves_nothing(
    table: Asked, is_begun: bool, undone: str
) -> None:
    table.run("INSERT INTO t (id, n) VALUES (5, 'there')")
    if is_begun:
        table.run("BEGIN WORK")
    start = len(table.log())
    assert table.refused("UPDATE t SET q = 1 / (id - 5)").native == -1202  # before anything is written
    half = "INSERT INTO t (id, n) SELECT 4, 'x' FROM t UNION SELECT 5, 'x' FROM t"
    assert table.refused(half).native == -268
    assert table.rows("SELECT id, q FROM t") == [(5, 7)]
    assert [kind for kind in table.log()[start:] if kind != "BEGINTX"] == ["INSERT", undone]


def test_what_is_not_logged_has_no_records(
    server: EmulatedServer, connect: Callable[..., Asked]
) -> None:
    server.create_database("loose", logged=False)
    db = connect(database="loose")
    start = len(db.log())
    db.all("CREATE TABLE t (id integer)", "INSERT INTO t VALUES (1)", "UPDATE t SET id = 2")
    assert db.rows("SELECT id FROM t") == [(2,)]
    assert db.log()[start:] == []
    assert db.refused("BEGIN WORK").native == db.refused("COMMIT WORK").native == -256


def test_a_table_that_is_made_is_a_transaction_of_the_log_too(db: Asked) -> None:
    start = len(db.log())
    db.run("CREATE TEMP TABLE marker (n integer) WITH NO LOG")
    assert db.log()[start:] == ["BEGINTX", "COMMTX"]  # as HCL's ids_sqs_0575 has it of DDL
    db.run("INSERT INTO marker VALUES (1)")
    assert db.log()[start:] == ["BEGINTX", "COMMTX"]


def test_an_ansi_database_is_always_in_a_transaction(
    server: EmulatedServer, connect: Callable[..., Asked]
) -> None:
    server.create_database("strict", ansi=True)
    db = connect(database="strict")
    db.all("CREATE TABLE t (id integer)", "COMMIT WORK", "INSERT INTO t VALUES (1)")
    assert db.log()[-1] == "INSERT"
    db.run("ROLLBACK WORK")
    assert db.rows("SELECT id FROM t") == []


def test_what_the_python_api_writes_is_found_if_the_table_is_of_sql(table: Asked) -> None:
    row = {"id": 1, "n": "a", "q": 1}
    with table.server.transaction() as transaction:
        transaction.insert(TABLE, row)
        transaction.insert(TABLE, {"id": 2, "n": "b", "q": None})
        transaction.update(TABLE, row, {**row, "q": 5})
        place = transaction.savepoint()
        transaction.delete(TABLE, {**row, "q": 5})
        transaction.truncate(TABLE)
        transaction.rollback_to(place)
        transaction.delete(TABLE, {"id": 2, "n": "b", "q": None})
    assert table.rows("SELECT * FROM t") == [(1, "a", 5)]
    transaction = table.server.begin()
    transaction.insert(TABLE, {"id": 9})
    transaction.update(TABLE, {**row, "q": 5}, {**row, "q": 6})
    transaction.rollback()
    assert table.rows("SELECT * FROM t") == [(1, "a", 5)]


@pytest.mark.parametrize("keeps", [True, False])
def test_what_the_python_api_writes_elsewhere_is_found_if_the_server_keeps_rows(
    server: EmulatedServer, db: Asked, keeps: bool
) -> None:
    server.create_table("stores:informix.api", "id integer primary key, w date")
    server.keeps_rows = keeps
    with server.transaction() as transaction:
        transaction.insert("stores:informix.api", {"id": 1, "w": "2024-01-02"})
    assert len(db.rows("SELECT id, w FROM api")) == keeps


def test_a_serial_column_counts_on_from_what_the_python_api_wrote(table: Asked) -> None:
    with table.server.transaction() as transaction:
        transaction.insert(TABLE, {"id": 41, "n": "a"})
    assert table.run("INSERT INTO t (n) VALUES ('b')").serial == 42


def test_a_server_that_recovers_rolls_back_what_sessions_have_open(table: Asked) -> None:
    table.all("INSERT INTO t (n) VALUES ('a')", "BEGIN WORK", "DELETE FROM t")
    table.server.recover()
    assert table.rows("SELECT n FROM t") == [("a",)]
    assert table.refused("COMMIT WORK").native == -255


def test_a_session_that_goes_rolls_back_and_drops_its_temporary_tables(
    connect: Callable[..., Asked],
) -> None:
    db, other = connect(), connect()
    db.all("CREATE TABLE t (id integer)", "CREATE TEMP TABLE x (id integer)")
    assert other.refused("SELECT * FROM x").native == -206
    db.all("BEGIN WORK", "INSERT INTO t VALUES (1)")
    db.session.close()
    assert other.rows("SELECT * FROM t") == []
    assert db.log()[-1] == "RBTX"
