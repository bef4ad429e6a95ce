"""How a session reads and what it keeps locked, level by level, and what takes LAST COMMITTED away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.sql.asking import Asked
from emulator.sql.test_locks import Waiting
from informix_emulator import EmulatedServer
from informix_emulator.sql_errors import SqlError

Connect = Callable[..., Asked]
LAST_COMMITTED = "SET ISOLATION TO COMMITTED READ LAST COMMITTED"
READ_ALL = "SELECT * FROM t ORDER BY id"


@pytest.fixture
def writer(connect: Connect) -> Asked:
    writer = connect()
    writer.run("CREATE TABLE t (id integer PRIMARY KEY, q integer)")
    writer.all("INSERT INTO t VALUES (1, 10)", "INSERT INTO t VALUES (2, 20)")
    return writer


def number_of(asked: Asked) -> int:
    number = asked.value("DBINFO('sessionid')")
    assert isinstance(number, int)
    return number


def seen(reader: Asked, text: str = READ_ALL) -> object:
    """Return the rows of a query, or the numbers of the error that refuses it."""
    try:
        return reader.rows(text)
    except SqlError as error:
        return error.native, error.isam


# database made so, then what a session of it finds of an uncommitted change that has said nothing else
BEGINS_IN = {
    "WITH LOG": ((-244, -107), "refused: Committed Read"),
    "WITH LOG MODE ANSI": ((-244, -107), "refused: Repeatable Read"),
    "WITH BUFFERED LOG": ((-244, -107), "refused: Committed Read"),
}


@pytest.mark.parametrize("log", BEGINS_IN)
def test_a_session_begins_in_the_isolation_of_its_database(connect: Connect, log: str) -> None:
    one = connect(database="")
    one.run(f"CREATE DATABASE d {log}")
    one.all("CREATE TABLE t (id integer PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    if "ANSI" in log:
        one.run("COMMIT WORK")
    else:
        one.run("BEGIN WORK")
    one.run("INSERT INTO t VALUES (2)")
    assert seen(connect(database="d")) == BEGINS_IN[log][0]
    one.run("ROLLBACK WORK")


def test_in_an_ansi_database_what_was_read_is_locked_from_the_first_select_on(connect: Connect) -> None:
    one = connect(database="")
    one.run("CREATE DATABASE d WITH LOG MODE ANSI")
    one.all("CREATE TABLE t (id integer PRIMARY KEY)", "INSERT INTO t VALUES (1)", "COMMIT WORK")
    reader, writer = connect(database="d"), connect(database="d")
    for text in ("SELECT * FROM t", "SELECT count(*) FROM t"):
        assert len(reader.rows(text)) == 1
        assert writer.refused("INSERT INTO t VALUES (2)").isam == -113
        reader.run("COMMIT WORK")
        writer.all("INSERT INTO t VALUES (2)", "ROLLBACK WORK")


# USELASTCOMMITTED, isolation that a session sets, whether it is shown what was committed last
USED = [
    ("NONE", "COMMITTED READ", False),
    ("COMMITTED READ", "COMMITTED READ", True),
    ("DIRTY READ", "DIRTY READ", True),
    ("DIRTY READ", "COMMITTED READ", False),
    ("ALL", "COMMITTED READ", True),
    ("ALL", "DIRTY READ", True),
    ("ALL", "REPEATABLE READ", False),
]


@pytest.mark.parametrize(("setting", "isolation", "is_last"), USED)
def test_uselastcommitted_stands_in_for_what_a_session_sets(
    writer: Asked,
    connect: Connect,
    server: EmulatedServer,
    setting: str,
    isolation: str,
    is_last: bool,
) -> None:
    server.configuration["USELASTCOMMITTED"] = setting
    writer.all("BEGIN WORK", "UPDATE t SET q = 11 WHERE id = 1")
    reader = connect()
    reader.run(f"SET ISOLATION TO {isolation}")
    assert (seen(reader) == [(1, 10), (2, 20)]) == is_last


# what a session sets, what the server is set to, whether COMMITTED READ shows what was committed last
SET_BY_SESSION = [
    ("NONE", "ALL", False),
    ("COMMITTED READ", "NONE", True),
    ("DIRTY READ", "ALL", False),
]


@pytest.mark.parametrize(("session", "setting", "is_last"), SET_BY_SESSION)
def test_a_session_has_its_own_uselastcommitted(
    writer: Asked,
    connect: Connect,
    server: EmulatedServer,
    session: str,
    setting: str,
    is_last: bool,
) -> None:
    server.configuration["USELASTCOMMITTED"] = setting
    writer.all("BEGIN WORK", "UPDATE t SET q = 11 WHERE id = 1")
    reader = connect()
    reader.all(f"SET ENVIRONMENT USELASTCOMMITTED '{session}'", "SET ISOLATION TO COMMITTED READ")
    assert (seen(reader) == [(1, 10), (2, 20)]) == is_last
    reader.run(LAST_COMMITTED)  # what it says itself counts
    assert seen(reader) == [(1, 10), (2, 20)]


def test_uselastcommitted_has_four_values(connect: Connect) -> None:
    with pytest.raises(SqlError):
        connect().run("SET ENVIRONMENT USELASTCOMMITTED 'SOME'")


# an uncommitted change, and what LAST COMMITTED makes of it
CHANGES = [
    ("UPDATE t SET q = 11 WHERE id = 1", [(1, 10), (2, 20)]),
    ("DELETE FROM t WHERE id = 1", [(1, 10), (2, 20)]),
    ("INSERT INTO t VALUES (3, 30)", [(1, 10), (2, 20)]),
    ("UPDATE t SET id = 5 WHERE id = 1", [(1, 10), (2, 20)]),
    ("TRUNCATE TABLE t", (-244, -113)),  # it has locked the table
    ("ALTER TABLE t ADD (r integer)", (-244, -113)),
    ("CREATE INDEX x ON t (q)", (-244, -113)),
    ("LOCK TABLE t IN EXCLUSIVE MODE", (-244, -113)),
    ("LOCK TABLE t IN SHARE MODE", [(1, 10), (2, 20)]),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_last_committed_shows_rows_as_they_were_unless_the_table_is_closed(
    writer: Asked, connect: Connect, change: str, expected: object
) -> None:
    reader = connect()
    reader.run(LAST_COMMITTED)
    writer.all("BEGIN WORK", change)
    assert seen(reader) == expected
    writer.run("ROLLBACK WORK")
    assert seen(reader) == [(1, 10), (2, 20)]


def test_a_table_that_is_made_and_not_committed_cannot_be_read(db: Asked, connect: Connect) -> None:
    db.all("BEGIN WORK", "CREATE TABLE fresh (id integer)", "INSERT INTO fresh VALUES (1)")
    reader = connect()
    reader.run(LAST_COMMITTED)
    assert seen(reader, "SELECT * FROM fresh") == (-244, -113)
    db.run("COMMIT WORK")
    assert seen(reader, "SELECT * FROM fresh") == [(1,)]


class TestPages:
    """LOCK MODE PAGE: a row is locked with its neighbours, and LAST COMMITTED is not to be had."""

    @pytest.fixture
    def pages(self, connect: Connect) -> Asked:
        """A table of three pages, the last with rows 38 to 40: 2,020 bytes in rows of 104."""
        db = connect()
        db.run("CREATE TABLE p (id integer PRIMARY KEY, c char(96)) LOCK MODE PAGE")
        for number in range(1, 41):
            db.run(f"INSERT INTO p VALUES ({number}, 'x')")
        return db

    @pytest.mark.parametrize("isolation", ["COMMITTED READ", "COMMITTED READ LAST COMMITTED"])
    def test_readers_meet_the_lock_of_a_neighbour(
        self, pages: Asked, connect: Connect, isolation: str
    ) -> None:
        reader = connect()
        reader.run(f"SET ISOLATION TO {isolation}")
        pages.all("BEGIN WORK", "UPDATE p SET c = 'y' WHERE id = 1")
        assert seen(reader, "SELECT c FROM p WHERE id = 2") == (-244, -107)
        assert seen(reader, "SELECT id FROM p WHERE id = 38") == [(38,)]
        reader.run("SET ISOLATION TO DIRTY READ")
        assert seen(reader, "SELECT c FROM p WHERE id = 1") == [("y".ljust(96),)]

    def test_writers_meet_it_too_and_a_new_row_goes_to_another_page(
        self, pages: Asked, connect: Connect
    ) -> None:
        other = connect()
        pages.all("BEGIN WORK", "DELETE FROM p WHERE id = 39")
        assert other.refused("UPDATE p SET c = 'z' WHERE id = 38").native == -243
        other.all("UPDATE p SET c = 'z' WHERE id = 2", "BEGIN WORK", "INSERT INTO p VALUES (50, 'x')")
        pages.all("UPDATE p SET c = 'z' WHERE id = 38", "COMMIT WORK")
        other.run("COMMIT WORK")
        assert pages.rows("SELECT count(*) FROM p WHERE c = 'z'") == [(2,)]

    def test_the_default_is_the_servers_and_an_alter_changes_it(
        self, server: EmulatedServer, connect: Connect
    ) -> None:
        server.configuration["DEF_TABLE_LOCKMODE"] = "page"
        db = connect()
        db.all("CREATE TABLE a (id integer)", "CREATE TABLE b (id integer) LOCK MODE ROW")
        levels = "SELECT tabname, locklevel FROM systables WHERE tabname IN ('a', 'b') ORDER BY 1"
        assert db.rows(levels) == [("a", "P"), ("b", "R")]
        db.all("ALTER TABLE a LOCK MODE (ROW)", "ALTER TABLE b LOCK MODE (PAGE)")
        assert db.rows(levels) == [("a", "R"), ("b", "P")]
        db.all("ALTER TABLE b ADD (c integer)", "BEGIN WORK", "ALTER TABLE b LOCK MODE (ROW)")
        db.run("ROLLBACK WORK")
        assert db.rows(levels) == [("a", "R"), ("b", "P")]


# isolation of an open cursor, whether a writer of the row it stands on, and of another row, must wait
CURSORS = [
    ("DIRTY READ", False, False),
    ("COMMITTED READ", False, False),
    ("COMMITTED READ LAST COMMITTED", False, False),
    ("REPEATABLE READ", True, True),
]


@pytest.mark.parametrize(("isolation", "locks_row", "locks_all"), CURSORS)
def test_what_an_open_cursor_keeps_writers_from(
    writer: Asked, connect: Connect, isolation: str, locks_row: bool, locks_all: bool
) -> None:
    reader = connect()
    reader.run(f"SET ISOLATION TO {isolation}")
    outcome = reader.run(READ_ALL)
    rows = iter(outcome.rows)
    assert next(rows) == (1, 10)
    for key, is_locked in ((1, locks_row), (2, locks_all)):
        text = f"UPDATE t SET q = q + 1 WHERE id = {key}"
        refused = (writer.refused(text) and True) if is_locked else bool(writer.run(text).rowid < 0)
        assert refused == is_locked
    met = writer.server.lock_waits.for_locks_of(number_of(reader))
    assert bool(met) == locks_row
    assert outcome.found is not None
    outcome.found.close()
    writer.run("UPDATE t SET q = 0")
    assert writer.rows("SELECT count(*) FROM sysmaster:syslocks") == [(0,)]


def test_a_session_that_ends_lets_its_cursor_go(writer: Asked, connect: Connect) -> None:
    reader = connect()
    reader.run("SET ISOLATION TO REPEATABLE READ")
    rows = iter(reader.run(READ_ALL).rows)
    next(rows)
    reader.session.close()
    writer.run("UPDATE t SET q = 0")


def test_a_shared_lock_makes_writers_wait_until_it_is_gone(writer: Asked, connect: Connect) -> None:
    reader = connect()
    reader.all("BEGIN WORK", "LOCK TABLE t IN SHARE MODE")
    assert reader.rows(READ_ALL) == [(1, 10), (2, 20)]
    writer.run("SET LOCK MODE TO WAIT")
    shown: list[object] = []

    def look_and_let_go() -> None:
        shown.extend(reader.rows("SELECT tabname, type, owner, waiter FROM sysmaster:syslocks"))
        reader.run("COMMIT WORK")

    waiting = Waiting(writer, "UPDATE t SET q = 0", look_and_let_go)
    waiting.thread.join()
    assert waiting.outcome == 2
    waits = writer.server.lock_waits.for_locks_of(number_of(reader))
    assert [(w.waiter, w.table, w.is_refused) for w in waits] == [
        (number_of(writer), "stores:informix.t", False)
    ]
    assert [row[:3] for row in shown if isinstance(row, tuple)] == [
        ("t".ljust(128), "S".ljust(4), number_of(reader))
    ]


class TestSysmaster:
    """What the server shows of locks and transactions."""

    LOCKS = (
        "SELECT dbsname, tabname, rowidlk, type, owner FROM sysmaster:syslocks"
        " WHERE tabname = 't' ORDER BY type"
    )

    def test_syslocks_shows_rows_and_table_with_their_owner(
        self, writer: Asked, connect: Connect
    ) -> None:
        writer.all("BEGIN WORK", "UPDATE t SET q = 11 WHERE id = 1")
        names = ("stores".ljust(128), "t".ljust(128))
        number = number_of(writer)
        ((rowid,),) = writer.rows("SELECT rowid FROM t WHERE id = 1")
        found = connect().rows(self.LOCKS)
        assert found == [(*names, 0, "IX  ", number), (*names, rowid, "X   ", number)]
        writer.run("COMMIT WORK")
        assert connect().rows(self.LOCKS) == []

    def test_who_holds_a_transaction_is_found_by_a_join(self, writer: Asked, connect: Connect) -> None:
        writer.all("BEGIN WORK", "UPDATE t SET q = 11 WHERE id = 1")
        join = (
            "SELECT t.tx_id, s.sid, s.username FROM sysmaster:systrans t, sysmaster:sysrstcb s"
            " WHERE t.tx_owner = s.address"
        )
        (number,) = writer.server.open_transactions
        expected = [(number, number_of(writer), "informix".ljust(32))]
        assert connect().rows(join) == expected
        writer.run("COMMIT WORK")
        assert connect().rows(join) == []

    def test_what_the_python_api_changes_is_locked_until_it_ends(
        self, writer: Asked, connect: Connect, server: EmulatedServer
    ) -> None:
        reader = connect()
        reader.run(LAST_COMMITTED)
        with server.transaction() as tx:
            tx.update("stores:informix.t", {"id": 1, "q": 10}, {"id": 1, "q": 11})
            tx.insert("stores:informix.t", {"id": 3, "q": 30})
            tx.delete("stores:informix.t", {"id": 2, "q": 20})
            assert reader.rows(READ_ALL) == [(1, 10), (2, 20)]
            assert writer.refused(READ_ALL).native == -244
            assert {lock.owner for lock in server.row_keeper.held_locks()} == {0}  # type: ignore[union-attr]
        assert reader.rows(READ_ALL) == [(1, 11), (3, 30)]

    def test_that_the_python_api_met_a_lock_is_counted(
        self, writer: Asked, connect: Connect, server: EmulatedServer
    ) -> None:
        reader = connect()
        reader.all("BEGIN WORK", "LOCK TABLE t IN SHARE MODE")
        with server.transaction() as tx:
            tx.insert("stores:informix.t", {"id": 3, "q": 30})
        (wait,) = server.lock_waits.for_locks_of(number_of(reader))
        assert (wait.waiter, wait.is_refused) == (0, True)
