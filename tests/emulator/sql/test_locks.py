"""Two sessions and one row: who sees what, who waits, who is refused."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import pytest

from emulator.sql.asking import Asked, patient
from informix_emulator.sql.engine import Engine

Sessions = tuple[Asked, Asked]


@pytest.fixture
def two(connect: Callable[..., Asked]) -> Sessions:
    one, two = connect(), connect()
    one.run("CREATE TABLE t (id integer PRIMARY KEY, q integer)")
    one.all("INSERT INTO t VALUES (1, 10)", "INSERT INTO t VALUES (2, 20)")
    return one, two


# isolation, what a reader finds while another's UPDATE, DELETE and INSERT are open; None: refused
SEEN = {
    "DIRTY READ": [(1, 11), (3, 30)],
    "COMMITTED READ": None,
    "REPEATABLE READ": None,
    "COMMITTED READ LAST COMMITTED": [(1, 10), (2, 20)],
}


@pytest.mark.parametrize("isolation", SEEN)
def test_what_a_reader_finds_of_an_open_transaction(two: Sessions, isolation: str) -> None:
    writer, reader = two
    reader.run(f"SET ISOLATION TO {isolation}")
    writer.all("BEGIN WORK", "UPDATE t SET q = 11 WHERE id = 1", "DELETE FROM t WHERE id = 2")
    writer.run("INSERT INTO t VALUES (3, 30)")
    expected = SEEN[isolation]
    if expected is None:
        error = reader.refused("SELECT * FROM t ORDER BY id")
        assert (error.native, error.isam) == (-244, -107)
    else:
        assert reader.rows("SELECT * FROM t ORDER BY id") == expected
    assert writer.rows("SELECT * FROM t ORDER BY id") == [(1, 11), (3, 30)]
    writer.run("ROLLBACK WORK")
    assert reader.rows("SELECT * FROM t ORDER BY id") == [(1, 10), (2, 20)]


@pytest.mark.parametrize("end", ["COMMIT WORK", "ROLLBACK WORK"])
def test_rows_that_a_condition_leaves_out_are_in_nobodys_way(two: Sessions, end: str) -> None:
    writer, reader = two
    writer.all("BEGIN WORK", "UPDATE t SET q = 30 WHERE id = 2")
    assert reader.rows("SELECT q FROM t WHERE id = 1") == [(10,)]
    for condition in ("id = 2", "q = 20", "q = 30", "q > 5"):  # the old image counts, and the new one
        assert reader.refused(f"SELECT id FROM t WHERE {condition}").isam == -107, condition
    reader.run("UPDATE t SET q = 12 WHERE id = 1")
    writer.run(end)
    assert reader.rows("SELECT q FROM t WHERE id = 2") == [(30 if end[0] == "C" else 20,)]


@pytest.mark.parametrize(
    ("text", "native"),
    [
        ("UPDATE t SET q = 0", -243),
        ("DELETE FROM t WHERE id = 1", -243),
        ("INSERT INTO t VALUES (3, 0)", -271),  # its key may come back, or stay
        ("INSERT INTO t VALUES (2, 0)", -271),
        ("UPDATE t SET id = 3 WHERE id = 4", -271),
        ("TRUNCATE TABLE t", -242),
        ("DROP TABLE t", -242),
        ("ALTER TABLE t ADD x integer", -242),
        ("CREATE INDEX ix ON t (q)", -242),
    ],
)
def test_a_second_writer_is_refused_and_has_changed_nothing(
    two: Sessions, text: str, native: int
) -> None:
    one, other = two
    one.run("INSERT INTO t VALUES (4, 40)")
    one.all("BEGIN WORK", "UPDATE t SET q = 1 WHERE id = 1", "DELETE FROM t WHERE id = 2")
    one.run("INSERT INTO t VALUES (3, 30)")
    before = one.rows("SELECT * FROM t ORDER BY id")
    assert other.refused(text).native == native
    assert one.rows("SELECT * FROM t ORDER BY id") == before
    one.run("COMMIT WORK")
    assert one.rows("SELECT * FROM t ORDER BY id") == before


def test_a_table_that_is_locked_is_closed_to_others(two: Sessions) -> None:
    one, other = two
    one.all("BEGIN WORK", "LOCK TABLE t IN EXCLUSIVE MODE")
    other.run("SET ISOLATION TO COMMITTED READ LAST COMMITTED")  # not available then: ids_sqs_1165
    texts = ("SELECT * FROM t", "UPDATE t SET q = 0 WHERE id = 9", "INSERT INTO t VALUES (9, 9)")
    assert [(e.native, e.isam) for e in map(other.refused, texts)] == [
        *((-244, -113), (-243, -113), (-271, -113)),
    ]
    other.run("SET ISOLATION TO DIRTY READ")
    assert len(other.rows("SELECT * FROM t")) == 2
    one.run("COMMIT WORK")
    other.run("INSERT INTO t VALUES (9, 9)")


def test_a_shared_lock_lets_others_read_and_not_write(two: Sessions) -> None:
    one, other = two
    one.all("BEGIN WORK", "LOCK TABLE t IN SHARE MODE")
    assert len(other.rows("SELECT * FROM t")) == 2
    assert other.refused("DELETE FROM t").isam == -113
    other.all("BEGIN WORK", "LOCK TABLE t IN SHARE MODE", "COMMIT WORK")
    other.run("BEGIN WORK")
    assert other.refused("LOCK TABLE t IN EXCLUSIVE MODE").native == -289


def test_repeatable_read_keeps_what_it_has_read(two: Sessions) -> None:
    one, other = two
    one.all("SET ISOLATION TO REPEATABLE READ", "BEGIN WORK")
    one.rows("SELECT * FROM t")
    assert other.refused("UPDATE t SET q = 0").isam == -113
    one.run("COMMIT WORK")
    other.run("UPDATE t SET q = 0")


class Waiting:
    """A statement that runs in a thread, and the moment at which it waits for the first time."""

    def __init__(self, asked: Asked, text: str, on_wait: Callable[[], None]) -> None:
        self.outcome: object = None
        self._pending: list[Callable[[], None]] = [on_wait]
        prepared = asked.session.prepare(text)

        def check() -> None:
            while self._pending:
                self._pending.pop()()

        def run() -> None:
            try:
                outcome = prepared.run((), check)
                self.outcome = list(outcome.rows) or outcome.row_count
            except Exception as error:  # noqa: BLE001 - looked at by the test
                self.outcome = error

        self.thread = Thread(target=run)
        self.thread.start()


@pytest.mark.parametrize(
    ("text", "outcome"), [("SELECT q FROM t WHERE id = 1", [(11,)]), ("UPDATE t SET q = q + 1", 2)]
)
def test_a_statement_waits_for_the_lock_and_goes_on(two: Sessions, text: str, outcome: object) -> None:
    one, other = two
    other.run("SET LOCK MODE TO WAIT")
    one.all("BEGIN WORK", "UPDATE t SET q = 11 WHERE id = 1")
    waiting = Waiting(other, text, lambda: one.all("COMMIT WORK"))
    waiting.thread.join()
    assert waiting.outcome == outcome


def test_waiting_has_an_end_and_can_be_cancelled(two: Sessions) -> None:
    one, other = two
    one.all("BEGIN WORK", "UPDATE t SET q = 11 WHERE id = 1")
    other.run("SET LOCK MODE TO WAIT 0")
    assert other.refused("SELECT * FROM t").isam in (-107, -154)
    other.run("SET LOCK MODE TO WAIT")

    def cancel() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        other.session.prepare("SELECT * FROM t").run((), cancel)
    other.run("SET LOCK MODE TO NOT WAIT")
    assert other.refused("SELECT * FROM t").isam == -107


def test_two_that_wait_for_one_another_are_found(two: Sessions) -> None:
    one, other = two
    for session, key in ((one, 1), (other, 2)):
        session.all("SET LOCK MODE TO WAIT", "BEGIN WORK", f"UPDATE t SET q = 0 WHERE id = {key}")
    refused: list[int] = []

    def close_the_circle() -> None:
        refused.append(one.refused("UPDATE t SET q = 1 WHERE id = 2").isam)
        one.run("ROLLBACK WORK")

    waiting = Waiting(other, "UPDATE t SET q = 2 WHERE id = 1", close_the_circle)
    waiting.thread.join()
    assert (refused, waiting.outcome) == ([-143], 1)
    other.run("COMMIT WORK")
    assert one.rows("SELECT q FROM t ORDER BY id") == [(2,), (0,)]


def test_no_lock_is_left_when_a_transaction_ends(two: Sessions) -> None:
    one, other = two
    for end in ("COMMIT WORK", "ROLLBACK WORK"):
        one.all("BEGIN WORK", "LOCK TABLE t IN EXCLUSIVE MODE", "UPDATE t SET q = q + 1", end)
        other.all("BEGIN WORK", "UPDATE t SET q = q + 1", "COMMIT WORK")
    assert one.rows("SELECT q FROM t ORDER BY id") == [(13,), (23,)]
    assert patient() is None


def test_a_transaction_that_the_server_rolls_back_is_forgotten(two: Sessions) -> None:
    writer, other = two
    writer.all("BEGIN WORK", "UPDATE t SET q = 11 WHERE id = 1")
    writer.server.recover()
    engine = writer.server.row_keeper
    assert isinstance(engine, Engine)
    assert engine.is_idle
    assert writer.refused("COMMIT WORK").native == -255
    other.run("UPDATE t SET q = 12 WHERE id = 1")
