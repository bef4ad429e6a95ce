"""Places in the server's log, and what a stream must remember to continue.

Rule: all arithmetic on sequence numbers lives here; everywhere else they are plain integers.

    sequence number := logical log number << 32 | page << 12 | byte in page

Sequence numbers order the records of one transaction, BEGINTX records among themselves and COMMTX
records among themselves, and nothing else (CDC guide, chapter 1, "CDC record sequence numbers").
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from informix_capture_client.errors import BadOption

_LOG_SHIFT = 32
_PAGE_SHIFT = 12
_TEXT = re.compile(r"([0-9]{1,10}):(0x[0-9a-fA-F]{1,8}|[0-9]{1,10})")
_INTEGER = re.compile(r"[0-9]{1,19}")

# A place of a stream: a commit, and how many chunks the stream has passed there. What enters the stream
# between two transactions has no commit of its own, and has its place all the same.
RecordPlace = tuple[int, int]


def log_page(log_number: int, page: int) -> int:
    """Return the sequence number at which a page of a log begins.

    >>> show(log_page(47, 0x5e))
    '47:0x5e000'
    """
    return log_number << _LOG_SHIFT | page << _PAGE_SHIFT


def page_after(sequence_number: int) -> int:
    """Return where the page after a sequence number's begins, for positions that name a page.

    >>> show(page_after(parse("47:0x5e018")))
    '47:0x5f000'
    """
    return ((sequence_number >> _PAGE_SHIFT) + 1) << _PAGE_SHIFT


def log_number(sequence_number: int) -> int:
    """Return the logical log that a sequence number lies in."""
    return sequence_number >> _LOG_SHIFT


def page_number(sequence_number: int) -> int:
    """Return the page of its log that a sequence number lies in, counted from 0."""
    return (sequence_number & 0xFFFFFFFF) >> _PAGE_SHIFT


def show(sequence_number: int) -> str:
    """Print a sequence number the way the server's guide does.

    >>> show(201863847960)
    '47:0x5e018'
    """
    return f"{log_number(sequence_number)}:{sequence_number & 0xFFFFFFFF:#x}"


def parse(text: str) -> int:
    """Read a sequence number: `log:0xpos`, or the plain integer.

    Raises:
        BadOption: the text is neither.

    >>> parse("47:0x5e018") == parse("201863847960")
    True
    """
    place = -1
    if _INTEGER.fullmatch(text):
        place = int(text)
    elif found := _TEXT.fullmatch(text):
        offset = int(found[2], 16 if found[2].startswith("0x") else 10)
        place = int(found[1]) << _LOG_SHIFT | offset if offset >> _LOG_SHIFT == 0 else -1
    if 0 <= place < 1 << 63:
        return place
    raise BadOption(f"{text!r} is not a position.", "Write log:0xposition, or an integer.")


class LogEnd(NamedTuple):
    """Where a log ended, a page added since that is only known within a page, and when that was."""

    position: int
    time: int


UNKNOWN_END = LogEnd(0, 0)


class SettlingRestart(NamedTuple):
    """A restart position that becomes valid once the log has been read up to `log_end`."""

    restart: int
    log_end: int


class DeliveredCommit(NamedTuple):
    """A delivered transaction: its BEGINTX and COMMTX numbers, and the time of its COMMTX."""

    begin: int
    commit: int
    time: int


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the stream from which it can resume without loss or repetition.

    `commit` is the COMMTX sequence number of the last delivered transaction. `restart` is where a new
    session must begin. The pair is valid only if no transaction with captured rows commits above
    `commit` and begins below `restart`. `unseen` lists transactions that were open before the stream
    began; they are left out when they commit. `last_delivered` is the last known transaction with rows
    at or below `commit`: a log that does not contain it is another log. `chunk` counts the chunks that
    the stream has passed; everything in the stream that is not a transaction counts as one.
    """

    commit: int
    restart: int
    unseen: tuple[int, ...] = ()
    last_delivered: DeliveredCommit | None = field(default=None, compare=False)
    chunk: int = 0

    @property
    def place(self) -> RecordPlace:
        """Where in the stream it is; places are ordered by commit and then by chunk."""
        return self.commit, self.chunk

    def behind_chunk(self) -> Position:
        """Return the position behind one more chunk that has no rows."""
        return replace(self, chunk=self.chunk + 1)

    def __str__(self) -> str:
        return f"commit {show(self.commit)}, restart {show(self.restart)}"
