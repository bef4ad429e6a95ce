"""One connection by which large objects are read, opened when the first of them is.

Rule: first all that it is given are opened, then they are read one by one: an open object stays,
whatever becomes of its row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from informix_capture_client.errors import AccessRefused, InformixCdcError, ServerRefused
from informix_capture_client.large_objects import (
    UNREAD,
    Content,
    ObjectReader,
    Opened,
    Place,
    object_reader,
    read_whole,
    try_open,
)
from informix_capture_client.transport import Transport

IsLate = Callable[[], bool]


class ObjectConnection:
    """Opens and reads objects; used by one thread at a time.

    Args:
        connect: connects to the captured database.
        most_bytes: of an object that is read.
    """

    def __init__(self, connect: Callable[[], Transport], most_bytes: int) -> None:
        self._connect, self._most_bytes = connect, most_bytes
        self._transport: Transport | None = None
        self._reader: ObjectReader | None = None
        self._open: dict[Place, Opened] = {}

    def close(self) -> None:
        """End the connection, and with it whatever is open."""
        self._open.clear()
        if self._transport is not None:
            self._transport.close()
        self._transport = self._reader = None

    def let_go(self) -> None:
        """Close objects that were opened and not read, as where rows in front of them were refused."""
        if not self._open:
            return
        try:
            reader = self._known_reader()
            for opened in self._open.values():
                if opened.content is None and opened.descriptor >= 0:
                    reader.close(opened.descriptor)
            self._open.clear()
        except InformixCdcError:
            self.close()

    def open(self, places: Sequence[Place], is_late: IsLate) -> dict[Place, Opened]:
        """Open objects and return them; those for which it is too late are left unopened.

        Raises:
            ConnectionLost: the connection broke.
            ServerRefused: the server does not open objects; the remedy says what to do.
        """
        with explained():
            for place in places:
                self._open[place] = (
                    Opened(place, content=UNREAD)
                    if is_late()
                    else try_open(self._known_reader(), place, self._most_bytes)
                )
        return {place: self._open[place] for place in places}

    def read(self, places: Sequence[Place], is_late: IsLate) -> dict[Place, Content]:
        """Read objects that were opened, and close them.

        Raises: as `open`.
        """
        with explained():
            return {place: self._read(place, is_late) for place in places}

    def _read(self, place: Place, is_late: IsLate) -> Content:
        reader = self._known_reader()
        opened = self._open.pop(place, None)
        if opened is None:  # it was read for other rows, and is asked for once more
            if is_late():
                return UNREAD
            opened = try_open(reader, place, self._most_bytes)
        return read_whole(reader, opened, self._most_bytes, is_late)

    def _known_reader(self) -> ObjectReader:
        if self._reader is None:
            self._transport = self._connect()
            self._reader = object_reader(self._transport)
        return self._reader


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Let a refusal say that it is of a large object."""
    try:
        yield
    except (AccessRefused, ServerRefused) as reason:
        raise type(reason)(
            f"the content of a large object cannot be read: {reason.message}",
            "Look the number up with finderr. To go on without contents: lobs=handle for BLOB and CLOB,"
            " simpleLobs=unsupported for TEXT and BYTE.",
            is_temporary=reason.is_temporary,
            answer=reason.answer,
        ) from None
