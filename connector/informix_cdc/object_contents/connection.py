"""One connection that reads large objects; it is opened with the first object.

Rule: first all given objects are opened, then they are read one by one: an open object remains readable
even if its row changes.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TypeVar

from informix_capture_client.errors import (
    AccessRefused,
    ConnectionLost,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.log_events import CONTENTS_WAIT
from informix_capture_client.object_readers import (
    UNREAD,
    ByKey,
    Content,
    ObjectPlace,
    ObjectReader,
    OpenedObject,
    object_reader,
    read_whole,
    try_open,
)
from informix_capture_client.transport import Transport
from informix_cdc.object_contents.settled_rows import SettledRows
from informix_cdc.server import is_locked

logger = logging.getLogger("informix_cdc.connector.large_objects")  # a logger name, not a module

_AGAIN_SECONDS = 0.1  # the server has waited for the lock before it refuses (SHORT_LOCK_WAIT)
_TELL_SECONDS = 10.0
_MOST_CLOSED_ALONE = 16  # maximum number of objects closed one by one, with a round trip each

IsLate = Callable[[], bool]
T = TypeVar("T")


class ObjectConnection:
    """Opens and reads objects; used by one thread at a time.

    Args:
        connect: connects to the captured database.
        most_bytes: maximum size of an object that is read.
    """

    def __init__(self, connect: Callable[[], Transport], most_bytes: int) -> None:
        self._connect, self._most_bytes = connect, most_bytes
        self._transport: Transport | None = None
        self._reader: ObjectReader | None = None
        self._rows: SettledRows | None = None
        self._committed: Collection[int] = frozenset()
        self._logged: Collection[int] | None = None  # the batch for which a wait was logged
        self._open: dict[ObjectPlace, OpenedObject] = {}

    def begin(self, committed: Collection[int]) -> None:
        """Begin with rows of transactions with these ids."""
        self._committed = committed

    def close(self) -> None:
        """Close the connection, and with it all open objects."""
        self._open.clear()
        if self._transport is not None:
            self._transport.close()
        self._transport = self._reader = self._rows = None

    @property
    def has_open(self) -> bool:
        """Whether objects are open that were not read."""
        return bool(self._open)

    def let_go(self) -> None:
        """Close objects that were opened but not read, for example because an earlier row was refused.

        If there are many, the connection is closed instead, because rows wait meanwhile.
        """
        if len(self._open) > _MOST_CLOSED_ALONE:
            self.close()
            return
        try:
            reader = self._known_reader()
            for opened in self._open.values():
                if opened.content is None and opened.descriptor >= 0:
                    reader.close(opened.descriptor)
            self._open.clear()
        except InformixCdcError:
            self.close()

    def open(self, places: Sequence[ObjectPlace], is_late: IsLate) -> dict[ObjectPlace, OpenedObject]:
        """Open objects and return them; objects for which it is too late are not opened.

        Raises:
            ConnectionLost: the connection broke.
            ServerRefused: the server does not open objects.
        """
        with explained():
            for place in places:
                unread = OpenedObject(place, content=UNREAD)
                self._open[place] = self._tried(place, is_late, partial(self._opened, place), unread)
        return {place: self._open[place] for place in places}

    def read(
        self,
        places: Sequence[ObjectPlace],
        is_late: IsLate,
        has_room: Callable[[int], bool] = lambda _: True,
    ) -> dict[ObjectPlace, Content]:
        """Read opened objects and close them; when there is no room, the others are skipped.

        `has_room` is called with the size of each.

        Raises: as `open`.
        """
        found: dict[ObjectPlace, Content] = {}
        with explained():
            for place in places:
                found[place] = self._read(place, is_late)
                if not has_room(found[place].buffered_bytes):
                    break
        return found

    def _read(self, place: ObjectPlace, is_late: IsLate) -> Content:
        opened = self._open.get(place)
        if opened is not None and opened.content is not None:
            return self._open.pop(place).content or UNREAD

        def whole(reader: ObjectReader) -> Content:
            # it may have been read for other rows already
            known = self._open.pop(place, None) or self._opened(place, reader)
            return read_whole(reader, known, self._most_bytes, is_late)

        return self._tried(place, is_late, whole, UNREAD)

    def _opened(self, place: ObjectPlace, reader: ObjectReader) -> OpenedObject:
        return try_open(reader, place, self._most_bytes)

    def _tried(
        self, place: ObjectPlace, is_late: IsLate, run: Callable[[ObjectReader], T], unread: T
    ) -> T:
        """Return the result of `run`, or `unread` when it is too late; wait for a locked row."""
        began = time.monotonic()
        while not is_late():
            reader = self._known_reader()
            try:
                if isinstance(place, ByKey) and self._rows is not None:
                    self._rows.require(self._committed)
                return run(reader)
            except ServerRefused as reason:
                if not isinstance(place, ByKey) or not is_locked(reason) or self._rows is None:
                    raise
                self._rows.ask_again()
                self._log_wait(reason, time.monotonic() - began)
            time.sleep(_AGAIN_SECONDS)
        return unread

    def _log_wait(self, reason: ServerRefused, waited_seconds: float) -> None:
        """Log that a row is awaited, once per batch."""
        if waited_seconds >= _TELL_SECONDS and self._logged is not self._committed:
            self._logged = self._committed
            CONTENTS_WAIT.log(logger, seconds=round(waited_seconds), reason=reason)

    def _known_reader(self) -> ObjectReader:
        if self._reader is None:
            self._transport = self._connect()
            self._reader = object_reader(self._transport)
            self._rows = SettledRows(self._transport)
        return self._reader


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Add to an error that it concerns a large object; silence there proves nothing about the log."""
    try:
        yield
    except ConnectionLost as reason:
        raise ConnectionLost(
            f"a connection that reads large objects was lost: {reason.message}",
            reason.remedy,
            answer=reason.answer,
        ) from None
    except (AccessRefused, ServerRefused) as reason:
        raise type(reason)(
            f"the content of a large object cannot be read: {reason.message}",
            "Look up the error number with finderr. To continue without contents, set"
            " lobs=handle for BLOB and CLOB, and simpleLobs=unsupported for TEXT and BYTE.",
            is_temporary=reason.is_temporary,
            answer=reason.answer,
        ) from None
