"""Records that Log Master wrote in parts, put together.

Rule: each part has a whole header and says which of how many it is. A record of which a part is
missing, or comes twice, is refused with all its parts.

The page does not say what SEGLEN counts. Only where it, and a halfword of the same size in front of a
part's data, can be nothing but a length of the part itself, these two bytes are taken off.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from informix_db2.logical_log.framing import Body

_Key = tuple[object, ...]


class RecordPart(NamedTuple):
    """A part of a record."""

    key: _Key
    body: Body
    header_size: int
    total: int
    number: int
    seglen: int


class Whole(NamedTuple):
    """A record that was in parts: where its first part is, and what follows its header."""

    body: Body
    payload: bytes
    parts: tuple[Body, ...]


class Refusal(NamedTuple):
    """Parts that make no record."""

    parts: tuple[Body, ...]
    reason: str


def joined(parts: Iterable[RecordPart], data: bytes) -> tuple[list[Whole], list[Refusal]]:
    """Put parts together, whatever their order; a record stands where its last part came."""
    groups: dict[_Key, list[RecordPart]] = {}
    for part in parts:
        groups.setdefault(part.key, []).append(part)
    whole: list[Whole] = []
    refused: list[Refusal] = []
    for group in groups.values():
        in_order = sorted(group, key=lambda part: part.number)
        bodies = tuple(part.body for part in sorted(group, key=lambda part: part.body.start))
        if reason := _fault_of(in_order):
            refused.append(Refusal(bodies, reason))
            continue
        pieces = [_payload(part, data) for part in in_order]
        if any(piece is None for piece in pieces):
            refused.append(Refusal(bodies, "SEGLEN is none of the lengths that a segment has"))
            continue
        whole.append(
            Whole(bodies[-1], b"".join(piece for piece in pieces if piece is not None), bodies)
        )
    return sorted(whole, key=lambda each: each.body.start), refused


def _fault_of(parts: list[RecordPart]) -> str:
    total, first = parts[0].total, parts[0].number
    numbers = [part.number for part in parts]
    if len({part.total for part in parts}) > 1:
        return "segments of one record name different totals"
    if first in (0, 1) and numbers == list(range(first, first + total)):
        return ""
    if len(set(numbers)) < len(numbers):
        return "a segment came twice"
    return f"{len(numbers)} of {total} segments came"


def _payload(part: RecordPart, data: bytes) -> bytes | None:
    body = part.body
    payload = data[body.start + part.header_size : body.end]
    size, whole = len(payload), body.end - body.start
    if part.seglen in (0, size, whole, whole + 4):
        return payload
    if part.seglen == size - 2 and int.from_bytes(payload[:2], "big") in (size, size - 2):
        return payload[2:]
    return None
