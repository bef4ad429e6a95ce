"""Read the large objects of rows with several connections at once, some megabytes at a time.

Rule: the order of rows is kept. If one connection fails, all fail: there is never half a content, and
within a batch either all rows have contents or none. Memory is limited to the bytes of a piece, the
same amount again for later rows, and one object per connection.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import TypeVar
from zlib import crc32

from informix_capture_client.errors import ConnectionLost, InformixCdcError
from informix_capture_client.object_readers import (
    AT_ONCE_BYTES,
    Content,
    ContentsByPlace,
    ObjectPlace,
    OpenedObject,
)
from informix_capture_client.transport import Transport
from informix_cdc.object_contents.connection import IsLate, ObjectConnection
from informix_cdc.object_contents.figures import ContentFigures

_PIECE_BYTES = 16 << 20  # of contents that are in memory together
_MOST_OPEN = 1000  # open objects per connection; descriptors have 16 bits in the protocol
# Of all connections: a TEXT or BYTE of up to AT_ONCE_BYTES is in memory as soon as its length is known
_MOST_TOGETHER = _PIECE_BYTES // AT_ONCE_BYTES
_LOOK_SECONDS = 1.0
_STOP_SECONDS = 2.0  # maximum time to wait for a response that is no longer needed

T = TypeVar("T")


class ContentPool:
    """Reads objects for `ObjectContents`.

    Args:
        connect: connects to the captured database.
        connections: maximum number of connections; none is opened before there is an object.
        most_bytes: maximum size of an object that is read.
        read_seconds: maximum time that rows wait; 0: no limit.
        figures: count the results.
        clock: a monotonic clock.
        is_stopped: whether the contents are no longer needed.
        silent_seconds: maximum time in which a connection must return an object or a piece of one.
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
        silent_seconds: float = math.inf,
    ) -> None:
        self._connections = [ObjectConnection(connect, most_bytes) for _ in range(connections)]
        self._read_seconds, self._clock, self._is_stopped = read_seconds, clock, is_stopped
        self._silent_seconds = silent_seconds
        self._figures = figures or ContentFigures()
        self._deadline = 0.0
        self._at_work: dict[ObjectConnection, float] = {}  # since when each has been silent
        self._is_given_up = False  # a busy connection is then closed by its own thread
        self._waited_seconds = 0.0  # for the connection that was given up
        self._failure: BaseException | None = None  # the first one
        self._sharing = threading.Lock()  # for fields that several threads write

    def close(self) -> None:
        """Close the connections; one whose server does not answer is closed once it does."""
        with self._sharing:
            self._is_given_up = True
        self._close_idle()

    def begin(self, committed: Collection[int] = frozenset()) -> None:
        """Begin with rows of these transactions, which have waited until now."""
        for connection in self._connections:
            connection.begin(committed)
        self._deadline = self._clock() + self._read_seconds

    def pieces(self, rows: Sequence[Sequence[ObjectPlace]]) -> Generator[tuple[int, ContentsByPlace]]:
        """Yield the number of finished rows, and the contents at their places, some rows at a time.

        Contents that later rows also refer to are kept for them, within the bytes of a piece.

        Raises:
            ConnectionLost: a connection broke or is silent; the rows then have no contents.
            ServerRefused: the server does not allow reading objects.
        """
        last_rows = {place: row for row, places in enumerate(rows) for place in places}
        known: dict[ObjectPlace, Content] = {}
        at = 0
        try:
            while at < len(rows):
                end = self._round(rows, at)
                opened = self._open(_distinct(rows[at:end], known))
                held: Mapping[ObjectPlace, OpenedObject | Content] = {**opened, **known}
                sizes = {place: each.buffered_bytes for place, each in held.items()}
                del opened, held  # short values are already read, and would be kept for the whole round
                while at < end:
                    up_to = _end_of_piece(rows, at, end, sizes)
                    wanted = _distinct(rows[at:up_to], known)
                    fresh = self._read(wanted, max(_PIECE_BYTES, sum(sizes[each] for each in wanted)))
                    self._figures.record(fresh.values())
                    sizes.update({place: content.buffered_bytes for place, content in fresh.items()})
                    known = {**known, **fresh}
                    del fresh  # otherwise it would be in memory together with the next ones
                    if (done := _end_of_known(rows, at, up_to, known)) > at:
                        yield done, known
                    known = _kept(known, rows, at := done, up_to, last_rows)
        except InformixCdcError:
            self._close_idle()  # the server closes their open objects
            raise
        finally:
            if self._is_stopped():
                self._close_idle()  # at once, instead of one object after the other
            self._let_go()

    def _round(self, rows: Sequence[Sequence[ObjectPlace]], at: int) -> int:
        """Return up to which row objects are opened together."""
        most = min(_MOST_OPEN * len(self._connections), _MOST_TOGETHER)
        count, end = len(rows[at]), at + 1
        while end < len(rows) and count + len(rows[end]) <= most:
            count, end = count + len(rows[end]), end + 1
        return end

    def _is_late(self) -> bool:
        """Return whether to stop reading; checked before each object, and each piece of one.

        Raises:
            ConnectionLost: the contents are no longer needed; the rows have none, and are not
                delivered.
        """
        if self._is_stopped():
            raise ConnectionLost("reading large objects was stopped: the capture is stopping.")
        return bool(self._read_seconds) and self._clock() >= self._deadline

    def _open(self, places: Sequence[ObjectPlace]) -> dict[ObjectPlace, OpenedObject]:
        return self._by_each(places, lambda one, share, is_late: one.open(share, is_late))

    def _read(self, places: Sequence[ObjectPlace], most_bytes: int) -> dict[ObjectPlace, Content]:
        """Read objects; the last ones are skipped if others have grown since they were opened."""
        read_bytes = 0

        def has_room(size: int) -> bool:
            nonlocal read_bytes
            with self._sharing:
                read_bytes += size
                return read_bytes <= most_bytes

        return self._by_each(places, lambda one, share, is_late: one.read(share, is_late, has_room))

    def _let_go(self) -> None:
        """Close objects that were opened but not read; give up a connection that is silent then."""
        opened = [(one, ()) for one in self._idle() if one.has_open]
        if opened and not self._is_given_up:
            with contextlib.suppress(ConnectionLost):
                self._together(opened, lambda one, _share, _is_late: one.let_go())

    def _by_each(
        self,
        places: Sequence[ObjectPlace],
        run: Callable[[ObjectConnection, Sequence[ObjectPlace], IsLate], dict[ObjectPlace, T]],
    ) -> dict[ObjectPlace, T]:
        """Let each connection do its share; an object is always handled by the same one."""
        shares: list[list[ObjectPlace]] = [[] for _ in self._connections]
        for place in places:
            shares[_number(place) % len(shares)].append(place)
        busy = [pair for pair in zip(self._connections, shares, strict=True) if pair[1]]
        if self._is_given_up:
            raise self._lost()
        found: dict[ObjectPlace, T] = {}
        for each in self._together(busy, run):
            found.update(each)
        return found

    def _together(
        self,
        busy: Sequence[tuple[ObjectConnection, Sequence[ObjectPlace]]],
        run: Callable[[ObjectConnection, Sequence[ObjectPlace], IsLate], T],
    ) -> list[T]:
        """Let all connections work at once; if one fails, the others are closed."""
        self._at_work = {one: self._clock() for one, _ in busy}
        self._failure = None
        try:
            return _side_by_side(
                [partial(self._work, run, *pair) for pair in busy], self._check_silence
            )
        except Exception as reason:  # noqa: BLE001 - this or an earlier failure is raised again
            raise self._failure or reason from None

    def _work(
        self,
        run: Callable[[ObjectConnection, Sequence[ObjectPlace], IsLate], T],
        one: ObjectConnection,
        share: Sequence[ObjectPlace],
    ) -> T:
        def is_late() -> bool:
            if self._is_given_up:
                raise self._lost()
            if self._failure is not None:
                raise self._failure
            self._at_work[one] = self._clock()
            return self._is_late()

        try:
            return run(one, share, is_late)
        except BaseException as reason:
            self._failure = self._failure or reason
            raise
        finally:
            with self._sharing:
                if not (is_given_up := self._is_given_up):
                    del self._at_work[one]
            if is_given_up:
                one.close()  # no other thread closes it before it is idle
                with self._sharing:
                    del self._at_work[one]

    def _check_silence(self) -> None:
        """Give up a connection whose server does not answer; soon, if the answer is no longer needed.

        Raises:
            ConnectionLost: there is one, or the answer is no longer needed.
        """
        is_in_vain = self._is_stopped() or self._failure is not None
        most_seconds = _STOP_SECONDS if is_in_vain else self._silent_seconds
        with self._sharing:
            silent_seconds = self._clock() - min(self._at_work.values(), default=self._clock())
            is_lost = silent_seconds > most_seconds
            self._is_given_up |= is_lost
            self._waited_seconds = silent_seconds
        if is_lost:
            raise self._lost()

    def _lost(self) -> ConnectionLost:
        waited = f"{self._waited_seconds:.0f} s"
        return ConnectionLost(f"a connection that reads large objects has returned none for {waited}.")

    def _idle(self) -> list[ObjectConnection]:
        with self._sharing:
            return [each for each in self._connections if each not in self._at_work]

    def _close_idle(self) -> None:
        for connection in self._idle():
            connection.close()


def _number(place: ObjectPlace) -> int:
    """Return a number for a place, always the same."""
    return crc32(place if isinstance(place, bytes) else repr(place.arguments).encode())


def _distinct(rows: Sequence[Sequence[ObjectPlace]], known: ContentsByPlace) -> list[ObjectPlace]:
    return list(dict.fromkeys(place for row in rows for place in row if place not in known))


def _end_of_piece(
    rows: Sequence[Sequence[ObjectPlace]], at: int, end: int, sizes: Mapping[ObjectPlace, int]
) -> int:
    """Return the end of rows whose objects may be in memory together; at least one row."""
    size = 0
    for row in range(at, end):
        more = sum(sizes[each] for each in rows[row])
        if size and size + more > _PIECE_BYTES:
            return row
        size += more
    return end


def _end_of_known(
    rows: Sequence[Sequence[ObjectPlace]], at: int, up_to: int, known: ContentsByPlace
) -> int:
    """Return up to which row everything is read."""
    return next((row for row in range(at, up_to) if any(one not in known for one in rows[row])), up_to)


def _kept(
    known: ContentsByPlace,
    rows: Sequence[Sequence[ObjectPlace]],
    at: int,
    up_to: int,
    last_rows: Mapping[ObjectPlace, int],
) -> dict[ObjectPlace, Content]:
    """Return what to keep for later rows: everything of the next one, and a piece's bytes of others."""
    next_ones = rows[at] if at < len(rows) else ()
    kept = {place: known[place] for place in next_ones if place in known}
    size = 0
    soon = [place for row in rows[at:up_to] for place in row if place in known]
    for place in dict.fromkeys([*soon, *known]):
        if place in kept or last_rows[place] < at:
            continue
        if size + known[place].buffered_bytes <= _PIECE_BYTES:
            size += known[place].buffered_bytes
            kept[place] = known[place]
    return kept


def _side_by_side(tasks: Sequence[Callable[[], T]], check: Callable[[], None]) -> list[T]:
    """Return the results of tasks, in order, when all have ended.

    The threads are daemons: with ODBC a call has no time limit and may never return, and must not keep
    the process from exiting.

    Args:
        tasks: run in a thread each.
        check: called every second; if it raises, unfinished tasks are abandoned.

    Raises:
        BaseException: the error of the first failed task, or of `check`.
    """
    started = [_started(task) for task in tasks]
    while wait(started, _LOOK_SECONDS).not_done:
        check()
    return [each.result() for each in started]


def _started(task: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(task())
        except BaseException as reason:  # noqa: BLE001 - raised where the result is requested
            future.set_exception(reason)

    threading.Thread(target=run, name="informix-cdc large objects", daemon=True).start()
    return future
