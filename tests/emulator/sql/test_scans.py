"""A scan is not one moment: others write while a client fetches, and what it finds is as it is then."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal

import pytest

from emulator.sql.asking import Asked, patient
from emulator.sql.test_locks import Waiting
from informix_emulator import EmulatedServer, load_rows
from informix_emulator.sql_errors import SqlError

Connect = Callable[..., Asked]
BY_KEY = "SELECT id, q FROM t ORDER BY id"


@pytest.fixture
def table(server: EmulatedServer, connect: Connect) -> Asked:
    """Rows 1 to 6 with q = 0, found one by one."""
    server.rows_per_scan_step = 1
    db = connect()
    db.run("CREATE TABLE t (id integer PRIMARY KEY, q integer)")
    for number in range(1, 7):
        db.run(f"INSERT INTO t VALUES ({number}, 0)")
    return db


def test_later_keys_show_later_commits(table: Asked, connect: Connect) -> None:
    rows = iter(connect().run(BY_KEY).rows)
    found = [next(rows), next(rows)]
    table.all("UPDATE t SET q = 1", "DELETE FROM t WHERE id = 4", "INSERT INTO t VALUES (9, 9)")
    assert [*found, *rows] == [(1, 0), (2, 0), (3, 1), (5, 1), (6, 1), (9, 9)]


def test_a_row_whose_key_moves_on_is_met_twice_and_one_that_moves_back_never(
    table: Asked, connect: Connect
) -> None:
    rows = iter(connect().run(BY_KEY).rows)
    found = [next(rows), next(rows), next(rows)]
    table.all("UPDATE t SET id = 8 WHERE id = 1", "UPDATE t SET id = 0 WHERE id = 5")
    assert [key for key, _ in [*found, *rows]] == [1, 2, 3, 4, 6, 8]


def test_a_test_can_write_between_two_steps(table: Asked, server: EmulatedServer) -> None:
    reader = table
    keys = iter(range(1, 100))

    def write() -> None:
        with server.transaction() as tx:
            tx.insert("stores:informix.t", {"id": 100 + next(keys), "q": 0})

    server.between_scan_steps = write
    found = reader.rows("SELECT FIRST 10 id FROM t ORDER BY id")
    assert [key for (key,) in found] == [1, 2, 3, 4, 5, 6, 101, 102, 103, 104]


# queries that a server must sort or group: what they find is of one moment
SORTED = [
    "SELECT id, q FROM t ORDER BY q, id",
    "SELECT id, q FROM t ORDER BY id DESC",
    "SELECT DISTINCT id, q FROM t ORDER BY id",
    "SELECT id, max(q) FROM t GROUP BY id ORDER BY id",
    "SELECT a.id, a.q FROM t a, t b WHERE a.id = b.id ORDER BY a.id",
    "SELECT id, q FROM t UNION ALL SELECT id, q FROM t WHERE id = 99 ORDER BY 1",
    "SELECT id, q FROM t WHERE EXISTS (SELECT 1 FROM t) ORDER BY id",
    "SELECT SKIP 0 id, q FROM t ORDER BY id",
]


@pytest.mark.parametrize("text", SORTED)
def test_what_has_to_be_sorted_is_of_one_moment(table: Asked, connect: Connect, text: str) -> None:
    rows = iter(connect().run(text).rows)
    found = [next(rows)]
    table.run("UPDATE t SET q = 1")
    assert all(q == 0 for _, q in [*found, *rows])


def test_without_an_order_rows_come_as_they_lie(table: Asked, connect: Connect) -> None:
    rows = iter(connect().run("SELECT id FROM t WHERE q = 0").rows)
    found = [next(rows)]
    table.all("UPDATE t SET q = 1 WHERE id = 3", "INSERT INTO t VALUES (0, 0)")
    assert [key for (key,) in [*found, *rows]] == [1, 2, 4, 5, 6, 0]


# isolation, what is found of the rows behind another's lock on row 4
BEHIND_A_LOCK: list[tuple[str, int, object]] = [
    ("DIRTY READ", 6, 7),
    ("COMMITTED READ", 3, -244),
    ("COMMITTED READ LAST COMMITTED", 6, 0),
]


@pytest.mark.parametrize(("isolation", "count", "fourth"), BEHIND_A_LOCK)
def test_rows_before_a_locked_one_are_handed_over(
    table: Asked, connect: Connect, isolation: str, count: int, fourth: object
) -> None:
    reader = connect()
    reader.server.rows_per_scan_step = 2
    reader.run(f"SET ISOLATION TO {isolation}")
    rows = iter(reader.run(BY_KEY).rows)
    found = [next(rows)]
    table.all("BEGIN WORK", "UPDATE t SET q = 7 WHERE id = 4")
    refusal = 0
    try:
        found.extend(rows)
    except SqlError as error:
        refusal = error.native
    assert len(found) == count
    assert (found[3][1] if count > 3 else refusal) == fourth


def test_a_scan_waits_for_a_lock_that_it_meets_on_its_way(table: Asked, connect: Connect) -> None:
    reader = connect()
    reader.run("SET LOCK MODE TO WAIT")
    table.all("BEGIN WORK", "UPDATE t SET q = 7 WHERE id = 1")
    waiting = Waiting(reader, BY_KEY, lambda: table.all("COMMIT WORK"))
    waiting.thread.join()
    assert waiting.outcome == [(1, 7), *((n, 0) for n in range(2, 7))]


def test_a_key_that_moves_uncommitted_is_shown_where_it_was(table: Asked, connect: Connect) -> None:
    reader = connect()
    reader.run("SET ISOLATION TO COMMITTED READ LAST COMMITTED")
    table.all("BEGIN WORK", "UPDATE t SET id = 9 WHERE id = 2", "DELETE FROM t WHERE id = 5")
    assert [key for key, _ in reader.rows(BY_KEY)] == [1, 2, 3, 4, 5, 6]
    table.run("COMMIT WORK")
    assert [key for key, _ in reader.rows(BY_KEY)] == [1, 3, 4, 6, 9]


def test_a_table_that_is_dropped_or_altered_meanwhile_ends_the_scan(
    table: Asked, connect: Connect
) -> None:
    for change in ("ALTER TABLE t DROP (q)", "DROP TABLE t"):
        rows = iter(connect().run("SELECT id FROM t ORDER BY id").rows)
        next(rows)
        table.run(change)
        with pytest.raises(SqlError) as refused:
            list(rows)
        assert refused.value.native == -710


DAY, MOMENT = datetime.date(2024, 2, 29), "2024-03-15 07:05:0"
# type of a key column, its values in the server's order; what is bound is what was fetched
KEYS: list[tuple[str, Sequence[object]]] = [
    ("smallint", [-32767, -1, 0, 1, 32767]),
    ("integer", [-(2**31) + 1, -5, 0, 7, 2**31 - 1]),
    ("bigint", [1 - 2**63, -1, 0, 2**40, 2**63 - 1]),
    ("int8", [1 - 2**63, -1, 0, 2**40, 2**63 - 1]),
    ("serial", [1, 2, 30, 400, 5000]),
    ("bigserial", [1, 2, 30, 2**40, 2**63 - 1]),
    ("decimal(12,2)", [Decimal(t) for t in ("-900.50", "-1.00", "0.00", "2.25", "10.00")]),
    ("decimal(16)", [Decimal(t) for t in ("-1E+20", "-0.5", "0", "0.000001", "12")]),
    ("money(8,2)", [Decimal(t) for t in ("-1.00", "0.10", "0.20", "3.00", "20.00")]),
    ("date", [datetime.date(1, 1, 1), datetime.date(1899, 12, 30), DAY, datetime.date(9999, 12, 31)]),
    ("datetime year to second", [f"{MOMENT}{n}" for n in range(5)]),
    ("datetime year to fraction(5)", [f"{MOMENT}6.{n:05}" for n in (0, 1, 10, 99999)]),
    ("datetime hour to minute", ["00:00", "07:05", "23:59"]),
    ("interval day(3) to second", ["-12 00:00:00", "-1 00:00:01", "0 00:00:00", "5 04:03:02"]),
    ("interval year to month", ["-3-07", "0-01", "2-00"]),
    ("boolean", [False, True]),
    ("char(8)", [*(t.ljust(8) for t in ("", "A", "A b", "B", "a")), "é".ljust(7)]),
    ("nchar(8)", [t.ljust(8) for t in ("", "A", "A b", "B", "a")]),
    ("varchar(20)", ["", "A", "A b", "B", "a", "é"]),
    ("nvarchar(20)", ["", "A", "A b", "B", "a"]),
    ("lvarchar(40)", ["", "A", "A b", "B"]),
]
FIRST = "SELECT {{+ AVOID_FULL(k)}} FIRST {n} a, b FROM informix.k ORDER BY a, b"
NEXT = (
    "SELECT {{+ AVOID_FULL(k)}} FIRST {n} a, b FROM informix.k"
    " WHERE a >= ? AND (a > ? OR (a = ? AND b > ?)) ORDER BY a, b"
)


@pytest.mark.parametrize("rows_per_step", [1, 1000])
@pytest.mark.parametrize(("type_text", "values"), KEYS, ids=[text for text, _ in KEYS])
def test_chunks_by_key_are_the_whole_table_once_and_in_order(
    db: Asked,
    server: EmulatedServer,
    type_text: str,
    values: Sequence[object],
    rows_per_step: int,
) -> None:
    server.rows_per_scan_step = rows_per_step
    other = "integer" if "serial" in type_text else "char(3)"
    seconds: list[object] = [1, 2] if other == "integer" else ["x  ", "y  "]
    db.run(f"CREATE TABLE k (a {type_text}, b {other}, PRIMARY KEY (a, b))")
    expected = [(a, b) for a in values for b in seconds]
    load_rows(server, "stores:informix.k", [{"a": a, "b": b} for a, b in reversed(expected)])
    found = chunk = db.rows(FIRST.format(n=3))
    while len(chunk) == 3:
        a, b = chunk[-1]
        chunk = db.rows(NEXT.format(n=3), a, a, a, b)
        found = found + chunk
    assert [tuple(map(str, row)) for row in found] == [tuple(map(str, row)) for row in expected]


def test_blanks_at_the_end_of_a_key_do_not_count_for_a_char_nor_for_a_varchar(db: Asked) -> None:
    db.run("CREATE TABLE k (a varchar(10), b char(10), PRIMARY KEY (a, b))")
    db.all("INSERT INTO k VALUES ('x  ', 'y')", "INSERT INTO k VALUES ('z', 'y')")
    assert db.refused("INSERT INTO k VALUES ('x', 'y   ')").native == -268
    for bound in ("x", "x  ", "x     "):
        assert db.rows("SELECT a FROM k WHERE a > ?", bound) == [("z",)], bound
        assert db.rows("SELECT a FROM k WHERE a = ?", bound) == [("x  ",)], bound


@pytest.mark.slow
@pytest.mark.only_in_all
def test_writers_go_on_between_the_fetches_of_a_long_query(
    db: Asked, server: EmulatedServer, connect: Connect
) -> None:
    """120,000 rows; each step is one of many moments at which the log is free."""
    db.run("CREATE TABLE big (id integer PRIMARY KEY, q integer)")
    load_rows(server, "stores:informix.big", ({"id": n, "q": 0} for n in range(120_000)))
    free = []
    writer = connect()

    def write() -> None:
        free.append(len(free))
        writer.run(f"UPDATE big SET q = 1 WHERE id = {119_999 - len(free)}")

    server.between_scan_steps = write
    prepared = db.session.prepare("SELECT id, q FROM big ORDER BY id")
    changed = [key for key, q in prepared.run((), patient).rows if q]
    assert len(free) == 120
    assert changed == list(range(119_999 - 119, 119_999))
