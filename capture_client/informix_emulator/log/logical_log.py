"""The logical log: numbered log files of pages, and the records in them.

    sequence number = log number << 32 | page << 12 | byte in the page

Records are only appended. When a file is full, the next one begins; when there are too many, the oldest
is removed. Methods that change or search the log require the caller to hold `changed`; readers wait on
it. A page begins with a header, so no record is at byte 0 of a page. Readers see flushed records only:
all of them, unless the log has a buffer.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Condition
from typing import NamedTuple

PAGE_HEADER_BYTES = 0x18  # the guide's sample: the first record of its page lies at 0x5e018
MAX_PAGES = 1 << 20


class LongTransactionError(RuntimeError):
    """The log has come round to a file that an open transaction began in.

    A real server rolls such a transaction back before it comes to that.
    """


class LogRecord(NamedTuple):
    """A record of the log. `table` is the partition number of a row's table, else 0.

    `payload` is the row as encoded, or the finished CDC record if the record is not a row.
    """

    place: int
    kind: int
    transaction_id: int
    table: int
    sizes: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class UnreadableEnd:
    """Where reading a log file ends for sessions.

    Attributes:
        index: of the first record that they do not get.
        spared: the sessions that were open before.
        reads_return: with a TIMEOUT record; else they do not return.
    """

    index: int
    spared: frozenset[int]
    reads_return: bool


class EmulatedLogFile:
    """One log file. A reader that holds it can follow `next` when it has read all."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.records: list[LogRecord] = []
        # what sessions have made of the records, in their order, by what the sessions capture
        self.encoded: dict[Hashable, list[bytes | None]] = {}
        self.used_pages = 0
        self.filled_at = 0
        self.is_gone = False
        self.unreadable: UnreadableEnd | None = None
        self.next: EmulatedLogFile | None = None
        self.buffered = 0  # records at its end that are only in the buffer, and cannot be read yet

    @property
    def flushed(self) -> int:
        """How many of its records have left the buffer."""
        return len(self.records) - self.buffered

    @property
    def start(self) -> int:
        """The lowest sequence number that belongs to this file."""
        return self.number << 32


@dataclass(slots=True)
class LogBuffer:
    """The buffer through which records reach readers.

    Attributes:
        size: its bytes; 0: there is none, and records are seen when they are written.
        seconds: the longest that a record stays in it, as a server's checkpoints see to.
    """

    size: int = 0
    seconds: float = float("inf")
    bytes_used: int = 0
    since: float = 0.0

    def takes(self, length: int) -> bool:
        """Whether a record of so many bytes goes into what is left of it."""
        if self.size and self.bytes_used and self.bytes_used + length > self.size:
            return False
        if not self.bytes_used:
            self.since = time.monotonic()
        self.bytes_used += length
        return True

    def is_due(self) -> bool:
        """Whether its oldest record has been in it for too long."""
        return time.monotonic() - self.since >= self.seconds


class LogicalLog:
    """All log files that are still there, oldest first."""

    def __init__(
        self,
        first: int,
        pages: int,
        page_bytes: int,
        count: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not 0 < page_bytes <= 4096 or not 1 < pages <= MAX_PAGES or count < 2 or first < 1:
            raise ValueError("at least 2 logs, from 1 on, of 2 to 0x100000 pages of up to 4096 bytes")
        self.changed = Condition()
        self.pages = pages
        self.page_bytes = page_bytes
        self.count = count
        self.clock = clock
        self.files = [EmulatedLogFile(first)]
        self.may_drop: Callable[[EmulatedLogFile], bool] = lambda _file: True
        self._page = 0
        self._byte = PAGE_HEADER_BYTES
        self._is_placed = False  # the next record lies exactly here, whether it fits or not
        self.buffer = LogBuffer()

    @property
    def current(self) -> EmulatedLogFile:
        """The file that records are added to."""
        return self.files[-1]

    def end(self) -> int:
        """Return the position where the log ends: after every record, not after the next."""
        return self.current.start + (self._page << 12) + self._byte  # byte may be 4096

    def flushed_end(self) -> int:
        """Return the position where that part of the log ends which readers see."""
        file = self.current
        return file.records[file.flushed].place if file.buffered else self.end()

    def flush(self) -> None:
        """Let readers see all records: at a COMMIT, a checkpoint, or when the buffer is full."""
        self.buffer.bytes_used = 0
        if self.current.buffered:
            self.current.buffered = 0
            self.changed.notify_all()

    def flush_if_due(self) -> None:
        """Flush what has been in the buffer for too long."""
        if self.current.buffered and self.buffer.is_due():
            self.flush()

    def reserve(self, length: int) -> int:
        """Return the sequence number of a record of so many bytes and move the end behind it."""
        if not self.buffer.takes(length):
            self.flush()
            self.buffer.takes(length)
        if self._byte + length > self.page_bytes and not self._is_placed:
            self._make_room(length)
        self._is_placed = False
        sequence = self.current.number << 32 | self._page << 12 | self._byte
        self._byte += length
        if self._byte > self.page_bytes:
            self._run_over_pages()
        return sequence

    def add(self, record: LogRecord) -> None:
        """Add a record at the place reserved for it and wake the readers."""
        self.files[-1].records.append(record)
        if self.buffer.size:
            self.files[-1].buffered += 1
        self.changed.notify_all()

    def flush_page(self) -> int:
        """Let the next record begin a page; return how many pages are used before it.

        Where records are in the buffer their page is not one that anybody sees.
        """
        if self.current.buffered:
            return self.begun_pages()
        if self._byte > PAGE_HEADER_BYTES:
            self._next_page()
        return self._page

    def begun_pages(self) -> int:
        """Return how many pages hold something, the one that is being written among them."""
        if self.current.buffered:
            end = self.flushed_end()
            return (end >> 12 & 0xFFFFF) + (end & 0xFFF > PAGE_HEADER_BYTES)
        return self._page + (self._byte > PAGE_HEADER_BYTES)

    def full_pages(self) -> int:
        """Return how many pages lie before the one that is being written."""
        return self.flushed_end() >> 12 & 0xFFFFF if self.current.buffered else self._page

    def switch(self, number: int | None = None) -> EmulatedLogFile:
        """Begin the next log file; ValueError if its number is not above the current one."""
        current = self.current
        number = current.number + 1 if number is None else number
        self.flush()
        if number <= current.number:
            raise ValueError(f"log {number} does not come after log {current.number}")
        self._drop_oldest(keep=self.count - 1)
        current.used_pages = self._page + 1
        current.filled_at = int(self.clock())
        current.next = EmulatedLogFile(number)
        self.files.append(current.next)
        self._page, self._byte = 0, PAGE_HEADER_BYTES
        return current.next

    def move_to(self, position: int) -> None:
        """Let the next record lie at a position, which must not be before the end."""
        page, byte = position >> 12 & 0xFFFFF, position & 0xFFF
        if position < self.end() or page >= self.pages:
            end = self.end()
            raise ValueError(f"{position:#x} is not from the end, {end:#x}, to the end of its log")
        if position >> 32 > self.current.number:
            self._switch_to(position >> 32)
        self._page, self._byte, self._is_placed = page, byte or PAGE_HEADER_BYTES, True

    def cut(self, position: int) -> None:
        """Remove the records at a position and above; the log continues there with others."""
        file, index = self.find(position)
        del self.files[self.files.index(file) + 1 :]
        self.flush()
        del file.records[index:]
        file.encoded.clear()
        file.next = None
        self._page, self._byte = position >> 12 & 0xFFFFF, position & 0xFFF or PAGE_HEADER_BYTES

    def find(self, position: int) -> tuple[EmulatedLogFile, int]:
        """Return file and index of the first record at a position or after it."""
        for file in self.files:
            if position < (file.number + 1) << 32:
                return file, bisect_left(file.records, position, key=lambda record: record.place)
        return self.current, len(self.current.records)

    def _switch_to(self, number: int) -> None:
        untouched = len(self.files) == 1 and not self.current.records
        self.switch(number)
        if untouched:
            del self.files[0]

    def _make_room(self, length: int) -> None:
        """Turn the page, or the file if the rest of it is too short for the record."""
        room = self.page_bytes - PAGE_HEADER_BYTES
        needed = -(-length // room)
        if needed > self.pages:
            raise ValueError(f"a record of {length} bytes is longer than a log file")
        if self._byte > PAGE_HEADER_BYTES:
            self._next_page()
        if self._page + needed > self.pages:
            self.switch()

    def _next_page(self) -> None:
        if self._page + 1 >= self.pages:
            self.switch()
        else:
            self._page, self._byte = self._page + 1, PAGE_HEADER_BYTES

    def _run_over_pages(self) -> None:
        room = self.page_bytes - PAGE_HEADER_BYTES
        more, rest = divmod(self._byte - PAGE_HEADER_BYTES - 1, room)
        self._page, self._byte = self._page + more, PAGE_HEADER_BYTES + rest + 1

    def _drop_oldest(self, keep: int) -> None:
        while len(self.files) > keep:
            oldest = self.files[0]
            if not self.may_drop(oldest):
                raise LongTransactionError(
                    f"log {oldest.number} is needed by an open transaction and cannot be reused"
                )
            oldest.is_gone = True
            del self.files[0]
