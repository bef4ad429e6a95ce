"""Decode records of the data manager: inserted, deleted and updated rows, and undos.

Rule: offsets start after the log manager's header. Records with an undocumented layout are rejected by
number: a skipped row would be silently missing.

     0 u8 component 1    1 u8 function    2 u16 table space    4 u16 table
     6 u16 flags, 0x8000 half of an update in two    12 6 row identifier
    20 the row, of an insert, a delete, and of an update the old one, behind it the new record's own
    header

    the row:  0 u8 kind   2 u16 length   4 u8 1 for user data   6 u16 length of its fixed part   8 the
    data

(IBM, "Data manager log records", and the Apache-licensed samples utilrecov.c and utilrecov.C.)
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from informix_db2.changes import DELETE, INSERT, UPDATE
from informix_db2.refused_bytes import BadDb2Value

COMPONENT = 1
OUT_OF_ROW, UNDO_OUT_OF_ROW = 211, 212
ROW_AT, _ROW_AT_OF_EMPTY_PAGE, HALF_UPDATE = 20, 26, 0x8000
UPDATE_FUNCTION = 163
DMS_BYTES = 18
_DMS = {endian: struct.Struct(endian + "HHH4x6s").unpack_from for endian in "<>"}
_ROW = {endian: struct.Struct(endian + "BxHBxH").unpack_from for endian in "<>"}
NORMAL_ROWS = (0x00, 0x10)
USER_DATA = 1

KINDS = {
    161: (DELETE, ROW_AT),
    162: (INSERT, ROW_AT),
    UPDATE_FUNCTION: (UPDATE, ROW_AT),
    164: (DELETE, _ROW_AT_OF_EMPTY_PAGE),
    165: (INSERT, _ROW_AT_OF_EMPTY_PAGE),
}
UNDONE = {110: INSERT, 111: DELETE, 112: UPDATE, 131: INSERT, 166: DELETE}
# Rows, in a layout that no page gives.
_UNKNOWN = {167: "multi-insert", 168: "undo of a multi-insert", 213: "VECTOR data"}
# Functions that decide something; any other record of the data manager changes no row.
NAMED = {*KINDS, *UNDONE, *_UNKNOWN, OUT_OF_ROW, UNDO_OUT_OF_ROW}


class UserData(NamedTuple):
    """A row's user data, and the size of its fixed part according to the row's header."""

    data: bytes
    fixed_bytes: int


class RowRecord(NamedTuple):
    """A row record; `old` and `new` are None if there is no such row."""

    kind: str
    space: int
    table: int
    rid: bytes
    is_half: bool
    old: UserData | None
    new: UserData | None


class UndoRecord(NamedTuple):
    """Undoes a change of the same row."""

    kind: str
    space: int
    table: int
    rid: bytes


class Function(NamedTuple):
    """A record without a row."""

    number: int


def read_row_record(payload: bytes, endian: str) -> RowRecord | UndoRecord | Function:
    """Read a record of the data manager.

    Raises:
        BadValue: it is not valid, or its layout is undocumented.
    """
    if len(payload) < 6:
        raise BadDb2Value("a data manager record ends inside its header")
    function = payload[1]
    if function in _UNKNOWN:
        raise BadDb2Value(
            f"function {function}, {_UNKNOWN[function]}, has rows in an undocumented layout"
        )
    if function not in KINDS and function not in UNDONE:
        return Function(function)
    if len(payload) < DMS_BYTES:
        raise BadDb2Value("a row record ends before its row identifier")
    space, table, flags, rid = _DMS[endian](payload, 2)
    if function in UNDONE:
        return UndoRecord(UNDONE[function], space, table, rid)
    kind, at = KINDS[function]
    is_half = flags & HALF_UPDATE != 0
    row, end = _row(payload, at, endian)
    if kind != UPDATE:
        return RowRecord(
            kind,
            space,
            table,
            rid,
            is_half,
            row if kind == DELETE else None,
            row if kind == INSERT else None,
        )
    if payload[end : end + 2] != bytes([COMPONENT, function]):
        raise BadDb2Value("an update has no second record after the old row")
    return RowRecord(kind, space, table, rid, is_half, row, _row(payload, end + ROW_AT, endian)[0])


def _row(payload: bytes, at: int, endian: str) -> tuple[UserData | None, int]:
    """Return a row's user data, or None for an internal row, and the end of the row."""
    if at + 8 > len(payload):
        raise BadDb2Value("a row ends inside its header")
    kind, length, form, fixed_bytes = _ROW[endian](payload, at)
    if not 8 <= length <= len(payload) - at:
        raise BadDb2Value("a row's length differs from its record's length")
    if form != USER_DATA:
        return None, at + length
    if kind not in NORMAL_ROWS:
        raise BadDb2Value(f"a row of kind {kind:#04x} does not contain user data")
    return UserData(payload[at + 8 : at + length], fixed_bytes), at + length
