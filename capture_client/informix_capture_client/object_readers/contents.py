"""Read what an object holds, whole or not at all.

Rule: never half a content. What was read is as long as the server says that the object is, before and
after; one that is changed meanwhile, by its length or its status, is read again. What is not there any
more is `gone`, and no error.

    read        the content, as it was when it was read
    gone        the object has been deleted
    too_large   it has more bytes than are wanted; its size is given, unless it is one of 4 GiB or more
                over a connection that tells four bytes of it
    not_read    nobody asked for it, or there was no more time
    null        there is no object: of a TEXT or BYTE only its row tells that, and it becomes NULL
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from informix_capture_client.errors import ServerRefused
from informix_capture_client.failpoints import failpoint
from informix_capture_client.object_readers.base import ObjectReader, SimpleObject
from informix_capture_client.object_readers.reselecting import ByKey

READ, GONE, TOO_LARGE, NOT_READ, NULL = "read", "gone", "too_large", "not_read", "null"
PIECE_BYTES = 1 << 20  # at a time; servers before 12.10.xC4 give 32,000 bytes (APAR IT00258)
AT_ONCE_BYTES = 8 << 10  # a TEXT or BYTE that is read when its length is asked for
_LEAST_PIECE_BYTES = 32_000  # of an object that goes on, whatever is asked for
_ATTEMPTS = 3  # to read an object that is written into all the time
# Cannot find entry in lohd table; unique ID does not match, probably deleted; bad address, might have
# been deleted (finderr): the ISAM code of -9810, or the number itself.
_GONE = {-12015, -12048, -12097}

_IsLate = Callable[[], bool]
ObjectPlace = bytes | ByKey  # where an object is: its locator, or the row that has it


@dataclass(frozen=True, slots=True)
class Content:
    """What became of reading an object; `data` only of one that was `read`."""

    status: str
    size: int | None = None
    data: bytes | None = None

    @property
    def buffered_bytes(self) -> int:
        """How many bytes of it are in memory."""
        return len(self.data or b"")


UNREAD = Content(NOT_READ)
ContentsByPlace = Mapping[ObjectPlace, Content]


@dataclass(slots=True)
class FoundContents:
    """What has been read for the records at hand.

    Attributes:
        found: contents by where they were.
        unchanged: by table and column, the records whose object is not read since its handle is that of
            before.
    """

    found: ContentsByPlace = field(default_factory=dict)
    unchanged: dict[tuple[int, str], Sequence[int]] = field(default_factory=dict)


class Contents(Protocol):
    """Reads the objects of rows; what it returns is forgotten with the next rows."""

    def begin(self, committed: Collection[int] = frozenset()) -> None:
        """Begin with rows that have waited until now: the time for them counts from here.

        Args:
            committed: the ids of the transactions that have made them; none of rows that were selected.
        """

    def pieces(self, rows: Sequence[Sequence[ObjectPlace]]) -> Iterator[tuple[int, ContentsByPlace]]:
        """Yield how many rows are done, and what is at their places, some rows at a time.

        Raises: what a transport raises; the rows have no contents then.
        """
        ...


@dataclass(slots=True)
class OpenedObject:
    """An object that is open, or of which nothing is to be read."""

    place: ObjectPlace
    descriptor: int = -1
    size: int = 0
    content: Content | None = None
    status_bytes: bytes = b""  # its status when it was opened

    @property
    def buffered_bytes(self) -> int:
        """How many bytes of it are in memory once it is read."""
        return self.size if self.content is None else self.content.buffered_bytes


def try_open(reader: ObjectReader, place: ObjectPlace, most_bytes: int) -> OpenedObject:
    """Open an object that is to be read; one that is gone, or too large, is settled at once."""
    if isinstance(place, ByKey) and place.is_value:
        return _open_by_key(reader, place, most_bytes)
    locator = place if isinstance(place, bytes) else _locator_now(reader, place)
    if locator is None:
        return OpenedObject(place, content=Content(GONE))
    try:
        descriptor = reader.open(locator)
    except ServerRefused as reason:
        if not _is_gone(reason):
            raise
        return OpenedObject(place, content=Content(GONE))
    status = reader.status(descriptor)
    if status.size <= most_bytes:
        return OpenedObject(place, descriptor, status.size, status_bytes=status.status_bytes)
    reader.close(descriptor)
    return OpenedObject(place, content=Content(TOO_LARGE, status.size))


def read_whole(
    reader: ObjectReader, opened: OpenedObject, most_bytes: int, is_late: _IsLate
) -> Content:
    """Return what an open object holds, and close it.

    One whose status is another afterwards counts as read if a second reading gives the same.
    """
    previous: bytearray | None = None
    for _ in range(_ATTEMPTS):
        if opened.content is not None:
            return opened.content
        if isinstance(opened.place, ByKey) and opened.place.is_value:
            return _read_value(reader, opened.place, most_bytes, is_late)
        failpoint("large_objects.before_read")
        data = _bytes_of(reader, opened, is_late)
        now = reader.status(opened.descriptor)
        reader.close(opened.descriptor)
        if data is None:
            return UNREAD
        is_unchanged = now.size == opened.size and (
            now.status_bytes == opened.status_bytes or data == previous
        )
        if is_unchanged and len(data) > now.size:
            return Content(TOO_LARGE)  # the size that is told is not all of its size
        if is_unchanged and len(data) == now.size:
            return Content(READ, now.size, bytes(data))
        previous = data
        opened = try_open(reader, opened.place, most_bytes)  # it was written into meanwhile
    if opened.content is None:
        reader.close(opened.descriptor)
    return opened.content or UNREAD


def _open_by_key(reader: ObjectReader, place: ByKey, most_bytes: int) -> OpenedObject:
    """Ask how long a TEXT or BYTE is, and read it if it is short; there is nothing to keep open."""
    found = reader.simple_object(place.statement, place.arguments, min(most_bytes, AT_ONCE_BYTES))
    size = found.size or 0 if found else 0
    return OpenedObject(place, size=size, content=_settled(found, most_bytes))


def _read_value(reader: ObjectReader, place: ByKey, most_bytes: int, is_late: _IsLate) -> Content:
    """Return a TEXT or BYTE as its row has it now; one that is written all the time is not read."""
    for _ in range(_ATTEMPTS):
        if is_late():
            return UNREAD
        failpoint("large_objects.before_read")
        found = reader.simple_object(place.statement, place.arguments, most_bytes)
        if (content := _settled(found, most_bytes)) is not None:
            return content
    return UNREAD


def _settled(found: SimpleObject | None, most_bytes: int) -> Content | None:
    """Return what became of a TEXT or BYTE; None: it is still to be read, or was not read whole."""
    if found is None:
        return Content(GONE)
    if found.size is None:
        return Content(NULL)
    if found.size > most_bytes:
        return Content(TOO_LARGE, found.size)
    is_whole = found.data is not None and len(found.data) == found.size
    return Content(READ, found.size, found.data) if is_whole else None


def _locator_now(reader: ObjectReader, place: ByKey) -> bytes | None:
    """Return where a row's object is now; None if there is no such row, or no object in it."""
    found = reader.locators(place.statement, place.arguments)
    return found[0] if found else None


def _bytes_of(reader: ObjectReader, opened: OpenedObject, is_late: _IsLate) -> bytearray | None:
    """Return bytes up to the size that was told, or to where the object ends; None: it is too late.

    One byte more is asked for: an object that has it is longer than was told.
    """
    data = bytearray()
    while len(data) <= opened.size:
        if is_late():
            return None
        most = min(PIECE_BYTES, opened.size + 1 - len(data))
        piece = reader.read(opened.descriptor, most)
        data += piece
        is_short = len(piece) < min(most, _LEAST_PIECE_BYTES)
        if not piece or (is_short and len(data) == opened.size):
            break
    return data


def _is_gone(reason: ServerRefused) -> bool:
    answer = reason.answer
    if answer is None:
        return False
    return bool(_GONE & {answer.native, *(native for _, native, _ in answer.diagnostics)})
