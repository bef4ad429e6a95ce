"""Records of a value: what their headers say of their own size, and segments put together.

Rule: a record is whole here, regardless of its parts; the payload of one that was in parts
lies behind all other bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from informix_db2.binary_values import fields_of, numbers_of
from informix_db2.changes import IntArray
from informix_db2.code_pages import CodePage
from informix_db2.logical_log.framing import Body
from informix_db2.logical_log.header import Field, RecordHeaders
from informix_db2.refused_bytes import ColumnValues, Refusals

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
    """Assemble parts in any order; a record is where its last part arrived."""
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
            refused.append(Refusal(bodies, "SEGLEN is not a valid length of a segment"))
            continue
        whole.append(
            Whole(bodies[-1], b"".join(piece for piece in pieces if piece is not None), bodies)
        )
    return sorted(whole, key=lambda each: each.body.start), refused


def _fault_of(parts: list[RecordPart]) -> str:
    total, first = parts[0].total, parts[0].number
    numbers = [part.number for part in parts]
    if len({part.total for part in parts}) > 1:
        return "segments of one record have different totals"
    if first in (0, 1) and numbers == list(range(first, first + total)):
        return ""
    if len(set(numbers)) < len(numbers):
        return "a segment occurs twice"
    return f"{len(numbers)} of {total} segments found"


def _payload(part: RecordPart, data: bytes) -> bytes | None:
    body = part.body
    payload = data[body.start + part.header_size : body.end]
    size, whole = len(payload), body.end - body.start
    if part.seglen in (0, size, whole, whole + 4):
        return payload
    if part.seglen == size - 2 and int.from_bytes(payload[:2], "big") in (size, size - 2):
        return payload[2:]
    return None


_SAME_RECORD = (
    *("SYSTEMID", "MEMBERID", "UORID", "LOGLRSN", "LOGRBA", "RID"),
    *("CHANGETYPE", "DBID", "PSID", "TBOBID"),
)


class Records(NamedTuple):
    """Records of a value: bodies, where their payload lies in `data`, and their headers."""

    data: np.ndarray
    bodies: list[Body]
    starts: IntArray
    sizes: IntArray
    headers: RecordHeaders
    parts: list[tuple[Body, ...]]

    def some(self, which: slice) -> Records:
        """Return some that follow on each other."""
        return Records(
            self.data,
            self.bodies[which],
            self.starts[which],
            self.sizes[which],
            self.headers.some(which),
            self.parts[which],
        )


class RecordReader:
    """Makes records of bodies."""

    def __init__(self, layout: Mapping[str, Field], page: CodePage) -> None:
        self._layout = layout
        self._page = page

    def records(self, values: ColumnValues, bodies: list[Body], refusals: Refusals) -> Records | None:
        """Read headers, and put segments together behind all other bytes."""
        data = np.frombuffer(values.data, np.uint8)
        least = max(field.at + field.width for field in self._layout.values())
        _, starts, ends, _ = np.array(bodies, np.int64).reshape(-1, 4).T
        sizes = self._header_sizes(data, starts, ends)
        is_good = (least <= sizes) & (sizes <= ends - starts)
        for place in np.flatnonzero(~is_good).tolist():
            body, known = bodies[place], f"fewer than {least}, or more than the record has"
            reason = f"a header of {sizes[place]} bytes, {known}"
            refusals.refuse(body.first, body.end, reason, body.number)
        if not is_good.any():
            return None
        if not is_good.all():
            bodies = [bodies[place] for place in np.flatnonzero(is_good)]
            starts, ends, sizes = starts[is_good], ends[is_good], sizes[is_good]
        headers = RecordHeaders(data, starts, self._layout, self._page)
        parts = np.flatnonzero(headers.numbers("TOTALSEGS") > 1)
        if len(parts):
            found = list(zip(bodies, sizes.tolist(), strict=True))
            return self._with_segments(values, refusals, found, headers, parts)
        begins = starts + sizes
        return Records(data, bodies, begins, ends - begins, headers, [(body,) for body in bodies])

    def _header_sizes(self, data: np.ndarray, starts: IntArray, ends: IntArray) -> IntArray:
        """Return what headers say of their own length; 0 of a record that ends before it."""
        sizes, at = np.zeros(len(starts), np.int64), starts + self._layout["LENGTH"].at
        is_there = at + 2 <= ends
        sizes[is_there] = numbers_of(fields_of(data, at[is_there], 2), "u2", "big").astype(np.int64)
        return sizes

    def _with_segments(
        self,
        values: ColumnValues,
        refusals: Refusals,
        found: list[tuple[Body, int]],
        headers: RecordHeaders,
        parts: IntArray,
    ) -> Records | None:
        keys = [headers.raw(name) for name in _SAME_RECORD]
        totals, numbers = headers.numbers("TOTALSEGS"), headers.numbers("SEGNUM")
        seglens = headers.numbers("SEGLEN")
        pieces = [
            RecordPart(
                (int(values.which_one(found[p][0].start)), *(key[p].tobytes() for key in keys)),
                *(found[p][0], found[p][1], int(totals[p]), int(numbers[p]), int(seglens[p])),
            )
            for p in parts.tolist()
        ]
        whole, refused = joined(pieces, values.data)
        for each, reason in refused:
            for body in each:
                refusals.refuse(body.first, body.end, reason, body.number)
        is_part = set(parts.tolist())
        rest = [pair for place, pair in enumerate(found) if place not in is_part]
        return self._lined_up(values, rest, whole) if rest or whole else None

    def _lined_up(
        self, values: ColumnValues, rest: list[tuple[Body, int]], whole: list[Whole]
    ) -> Records:
        extra = b"".join(each.payload for each in whole)
        data = np.frombuffer(values.data + extra, np.uint8)
        ends = np.cumsum([len(each.payload) for each in whole])
        behind = [
            (w.body, len(values.data) + int(end) - len(w.payload), len(w.payload), w.parts)
            for w, end in zip(whole, ends, strict=True)
        ]
        plain = [
            (body, body.start + size, body.end - body.start - size, (body,)) for body, size in rest
        ]
        lines = sorted([*plain, *behind], key=lambda line: line[0].start)
        firsts = np.array([line[0].start for line in lines], np.int64)
        return Records(
            data,
            [line[0] for line in lines],
            np.array([line[1] for line in lines], np.int64),
            np.array([line[2] for line in lines], np.int64),
            RecordHeaders(data, firsts, self._layout, self._page),
            [line[3] for line in lines],
        )
