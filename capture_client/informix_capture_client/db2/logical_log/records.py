"""Records of a value: what their headers say of their own size, and segments put together.

Rule: a record is whole here, whatever parts it was written in; the payload of one that was in parts
lies behind all other bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from informix_capture_client.db2.binary_values import fields_of, numbers_of
from informix_capture_client.db2.changes import Integers
from informix_capture_client.db2.code_pages import CodePage
from informix_capture_client.db2.logical_log.framing import Body
from informix_capture_client.db2.logical_log.header import SIZE, Field, Headers
from informix_capture_client.db2.logical_log.segments import Part, Whole, joined
from informix_capture_client.db2.refused_bytes import Refusals, Values

_SAME_RECORD = (
    *("SYSTEMID", "MEMBERID", "UORID", "LOGLRSN", "LOGRBA", "RID"),
    *("CHANGETYPE", "DBID", "PSID", "TBOBID"),
)


class Records(NamedTuple):
    """Records of a value: bodies, where their payload lies in `data`, and their headers."""

    data: np.ndarray
    bodies: list[Body]
    starts: Integers
    sizes: Integers
    headers: Headers
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

    def records(self, values: Values, bodies: list[Body], refusals: Refusals) -> Records | None:
        """Read headers, and put segments together behind all other bytes."""
        data = np.frombuffer(values.data, np.uint8)
        least = max(field.at + field.width for field in self._layout.values())
        found = []
        for body, size in zip(bodies, self._header_sizes(data, bodies), strict=True):
            if least <= size <= body.end - body.start and least >= SIZE:
                found.append((body, size))
            else:
                reason = (
                    f"a header of {size} bytes, where {least} are known, or more than the record has"
                )
                refusals.refuse(body.first, body.end, reason, body.number)
        if not found:
            return None
        bodies = [body for body, _ in found]
        sizes = np.array([size for _, size in found], np.int64)
        firsts = np.array([body.start for body in bodies], np.int64)
        ends = np.array([body.end for body in bodies], np.int64)
        headers = Headers(data, firsts, self._layout, self._page)
        parts = np.flatnonzero(headers.numbers("TOTALSEGS") > 1)
        if not len(parts):
            starts = firsts + sizes
            return Records(data, bodies, starts, ends - starts, headers, [(body,) for body in bodies])
        return self._with_segments(values, refusals, found, headers, parts)

    def _header_sizes(self, data: np.ndarray, bodies: list[Body]) -> list[int]:
        """Return what headers say of their own length; 0 of a record that ends before it."""
        sizes, at = np.zeros(len(bodies), np.int64), self._layout["LENGTH"].at
        starts = np.array([body.start for body in bodies], np.int64) + at
        is_there = starts + 2 <= np.array([body.end for body in bodies], np.int64)
        fields = fields_of(data, starts[is_there], 2)
        sizes[is_there] = numbers_of(fields, "u2", "big").astype(np.int64)
        found: list[int] = sizes.tolist()
        return found

    def _with_segments(
        self,
        values: Values,
        refusals: Refusals,
        found: list[tuple[Body, int]],
        headers: Headers,
        parts: Integers,
    ) -> Records | None:
        keys = [headers.raw(name) for name in _SAME_RECORD]
        totals, numbers = headers.numbers("TOTALSEGS"), headers.numbers("SEGNUM")
        seglens = headers.numbers("SEGLEN")
        pieces = [
            Part(
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

    def _lined_up(self, values: Values, rest: list[tuple[Body, int]], whole: list[Whole]) -> Records:
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
            Headers(data, firsts, self._layout, self._page),
            [line[3] for line in lines],
        )
