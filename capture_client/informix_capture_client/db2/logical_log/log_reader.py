"""Values with logical log records to changes: framing, headers, segments, images.

Rule: a change of a row is what was committed; other kinds of records come with their bytes and no row.
The file defines no order: sort by `_commit_lsn`, then by LOGLRSN and LOGRBA of `_header`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from informix_capture_client.db2.binary_values import fields_of, numbers_of
from informix_capture_client.db2.changes import DELETE, INSERT, UPDATE, Changes, Image, Integers
from informix_capture_client.db2.code_pages import placed_bytes
from informix_capture_client.db2.declared_tables import DeclaredTable
from informix_capture_client.db2.logical_log.framing import Body, bodies_of
from informix_capture_client.db2.logical_log.header import HEADER, SIZE, Headers
from informix_capture_client.db2.logical_log.images import READINGS, images_at, readings_that_fit
from informix_capture_client.db2.logical_log.segments import Part, Whole, joined
from informix_capture_client.db2.logical_log.settings import LogicalLogSettings
from informix_capture_client.db2.logical_log.table_rows import TableRows
from informix_capture_client.db2.refused_bytes import Refusals, Values
from informix_capture_client.db2.text_values import moments, read_what_can_be
from informix_capture_client.errors import BadOption

KINDS = {
    "UB": UPDATE,
    "I": INSERT,
    "IL": INSERT,
    "D": DELETE,
    "DM": "mass_delete",
    "DT": "truncate",
    "DR": "truncate",
    "CO": "ddl",
    "E": "exchange",
    "CM": "command",
    "SC": "status",
}
_ROWS = (UPDATE, INSERT, DELETE)
_EXCHANGE = pa.struct([("owner", pa.string()), ("name", pa.string())])
MORE = {"_data": pa.binary(), "_exchange": _EXCHANGE, "_header": HEADER}
UNDECLARED = pa.binary()
_COMMITTED = "C"
_SAME_RECORD = (
    *("SYSTEMID", "MEMBERID", "UORID", "LOGLRSN", "LOGRBA", "RID"),
    *("CHANGETYPE", "DBID", "PSID", "TBOBID"),
)


class _Records(NamedTuple):
    """Records of a value: bodies, where their payload lies in `data`, and their headers."""

    data: np.ndarray
    bodies: list[Body]
    starts: Integers
    sizes: Integers
    headers: Headers
    parts: list[tuple[Body, ...]]


class LogicalLogReader:
    """Makes changes of logical log records."""

    def __init__(self, settings: LogicalLogSettings, tables: tuple[DeclaredTable, ...]) -> None:
        self._settings = settings
        self._layout = settings.control_file.layout
        self._page = settings.header_page
        self._tables = [TableRows(table, settings.row_form) for table in tables]
        ids = settings.ids or {}
        self._names = pa.array([_known_as(table.name, ids) for table in tables], pa.string())

    def finish(self, refusals: Refusals) -> Iterator[Changes | None]:
        """Yield nothing: no file waits for another one."""
        yield from ()

    def changes(self, values: Values, refusals: Refusals) -> Iterator[Changes | None]:
        """Yield the changes of each value; None where bytes were refused only.

        Raises:
            ProtocolViolation: a record is bad, and bad ones are not to come as rows.
        """
        together = self._settings.framing == "message"
        for group in (
            [range(len(values.names))] if together else [[v] for v in range(len(values.names))]
        ):
            bodies = [
                body
                for value in group
                for body in bodies_of(values, value, self._settings.framing, refusals)
            ]
            if (records := self._records(values, bodies, refusals)) is not None:
                yield self._read(values, records, refusals)
            yield None

    def _records(self, values: Values, bodies: list[Body], refusals: Refusals) -> _Records | None:
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
            return _Records(data, bodies, starts, ends - starts, headers, [(body,) for body in bodies])
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
    ) -> _Records | None:
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

    def _lined_up(self, values: Values, rest: list[tuple[Body, int]], whole: list[Whole]) -> _Records:
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
        return _Records(
            data,
            [line[0] for line in lines],
            np.array([line[1] for line in lines], np.int64),
            np.array([line[2] for line in lines], np.int64),
            Headers(data, firsts, self._layout, self._page),
            [line[3] for line in lines],
        )

    def _read(self, values: Values, records: _Records, refusals: Refusals) -> Changes | None:
        header, wrong = records.headers.struct()
        kinds = _kinds(header.field("CHANGETYPE"), wrong)
        is_row = np.asarray(pc.is_in(kinds, value_set=pa.array(_ROWS)))
        is_skipped = self._skipped(header)
        names = _names(header)
        tables = self._tables_of(names, header)
        if self._tables:
            is_unknown = is_row & ~is_skipped & (tables < 0)
            if self._settings.other_tables == "skip":
                is_skipped = is_skipped | is_unknown
            else:
                for place in np.flatnonzero(is_unknown).tolist():
                    wrong.setdefault(place, f"table {names[place]} is not declared")
        rows = np.flatnonzero(is_row & ~is_skipped)
        befores, afters = self._images(records, kinds, rows, tables, wrong)
        exchanges = self._exchanges(records, kinds, wrong)
        for place in sorted(wrong):
            if not is_skipped[place]:
                for body in records.parts[place]:
                    refusals.refuse(body.first, body.end, wrong[place], body.number)
        kept = np.array(
            [p for p in range(len(kinds)) if not is_skipped[p] and p not in wrong], np.int64
        )
        if not len(kept):
            return None
        moved = np.full(len(kinds), -1, np.int64)
        moved[kept] = np.arange(len(kept))
        others = np.where(is_row, 0, records.sizes)
        data = pc.if_else(pa.array(~is_row), placed_bytes(records.data, records.starts, others), None)
        of = values.which(np.array([body.start for body in records.bodies], np.int64))
        about = _about(header, names, _ordinals(of, kinds)) | {"_data": data, "_exchange": exchanges}
        taken = pa.array(kept)
        nothing_bad = pa.nulls(len(kept), pa.binary()), pa.nulls(len(kept), pa.string())
        return Changes(
            kinds.take(taken),
            [_kept(image, moved) for image in befores],
            [_kept(image, moved) for image in afters],
            {name: array.take(taken) for name, array in about.items()},
            of[kept],
            *nothing_bad,
        )

    def _skipped(self, header: pa.StructArray) -> np.ndarray:
        if self._settings.rolled_back == "rows":
            return np.zeros(len(header), bool)
        is_kept = pc.and_(
            pc.equal(header.field("UORDISP"), _COMMITTED),
            pc.equal(header.field("LOGRECDISP"), _COMMITTED),
        )
        return ~np.asarray(pc.fill_null(is_kept, False))

    def _tables_of(self, names: pa.Array, header: pa.StructArray) -> Integers:
        ids = pc.binary_join_element_wise(
            *(header.field(name).cast(pa.string()) for name in ("DBID", "PSID", "TBOBID")), "."
        )
        found = pc.coalesce(
            pc.index_in(ids, value_set=self._names), pc.index_in(names, value_set=self._names)
        )
        return np.asarray(pc.fill_null(found, -1)).astype(np.int64)

    def _images(
        self,
        records: _Records,
        kinds: pa.Array,
        rows: Integers,
        tables: Integers,
        wrong: dict[int, str],
    ) -> tuple[list[Image], list[Image]]:
        """Find images and decode them; a file is read in one way."""
        is_update = np.asarray(pc.equal(kinds, UPDATE))[rows]
        starts, sizes = records.starts[rows], records.sizes[rows]
        ways = [self._settings.image_length]
        if ways == ["auto"]:
            ways = readings_that_fit(records.data, starts, sizes, is_update)
        tried = [self._decoded(records, kinds, rows, tables, way) for way in ways]
        fewest = min((len(bad) for _, _, bad in tried), default=0)
        best = [each for each in tried if len(each[2]) == fewest]
        if not best or (len(best) > 1 and not _same(best)):
            which = " and ".join(ways) if best else "none"
            for place in rows.tolist():
                wrong.setdefault(place, f"of the ways to read the lengths of images {which} fit")
            best = [self._decoded(records, kinds, rows[:0], tables, "exclusive")]
        befores, afters, bad = best[0]
        for place, reason in bad.items():
            wrong.setdefault(place, reason)
        return befores, afters

    def _decoded(
        self, records: _Records, kinds: pa.Array, rows: Integers, tables: Integers, way: str
    ) -> tuple[list[Image], list[Image], dict[int, str]]:
        is_update, is_insert = (np.asarray(pc.equal(kinds, kind))[rows] for kind in (UPDATE, INSERT))
        found = images_at(
            records.data, records.starts[rows], records.sizes[rows], is_update, READINGS[way]
        )
        bad = {
            int(place): f"the lengths of its images do not end where the record ends ({way})"
            for place in rows[~found.fits]
        }
        second = is_update.astype(np.int64)
        sides: tuple[list[Image], list[Image]] = ([], [])
        for side, is_there, which in (
            (sides[0], ~is_insert, 0 * second),
            (sides[1], is_insert | is_update, second),
        ):
            for number in range(max(len(self._tables), 1)):
                chosen = is_there & found.fits & ((tables[rows] == number) | (not self._tables))
                mine = np.flatnonzero(chosen)
                starts = np.where(which == 1, found.starts[1], found.starts[0])[mine]
                sizes = np.where(which == 1, found.sizes[1], found.sizes[0])[mine]
                if self._tables:
                    images, errors = self._tables[number].read(records.data, starts, sizes)
                    for row, reason in errors.items():
                        bad.setdefault(int(rows[mine[row]]), reason)
                else:
                    images = placed_bytes(records.data, starts, sizes)
                side.append(Image(rows[mine], images))
        return *sides, bad

    def _exchanges(self, records: _Records, kinds: pa.Array, wrong: dict[int, str]) -> pa.Array:
        found: list[dict[str, str] | None] = [None] * len(kinds)
        for place in np.flatnonzero(
            np.asarray(pc.fill_null(pc.equal(kinds, "exchange"), False))
        ).tolist():
            start = int(records.starts[place])
            payload = records.data[start : start + int(records.sizes[place])].tobytes()
            names = _clone_names(payload)
            if names is None:
                wrong.setdefault(place, "an exchange has no owner and name of a clone table")
                continue
            texts, bad = self._page.texts_and_bad(pa.array(names, pa.binary()))
            if bad:
                wrong.setdefault(place, "an exchange's names are no texts")
                continue
            found[place] = dict(zip(("owner", "name"), texts.to_pylist(), strict=True))
        return pa.array(found, _EXCHANGE)


def _clone_names(payload: bytes) -> tuple[bytes, bytes] | None:
    """Return owner and name; a total in front, with itself or without, is passed over."""
    found = set()
    total = int.from_bytes(payload[:2], "big")
    for at in [0, *([2] if len(payload) >= 2 and total in (len(payload), len(payload) - 2) else [])]:
        first = int.from_bytes(payload[at : at + 2], "big")
        second_at = at + 2 + first
        second = int.from_bytes(payload[second_at : second_at + 2], "big")
        if second_at + 2 <= len(payload) == second_at + 2 + second:
            found.add((payload[at + 2 : second_at], payload[second_at + 2 :]))
    return found.pop() if len(found) == 1 else None


def _same(found: list[tuple[list[Image], list[Image], dict[int, str]]]) -> bool:
    first = [image.rows for side in found[0][:2] for image in side]
    return all([image.rows for side in other[:2] for image in side] == first for other in found[1:])


def _kinds(codes: pa.Array, wrong: dict[int, str]) -> pa.Array:
    known = pc.index_in(codes, value_set=pa.array(list(KINDS), pa.string()))
    kinds = pa.array(list(KINDS.values()), pa.string()).take(known)
    for place in np.flatnonzero(np.asarray(kinds.is_null())).tolist():
        wrong.setdefault(place, f"change type {codes[place]} is none that is known")
    return pc.fill_null(kinds, "unknown")


def _names(header: pa.StructArray) -> pa.Array:
    return pc.binary_join_element_wise(header.field("TABLEOWNER"), header.field("TABLENAME"), ".")


def _known_as(name: str, ids: Mapping[str, str]) -> str:
    given = ids.get(name, name)
    if name in ids and re.fullmatch(r"\d{1,5}\.\d{1,5}\.\d{1,5}", given) is None:
        raise BadOption(f"ids: {given!r} of {name} is not DBID.PSID.TBOBID, such as 256.2.3.")
    return given


def _ordinals(of: Integers, kinds: pa.Array) -> pa.Array:
    """Number rows in their value; an update counts as two."""
    counts = 1 + np.asarray(pc.equal(kinds, UPDATE)).astype(np.int64)
    before = np.cumsum(counts) - counts
    firsts = np.searchsorted(of, of)
    return pa.array(before - before[firsts])


def _about(header: pa.StructArray, names: pa.Array, ordinals: pa.Array) -> dict[str, pa.Array]:
    times = pc.utf8_slice_codeunits(header.field("UORCOMMITTIMESTAMP"), 0, 26)
    committed, _ = read_what_can_be(times, moments, pa.timestamp("us"))
    member = header.field("MEMBERID").cast(pa.string())
    return {
        "_commit_lsn": header.field("UORCOMMITLRSN"),
        "_commit_timestamp": committed.cast(pa.timestamp("us", "UTC")),
        "_change_ordinal": ordinals,
        "_transaction_id": pc.binary_join_element_wise(
            header.field("SYSTEMID"), member, header.field("UORID"), "."
        ),
        "_table": names,
        "_header": header,
    }


def _kept(image: Image, moved: Integers) -> Image:
    changes = moved[image.changes]
    stays = np.flatnonzero(changes >= 0)
    return Image(changes[stays], image.rows.take(pa.array(stays)))
