"""Objects are read in pieces: what is in memory together, what is kept, and who does not answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.object_contents.test_pool import objects, opened, pool, world
from harness.runs.patience import patiently, wait_until
from harness.servers.emulated import Emulated
from informix_capture_client.errors import ConnectionLost
from informix_capture_client.object_readers import GONE, READ, Content
from informix_capture_client.object_readers.base import ObjectReader, ObjectStatus
from informix_capture_client.object_readers.sqli_objects import SqliObjects
from informix_capture_client.transport import Transport
from informix_cdc.object_contents import connection
from informix_cdc.object_contents.connection import ObjectConnection
from informix_cdc.object_contents.pool import ContentPool

__all__ = ["opened", "pool", "world"]  # fixtures
PIECE = "informix_cdc.object_contents.pool._PIECE_BYTES"


def test_one_that_comes_again_in_a_later_part_is_kept_for_it(
    world: Emulated, pool: ContentPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PIECE, 1)
    first, second = objects(world, 2)
    parts = list(pool.pieces([[first], [second], [first]]))
    assert [done for done, _ in parts] == [1, 2, 3]
    assert parts[0][1][first] == parts[2][1][first] == Content(READ, 1, b"0")
    assert (world.server.sbspace.open_count, world.server.sbspace.opens) == (0, 2)


def test_what_is_read_for_one_row_is_not_gone_for_another_of_the_same_batch(
    world: Emulated, pool: ContentPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a transaction inserts a row and updates another column of it, and the row is deleted."""
    monkeypatch.setattr(PIECE, 4)
    first, second = objects(world, 2)
    parts = pool.pieces([[first], [second], [second], [second], [second], [first]])
    found = dict([next(parts)])
    with world.server.transaction() as tx:
        tx.delete("stores:informix.files", {"content": bytes(4) + first})
    found |= dict(parts)
    assert {known[first].status for known in found.values() if first in known} == {READ}


def test_beyond_the_bytes_of_a_piece_it_is_opened_again(
    world: Emulated, pool: ContentPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PIECE, 2)
    known = objects(world, 6)
    rows = [[place] for place in [*known, *known]]
    parts = list(pool.pieces(rows))
    assert parts[-1][0] == 12
    assert max(sum(each.buffered_bytes for each in found.values()) for _, found in parts) <= 2 * 2
    assert world.server.sbspace.opens == 6 + 3, "two are kept, and that of the next row"
    assert world.server.sbspace.open_count == 0


@pytest.mark.only_in_all
def test_objects_that_grow_before_they_are_read_are_not_in_memory_together(
    world: Emulated, pool: ContentPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred of one byte that became a MiB each were a hundred MiB in one piece."""
    size = 1 << 10
    monkeypatch.setattr(PIECE, 8 * size)
    known, read, grown = objects(world, 100), SqliObjects.read, list[bytes]()
    growing = threading.Lock()  # several connections read

    def read_of_grown(reader: SqliObjects, descriptor: int, most_bytes: int) -> memoryview:
        with growing:
            for place in known if not grown else ():
                grown.append(place)
                world.server.sbspace.write(bytes(4) + place, b"y" * size)
        return read(reader, descriptor, most_bytes)

    monkeypatch.setattr(SqliObjects, "read", read_of_grown)
    parts = list(pool.pieces([[place] for place in known]))
    assert [parts[-1][0], len(grown)] == [100, 100]
    together = [sum(each.buffered_bytes for each in found.values()) for _, found in parts]
    assert max(together) <= (8 + 8 + 2) * size, "two pieces, and one object of each connection"
    contents = {place: each for _, found in parts for place, each in found.items()}
    assert {contents[place] for place in known} == {Content(READ, size, b"y" * size)}


class Growing(ObjectReader):
    """Objects that become another length when they are read for the first time."""

    def __init__(self, sizes: Mapping[bytes, tuple[int, int]]) -> None:
        self._sizes, self._grown = sizes, set[bytes]()
        self._open = list[tuple[bytes, int]]()  # by descriptor: what, and how much of it was read

    def locators(self, statement: str, arguments: object) -> Any:
        raise AssertionError("nothing is selected")

    simple_object = locators

    def open(self, locator: bytes) -> int:
        self._open.append((locator, 0))
        return len(self._open) - 1

    def status(self, descriptor: int) -> ObjectStatus:
        place = self._open[descriptor][0]
        return ObjectStatus(self._sizes[place][place in self._grown], b"")

    def read(self, descriptor: int, most_bytes: int) -> memoryview:
        place, at = self._open[descriptor]
        self._grown.add(place)
        piece = (place * self._sizes[place][1])[at : at + most_bytes]
        self._open[descriptor] = (place, at + len(piece))
        return memoryview(piece)

    def close(self, descriptor: int) -> None:
        pass


PLACES = [bytes([n]) for n in range(1, 9)]
ROWS = st.lists(st.lists(st.sampled_from(PLACES), max_size=3), max_size=30)
SIZES = st.fixed_dictionaries(
    {place: st.tuples(st.integers(0, 60), st.integers(0, 60)) for place in PLACES}
)


@given(ROWS, SIZES, st.integers(1, 4))
def test_each_row_has_its_contents_and_memory_has_a_bound(
    rows: Sequence[Sequence[bytes]], sizes: Mapping[bytes, tuple[int, int]], connections: int
) -> None:
    """Whatever refers to what, and whatever objects become between being opened and read."""
    piece = 50
    with (
        pytest.MonkeyPatch.context() as patches,
        closing(_pool_of(patches, sizes, connections)) as made,
    ):
        patches.setattr(PIECE, piece)
        patches.setattr("informix_cdc.object_contents.pool._MOST_TOGETHER", 10)
        at, most = 0, 0
        for done, found in made.pieces(rows):
            assert done > at
            for row in rows[at:done]:
                for place in row:
                    size = sizes[place][1]
                    assert found[place] == Content(READ, size, place * size)
            one_row = max((sum(sizes[p][1] for p in {*row}) for row in rows[at:done]), default=0)
            most = 2 * piece + connections * 60 + one_row
            assert sum(each.buffered_bytes for each in found.values()) <= most
            at = done
        assert at == len(rows)


def _pool_of(
    patches: pytest.MonkeyPatch, sizes: Mapping[bytes, tuple[int, int]], connections: int
) -> ContentPool:
    transport: Any = type("NoTransport", (), {"close": lambda _: None})
    patches.setattr(connection, "object_reader", lambda _: Growing(sizes))
    patches.setattr(connection, "SettledRows", lambda _: None)
    made = ContentPool(transport, connections, 1 << 20)
    made.begin()
    return made


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Let the first read never return, until this is called."""
    released, hung, read = threading.Event(), list[int](), SqliObjects.read

    def hangs_once(reader: SqliObjects, descriptor: int, most_bytes: int) -> memoryview:
        if not hung:
            hung.append(descriptor)
            released.wait(patiently(60))
        return read(reader, descriptor, most_bytes)

    monkeypatch.setattr(SqliObjects, "read", hangs_once)
    monkeypatch.setattr("informix_cdc.object_contents.pool._LOOK_SECONDS", 0.05)
    monkeypatch.setattr("informix_cdc.object_contents.pool._STOP_SECONDS", 0.2)
    yield released.set
    released.set()


@pytest.mark.fault(
    fault="a server never answers a read of a large object, through a driver manager without a time"
    " limit",
    outcome="the connection is given up as lost, and the stream goes on over another one",
)
@pytest.mark.parametrize("is_stopped", [False, True], ids=["silent", "stopped"])
def test_a_connection_that_does_not_answer_is_given_up(
    is_stopped: bool, world: Emulated, hanging: Callable[[], None]
) -> None:
    transports = list[Transport]()

    def connect() -> Transport:
        transports.append(world.open(world.settings("stores", "en_US.utf8"), 60))
        return transports[-1]

    rows = [[place] for place in objects(world, 20)]
    silent_seconds = 1e9 if is_stopped else 0.3
    with closing(ContentPool(connect, 2, 1 << 20, silent_seconds=silent_seconds)) as made:
        made.begin()
        if is_stopped:
            made._is_stopped = lambda: True
            made._is_late = lambda: False  # type: ignore[method-assign]  # it was asked before
        for _ in range(2):  # what is whole is tried once more
            with pytest.raises(ConnectionLost, match="has returned none"):
                list(made.pieces(rows))
    hanging()
    wait_until(lambda: world.server.sbspace.open_count == 0)


def test_a_connection_that_was_given_up_is_closed_by_one_thread_alone(
    world: Emulated, hanging: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that comes back, and the pool, closed it at the same time: the second was refused."""
    close, closing_now, overlaps = ObjectConnection.close, set[int](), list[int]()
    entered, may_close = threading.Event(), threading.Event()

    def slow(self: ObjectConnection) -> None:
        if id(self) in closing_now:
            overlaps.append(1)
        closing_now.add(id(self))
        entered.set()
        may_close.wait(patiently(5))
        close(self)
        closing_now.discard(id(self))

    monkeypatch.setattr(ObjectConnection, "close", slow)
    made = ContentPool(
        lambda: world.open(world.settings("stores", "en_US.utf8"), 60), 1, 1 << 20, silent_seconds=0.3
    )
    made.begin()
    with pytest.raises(ConnectionLost):
        list(made.pieces([[place] for place in objects(world, 3)]))
    hanging()
    wait_until(entered.is_set)
    made.close()
    may_close.set()
    wait_until(lambda: world.server.sbspace.open_count == 0)
    assert not overlaps


def test_what_one_connection_fails_with_is_not_held_back_by_another_that_waits(
    world: Emulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the other one waits for a row that a writer has locked, for as long as he thinks."""
    calls = list[int]()

    def read(self: ObjectConnection, _share: object, is_late: Callable[[], bool], *_: object) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionLost("broken pipe", is_silence=True)
        while not is_late():
            time.sleep(0.01)

    monkeypatch.setattr(ObjectConnection, "read", read)
    connect = partial(world.open, world.settings("stores", "en_US.utf8"), 60)
    with closing(ContentPool(connect, 4, 1 << 20)) as made:
        made.begin()
        with pytest.raises(ConnectionLost, match="broken pipe"):
            list(made.pieces([[place] for place in objects(world, 20)]))
    assert len(calls) > 1


def test_what_one_connection_fails_with_is_not_held_back_by_a_call_that_does_not_return(
    world: Emulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was raised once that call was given up: through a driver manager some minutes later."""
    first, calling, released = threading.Lock(), threading.Event(), threading.Event()
    was_released = list[bool]()

    def read(self: ObjectConnection, *_: object) -> dict[bytes, Content]:
        if first.acquire(blocking=False):
            calling.wait(patiently(30))
            raise ConnectionLost("broken pipe", is_silence=True)
        calling.set()
        was_released.append(released.wait(patiently(30)))
        return {}

    monkeypatch.setattr(ObjectConnection, "read", read)
    monkeypatch.setattr("informix_cdc.object_contents.pool._STOP_SECONDS", 0.2)
    monkeypatch.setattr("informix_cdc.object_contents.pool._LOOK_SECONDS", 0.05)
    connect = partial(world.open, world.settings("stores", "en_US.utf8"), 60)
    with closing(ContentPool(connect, 4, 1 << 20)) as made:
        made.begin()
        with pytest.raises(ConnectionLost, match="broken pipe"):
            list(made.pieces([[place] for place in objects(world, 20)]))
        assert not was_released
        released.set()
    wait_until(lambda: was_released)


def test_rows_beside_each_other_read_a_large_object_once(
    world: Emulated, pool: ContentPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One above the bytes of a part was read for each of them, and could be gone for the second."""
    monkeypatch.setattr("informix_cdc.object_contents.pool._MOST_OPEN", 1)
    monkeypatch.setattr("informix_cdc.object_contents.pool._MOST_TOGETHER", 1)
    monkeypatch.setattr(PIECE, 0)
    (one,) = objects(world, 1)
    parts = dict(pool.pieces([[one]] * 4))
    assert {found[one].status for found in parts.values()} == {READ}
    assert world.server.sbspace.opens == 1


@pytest.mark.parametrize("hangs", [False, True], ids=["slow", "silent"])
def test_objects_for_which_it_is_too_late_hold_no_row_up(
    hangs: bool, world: Emulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were closed one by one, by the thread that hands out the rows."""
    now, closes, released = [0.0], list[int](), threading.Event()
    hung_at = list[float]()
    read = SqliObjects.read

    def late(reader: SqliObjects, descriptor: int, most_bytes: int) -> memoryview:
        now[0] = 10.0
        return read(reader, descriptor, most_bytes)

    def close(reader: SqliObjects, descriptor: int) -> None:
        closes.append(descriptor)
        if hangs and len(closes) > 1:  # not of the one that was read
            hung_at.append(time.monotonic())
            released.wait(patiently(60))

    monkeypatch.setattr(SqliObjects, "read", late)
    monkeypatch.setattr(SqliObjects, "close", close)
    monkeypatch.setattr("informix_cdc.object_contents.pool._LOOK_SECONDS", 0.05)
    connect = partial(world.open, world.settings("stores", "en_US.utf8"), 60)

    def clock() -> float:  # runs a hundred times faster while a call hangs, and not otherwise
        return now[0] + (100 * (time.monotonic() - hung_at[0]) if hung_at else 0)

    with closing(
        ContentPool(connect, 1, 1 << 20, read_seconds=5, clock=clock, silent_seconds=12)
    ) as made:
        made.begin()
        parts = dict(made.pieces([[place] for place in objects(world, 10 if hangs else 200)]))
        if hangs:
            assert made._is_given_up
    released.set()
    assert [each.status for each in parts[max(parts)].values()].count(READ) == 1
    assert len(closes) < 3
    wait_until(lambda: world.server.sbspace.open_count == 0)


def test_a_gone_object_stays_gone_for_all_rows_of_a_batch(
    pool: ContentPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PIECE, 1)
    parts = dict(pool.pieces([[b"\7" * 72], [], [b"\7" * 72]]))
    assert {each.status for found in parts.values() for each in found.values()} == {GONE}
