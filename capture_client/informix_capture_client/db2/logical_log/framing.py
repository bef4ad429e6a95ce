"""Where records of a z/OS dataset lie in a file: record format VB, as it is transferred.

Rule: a length counts itself; what cannot be a record ends its value. Whether a block's length counts
its own four bytes is found out by the whole file: one of the two must end every block where a record
ends.

    rdw      u16 length with these 4 bytes, u16 zero, body
    bdw_rdw  blocks: u16 length (or 31 bits), u16 zero, then such records
    message  one body a value, without lengths

A second halfword that is not zero is a part of a spanned record, which Log Master does not write.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from informix_capture_client.db2.refused_bytes import Refusals, Values

FRAMINGS = ("rdw", "bdw_rdw", "message")
_DESCRIPTOR = 4
_descriptor_of = struct.Struct(">HH").unpack_from


class Body(NamedTuple):
    """A record without its descriptor; `first` is where the descriptor begins."""

    first: int
    start: int
    end: int
    number: int


def bodies_of(values: Values, value: int, framing: str, refusals: Refusals) -> Iterator[Body]:
    """Yield the records of a value.

    Raises:
        ProtocolViolation: bytes are none, and bad ones are not to come as rows.
    """
    start, end = values.bounds[value : value + 2].tolist()
    if start == end:
        return
    if framing == "message":
        yield Body(start, start, end, 0)
    elif framing == "rdw":
        yield from _records(values.data, start, end, 0, refusals)
    else:
        yield from _of_blocks(values.data, start, end, refusals)


def _records(data: bytes, at: int, end: int, number: int, refusals: Refusals) -> Iterator[Body]:
    while at < end:
        length, rest = _descriptor_of(data, at) if end - at >= _DESCRIPTOR else (0, 0)
        if rest or not _DESCRIPTOR < length <= end - at:
            what = "part of a spanned record" if rest else "no record begins here, or it is cut"
            refusals.refuse(at, end, f"{what}: the record descriptor word is not that of VB", number)
            return
        yield Body(at, at + _DESCRIPTOR, at + length, number)
        at, number = at + length, number + 1


def _of_blocks(data: bytes, start: int, end: int, refusals: Refusals) -> Iterator[Body]:
    found = [blocks for more in (0, _DESCRIPTOR) if (blocks := blocks_of(data, start, end, more))]
    if len(found) != 1:
        fit = "neither fits" if not found else "both fit"
        reason = f"blocks whose length counts itself, or does not: {fit}"
        refusals.refuse(start, end, reason, 0)
        return
    number = 0
    for first, last in found[0]:
        for body in _records(data, first, last, number, refusals):
            yield body
            number = body.number + 1


def blocks_of(data: bytes, at: int, end: int, more: int) -> list[tuple[int, int]] | None:
    """Return the content of each block, or None where a block does not end with a record.

    Args:
        data: all bytes.
        at: where the first block begins.
        end: where the last one must end.
        more: what a block's length does not count: 0, or 4 for its own descriptor.
    """
    blocks = []
    while at < end:
        if end - at < _DESCRIPTOR:
            return None
        length, rest = _descriptor_of(data, at)
        if length & 0x8000:
            length, rest = (length & 0x7FFF) << 16 | rest, 0
        last = at + length + more
        if rest or last > end or not _is_filled(data, at + _DESCRIPTOR, last):
            return None
        blocks.append((at + _DESCRIPTOR, last))
        at = last
    return blocks


def _is_filled(data: bytes, at: int, end: int) -> bool:
    if at >= end:
        return False
    while at < end:
        length, rest = _descriptor_of(data, at) if end - at >= _DESCRIPTOR else (0, 0)
        if rest or not _DESCRIPTOR < length <= end - at:
            return False
        at += length
    return True
