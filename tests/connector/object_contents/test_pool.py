"""Several connections read the objects of rows; what one of them fails at, all fail at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from harness.runs.patience import patiently, wait_until
from harness.servers.emulated import Emulated, emulated_world
from informix_capture_client.errors import ConnectionLost
from informix_capture_client.object_readers import (
    READ,
    ByKey,
    Content,
    ObjectPlace,
    OpenedObject,
    SimpleObject,
)
from informix_capture_client.object_readers.sqli_objects import SqliObjects
from informix_capture_client.transport import Transport
from informix_cdc.object_contents import ContentFigures, connection
from informix_cdc.object_contents.pool import ContentPool


@pytest.fixture
def world() -> Iterator[Emulated]:
    with emulated_world() as world:
        world.server.create_database("stores")
        world.server.create_table("stores:informix.files", "content BLOB")
        yield world


@pytest.fixture
def opened() -> list[Transport]:
    return []


@pytest.fixture
def pool(world: Emulated, opened: list[Transport]) -> Iterator[ContentPool]:
    def connect() -> Transport:
        opened.append(world.open(world.settings("stores", "en_US.utf8"), 5))
        return opened[-1]

    with closing(ContentPool(connect, 2, 1 << 20)) as pool:
        pool.begin()
        yield pool


def objects(world: Emulated, count: int) -> list[bytes]:
    """Make objects that rows refer to."""
    handles = [world.server.sbspace.create(b"%d" % n) for n in range(count)]
    with world.server.transaction() as tx:
        for handle in handles:
            tx.insert("stores:informix.files", {"content": handle})
    return [handle[4:] for handle in handles]


def test_rows_share_two_connections_and_keep_their_order(
    world: Emulated, pool: ContentPool, opened: list[Transport]
) -> None:
    places = objects(world, 20)
    ((done, found),) = pool.pieces([[place] for place in places])
    assert (done, len(opened)) == (20, 2)
    assert [found[place].data for place in places] == [b"%d" % n for n in range(20)]


def test_an_object_of_two_rows_is_read_once(world: Emulated, pool: ContentPool) -> None:
    (place,) = objects(world, 1)
    ((done, found),) = pool.pieces([[place], [], [place]])
    assert (done, found, world.server.sbspace.opens) == (3, {place: Content(READ, 1, b"0")}, 1)


def test_rows_without_objects_need_no_connection(pool: ContentPool, opened: list[Transport]) -> None:
    assert list(pool.pieces([[], []])) == [(2, {})]
    assert opened == []


def test_objects_that_nobody_reads_any_more_are_closed(
    world: Emulated, pool: ContentPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a row of the first part is refused: the connection lives on, and the others wait."""
    monkeypatch.setattr("informix_cdc.object_contents.pool._PIECE_BYTES", 1)
    parts = pool.pieces([[place] for place in objects(world, 6)])
    next(parts)
    assert world.server.sbspace.open_count == 5
    parts.close()
    assert world.server.sbspace.open_count == 0


def test_what_breaks_on_one_connection_is_a_lost_connection_for_all(
    world: Emulated, pool: ContentPool, opened: list[Transport]
) -> None:
    places = objects(world, 20)
    list(pool.pieces([[place] for place in places]))
    opened[1].close()
    with pytest.raises(ConnectionLost):
        list(pool.pieces([[place] for place in places]))


def test_what_became_of_objects_is_counted(world: Emulated) -> None:
    figures = ContentFigures()
    known = [*objects(world, 2), b"\7" * 72]
    with closing(
        ContentPool(
            lambda: world.open(world.settings("stores", "en_US.utf8"), 5), 1, 1 << 20, figures=figures
        )
    ) as pool:
        list(pool.pieces([known]))
    assert (figures.read, figures.gone, figures.read_bytes) == (2, 1, 2)


class ShortValues:
    """Finds a TEXT of nearly 8 KiB in every row."""

    def simple_object(self, _statement: str, _arguments: object, _most_bytes: int) -> SimpleObject:
        return SimpleObject(8000, bytes(8000))


@pytest.mark.only_in_all
def test_short_values_count_as_what_is_in_memory_together(
    world: Emulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are there once their lengths are known: as many connections hold no more of them."""
    at_once: list[int] = []
    opened = ContentPool._open

    def counted(pool: ContentPool, places: Sequence[ObjectPlace]) -> dict[ObjectPlace, OpenedObject]:
        found = opened(pool, places)
        at_once.append(sum(each.buffered_bytes for each in found.values()))
        return found

    monkeypatch.setattr(ContentPool, "_open", counted)
    monkeypatch.setattr(connection, "object_reader", lambda _: ShortValues())
    settings = world.settings("stores", "en_US.utf8")
    rows = [[ByKey("s", (n,), is_value=True)] for n in range(5_000)]
    with closing(ContentPool(lambda: world.open(settings, 5), 16, 1 << 20)) as pool:
        pool.begin()
        pieces = [
            sum(len(each.data or b"") for each in found.values()) for _, found in pool.pieces(rows)
        ]
    assert sum(pieces) == 5_000 * 8_000
    assert max(*at_once, *pieces) <= 16 << 20


def test_who_is_stopped_reads_no_further_object(
    world: Emulated, opened: list[Transport], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("informix_cdc.object_contents.pool._STOP_SECONDS", patiently(60))
    stopped: list[bool] = []

    def connect() -> Transport:
        stopped.append(True)
        opened.append(world.open(world.settings("stores", "en_US.utf8"), 5))
        return opened[-1]

    known = objects(world, 20)
    with (
        closing(ContentPool(connect, 1, 1 << 20, is_stopped=lambda: bool(stopped))) as pool,
        pytest.raises(ConnectionLost, match="stop"),
    ):
        list(pool.pieces([[place] for place in known]))
    assert world.server.sbspace.opens == 1


def test_what_fails_ends_its_connections_and_closes_no_object_by_itself(
    world: Emulated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each close is a round trip, of up to a thousand a connection, in which a stop would wait."""
    stopped, closed = list[bool](), list[int]()
    close = SqliObjects.close
    monkeypatch.setattr(
        SqliObjects, "close", lambda reader, number: (closed.append(number), close(reader, number))
    )
    settings = world.settings("stores", "en_US.utf8")
    pool = ContentPool(lambda: world.open(settings, 5), 2, 1 << 20, is_stopped=lambda: bool(stopped))
    monkeypatch.setattr("informix_cdc.object_contents.pool._PIECE_BYTES", 1)
    with closing(pool):
        parts = pool.pieces([[place] for place in objects(world, 40)])
        next(parts)
        stopped.append(True)
        with pytest.raises(ConnectionLost):
            next(parts)
    assert len(closed) == 1
    wait_until(lambda: world.server.sbspace.open_count == 0)
