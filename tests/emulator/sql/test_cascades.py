"""ON DELETE CASCADE: rows that go with those they refer to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.sql.asking import Asked

TABLES = (
    "CREATE TABLE parent (id integer PRIMARY KEY)",
    "CREATE TABLE child (id integer PRIMARY KEY, p integer REFERENCES parent (id) ON DELETE CASCADE)",
    "CREATE TABLE grandchild (c integer, FOREIGN KEY (c) REFERENCES child ON DELETE CASCADE"
    " CONSTRAINT fk_g)",
    *(f"INSERT INTO parent VALUES ({n})" for n in (1, 2)),
    *(f"INSERT INTO child VALUES ({n}, {n // 10})" for n in (10, 11, 20)),
    "INSERT INTO child VALUES (99, NULL)",
    *(f"INSERT INTO grandchild VALUES ({n})" for n in (10, 10, 20)),
)


@pytest.fixture
def family(db: Asked) -> Asked:
    db.all(*TABLES)
    for name in ("parent", "child", "grandchild"):
        db.server.set_full_row_logging(f"stores:informix.{name}", True)
    return db


def left(asked: Asked) -> tuple[object, ...]:
    names = ("parent", "child", "grandchild")
    return tuple(asked.rows(f"SELECT * FROM {name} ORDER BY 1") for name in names)


def test_rows_that_refer_to_a_deleted_one_go_with_it_and_are_in_the_log(family: Asked) -> None:
    before = len(family.log())
    assert family.run("DELETE FROM parent WHERE id = 1").row_count == 1
    assert left(family) == ([(2,)], [(20, 2), (99, None)], [(20,)])
    assert family.log()[before:] == ["BEGINTX", *["DELETE"] * 5, "COMMTX"]
    deleted = [len(family.images(f"stores:informix.{n}")) for n in ("parent", "child", "grandchild")]
    assert deleted == [1, 2, 2]


def test_they_come_back_with_a_rollback(family: Asked) -> None:
    before = left(family)
    family.all("BEGIN WORK", "DELETE FROM parent", "ROLLBACK WORK")
    assert left(family) == before


def test_one_reference_that_does_not_cascade_refuses_all(family: Asked) -> None:
    family.run("CREATE TABLE strict (c integer REFERENCES child (id) CONSTRAINT fk_s)")
    family.run("INSERT INTO strict VALUES (11)")
    before = left(family)
    error = family.refused("DELETE FROM parent WHERE id = 1")
    assert (error.native, error.argument) == (-692, "informix.fk_s")
    assert left(family) == before
    family.run("DELETE FROM parent WHERE id = 2")
    assert family.refused("UPDATE child SET id = 12 WHERE id = 11").native == -692
    assert family.refused("UPDATE child SET id = 12 WHERE id = 10").native == -692


def test_a_row_that_another_has_changed_is_in_the_way(
    family: Asked, connect: Callable[..., Asked]
) -> None:
    other = connect()
    other.all("BEGIN WORK", "UPDATE grandchild SET c = 20 WHERE c = 10")
    error = family.refused("DELETE FROM parent WHERE id = 1")
    assert (error.native, error.isam) == (-243, -107)
    other.run("COMMIT WORK")
    family.run("DELETE FROM parent WHERE id = 1")
    assert left(family)[2] == [(20,)] * 3


def test_rows_that_refer_to_their_own_table_go_in_any_number(db: Asked) -> None:
    db.run("CREATE TABLE tree (id integer PRIMARY KEY, up integer REFERENCES tree ON DELETE CASCADE)")
    db.run("INSERT INTO tree VALUES (0, NULL)")
    db.all(*(f"INSERT INTO tree VALUES ({n}, {n - 1})" for n in range(1, 1500)))
    db.run("UPDATE tree SET up = 1499 WHERE id = 0")  # a circle
    db.run("DELETE FROM tree WHERE id IN (3, 7)")
    assert db.rows("SELECT * FROM tree") == []


def test_without_a_log_nothing_cascades(connect: Callable[..., Asked]) -> None:
    asked = connect()
    asked.all("CREATE DATABASE plain", *TABLES[:2], "INSERT INTO parent VALUES (1)")
    asked.run("INSERT INTO child VALUES (1, 1)")
    assert asked.refused("DELETE FROM parent").native == -692


def test_the_catalogue_tells_and_alter_adds_one(family: Asked) -> None:
    family.run("CREATE TABLE later (p integer)")
    family.run("ALTER TABLE later ADD CONSTRAINT FOREIGN KEY (p) REFERENCES parent ON DELETE CASCADE")
    family.run("CREATE TABLE plain (p integer REFERENCES parent)")
    rules = family.rows("SELECT delrule FROM sysreferences ORDER BY constrid")
    assert sorted(str(rule) for (rule,) in rules) == ["C", "C", "C", "R"]
    family.all("INSERT INTO later VALUES (2)", "DELETE FROM parent WHERE id = 2")
    assert family.rows("SELECT * FROM later") == []
