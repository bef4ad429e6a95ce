"""Decode records of the LOB manager, and the structure of strings that do not fit in their row.

Rule: pieces of a value are concatenated in the order of the log. Their offset is a position in the
storage object, not in the value, as far as documented, and is not used.

     0 u8 component 5        8 u16 parent object     24 1  internal
     1 u8 operation         10 2   internal          25 u8 original operation
     2 u16 table space      12 u32 length            26 u16 column, from 0; 65535 strings of the row
     4 u16 object           16 u64 offset            28 4  internal
     6 u16 parent space                              32 data

    0x12  size u24 (big endian)  offset u32 of each column and one more  data

(IBM, "LOB manager log records".)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from informix_db2.refused_bytes import BadDb2Value

COMPONENT = 5
ADD_DATA, ADD_AMOUNT, DELETE_DATA, NOT_UPDATED = 64, 65, 66, 67
OPERATIONS = {ADD_DATA: "add", ADD_AMOUNT: "amount", DELETE_DATA: "delete", NOT_UPDATED: "unchanged"}
ORIGINAL = {1: "insert", 2: "delete", 4: "update", 8: "concat"}
ADDED = (ADD_DATA, ADD_AMOUNT)
STRINGS_COLUMN = 65535
_HEADER, _BODY = 12, 32
_EYE_CATCHER = 0x12

OffsetOrder = Literal["little", "big"]


class LobRecord(NamedTuple):
    """A record; `data` is None if it has none."""

    operation: int
    parent: tuple[int, int]
    length: int
    offset: int
    original: int
    column: int
    data: bytes | None


def read_lob_record(payload: bytes, endian: str) -> LobRecord:
    """Read a record of the LOB manager.

    Raises:
        BadValue: it is not valid, or its data is truncated.
    """
    if len(payload) < _HEADER:
        raise BadDb2Value("a LOB manager record ends inside its header")
    operation = payload[1]
    parent = struct.unpack_from(endian + "HH", payload, 6)
    if operation not in OPERATIONS:
        raise BadDb2Value(f"LOB manager operation {operation} is not 64 to 67")
    if operation == NOT_UPDATED or (operation == DELETE_DATA and len(payload) < _BODY):
        # The page gives no body of 67, and of 66 the original operation and the column only.
        original = 2 if operation == DELETE_DATA else 4
        return LobRecord(operation, parent, 0, 0, original, STRINGS_COLUMN, None)
    if len(payload) < _BODY:
        raise BadDb2Value("a LOB manager record ends inside its body")
    length, offset, original, column = struct.unpack_from(endian + "IQxBH", payload, _HEADER)
    if original not in ORIGINAL:
        raise BadDb2Value(f"original operation {original} is not 1, 2, 4 or 8")
    if operation == ADD_DATA and _BODY + length > len(payload):
        raise BadDb2Value("a LOB manager record ends inside its data")
    has_data = operation in (ADD_DATA, DELETE_DATA) and _BODY + length <= len(payload)
    data = payload[_BODY : _BODY + length] if has_data else None
    return LobRecord(operation, parent, length, offset, original, column, data)


@dataclass(slots=True)
class LobValue:
    """Pieces of one value: same column, operation and original operation.

    `status` is complete, appended (data was appended to the old value), not_logged (its length is
    known), unchanged, or old (the value that a delete or update removed).
    """

    column: int
    operation: int
    original: int
    length: int
    pieces: list[bytes | None]

    @property
    def status(self) -> str:
        """The number of bytes of the value in the log."""
        if self.operation == ADD_AMOUNT:
            return "not_logged"
        if self.operation == NOT_UPDATED:
            return "unchanged"
        if self.operation == DELETE_DATA:
            return "old"
        return "appended" if ORIGINAL[self.original] == "concat" else "complete"

    @property
    def data(self) -> bytes | None:
        """The bytes, if the log has all of them."""
        if self.operation == NOT_UPDATED or any(piece is None for piece in self.pieces):
            return None
        return b"".join([piece for piece in self.pieces if piece is not None])


# By column, operation and original operation, in the order of the log.
LobValues = dict[tuple[int, int, int], LobValue]


def add_piece(values: LobValues, record: LobRecord) -> None:
    """Append a record to the others of its value."""
    key = (record.column, record.operation, record.original)
    if (value := values.get(key)) is None:
        value = values[key] = LobValue(*key, 0, [])
    value.length += record.length
    value.pieces.append(record.data)


def strings_of(structure: bytes, columns: int, orders: Sequence[OffsetOrder]) -> list[bytes]:
    """Return the string of each column; empty if the row contains it.

    Args:
        structure: the value of column 65535.
        columns: how many columns the table had.
        orders: possible byte orders of the offsets; exactly one must fit.

    Raises:
        BadValue: none fits, or two fit and differ.
    """
    size = int.from_bytes(structure[1:4], "big")
    if len(structure) < 4 or structure[0] != _EYE_CATCHER or size != len(structure):
        raise BadDb2Value("column 65535 does not start with 0x12 and its size")
    base = 4 + 4 * (columns + 1)
    if base > size:
        raise BadDb2Value(f"column 65535 has no offsets for {columns} columns")
    found: list[list[bytes]] = []
    for order in orders:
        endian = "<" if order == "little" else ">"
        offsets = struct.unpack_from(f"{endian}{columns + 1}I", structure, 4)
        is_growing = all(first <= second for first, second in pairwise(offsets))
        if offsets[0] == 0 and is_growing and offsets[-1] == size - base:
            strings = [structure[base + a : base + b] for a, b in pairwise(offsets)]
            if strings not in found:
                found.append(strings)
    if len(found) != 1:
        fit = "none" if not found else "both"
        raise BadDb2Value(f"column 65535: {fit} byte orders of its offsets match {columns} columns")
    return found[0]
