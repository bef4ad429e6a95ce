"""Tables read over the wire, by our native client and by a driver: isolation, chunks, fetches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from harness.servers.emulated import Emulated, emulated_world
from informix_capture_client.errors import InformixCdcError
from informix_capture_client.transport.base import Transport
from informix_emulator import EmulatedServer, load_rows
from odbc_driver.build import build_drivers

Rows = list[tuple[str | None, ...]]


@pytest.fixture(params=["sqli", "odbc"])
def world(request: pytest.FixtureRequest) -> Iterator[Emulated]:
    driver = str(build_drivers().narrow) if request.param == "odbc" else ""
    with emulated_world(driver) as world:
        world.server.create_database("stores")
        yield world


@pytest.fixture
def server(world: Emulated) -> EmulatedServer:
    return world.server


def connected(world: Emulated) -> Transport:
    return world.open(world.settings("stores", "en_US.utf8"))


@pytest.fixture
def client(world: Emulated) -> Iterator[Transport]:
    with closing(connected(world)) as transport:
        yield transport


@pytest.fixture
def other(world: Emulated) -> Iterator[Transport]:
    with closing(connected(world)) as transport:
        yield transport


@pytest.fixture
def orders(client: Transport) -> None:
    client.rows("CREATE TABLE orders (id integer PRIMARY KEY, v char(4))")
    for number in (1, 2, 3):
        client.rows(f"INSERT INTO orders VALUES ({number}, 'old')")


READ = "SELECT id, v FROM orders ORDER BY id"
OLD = [("1", "old "), ("2", "old "), ("3", "old ")]


def cut(rows: Rows) -> Rows:
    """Return rows without the blanks that a driver may show or not."""
    return [tuple(value and value.rstrip() for value in row) for row in rows]


# what a session says, what it finds while another has changed row 2, deleted 3 and inserted 4
LEVELS: list[tuple[list[str], Rows | None]] = [
    (["SET ISOLATION TO DIRTY READ"], [("1", "old"), ("2", "new"), ("4", "new")]),
    (["SET ISOLATION TO COMMITTED READ"], None),
    (["SET ISOLATION TO COMMITTED READ LAST COMMITTED"], cut(OLD)),
    (["SET ISOLATION TO REPEATABLE READ"], None),
    (["SET LOCK MODE TO WAIT 0", "SET ISOLATION TO COMMITTED READ"], None),
]


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(("said", "expected"), LEVELS)
def test_what_a_level_shows_of_an_open_transaction(
    client: Transport, other: Transport, said: list[str], expected: Rows | None
) -> None:
    for text in said:
        other.rows(text)
    client.rows("BEGIN WORK")
    client.rows("UPDATE orders SET v = 'new' WHERE id = 2")
    client.rows("DELETE FROM orders WHERE id = 3")
    client.rows("INSERT INTO orders VALUES (4, 'new')")
    if expected is None:
        with pytest.raises(InformixCdcError, match="-244"):
            other.rows(READ)
    else:
        assert cut(other.rows(READ)) == expected
    client.rows("ROLLBACK WORK")
    assert cut(other.rows(READ)) == cut(OLD)


KEYS = {
    "integer": ["-5", "0", "7"],
    "bigint": ["-9223372036854775807", "0", "9223372036854775807"],
    "int8": ["-9223372036854775807", "0", "9223372036854775807"],
    "bigserial": ["1", "2", "9223372036854775807"],
    "decimal(12,2)": ["-900.50", "0.00", "10.25"],
    "date": ["1899-12-30", "2024-02-29", "9999-12-31"],
    "datetime year to fraction(5)": ["2024-03-15 07:05:06.00000", "2024-03-15 07:05:06.00001"],
    "interval day(3) to second": ["-12 00:00:00", "0 00:00:01", "5 04:03:02"],
    "boolean": ["f", "t"],
    "char(8)": ["", "A b", "B"],
    "nchar(8)": ["", "A b", "B"],
    "varchar(20)": ["", "A b", "B"],
    "nvarchar(20)": ["", "A b", "B"],
}
FIRST = "SELECT {+ AVOID_FULL(k)} FIRST 2 a, b FROM informix.k ORDER BY a, b"
NEXT = (
    "SELECT {+ AVOID_FULL(k)} FIRST 2 a, b FROM informix.k"
    " WHERE a >= ? AND (a > ? OR (a = ? AND b > ?)) ORDER BY a, b"
)


@pytest.mark.parametrize("type_text", KEYS)
def test_chunks_by_key_give_each_row_once_with_the_bounds_as_they_were_fetched(
    client: Transport, server: EmulatedServer, type_text: str
) -> None:
    server.rows_per_scan_step = 1
    client.rows(f"CREATE TABLE k (a {type_text}, b integer, PRIMARY KEY (a, b))")
    for text in reversed(KEYS[type_text]):
        value = text if type_text.startswith(("int", "big", "dec")) and " " not in text else f"'{text}'"
        for number in (1, 2, 3):
            client.rows(f"INSERT INTO k VALUES ({value}, {number})")
    found = chunk = client.rows(FIRST)
    letters = {"0": "f", "1": "t"} if type_text == "boolean" else {}  # what a driver shows of it
    while len(chunk) == 2 and len(found) < 20:
        a, b = (value or "" for value in chunk[-1])
        a = letters.get(a, a)
        chunk = client.rows(NEXT, a, a, a, b)
        found = found + chunk
    expected = [(text, str(number)) for text in KEYS[type_text] for number in (1, 2, 3)]
    assert [(letters.get(a or "", a), b) for a, b in cut(found)] == cut(expected)


def test_a_text_that_is_no_boolean_is_refused(client: Transport) -> None:
    client.rows("CREATE TABLE k (a boolean, b integer)")
    with pytest.raises(InformixCdcError, match="-1213"):
        client.rows("SELECT b FROM k WHERE a > ?", "1")


def test_a_write_between_two_fetches_is_in_what_is_fetched_later(
    client: Transport, other: Transport, server: EmulatedServer
) -> None:
    client.rows("CREATE TABLE big (id integer PRIMARY KEY, v char(200))")
    load_rows(server, "stores:informix.big", ({"id": n, "v": "old"} for n in range(5000)))
    server.rows_per_scan_step = 500
    written: list[int] = []

    def write() -> None:
        if not written:
            written.append(1)
            other.rows("UPDATE big SET v = 'new' WHERE id IN (7, 4007)")

    server.between_scan_steps = write
    found = client.rows("SELECT id, v FROM big ORDER BY id")
    assert len(found) == 5000
    assert [key for key, v in cut(found) if v == "new"] == ["4007"]


def test_rows_before_a_lock_are_followed_by_the_error(
    client: Transport, other: Transport, server: EmulatedServer
) -> None:
    client.rows("CREATE TABLE big (id integer PRIMARY KEY, v char(200))")
    load_rows(server, "stores:informix.big", ({"id": n, "v": "old"} for n in range(500)))
    server.rows_per_scan_step = 50
    client.rows("BEGIN WORK")
    client.rows("UPDATE big SET v = 'new' WHERE id = 300")
    with pytest.raises(InformixCdcError, match="-244"):
        other.rows("SELECT id, v FROM big ORDER BY id")
    assert len(other.rows("SELECT FIRST 300 id, v FROM big ORDER BY id")) == 300
    other.rows("SET ISOLATION TO COMMITTED READ LAST COMMITTED")
    assert len(other.rows("SELECT id, v FROM big ORDER BY id")) == 500
    client.rows("ROLLBACK WORK")


@pytest.mark.usefixtures("orders")
def test_no_writer_meets_a_lock_of_a_session_that_reads_last_committed(
    client: Transport, other: Transport, server: EmulatedServer
) -> None:
    other.rows("SET ISOLATION TO COMMITTED READ LAST COMMITTED")
    ((number,),) = other.rows("SELECT DBINFO('sessionid') FROM systables WHERE tabid = 1")
    server.rows_per_scan_step = 1

    def write() -> None:
        with suppress(InformixCdcError):  # of a lock: it is counted
            client.rows("UPDATE orders SET v = 'new'")

    server.between_scan_steps = write
    assert [key for key, _ in other.rows(READ)] == ["1", "2", "3"]
    assert server.lock_waits.for_locks_of(int(number or 0)) == []
    other.rows("SET ISOLATION TO REPEATABLE READ")
    assert len(other.rows(READ)) == 3
    assert server.lock_waits.for_locks_of(int(number or 0)) != []
