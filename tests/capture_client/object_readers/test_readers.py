"""Objects opened, read and closed over each transport, at the emulator's sbspace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import count, repeat
from typing import Any
from unittest.mock import Mock

import pytest

from harness.servers.emulated import Emulated, emulated_world
from informix_capture_client.errors import ConnectionLost, ProtocolViolation, ServerRefused
from informix_capture_client.object_readers import (
    GONE,
    READ,
    TOO_LARGE,
    UNREAD,
    Content,
    ObjectReader,
    SimpleObject,
    object_reader,
    read_whole,
    try_open,
)
from informix_capture_client.object_readers.base import ObjectStatus
from informix_capture_client.object_readers.sqli_objects import SqliObjects
from informix_capture_client.transport import SqliTransport
from informix_capture_client.transport.sqli import Opaque
from informix_emulator import keep_rows
from odbc_driver.build import build_drivers

MOST = 1 << 20
Meanwhile = Callable[[bytes, Iterable[bytes]], None]


@pytest.fixture(params=["sqli", "odbc"])
def world(request: pytest.FixtureRequest) -> Iterator[Emulated]:
    driver = str(build_drivers().narrow) if request.param == "odbc" else ""
    with emulated_world(driver) as world:
        world.server.create_database("stores")
        world.server.create_table("stores:informix.files", "id INTEGER, content BLOB")
        yield world


@pytest.fixture
def reader(world: Emulated) -> Iterator[ObjectReader]:
    with closing(world.open(world.settings("stores", "en_US.utf8"), 5)) as transport:
        yield object_reader(transport)


def referred(world: Emulated, data: bytes) -> bytes:
    """Make an object that a row refers to; return its handle."""
    handle = world.server.sbspace.create(data)
    with world.server.transaction() as tx:
        tx.insert("stores:informix.files", {"id": 1, "content": handle})
    return handle


def content_of(reader: ObjectReader, handle: bytes, most_bytes: int = MOST) -> Content:
    opened = try_open(reader, handle[4:], most_bytes)
    return read_whole(reader, opened, most_bytes, lambda: False)


@pytest.mark.parametrize("size", [0, 1, 31_999, 32_000, 32_001, 100_000])
def test_an_object_is_read_whole(world: Emulated, reader: ObjectReader, size: int) -> None:
    data = bytes(n * 7 % 251 for n in range(size))
    assert content_of(reader, referred(world, data)) == Content(READ, size, data)
    assert world.server.sbspace.open_count == 0


def test_a_server_that_gives_32000_bytes_at_once_is_asked_again(
    world: Emulated, reader: ObjectReader
) -> None:
    world.server.sbspace.most_read_bytes = 32_000
    data = bytes(range(256)) * 300
    assert content_of(reader, referred(world, data)) == Content(READ, len(data), data)
    assert world.server.sbspace.reads == 3


def test_one_that_is_larger_than_wanted_tells_its_size(world: Emulated, reader: ObjectReader) -> None:
    assert content_of(reader, referred(world, b"12345"), 4) == Content(TOO_LARGE, 5)
    assert content_of(reader, referred(world, b"1234"), 4) == Content(READ, 4, b"1234")
    assert (world.server.sbspace.open_count, world.server.sbspace.reads) == (0, 1)


def test_what_nobody_refers_to_any_more_is_gone(world: Emulated, reader: ObjectReader) -> None:
    handle = referred(world, b"soon")
    with world.server.transaction() as tx:
        tx.delete("stores:informix.files", {"id": 1, "content": handle})
    assert content_of(reader, handle) == Content(GONE)


def test_an_open_object_outlives_its_row(world: Emulated, reader: ObjectReader) -> None:
    handle = referred(world, b"kept")
    opened = try_open(reader, handle[4:], MOST)
    with world.server.transaction() as tx:
        tx.delete("stores:informix.files", {"id": 1, "content": handle})
    assert read_whole(reader, opened, MOST, lambda: False) == Content(READ, 4, b"kept")
    assert not world.server.sbspace.holds(handle)


@pytest.mark.parametrize("now", [b"longer than before", b"short"])
def test_one_that_is_written_into_meanwhile_is_read_again(
    world: Emulated, reader: ObjectReader, now: bytes
) -> None:
    handle = referred(world, b"as it was")
    opened = try_open(reader, handle[4:], MOST)
    world.server.sbspace.truncate(handle)
    world.server.sbspace.write(handle, now)
    assert read_whole(reader, opened, MOST, lambda: False) == Content(READ, len(now), now)
    assert world.server.sbspace.open_count == 0


@pytest.fixture
def meanwhile(world: Emulated, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Write contents into an object, each behind one read of it."""
    sbspace, whole = world.server.sbspace, world.server.sbspace.read

    def let(handle: bytes, contents: Iterable[bytes]) -> None:
        writes = iter(contents)

        def read(data: bytearray, place: int, most_bytes: int) -> bytes:
            found = whole(data, place, most_bytes)
            if (content := next(writes, None)) is not None:
                sbspace.write(handle, content)
            return found

        monkeypatch.setattr(sbspace, "read", read)

    return let


def test_one_that_is_overwritten_in_place_by_as_many_bytes_is_read_again(
    world: Emulated, reader: ObjectReader, meanwhile: Meanwhile
) -> None:
    world.server.sbspace.most_read_bytes = 32_000
    handle, now = referred(world, b"a" * 64_000), b"b" * 64_000
    meanwhile(handle, [now])
    assert content_of(reader, handle) == Content(READ, 64_000, now)


def test_one_that_is_overwritten_all_the_time_is_not_read(
    world: Emulated, reader: ObjectReader, meanwhile: Meanwhile
) -> None:
    world.server.sbspace.most_read_bytes = 32_000
    handle = referred(world, b"a" * 40_000)
    meanwhile(handle, (bytes([n]) * 40_000 for n in count()))
    assert content_of(reader, handle) == UNREAD
    assert world.server.sbspace.open_count == 0


def test_one_whose_status_changes_by_being_read_counts_by_what_two_readings_give(
    world: Emulated, reader: ObjectReader, meanwhile: Meanwhile
) -> None:
    """As where a server keeps the time of the last access."""
    handle = referred(world, b"quiet")
    meanwhile(handle, repeat(b"quiet"))
    assert content_of(reader, handle) == Content(READ, 5, b"quiet")


def test_one_that_grows_and_is_cut_again_is_read_again(
    world: Emulated, reader: ObjectReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte beyond its size came, and its size is as it was: its status is not."""
    sbspace, whole = world.server.sbspace, world.server.sbspace.read
    handle = referred(world, b"x" * 1000)
    done: list[bool] = []

    def read(data: bytearray, place: int, most_bytes: int) -> bytes:
        if done:
            return whole(data, place, most_bytes)
        done.append(True)
        sbspace.write(handle, b"y" * 1500)
        found = whole(data, place, most_bytes)
        sbspace.truncate(handle, 1000)
        return found

    monkeypatch.setattr(sbspace, "read", read)
    assert content_of(reader, handle) == Content(READ, 1000, b"y" * 1000)


class _Huge:
    """An object of four gigabytes and a little more, of which no more is made than is asked for."""

    size = (4 << 30) + 10

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self.size)
        return b"x" * (stop - start)


@pytest.mark.parametrize("more", [0, 10])
def test_one_of_four_gigabytes_tells_its_size(world: Emulated, reader: ObjectReader, more: int) -> None:
    handle = referred(world, b"")
    huge: Any = _Huge()
    huge.size = (4 << 30) + more
    world.server.sbspace._objects[handle[4:]].data = huge
    assert content_of(reader, handle) == Content(TOO_LARGE, huge.size)
    assert world.server.sbspace.open_count == 0


def test_no_more_is_read_when_it_is_late(world: Emulated, reader: ObjectReader) -> None:
    opened = try_open(reader, referred(world, b"late")[4:], MOST)
    assert read_whole(reader, opened, MOST, lambda: True) is UNREAD
    assert (world.server.sbspace.open_count, world.server.sbspace.reads) == (0, 0)


BIG, SMALL = bytes.fromhex("0000001f 00000001 0001"), bytes.fromhex("1f000000 01000000 0100")


@pytest.mark.parametrize("size", [BIG, SMALL])
def test_a_size_is_taken_in_the_byte_order_that_its_sign_has(size: bytes) -> None:
    status = (bytes(4) + size).ljust(644, b"\0")
    transport = Mock(SqliTransport)
    transport.call_routine.return_value = status
    assert SqliObjects(transport).status(0) == ObjectStatus((1 << 32) + 31, status)
    ((_, _, given), _) = transport.call_routine.call_args
    assert given == Opaque("ifx_lo_stat", bytes(644))


@pytest.mark.parametrize("status", [b"", bytes(644), (bytes(4) + b"\xff" * 10).ljust(644, b"\0")])
def test_a_status_without_a_size_is_refused(status: bytes) -> None:
    transport = Mock(SqliTransport)
    transport.call_routine.return_value = status
    with pytest.raises(ProtocolViolation, match="has no size: it begins with"):
        SqliObjects(transport).status(0)


@pytest.mark.parametrize(
    ("row", "words"),
    [(("s3cret",), "6 characters"), (("0a",) * 2, "2 columns"), ((), "0 columns"), (("0",), "1 char")],
)
def test_a_locator_that_is_none_is_refused_without_its_text(row: tuple[str, ...], words: str) -> None:
    transport = Mock(SqliTransport)
    transport.rows.return_value = [("0a0b",), (None,)]
    assert SqliObjects(transport).locators("SELECT", ()) == [b"\x0a\x0b", None]
    transport.rows.return_value = [("0a0b",), row]
    with pytest.raises(ProtocolViolation, match=words) as refused:
        SqliObjects(transport).locators("SELECT", ())
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("found", [b"", bytes(3), bytes(5), bytes(1 << 20)])
def test_a_descriptor_of_another_size_is_refused(found: bytes) -> None:
    transport = Mock(SqliTransport)
    transport.call_routine.return_value = b"\xff\xff\xff\xfe"
    assert SqliObjects(transport).open(b"") == -2
    transport.call_routine.return_value = found
    with pytest.raises(ProtocolViolation, match=f"returned {len(found)} bytes instead of 4"):
        SqliObjects(transport).open(b"")


def test_a_descriptor_that_is_not_open_is_refused(reader: ObjectReader) -> None:
    with pytest.raises(ServerRefused, match="12014"):
        reader.status(77)


def test_a_thousand_objects_leave_no_descriptor(world: Emulated, reader: ObjectReader) -> None:
    handle = referred(world, b"x")
    for _ in range(100):
        content_of(reader, handle)
    assert (world.server.sbspace.open_count, world.server.sbspace.opens) == (0, 100)


def test_a_text_and_a_byte_are_read_by_their_lengths(world: Emulated, reader: ObjectReader) -> None:
    sizes = [None, 0, 1, 100_000]
    values = [None if size is None else bytes(97 + n % 7 for n in range(size)) for size in sizes]
    world.server.create_table("stores:informix.notes", "id INTEGER, page TEXT, picture BYTE")
    keep_rows(world.server)
    with world.server.transaction() as tx:
        for number, value in enumerate(values):
            page = None if value is None else value.decode()
            tx.insert("stores:informix.notes", {"id": number, "page": page, "picture": value})
    for column in ("page", "picture"):
        select = f"SELECT LENGTH({column}), {column} FROM notes WHERE id = ?"
        found = [reader.simple_object(select, (number,), MOST) for number in range(len(sizes))]
        assert found == [SimpleObject(*pair) for pair in zip(sizes, values, strict=True)]
        assert reader.simple_object(select, (3,), 99_999) == SimpleObject(100_000)


def test_a_connection_that_ends_closes_what_it_had_open(world: Emulated) -> None:
    handle = referred(world, b"x")
    with closing(world.open(world.settings("stores", "en_US.utf8"), 5)) as transport:
        object_reader(transport).open(handle[4:])
        assert world.server.sbspace.open_count == 1
    with closing(world.open(world.settings("stores", "en_US.utf8"), 5)) as transport:
        assert transport.rows("SELECT tabid FROM informix.systables WHERE tabid = 1") == [("1",)]
    assert world.server.sbspace.open_count == 0


def test_a_lost_connection_is_no_content(world: Emulated) -> None:
    with closing(world.open(world.settings("stores", "en_US.utf8"), 5)) as transport:
        reader = object_reader(transport)
        opened = try_open(reader, referred(world, b"lost")[4:], MOST)
        transport.close()
        with pytest.raises(ConnectionLost):
            read_whole(reader, opened, MOST, lambda: False)
