"""Read the large objects of rows, by several connections at once, some megabytes at a time.

Rule: the rows' order is kept; what fails on one connection fails for all: there is never half a
content, and never a row of a batch that has contents beside one that has lost them. Memory is bounded
by the bytes of a piece, or by one object that is larger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar
from zlib import crc32

from informix_capture_client.errors import ConnectionLost, InformixCdcError
from informix_capture_client.large_objects import AT_ONCE_BYTES, Content, Found, Opened, Place
from informix_capture_client.transport import Transport
from informix_cdc.large_objects.connection import ObjectConnection
from informix_cdc.large_objects.figures import ContentFigures

_PIECE_BYTES = 16 << 20  # of contents that are in memory together
_MOST_OPEN = 1000  # of a connection; descriptors have 16 bits on the wire
# of all connections: a TEXT or BYTE of up to AT_ONCE_BYTES is in memory once its length is known
_MOST_TOGETHER = _PIECE_BYTES // AT_ONCE_BYTES

T = TypeVar("T")


class ContentPool:
    """Reads objects; `large_objects.Contents`.

    Args:
        connect: connects to the captured database.
        connections: how many there are at most; none before there is an object to read.
        most_bytes: of an object that is read.
        read_seconds: for which rows wait; 0: for as long as it takes.
        figures: count what becomes of objects.
        clock: seconds from anywhere.
        is_stopped: whether nobody wants what is read any more.
    """

    def __init__(
        self,
        connect: Callable[[], Transport],
        connections: int,
        most_bytes: int,
        read_seconds: float = 0,
        figures: ContentFigures | None = None,
        clock: Callable[[], float] = time.monotonic,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._connections = [ObjectConnection(connect, most_bytes) for _ in range(connections)]
        self._threads = ThreadPoolExecutor(connections, "informix-cdc large objects")
        self._read_seconds, self._clock, self._is_stopped = read_seconds, clock, is_stopped
        self._figures = figures or ContentFigures()
        self._deadline = 0.0

    def close(self) -> None:
        """End the connections; a read that is on its way is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for connection in self._connections:
            connection.close()

    def begin(self, committed: Collection[int] = frozenset()) -> None:
        """Begin with rows of these transactions, that have waited until now."""
        for connection in self._connections:
            connection.begin(committed)
        self._deadline = self._clock() + self._read_seconds

    def pieces(self, rows: Sequence[Sequence[Place]]) -> Generator[tuple[int, Found]]:
        """Yield how many rows are done, and what is at their places, some rows at a time.

        Raises:
            ConnectionLost: a connection broke; the rows have no contents then.
            ServerRefused: the server does not let objects be read.
        """
        at = 0
        try:
            while at < len(rows):
                end = self._round(rows, at)
                opened = self._open(_distinct(rows[at:end]))
                for first, last in _pieces(rows, at, end, opened):
                    found = self._read(_distinct(rows[first:last]))
                    self._figures.note(found.values())
                    yield last, found
                at = end
        except InformixCdcError:
            for connection in self._connections:  # the server closes what they have open
                connection.close()
            raise
        finally:
            for connection in self._connections:
                connection.let_go()

    def _round(self, rows: Sequence[Sequence[Place]], at: int) -> int:
        """Return up to which row objects are opened together."""
        most = min(_MOST_OPEN * len(self._connections), _MOST_TOGETHER)
        count, end = len(rows[at]), at + 1
        while end < len(rows) and count + len(rows[end]) <= most:
            count, end = count + len(rows[end]), end + 1
        return end

    def _is_late(self) -> bool:
        """Tell whether no more is to be read; asked before each object, and each piece of one.

        Raises:
            ConnectionLost: nobody wants it any more; rows have no contents then, and are not delivered.
        """
        if self._is_stopped():
            raise ConnectionLost("large objects are not read on: the capture is to stop.")
        return bool(self._read_seconds) and self._clock() >= self._deadline

    def _open(self, places: Sequence[Place]) -> dict[Place, Opened]:
        return self._by_each(places, lambda one, share: one.open(share, self._is_late))

    def _read(self, places: Sequence[Place]) -> dict[Place, Content]:
        return self._by_each(places, lambda one, share: one.read(share, self._is_late))

    def _by_each(
        self,
        places: Sequence[Place],
        run: Callable[[ObjectConnection, Sequence[Place]], dict[Place, T]],
    ) -> dict[Place, T]:
        """Let each connection do its share; an object is always of the same one."""
        shares: list[list[Place]] = [[] for _ in self._connections]
        for place in places:
            shares[_number(place) % len(shares)].append(place)
        busy = [pair for pair in zip(self._connections, shares, strict=True) if pair[1]]
        if len(busy) == 1:
            return run(*busy[0])
        started: list[Future[dict[Place, T]]] = [
            self._threads.submit(partial(run, *pair)) for pair in busy
        ]
        wait(started)  # none of them is at work when rows are tried once more
        found: dict[Place, T] = {}
        for each in started:
            found.update(each.result())
        return found


def _number(place: Place) -> int:
    """Return the same number for the same place."""
    return crc32(place if isinstance(place, bytes) else repr(place.arguments).encode())


def _distinct(rows: Sequence[Sequence[Place]]) -> list[Place]:
    return list(dict.fromkeys(place for row in rows for place in row))


def _pieces(
    rows: Sequence[Sequence[Place]], at: int, end: int, opened: Mapping[Place, Opened]
) -> Iterator[tuple[int, int]]:
    """Cut rows where their objects are enough to be in memory together."""
    first = at
    size = 0
    for row in range(at, end):
        more = sum(opened[each].held_bytes for each in rows[row])
        if size and size + more > _PIECE_BYTES:
            yield first, row
            first, size = row, 0
        size += more
    yield first, end
