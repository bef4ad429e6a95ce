"""How long a smart large object lives: as long as a row refers to it, or somebody has it open."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from harness.servers.in_process import InProcessConnection
from informix_emulator import EmulatedServer, EmulatedTransaction, keep_rows
from informix_emulator.large_objects.sbspace import Descriptors
from informix_emulator.sql_errors import SqlError

TABLE = "stores:informix.files"
LOGIN = {"SERVER": "informix", "UID": "informix", "PWD": "in4mix", "DB_LOCALE": "en_US.utf8"}
_OF_A_FILE = "FILETOBLOB('/data/page', 'server')"


@pytest.fixture
def server() -> EmulatedServer:
    server = EmulatedServer()
    server.create_database("stores")
    server.create_table(TABLE, "id INTEGER, content BLOB")
    keep_rows(server)
    return server


def row(handle: bytes | None, number: int = 1) -> dict[str, object]:
    return {"id": number, "content": handle}


def there(server: EmulatedServer, data: bytes = b"x", number: int = 1) -> bytes:
    """Make an object that a committed row refers to."""
    handle = server.sbspace.create(data)
    with server.transaction() as tx:
        tx.insert(TABLE, row(handle, number))
    return handle


Change = Callable[[EmulatedTransaction, bytes], None]


def delete(tx: EmulatedTransaction, handle: bytes) -> None:
    tx.delete(TABLE, row(handle))


def replace(tx: EmulatedTransaction, handle: bytes) -> None:
    tx.update(TABLE, row(handle), row(None))


def empty(tx: EmulatedTransaction, _handle: bytes) -> None:
    tx.truncate(TABLE)


@pytest.mark.parametrize("change", [delete, replace, empty])
def test_an_object_goes_with_the_commit_of_its_last_reference(
    server: EmulatedServer, change: Change
) -> None:
    handle = there(server)
    with server.transaction() as tx:
        change(tx, handle)
        assert server.sbspace.holds(handle)
    assert not server.sbspace.holds(handle)


@pytest.mark.parametrize("change", [delete, replace, empty])
def test_a_rollback_keeps_it(server: EmulatedServer, change: Change) -> None:
    handle = there(server)
    tx = server.begin()
    change(tx, handle)
    tx.rollback()
    assert server.sbspace.holds(handle)


def test_a_rollback_takes_a_new_one_away(server: EmulatedServer) -> None:
    handle = server.sbspace.create(b"x")
    tx = server.begin()
    tx.insert(TABLE, row(handle))
    tx.rollback()
    assert not server.sbspace.holds(handle)


def test_what_a_savepoint_undoes_counts_for_nothing(server: EmulatedServer) -> None:
    handle = there(server)
    with server.transaction() as tx:
        tx.insert(TABLE, row(None, 2))
        mark = tx.savepoint()
        tx.delete(TABLE, row(handle))
        tx.rollback_to(mark)
    assert server.sbspace.holds(handle)


def test_one_of_two_references_is_enough(server: EmulatedServer) -> None:
    handle = there(server)
    with server.transaction() as tx:
        tx.insert(TABLE, row(handle, 2))
    with server.transaction() as tx:
        tx.delete(TABLE, row(handle))
    assert server.sbspace.holds(handle)


def test_an_update_that_keeps_the_handle_keeps_the_object(server: EmulatedServer) -> None:
    handle = there(server)
    with server.transaction() as tx:
        tx.update(TABLE, row(handle), row(handle, 7))
    assert server.sbspace.holds(handle)


def test_an_open_descriptor_keeps_it_and_the_last_one_takes_it_away(server: EmulatedServer) -> None:
    handle = there(server, b"kept")
    one, other = Descriptors(server.sbspace), Descriptors(server.sbspace)
    first, second = one.open(handle[4:]), other.open(handle[4:])
    with server.transaction() as tx:
        tx.delete(TABLE, row(handle))
    one.close(first)
    assert other.read(second, 9) == b"kept"
    other.close_all()
    assert not server.sbspace.holds(handle)


def test_what_is_written_in_place_is_seen_by_whoever_has_it_open(server: EmulatedServer) -> None:
    handle = there(server, b"before")
    descriptors = Descriptors(server.sbspace)
    number = descriptors.open(handle[4:])
    before = server.position()
    server.sbspace.write(handle, b"after!")
    assert (descriptors.read(number, 9), server.position()) == (b"after!", before)


def test_a_descriptor_is_none_that_a_capture_session_has(server: EmulatedServer) -> None:
    handle, descriptors = there(server), Descriptors(server.sbspace)
    assert [descriptors.open(handle[4:], taken=1) for _ in range(2)] == [0, 2]


def test_the_first_object_of_a_server_is_held_by_the_row_that_came_with_it(
    server: EmulatedServer,
) -> None:
    with server.transaction() as tx:
        handle = server.sbspace.create(b"x")
        tx.insert(TABLE, row(handle))
    descriptors = Descriptors(server.sbspace)
    descriptors.close(descriptors.open(handle[4:]))
    assert server.sbspace.holds(handle)


def test_a_place_is_sought_from_the_beginning_from_itself_and_from_the_end(
    server: EmulatedServer,
) -> None:
    descriptors = Descriptors(server.sbspace)
    number = descriptors.open(there(server, b"abcdef")[4:])
    assert [descriptors.seek(number, *to) for to in ((2, 0), (1, 1), (-1, 2))] == [2, 3, 5]
    assert (descriptors.tell(number), descriptors.read(number, 9)) == (5, b"f")
    for offset, whence in ((-1, 0), (0, 3)):
        with pytest.raises(SqlError) as refused:
            descriptors.seek(number, offset, whence)
        assert (refused.value.native, refused.value.isam) == (-9810, -12086)


THREE, NOWHERE = bytes.fromhex("00010000000300000000"), bytes(10)
SEEK = "ifx_lo_seek(integer, int8, integer, int8)"
ROUTINES: list[tuple[str, list[bytes], tuple[int, bytes]]] = [
    ("ifx_lo_open(blob, integer)", [b"\0\0\x08\0"], (2, bytes(4))),  # JDBC 15.0.1.0: 0x800 alone
    (SEEK, [bytes(4), THREE, bytes(4), NOWHERE], (17, THREE)),
    ("ifx_lo_tell(integer, int8)", [bytes(4), NOWHERE], (17, THREE)),
]


@pytest.mark.parametrize(("floats", "size"), [("IEEEM", "00000006"), ("IEEEI", "06000000")])
def test_by_the_fast_path_a_status_is_in_the_byte_order_of_the_login(
    server: EmulatedServer, floats: str, size: str
) -> None:
    locator = there(server, b"abcdef")[4:]
    client = InProcessConnection(server, {**LOGIN, "FLOATS": floats}, "stores").inner
    for signature, values, expected in ROUTINES:
        _, number = client.routine(f"function informix.{signature}")
        given = [locator, *values] if "open" in signature else values
        assert client.call_routine(number, given) == [expected]
    _, number = client.routine("function informix.ifx_lo_stat(int, ifx_lo_stat)")
    ((kind, status),) = client.call_routine(number, [bytes(4), bytes(644)])
    assert (kind, len(status), status[4:8].hex()) == (40, 644, size)


def test_an_object_that_never_was_is_a_bad_address(server: EmulatedServer) -> None:
    with pytest.raises(SqlError) as refused:
        Descriptors(server.sbspace).open(b"\7" * 72)
    assert (refused.value.native, refused.value.isam) == (-9810, -12097)


def test_an_insert_makes_an_object_of_a_file_for_each_row(server: EmulatedServer) -> None:
    server.sbspace.files["/data/page"] = b"of a file"
    client = InProcessConnection(server, LOGIN, "stores")
    with closing(client.inner):
        for number in (1, 2):
            client.rows(f"INSERT INTO files VALUES ({number}, {_OF_A_FILE})")
        client.rows(f"INSERT INTO files SELECT id + 2, {_OF_A_FILE} FROM files")
        assert len(server.sbspace) == 4
        client.rows("DELETE FROM files WHERE id = 3")
        assert len(server.sbspace) == 3
        client.rows("BEGIN WORK")
        client.rows(f"UPDATE files SET content = {_OF_A_FILE}")
        client.rows("ROLLBACK WORK")
    assert len(server.sbspace) == 3


def test_a_file_of_the_machine_is_none_of_the_server(server: EmulatedServer) -> None:
    assert Path(__file__).exists()
    statement = f"INSERT INTO files VALUES (1, FILETOBLOB('{__file__}', 'server'))"
    with pytest.raises(SqlError) as refused:
        InProcessConnection(server, LOGIN, "stores").rows(statement)
    assert (refused.value.native, len(server.sbspace)) == (-9810, 0)


@pytest.mark.parametrize(
    ("statement", "native"),
    [
        ("INSERT INTO files VALUES (1, FILETOBLOB('/data/page', 'client'))", -9810),
        ("INSERT INTO files VALUES (1, FILETOBLOB('/data/page'))", -674),
        ("SELECT ifx_lo_open(1) FROM sysmaster:sysdual", -674),
        ("EXECUTE FUNCTION ifx_lo_seek(1)", -674),
    ],
)
def test_calls_that_cannot_be_are_refused_by_number(
    server: EmulatedServer, statement: str, native: int
) -> None:
    server.sbspace.files["/data/page"] = b"of a file"
    with pytest.raises(SqlError) as refused:
        InProcessConnection(server, LOGIN, "stores").rows(statement)
    assert refused.value.native == native
