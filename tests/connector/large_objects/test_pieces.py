"""Objects are read in pieces: what is in memory together, what is kept, and who does not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.large_objects.test_pool import objects, opened, pool, world
from harness.runs.patience import patiently, wait_until
from harness.servers.emulated import Emulated
from informix_capture_client.errors import ConnectionLost
from informix_capture_client.large_objects import GONE, READ, Content
from informix_capture_client.large_objects.base import ObjectReader, ObjectStatus
from informix_capture_client.large_objects.sqli_objects import SqliObjects
from informix_capture_client.transport import Transport
from informix_cdc.large_objects import ContentPool, connection

__all__ = ["opened", "pool", "world"]  # fixtures
PIECE = "informix_cdc.large_objects.pool._PIECE_BYTES"


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
    assert max(sum(each.held_bytes for each in found.values()) for _, found in parts) <= 2 * 2
    assert world.server.sbspace.opens == 6 + 4, "two are kept"
    assert world.server.sbspace.open_count == 0


def test_objects_that_grow_before_they_are_read_are_not_in_memory_together(
    world: Emulated, pool: ContentPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred of one byte that became a MiB each were a hundred MiB in one piece."""
    size = 1 << 10
    monkeypatch.setattr(PIECE, 8 * size)
    known, read, grown = objects(world, 100), SqliObjects.read, list[bytes]()

    def read_of_grown(reader: SqliObjects, descriptor: int, most_bytes: int) -> memoryview:
        if not grown:
            for place in known:
                grown.append(place)
                world.server.sbspace.write(bytes(4) + place, b"y" * size)
        return read(reader, descriptor, most_bytes)

    monkeypatch.setattr(SqliObjects, "read", read_of_grown)
    parts = list(pool.pieces([[place] for place in known]))
    assert [parts[-1][0], len(grown)] == [100, 100]
    together = [sum(each.held_bytes for each in found.values()) for _, found in parts]
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
        patches.setattr("informix_cdc.large_objects.pool._MOST_TOGETHER", 10)
        at, most = 0, 0
        for done, found in made.pieces(rows):
            assert done > at
            for row in rows[at:done]:
                for place in row:
                    size = sizes[place][1]
                    assert found[place] == Content(READ, size, place * size)
            one_row = max((sum(sizes[p][1] for p in {*row}) for row in rows[at:done]), default=0)
            most = 2 * piece + connections * 60 + one_row
            assert sum(each.held_bytes for each in found.values()) <= most
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
    monkeypatch.setattr("informix_cdc.large_objects.side_by_side._LOOK_SECONDS", 0.05)
    monkeypatch.setattr("informix_cdc.large_objects.pool._STOP_SECONDS", 0.2)
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
            with pytest.raises(ConnectionLost, match="has not answered"):
                list(made.pieces(rows))
    hanging()
    wait_until(lambda: world.server.sbspace.open_count == 0)


def test_a_gone_object_stays_gone_for_all_rows_of_a_batch(
    pool: ContentPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PIECE, 1)
    parts = dict(pool.pieces([[b"\7" * 72], [], [b"\7" * 72]]))
    assert {each.status for found in parts.values() for each in found.values()} == {GONE}
