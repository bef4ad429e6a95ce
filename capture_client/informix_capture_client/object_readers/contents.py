"""Read the content of an object, completely or not at all.

Rule: never a partial content. A content has the size that the server reports before and after the read;
an object whose size or status changes meanwhile is read again. A deleted object is `gone`, which is not
an error.

    read        the content at the time of the read
    gone        the object has been deleted
    too_large   it exceeds the size limit; its size is delivered, unless it is 4 GiB or more
                over a connection that reports a 4-byte size
    not_read    it was not requested, or time ran out
    null        there is no object: for a TEXT or BYTE only known from its row; it becomes NULL
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
_LEAST_PIECE_BYTES = 32_000  # of an object that has more, even if less is asked for
_ATTEMPTS = 3  # to read an object that is written into all the time
# Cannot find entry in lohd table; unique ID does not match, probably deleted; bad address, might have
# been deleted (finderr): the ISAM code of -9810, or the number itself.
_GONE = {-12015, -12048, -12097}

_IsLate = Callable[[], bool]
ObjectPlace = bytes | ByKey  # where an object is: its locator, or the row that has it


@dataclass(frozen=True, slots=True)
class Content:
    """The result of reading an object; `data` is set only if it was `read`."""

    status: str
    size: int | None = None
    data: bytes | None = None

    @property
    def buffered_bytes(self) -> int:
        """The bytes in memory."""
        return len(self.data or b"")


UNREAD = Content(NOT_READ)
ContentsByPlace = Mapping[ObjectPlace, Content]


@dataclass(slots=True)
class FoundContents:
    """The contents that were read for the current records.

    Attributes:
        found: contents by place.
    """

    found: ContentsByPlace = field(default_factory=dict)


class Contents(Protocol):
    """Reads the objects of rows; the result is valid until the next rows."""

    def begin(self, committed: Collection[int] = frozenset()) -> None:
        """Start a batch of rows: the time limit counts from here.

        Args:
            committed: the ids of their transactions; empty for snapshot rows.
        """

    def pieces(self, rows: Sequence[Sequence[ObjectPlace]]) -> Iterator[tuple[int, ContentsByPlace]]:
        """Yield the number of processed rows with the contents at their places, some rows at a time.

        Raises: what a transport raises; the rows have no contents then.
        """
        ...


@dataclass(slots=True)
class OpenedObject:
    """An open object, or one that needs no reading."""

    place: ObjectPlace
    descriptor: int = -1
    size: int = 0
    content: Content | None = None
    status_bytes: bytes = b""  # its status when it was opened

    @property
    def buffered_bytes(self) -> int:
        """The bytes in memory once it is read."""
        return self.size if self.content is None else self.content.buffered_bytes


def try_open(reader: ObjectReader, place: ObjectPlace, most_bytes: int) -> OpenedObject:
    """Open an object; for a deleted or too large one return its result at once."""
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
    """Return the content of an open object, and close it.

    If the status changed during the read, a second read must return the same content.
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
            return Content(TOO_LARGE)  # the reported size is less than its real size
        if is_unchanged and len(data) == now.size:
            return Content(READ, now.size, bytes(data))
        previous = data
        opened = try_open(reader, opened.place, most_bytes)  # it was written into meanwhile
    if opened.content is None:
        reader.close(opened.descriptor)
    return opened.content or UNREAD


def _open_by_key(reader: ObjectReader, place: ByKey, most_bytes: int) -> OpenedObject:
    """Query the size of a TEXT or BYTE, and read it if it is short; nothing stays open."""
    found = reader.simple_object(place.statement, place.arguments, min(most_bytes, AT_ONCE_BYTES))
    size = found.size or 0 if found else 0
    return OpenedObject(place, size=size, content=_settled(found, most_bytes))


def _read_value(reader: ObjectReader, place: ByKey, most_bytes: int, is_late: _IsLate) -> Content:
    """Return the current value of a TEXT or BYTE; give up if it keeps changing."""
    for _ in range(_ATTEMPTS):
        if is_late():
            return UNREAD
        failpoint("large_objects.before_read")
        found = reader.simple_object(place.statement, place.arguments, most_bytes)
        if (content := _settled(found, most_bytes)) is not None:
            return content
    return UNREAD


def _settled(found: SimpleObject | None, most_bytes: int) -> Content | None:
    """Return the result for a TEXT or BYTE; None if it must still be read."""
    if found is None:
        return Content(GONE)
    if found.size is None:
        return Content(NULL)
    if found.size > most_bytes:
        return Content(TOO_LARGE, found.size)
    is_whole = found.data is not None and len(found.data) == found.size
    return Content(READ, found.size, found.data) if is_whole else None


def _locator_now(reader: ObjectReader, place: ByKey) -> bytes | None:
    """Return the current locator of a row's object; None without a row or object."""
    found = reader.locators(place.statement, place.arguments)
    return found[0] if found else None


def _bytes_of(reader: ObjectReader, opened: OpenedObject, is_late: _IsLate) -> bytearray | None:
    """Return the bytes up to the reported size or the object's end; None if time ran out.

    One more byte is requested, to detect an object that is longer than reported.
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
