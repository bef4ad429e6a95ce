"""Where records of a z/OS dataset lie in a file: record format VB, as it is transferred.

Rule: a length counts itself; what cannot be a record ends its block, and its value if no sound block
follows. Whether a block's length counts its own four bytes is found out by all blocks: one of the two
ends them where a record ends, which both can never do at once.

    rdw      u16 length with these 4 bytes, u16 zero, body
    bdw_rdw  blocks: u16 length (or 31 bits), u16 zero, then such records
    message  one body a value, without lengths

A second halfword that is not zero is a part of a spanned record, which Log Master does not write.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from typing import NamedTuple

from informix_db2.refused_bytes import ColumnValues, Refusals

FRAMINGS = ("rdw", "bdw_rdw", "message")
_DESCRIPTOR = 4
_descriptor_of = struct.Struct(">HH").unpack_from


class Body(NamedTuple):
    """A record without its descriptor; `first` is where the descriptor begins."""

    first: int
    start: int
    end: int
    number: int


def bodies_of(values: ColumnValues, value: int, framing: str, refusals: Refusals) -> Iterator[Body]:
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


def _records(
    data: bytes, at: int, end: int, number: int, refusals: Refusals
) -> Generator[Body, None, int]:
    while at < end:
        length, rest = _descriptor_of(data, at) if end - at >= _DESCRIPTOR else (0, 0)
        if rest or not _DESCRIPTOR < length <= end - at:
            what = "part of a spanned record" if rest else "not a record, or a truncated one"
            refusals.refuse(at, end, f"{what}: the record descriptor word is not valid for VB", number)
            return number + 1
        yield Body(at, at + _DESCRIPTOR, at + length, number)
        at, number = at + length, number + 1
    return number


def _of_blocks(data: bytes, start: int, end: int, refusals: Refusals) -> Iterator[Body]:
    itself, without = (blocks_of(data, start, end, more) for more in (0, _DESCRIPTOR))
    if itself.filled == without.filled and itself.contents_up_to(end) != without.contents_up_to(end):
        reason = "block lengths match neither with nor without the descriptor word"
        refusals.refuse(start, end, reason, 0)
        return
    blocks, number = max(itself, without, key=lambda each: each.filled), 0
    for first, last in blocks.contents:
        if last > end:
            reason = f"the block is truncated: {end - first} of {last - first} bytes"
            refusals.refuse(first - _DESCRIPTOR, first, reason, number)
        number = yield from _records(data, first, min(last, end), number, refusals)
    if blocks.end < end:
        reason = (
            "not a valid block: its block descriptor word is not valid for VB, or its length is wrong"
        )
        refusals.refuse(blocks.end, end, reason, number)


class LogBlocks(NamedTuple):
    """The blocks that bytes have, if their lengths are read in one of the two ways.

    Attributes:
        contents: of each, without its descriptor; the last one may be cut, and end behind the bytes.
        filled: how many of them end with a record.
        end: the bytes after it are not a block.
    """

    contents: list[tuple[int, int]]
    filled: int
    end: int

    def contents_up_to(self, end: int) -> list[tuple[int, int]]:
        """Return what is there of their contents."""
        return [(first, min(last, end)) for first, last in self.contents]


def blocks_of(data: bytes, at: int, end: int, more: int) -> LogBlocks:
    """Return the blocks of bytes; one with a bad record counts if a sound one follows, or nothing.

    Args:
        data: all bytes.
        at: where the first block begins.
        end: where the last one must end.
        more: what a block's length does not count: 0, or 4 for its own descriptor.
    """
    contents, filled = list[tuple[int, int]](), 0
    while at < end and (content := _block(data, at, end, more)) is not None:
        last = content[1]
        is_filled = last <= end and _is_filled(data, *content)
        if not (is_filled or last >= end):
            follower = _block(data, last, end, more)
            if follower is None or follower[1] > end or not _is_filled(data, *follower):
                break
        contents.append(content)
        filled += is_filled
        at = last
    return LogBlocks(contents, filled, min(at, end))


def _block(data: bytes, at: int, end: int, more: int) -> tuple[int, int] | None:
    """Return where the content of a block lies; None if none begins here."""
    if end - at < _DESCRIPTOR:
        return None
    length, rest = _descriptor_of(data, at)
    if length & 0x8000:
        length, rest = (length & 0x7FFF) << 16 | rest, 0
    first, last = at + _DESCRIPTOR, at + length + more
    return None if rest or last <= first else (first, last)


def _is_filled(data: bytes, at: int, end: int) -> bool:
    """Return whether all bytes are records."""
    while at < end:
        length, rest = _descriptor_of(data, at) if end - at >= _DESCRIPTOR else (0, 0)
        if rest or not _DESCRIPTOR < length <= end - at:
            return False
        at += length
    return True
