"""Values with logical log records to changes: framing, headers, segments, images.

Rule: a change of a row is what was committed; other kinds of records come with their bytes and no row.
The file defines no order: sort by `_commit_lsn`, then by LOGLRSN and LOGRBA of `_header`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from informix_capture_client.errors import BadOption
from informix_db2.changes import (
    DELETE,
    INSERT,
    UPDATE,
    Db2Changes,
    Image,
    IntArray,
    only,
    with_nulls,
)
from informix_db2.code_pages import placed_bytes
from informix_db2.declared_tables import DeclaredTable
from informix_db2.logical_log.framing import bodies_of
from informix_db2.logical_log.header import HEADER, RecordHeaders
from informix_db2.logical_log.images import READINGS, images_at, readings_that_fit
from informix_db2.logical_log.records import RecordReader, Records
from informix_db2.logical_log.settings import LogicalLogSettings
from informix_db2.logical_log.table_rows import ImageReader
from informix_db2.refused_bytes import ColumnValues, Refusals
from informix_db2.text_values import moments, read_what_can_be

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
Sides = tuple[list[Image], list[Image]]
_UNKNOWN = "unknown"
_COMMITTED, _UNDO = "C", "U"
# Codes of the page's fields A1 and 6B for what was taken back: aborted; to a savepoint, reversed.
_TAKEN_BACK = {"UORDISP": ("A",), "LOGRECDISP": ("A", "S", "O")}
TOGETHER_RECORDS = 16_384


class _Known(NamedTuple):
    """What is known of records before their images are read: a file is read in one way.

    Attributes:
        kinds: insert, update, ...; unknown for a code that is none.
        is_skipped: whether a record is not to be delivered.
        tables: the place of its table among those declared, -1 for none.
        values: the value it comes from.
        ordinals: its place in this value; an update counts as two.
    """

    kinds: pa.Array
    is_skipped: np.ndarray
    tables: IntArray
    values: IntArray
    ordinals: IntArray

    @property
    def is_row(self) -> np.ndarray:
        """Whether a record is about a row."""
        return np.asarray(pc.is_in(self.kinds, value_set=pa.array(_ROWS)))

    @property
    def rows(self) -> IntArray:
        """The records whose images are read."""
        return np.flatnonzero(self.is_row & ~self.is_skipped)

    def some(self, which: slice) -> _Known:
        """Return what is known of some records that follow on each other."""
        return _Known(*(column[which] for column in self))


class LogicalLogReader:
    """Makes changes of logical log records."""

    def __init__(self, settings: LogicalLogSettings, tables: tuple[DeclaredTable, ...]) -> None:
        settings.require_graphic_encoding(tables)
        self._settings = settings
        self._page = settings.header_page
        self._records = RecordReader(settings.control_file.layout, self._page)
        self._tables = [ImageReader(table, settings.row_form) for table in tables]
        ids = settings.ids or {}
        self._names = pa.array([_known_as(table.name, ids) for table in tables], pa.string())
        declared = [table.name if table.name in ids else None for table in tables]
        self._names_by_ids = pa.array(declared, pa.string())

    def finish(self, refusals: Refusals) -> Iterator[Db2Changes | None]:
        """Yield nothing: no file waits for another one."""
        yield from ()

    def changes(self, values: ColumnValues, refusals: Refusals) -> Iterator[Db2Changes | None]:
        """Yield the changes of each value; None where bytes were refused only.

        Raises:
            ProtocolViolation: a record is bad, and bad ones are not to come as rows.
        """
        framing, everything = self._settings.framing, range(len(values.names))
        for group in [everything] if framing == "message" else [[value] for value in everything]:
            bodies = [body for value in group for body in bodies_of(values, value, framing, refusals)]
            if (records := self._records.records(values, bodies, refusals)) is not None:
                known = self._known(values, records)
                way, reason = self._way(records, known)
                for part in _parts(len(records.bodies)):
                    yield self._read(records.some(part), known.some(part), way, reason, refusals)
            yield None

    def _known(self, values: ColumnValues, records: Records) -> _Known:
        headers = records.headers
        kinds = _kinds(headers.texts("CHANGETYPE")[0])
        of = values.which(np.array([body.start for body in records.bodies], np.int64))
        found = _Known(
            kinds, self._skipped(headers), self._tables_of(headers), of, _ordinals(of, kinds)
        )
        if not self._tables or self._settings.other_tables == "fail":
            return found
        return found._replace(is_skipped=found.is_skipped | (found.is_row & (found.tables < 0)))

    def _way(self, records: Records, known: _Known) -> tuple[str | None, str]:
        """Return the one way to read lengths that fits the whole file, or None and which do."""
        if self._settings.image_length != "auto":
            return self._settings.image_length, ""
        rows = known.rows
        is_update = np.asarray(pc.equal(known.kinds, UPDATE))[rows]
        ways = readings_that_fit(records.data, records.starts[rows], records.sizes[rows], is_update)
        way = ways[0] if len(ways) == 1 else self._way_of_rows(records, known, ways)
        return way, f"matching values of image_length: {' and '.join(ways) or 'none'}"

    def _way_of_rows(self, records: Records, known: _Known, ways: list[str]) -> str | None:
        """Return the way in which most rows can be decoded; several, if they give the same rows."""
        bad_counts = dict.fromkeys(ways, 0)
        differing = set[tuple[str, str]]()
        for part in _parts(len(records.bodies)):
            tried = {way: self._decoded(records.some(part), known.some(part), way) for way in ways}
            for way, (_, bad) in tried.items():
                bad_counts[way] += len(bad)
            differing |= {
                pair for pair in combinations(ways, 2) if not _same(*(tried[way][0] for way in pair))
            }
        best = [way for way in ways if bad_counts[way] == min(bad_counts.values())]
        return best[0] if best and not differing & set(combinations(best, 2)) else None

    def _read(
        self, records: Records, known: _Known, way: str | None, reason: str, refusals: Refusals
    ) -> Db2Changes | None:
        header, wrong = records.headers.struct()
        # A header has a long name shortened, in a way in which two names may become one.
        names = pc.coalesce(self._names_by_ids.take(with_nulls(known.tables)), _names(records.headers))
        self._note_unknown(known, header, names, wrong)
        images = self._images(records, known, way, reason, wrong)
        exchanges = self._exchanges(records, known.kinds, wrong)
        stays = ~known.is_skipped
        for place in sorted(wrong):
            if stays[place]:
                for body in records.parts[place]:
                    refusals.refuse(body.first, body.end, wrong[place], body.number)
        stays[list(wrong)] = False
        kept = np.flatnonzero(stays)
        if not len(kept):
            return None
        is_row = known.is_row
        others = np.where(is_row, 0, records.sizes)
        data = pc.if_else(pa.array(~is_row), placed_bytes(records.data, records.starts, others), None)
        about = _about(header, names, known.ordinals) | {"_data": data, "_exchange": exchanges}
        kinds = known.kinds
        if len(kept) < len(kinds):
            taken = pa.array(kept)
            kinds, about = kinds.take(taken), {name: a.take(taken) for name, a in about.items()}
        return Db2Changes(kinds, *only(images, kept, len(known.kinds)), about, known.values[kept])

    def _images(
        self, records: Records, known: _Known, way: str | None, reason: str, wrong: dict[int, str]
    ) -> Sides:
        if way is None:
            for place in known.rows.tolist():
                wrong.setdefault(place, reason)
            known, way = known._replace(is_skipped=np.ones(len(known.kinds), bool)), "exclusive"
        images, bad = self._decoded(records, known, way)
        for place, what in bad.items():
            wrong.setdefault(place, what)
        return images

    def _note_unknown(
        self, known: _Known, header: pa.StructArray, names: pa.Array, wrong: dict[int, str]
    ) -> None:
        for place in np.flatnonzero(np.asarray(pc.equal(known.kinds, _UNKNOWN))).tolist():
            code = header.field("CHANGETYPE")[place]
            wrong.setdefault(place, f"change type {code} is unknown")
        for name in _TAKEN_BACK if self._settings.rolled_back == "skip" else ():
            codes = pc.fill_null(header.field(name), "")
            is_known = pc.equal(codes, _COMMITTED)
            # What belongs to no unit of recovery, such as a command, has no disposition.
            is_known = pc.or_(is_known, pc.and_(pc.equal(codes, ""), pa.array(~known.is_row)))
            for place in np.flatnonzero(~np.asarray(is_known) & ~known.is_skipped).tolist():
                wrong.setdefault(place, f"disposition {name} {codes[place].as_py()!r} is unknown")
        if self._tables:
            for place in known.rows[known.tables[known.rows] < 0].tolist():
                wrong.setdefault(place, f"table {names[place]} is not declared")

    def _skipped(self, headers: RecordHeaders) -> np.ndarray:
        """Tell which records are not of what was committed.

        That an UNDO record takes back, and is no change of its own, is inferred from its name.
        """
        sql = headers.texts("SQLTYPE")[0]
        if self._settings.rolled_back == "rows":
            return np.zeros(len(sql), bool)
        is_skipped = np.asarray(pc.fill_null(pc.equal(sql, _UNDO), False))
        for name, codes in _TAKEN_BACK.items():
            is_skipped = is_skipped | np.asarray(
                pc.is_in(headers.texts(name)[0], value_set=pa.array(codes))
            )
        return is_skipped

    def _tables_of(self, headers: RecordHeaders) -> IntArray:
        numbers = (pa.array(headers.numbers(name)) for name in ("DBID", "PSID", "TBOBID"))
        ids = pc.binary_join_element_wise(*(number.cast(pa.string()) for number in numbers), ".")
        found = pc.coalesce(
            pc.index_in(ids, value_set=self._names),
            pc.index_in(_names(headers), value_set=self._names),
        )
        return np.asarray(pc.fill_null(found, -1)).astype(np.int64)

    def _decoded(self, records: Records, known: _Known, way: str) -> tuple[Sides, dict[int, str]]:
        """Find images in one way and decode them; return what is wrong with some."""
        rows = known.rows
        is_update, is_insert = (
            np.asarray(pc.equal(known.kinds, kind))[rows] for kind in (UPDATE, INSERT)
        )
        found = images_at(
            records.data, records.starts[rows], records.sizes[rows], is_update, READINGS[way]
        )
        bad = {
            int(place): f"the lengths of its images do not match the record ({way})"
            for place in rows[~found.fits]
        }
        second = is_update.astype(np.int64)
        sides: Sides = ([], [])
        for side, is_there, which in (
            (sides[0], ~is_insert, 0 * second),
            (sides[1], is_insert | is_update, second),
        ):
            for number in range(max(len(self._tables), 1)):
                is_mine = (known.tables[rows] == number) | (not self._tables)
                mine = np.flatnonzero(is_there & found.fits & is_mine)
                starts = np.where(which == 1, found.starts[1], found.starts[0])[mine]
                sizes = np.where(which == 1, found.sizes[1], found.sizes[0])[mine]
                if self._tables:
                    images, errors = self._tables[number].read(records.data, starts, sizes)
                    for row, reason in errors.items():
                        bad.setdefault(int(rows[mine[row]]), reason)
                else:
                    images = placed_bytes(records.data, starts, sizes)
                side.append(Image(rows[mine], images))
        return sides, bad

    def _exchanges(self, records: Records, kinds: pa.Array, wrong: dict[int, str]) -> pa.Array:
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
                wrong.setdefault(place, "an exchange's names are not text")
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


def _parts(count: int) -> Iterator[slice]:
    for first in range(0, count, TOGETHER_RECORDS):
        yield slice(first, first + TOGETHER_RECORDS)


def _same(one: Sides, other: Sides) -> bool:
    first, second = ([image.rows for side in sides for image in side] for sides in (one, other))
    return first == second


def _kinds(codes: pa.Array) -> pa.Array:
    known = pc.index_in(codes, value_set=pa.array(list(KINDS), pa.string()))
    return pc.fill_null(pa.array(list(KINDS.values()), pa.string()).take(known), _UNKNOWN)


def _names(headers: RecordHeaders) -> pa.Array:
    owner, name = (headers.texts(field)[0] for field in ("TABLEOWNER", "TABLENAME"))
    return pc.binary_join_element_wise(owner, name, ".")


def _known_as(name: str, ids: Mapping[str, str]) -> str:
    given = ids.get(name, name)
    if name in ids and re.fullmatch(r"\d{1,5}\.\d{1,5}\.\d{1,5}", given) is None:
        raise BadOption(
            f"ids: {given!r} of {name} is not of the form DBID.PSID.TBOBID, such as 256.2.3."
        )
    return given


def _ordinals(of: IntArray, kinds: pa.Array) -> IntArray:
    """Number rows in their value; an update counts as two."""
    counts = 1 + np.asarray(pc.equal(kinds, UPDATE)).astype(np.int64)
    before = np.cumsum(counts) - counts
    ordinals: IntArray = before - before[np.searchsorted(of, of)]
    return ordinals


def _about(header: pa.StructArray, names: pa.Array, ordinals: IntArray) -> dict[str, pa.Array]:
    times = pc.utf8_slice_codeunits(header.field("UORCOMMITTIMESTAMP"), 0, 26)
    committed, _ = read_what_can_be(times, moments, pa.timestamp("us"))
    member = header.field("MEMBERID").cast(pa.string())
    return {
        "_commit_lsn": header.field("UORCOMMITLRSN"),
        "_commit_timestamp": committed.cast(pa.timestamp("us", "UTC")),
        "_change_ordinal": pa.array(ordinals),
        "_transaction_id": pc.binary_join_element_wise(
            header.field("SYSTEMID"), member, header.field("UORID"), "."
        ),
        "_table": names,
        "_header": header,
    }
