"""SELECT FOR UPDATE: which row is locked, for how long, and what may be done at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from emulator.sql.asking import Asked, patient
from informix_emulator import EmulatedServer
from informix_emulator.answers import CursorKind
from informix_emulator.sql_errors import SqlError

Sessions = tuple[Asked, Asked]
QUERY = "SELECT id, q FROM t WHERE q < 100 FOR UPDATE"


@pytest.fixture
def two(connect: Callable[..., Asked]) -> Sessions:
    one, two = connect(), connect()
    one.run("CREATE TABLE t (id integer PRIMARY KEY, q integer)")
    one.all(*(f"INSERT INTO t VALUES ({n}, {n * 10})" for n in (1, 2, 3)))
    return one, two


def opened(asked: Asked, query: str = QUERY, name: str = "c", *, holds: bool = False) -> Opened:
    prepared = asked.session.prepare(query)
    assert prepared.declare is not None
    prepared.declare(CursorKind(name, holds=holds))
    return Opened(prepared.run((), patient).found)


class Opened:
    """A cursor that is fetched from row by row."""

    def __init__(self, found: object) -> None:
        self._found = found
        self._rows: Iterator[Sequence[object]] = iter(found)  # type: ignore[call-overload]

    def fetch(self) -> tuple[object, ...] | None:
        row = next(self._rows, None)
        return None if row is None else tuple(row)

    def close(self) -> None:
        self._found.close()  # type: ignore[attr-defined]


def is_locked(asked: Asked, row: int) -> bool:
    """Whether another session is refused a change of a row."""
    asked.run("BEGIN WORK")
    try:
        asked.run(f"UPDATE t SET q = q WHERE id = {row}")
    except SqlError as error:
        return (error.native, error.isam) == (-243, -107)
    finally:
        asked.run("ROLLBACK WORK")
    return False


def test_the_row_that_was_fetched_is_locked_and_no_other(two: Sessions) -> None:
    one, other = two
    one.run("BEGIN WORK")
    cursor = opened(one)
    assert [is_locked(other, row) for row in (1, 2, 3)] == [False, False, False]
    assert cursor.fetch() == (1, 10)
    assert [is_locked(other, row) for row in (1, 2, 3)] == [True, False, False]
    assert cursor.fetch() == (2, 20)
    assert [is_locked(other, row) for row in (1, 2, 3)] == [False, True, False]
    assert other.rows("SELECT q FROM t WHERE id = 2") == [(20,)]  # others may read it
    cursor.close()
    assert not is_locked(other, 2)


@pytest.mark.parametrize(
    "isolation",
    ["COMMITTED READ RETAIN UPDATE LOCKS", "REPEATABLE READ", "DIRTY READ RETAIN UPDATE LOCKS"],
)
def test_locks_that_are_retained_stay_until_the_transaction_ends(two: Sessions, isolation: str) -> None:
    one, other = two
    one.all(f"SET ISOLATION TO {isolation}", "BEGIN WORK")
    cursor = opened(one)
    assert [cursor.fetch(), cursor.fetch()] == [(1, 10), (2, 20)]
    cursor.close()
    error = other.refused("UPDATE t SET q = 0 WHERE id = 1")
    assert error.native == -243
    one.run("COMMIT WORK")
    assert not is_locked(other, 1)


@pytest.mark.parametrize("isolation", ["DIRTY READ", "COMMITTED READ LAST COMMITTED", "COMMITTED READ"])
def test_a_row_that_another_has_changed_or_locked_is_waited_for(two: Sessions, isolation: str) -> None:
    one, other = two
    one.all(f"SET ISOLATION TO {isolation}", "BEGIN WORK")
    other.all("BEGIN WORK", "UPDATE t SET q = 21 WHERE id = 2")
    cursor = opened(one)
    assert cursor.fetch() == (1, 10)
    refused = opened(other)
    with pytest.raises(SqlError, match="next row") as error:
        refused.fetch()
    assert (error.value.native, error.value.isam) == (-244, -107)
    with pytest.raises(SqlError, match="next row"):
        cursor.fetch()
    other.run("COMMIT WORK")


def test_who_waits_goes_on_with_the_row_as_it_is_then(two: Sessions) -> None:
    one, other = two
    one.all("SET LOCK MODE TO WAIT", "BEGIN WORK")
    other.all("BEGIN WORK", "UPDATE t SET q = 11 WHERE id = 1")
    commits = iter([lambda: other.run("COMMIT WORK")])

    def commit_once() -> None:
        for commit in commits:
            commit()

    found = one.session.prepare(QUERY).run((), commit_once).found
    assert Opened(found).fetch() == (1, 11)


def test_update_and_delete_where_current_of(two: Sessions, server: EmulatedServer) -> None:
    one, other = two
    server.set_full_row_logging("stores:informix.t", True)
    one.run("BEGIN WORK")
    cursor = opened(one)
    cursor.fetch()
    assert one.run("UPDATE t SET q = q + ? WHERE CURRENT OF c", 1).row_count == 1
    cursor.fetch()
    assert one.run("DELETE FROM t WHERE CURRENT OF C").row_count == 1
    assert one.refused("DELETE FROM t WHERE CURRENT OF c").native == -266
    assert cursor.fetch() == (3, 30)
    assert is_locked(other, 1)  # what was changed stays locked
    one.run("COMMIT WORK")
    assert one.rows("SELECT * FROM t ORDER BY id") == [(1, 11), (3, 30)]
    kinds = [kind for kind, _, _ in one.images("stores:informix.t")]
    assert kinds == ["UPDBEF", "UPDAFT", "DELETE"]


def test_without_a_current_row_nothing_is_changed(two: Sessions) -> None:
    one, _ = two
    one.run("CREATE TABLE u (id integer)")
    one.run("BEGIN WORK")
    assert one.refused("UPDATE t SET q = 0 WHERE CURRENT OF c").native == -507
    cursor = opened(one)
    assert one.refused("UPDATE t SET q = 0 WHERE CURRENT OF c").native == -266
    cursor.fetch()
    assert one.refused("UPDATE u SET id = 0 WHERE CURRENT OF c").native == -266
    while cursor.fetch():
        pass
    assert one.refused("DELETE FROM t WHERE CURRENT OF c").native in (-266, -507)
    cursor.close()
    assert one.refused("DELETE FROM t WHERE CURRENT OF c").native == -507


def test_a_cursor_outside_of_a_transaction_is_refused_unless_it_is_held(two: Sessions) -> None:
    one, _ = two
    with pytest.raises(SqlError, match="Not in a transaction"):
        opened(one)
    cursor = opened(one, holds=True)
    with pytest.raises(SqlError, match="Not in a transaction"):
        cursor.fetch()
    one.run("BEGIN WORK")
    cursor = opened(one, holds=True)
    assert cursor.fetch() == (1, 10)
    one.all("COMMIT WORK", "BEGIN WORK")
    assert cursor.fetch() == (2, 20)
    one.run("UPDATE t SET q = 0 WHERE CURRENT OF c")


def test_a_scroll_cursor_is_refused_when_it_opens(two: Sessions) -> None:
    for query in (QUERY, "SELECT tabid FROM systables FOR UPDATE"):
        prepared = two[0].session.prepare(query)
        assert prepared.declare is not None
        with pytest.raises(SqlError, match="scroll") as error:
            prepared.declare(CursorKind(scrolls=True))
        assert error.value.native == -526


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t ORDER BY id FOR UPDATE",
        "SELECT count(*) FROM t FOR UPDATE",
        "SELECT DISTINCT q FROM t FOR UPDATE",
        "SELECT q FROM t GROUP BY q FOR UPDATE",
        "SELECT a.q FROM t a, t b FOR UPDATE",
        "SELECT q FROM t UNION ALL SELECT q FROM t FOR UPDATE",
        "SELECT * FROM t WHERE id IN (SELECT id FROM t FOR UPDATE)",
    ],
)
def test_what_cannot_be_locked_row_by_row_is_refused(two: Sessions, query: str) -> None:
    assert two[0].refused(query).native == -201


def test_the_lock_is_shown_and_holds_off_locks_of_the_table(two: Sessions) -> None:
    one, other = two
    one.run("BEGIN WORK")
    cursor = opened(one)
    cursor.fetch()
    shown = other.rows("SELECT rowidlk, type FROM sysmaster:syslocks WHERE tabname = 't'")
    assert sorted((row, str(kind).strip()) for row, kind in shown) == [(0, "IX"), (1, "U")]
    other.run("BEGIN WORK")
    assert other.refused("LOCK TABLE t IN SHARE MODE").native == -289
    error = other.refused("DROP TABLE t")
    assert (error.native, error.isam) == (-242, -106)


def test_a_database_without_a_log_has_no_such_locks(connect: Callable[..., Asked]) -> None:
    asked = connect()
    asked.run("CREATE DATABASE plain")
    asked.run("CREATE TABLE t (id integer PRIMARY KEY, q integer)")
    asked.run("INSERT INTO t VALUES (1, 10)")
    cursor = opened(asked)
    cursor.fetch()
    asked.run("UPDATE t SET q = 11 WHERE CURRENT OF c")
    assert asked.rows("SELECT q FROM t") == [(11,)]
