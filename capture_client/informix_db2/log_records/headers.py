"""The header of log records, and the fields of a transaction's end.

Rule: offsets are counted from the record's first byte; integers are in the server's byte order.

     0 u32 length of the record      24 u64 log offset of the transaction's record before
     4 u16 type                      32 6   transaction identifier
     6 u16 flags                     38 u16 log stream
     8 u64 LSN                       40     a compensation's: 56 bytes in all, or 64 if it is propagated
    16 u64 LFS

(IBM, "Log manager header", Db2 10.1 and later.)
"""

from __future__ import annotations

import struct
from typing import NamedTuple

SHORTEST = 40
PROPAGATED = 0x0002
COMPENSATION = 0x0043
COMPENSATION_SIZE = 64  # if it is propagated, as all are that are read
COMMITS = {0x0084, 0x0085, 0x0086, 0x0087, 0x008A}
ABORTS = {0x0041, 0x0049}
# The record that opens out-of-row data is for undo only, and its undo is informational.
ROWS_AND_LOBS = {0x004E, 0x0052, 0x0055, 0x0069, COMPENSATION}
LAST_TYPE = 0xFF  # a type is a letter or a small number; in the other byte order it is none
MICROSECONDS = 1_000_000
LATEST_SECOND = 1 << 33  # in the year 2242; more is a time in four bytes, and something else behind it


class Header(NamedTuple):
    """The fields that determine the kind of a record."""

    length: int
    type: int
    flags: int
    lsn: int
    lfs: int
    before: int
    transaction: bytes
    stream: int


HEADER_OF = {endian: struct.Struct(endian + "IHHQQQ6sH") for endian in "<>"}


def commit_microseconds(payload: bytes, endian: str) -> int | None:
    """Return when a transaction was committed, in microseconds since 1970, UTC.

    Manuals document 8 bytes for the seconds, IBM's samples read 4.
    """
    if len(payload) < 4:
        return None
    if len(payload) >= 8:
        seconds = int(struct.unpack_from(endian + "Q", payload)[0])
        if seconds < LATEST_SECOND:
            return seconds * MICROSECONDS
    return int(struct.unpack_from(endian + "I", payload)[0]) * MICROSECONDS
