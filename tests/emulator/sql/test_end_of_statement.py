"""A constraint must hold when a statement is done, a unique index after each row.

Guide to SQL: Syntax, "Differences Between a Unique Constraint and a Unique Index"; in a database
without a log all must hold after each row ("SET Transaction Mode").
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.sql.asking import Asked
from informix_emulator import EmulatedServer

TABLE = "stores:informix.t"
UP, DOWN = "UPDATE t SET id = id + 1", "UPDATE t SET id = id - 1"


def filled(db: Asked, key: str = "PRIMARY KEY") -> Asked:
    db.run(f"CREATE TABLE t (id integer {key}, n varchar(9))")
    db.all(*(f"INSERT INTO t VALUES ({n}, 'row {n}')" for n in (1, 2, 3)))
    return db


@pytest.mark.parametrize("key", ["PRIMARY KEY", "UNIQUE"])
@pytest.mark.parametrize("text", [UP, DOWN, "UPDATE t SET id = 4 - id"])
def test_keys_may_meet_in_the_midst_of_a_statement(db: Asked, key: str, text: str) -> None:
    filled(db, key).server.set_full_row_logging(TABLE, True)
    after = {UP: [2, 3, 4], DOWN: [0, 1, 2]}.get(text, [3, 2, 1])
    assert db.run(text).row_count == 3
    expected = sorted(zip(after, ("row 1", "row 2", "row 3"), strict=True))
    assert db.rows("SELECT * FROM t ORDER BY id") == expected


def test_the_log_has_both_images_of_each_row_in_turn(db: Asked) -> None:
    filled(db).server.set_full_row_logging(TABLE, True)
    known, start = len(db.images(TABLE)), len(db.log())
    db.run(UP)
    encode = db.server.table(TABLE).encode
    expected = []
    for n in (1, 2, 3):
        expected.append(("UPDBEF", *encode({"id": n, "n": f"row {n}"})))
        expected.append(("UPDAFT", *encode({"id": n + 1, "n": f"row {n}"})))
    assert db.images(TABLE)[known:] == expected
    assert db.log()[start:] == ["BEGINTX", *["UPDBEF", "UPDAFT"] * 3, "COMMTX"]


@pytest.mark.parametrize("end", ["ROLLBACK WORK", "ROLLBACK TO SAVEPOINT s"])
def test_what_was_moved_up_comes_back_down(db: Asked, end: str) -> None:
    before = filled(db).rows("SELECT * FROM t ORDER BY id")
    db.all("BEGIN WORK", "SAVEPOINT s", UP, UP, "INSERT INTO t VALUES (1, 'new')", DOWN, end)
    assert db.rows("SELECT * FROM t ORDER BY id") == before
    assert db.rows("SELECT * FROM t WHERE id = 3") == [(3, "row 3")]


def test_keys_that_are_the_same_at_the_end_are_refused_and_nothing_is_changed(db: Asked) -> None:
    before = filled(db).rows("SELECT * FROM t ORDER BY id")
    db.run("BEGIN WORK")
    start = len(db.log())
    assert db.refused("UPDATE t SET id = 3").native == -268
    assert db.refused("UPDATE t SET id = id + 1 WHERE id < 3").native == -268
    assert db.rows("SELECT * FROM t ORDER BY id") == before
    assert not {"UPDBEF", "UPDAFT"} & {*db.log()[start:]}


def test_a_unique_index_holds_after_each_row(db: Asked) -> None:
    filled(db, "").run("CREATE UNIQUE INDEX ix ON t (id)")
    assert db.refused(UP).native == -239
    assert db.run(DOWN).row_count == 3


def test_without_a_log_all_must_hold_after_each_row(
    server: EmulatedServer, connect: Callable[..., Asked]
) -> None:
    server.create_database("loose", logged=False)
    db = filled(connect(database="loose"))
    assert db.refused(UP).native == -268
    assert db.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,), (3,)]


def test_another_session_waits_for_rows_that_were_moved(
    db: Asked, connect: Callable[..., Asked]
) -> None:
    filled(db).all("BEGIN WORK", UP)
    other = connect()
    assert other.refused("INSERT INTO t VALUES (1, 'late')").native == -271  # 1 may come back
    assert other.refused("UPDATE t SET n = 'x' WHERE id = 3").native == -243
    db.run("COMMIT WORK")
    other.run("INSERT INTO t VALUES (1, 'late')")


def test_rows_that_refer_to_their_own_table_are_looked_at_when_all_are_changed(db: Asked) -> None:
    db.run("CREATE TABLE tree (id integer PRIMARY KEY, up integer REFERENCES tree)")
    db.all("INSERT INTO tree VALUES (1, NULL)", "INSERT INTO tree VALUES (2, 1)")
    db.run("UPDATE tree SET id = id + 1, up = up + 1")
    assert db.rows("SELECT * FROM tree ORDER BY id") == [(2, None), (3, 2)]
    assert db.refused("DELETE FROM tree WHERE id = 2").native == -692
    assert db.refused("UPDATE tree SET id = 9 WHERE id = 2").native == -692
    assert db.refused("UPDATE tree SET up = 8 WHERE id = 3").native == -691
    db.run("DELETE FROM tree")


def test_a_key_that_another_row_has_at_the_end_may_be_referred_to(db: Asked) -> None:
    filled(db).all("CREATE TABLE child (id integer REFERENCES t)", "INSERT INTO child VALUES (2)")
    db.run(UP)  # 2 is there: it was 1
    assert db.refused(UP).native == -692
