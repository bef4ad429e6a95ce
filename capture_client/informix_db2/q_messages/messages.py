"""Delimited messages to changes: windows of a buffer, records of a window, rows of a table.

Rule: a record is delivered or refused, and every byte belongs to one of them, or is the delimiter of an
empty one. Behind a record that is not sound, reading goes on where a record begins again, within its
message.

A window grows with what was sound and begins small behind what was not, so that any bytes cost a time
that grows with their number only.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from informix_db2.changes import (
    DELETE,
    INSERT,
    UPDATE,
    Db2Changes,
    Image,
    IntArray,
    only,
)
from informix_db2.code_pages import CodePage
from informix_db2.declared_tables import DeclaredTable
from informix_db2.q_messages.header import (
    FIELDS,
    HEADER,
    MessageHeaders,
    quoting_is_right,
    read_headers,
)
from informix_db2.q_messages.rows import MessageRows, undeclared_rows
from informix_db2.q_messages.settings import QMessageSettings
from informix_db2.q_messages.tokens import Delimiters, MessageTokens, tokenize
from informix_db2.refused_bytes import ColumnValues, Refusals

WINDOW_BYTES = 1 << 20
_FIRST_WINDOW_BYTES = 1 << 12
_Bools = NDArray[np.bool_]
_Images = tuple[list[Image], list[Image]]

MORE = {"_segment": pa.int32(), "_is_last_segment": pa.bool_(), "_header": HEADER}


@dataclass(slots=True)
class _Progress:
    """How far the last value is read: its records, and its rows, which are numbered."""

    value: int = -1
    records: int = 0
    rows: int = 0

    def numbers(self, values: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
        """Number records in their values, and their rows, of which `counts` is how many each has."""
        begins = np.concatenate([[True], values[1:] != values[:-1]])
        firsts = np.flatnonzero(begins)
        group = np.cumsum(begins) - 1
        rows_before = np.cumsum(counts) - counts
        records = np.arange(len(values)) - firsts[group]
        rows = rows_before - rows_before[firsts[group]]
        if values[0] == self.value:
            records[group == 0] += self.records
            rows[group == 0] += self.rows
        self.value = int(values[-1])
        self.records, self.rows = int(records[-1]) + 1, int(rows[-1] + counts[-1])
        return records, rows


@dataclass(slots=True)
class _Window:
    """The records of a window: bounds, value, and what is wrong with them."""

    values: ColumnValues
    tokens: MessageTokens
    starts: IntArray
    ends: IntArray
    of: IntArray
    wrong: dict[int, str]

    @property
    def size_bytes(self) -> int:
        """How many bytes its records have."""
        return int(self.ends[-1] - self.starts[0])

    def add_reasons(self, records: IntArray, wrong: Mapping[int, str]) -> None:
        """Take note of what is wrong with some of these records; the first reason counts."""
        for place, reason in wrong.items():
            self.wrong.setdefault(int(records[place]), reason)

    def add_reason(self, records: IntArray, reason: str) -> None:
        """Take note of what is wrong with all of these records."""
        for record in records.tolist():
            self.wrong.setdefault(record, reason)


class MessageReader:
    """Makes changes of messages; each value is one message, or a file of them."""

    def __init__(self, settings: QMessageSettings, tables: tuple[DeclaredTable, ...]) -> None:
        self._settings = settings
        self._encoding = settings.encoding_of_tokens
        self._delimiters = settings.delimiters
        self._beginning = _beginning(self._encoding, self._delimiters)
        self._marks_of_print = _marks_of_print(self._encoding)
        sources = settings.code_pages_of_digits
        self._readers = [
            MessageRows(table, self._encoding, settings.point, sources) for table in tables
        ]
        self._names = pa.array([table.name for table in tables], pa.string())

    def changes(self, values: ColumnValues, refusals: Refusals) -> Iterator[Db2Changes | None]:
        """Yield the changes of values, in order; None where bytes were refused only.

        Raises:
            ProtocolViolation: a record is bad, and bad ones are not to come as rows.
        """
        progress, held, buffered_bytes = _Progress(), list[_Window](), 0
        for window in self._windows(values):
            if held and buffered_bytes + window.size_bytes > WINDOW_BYTES:
                yield self._read(_joined(held), progress, refusals)
                held, buffered_bytes = [], 0
            held.append(window)
            buffered_bytes += window.size_bytes
        if held:
            yield self._read(_joined(held), progress, refusals)

    def finish(self, refusals: Refusals) -> Iterator[Db2Changes | None]:
        """Yield nothing: no message waits for another one."""
        yield from ()

    def _windows(self, values: ColumnValues) -> Iterator[_Window]:
        """Yield all records, in order: those of a window, or some that no window can be of."""
        data, at, size = np.frombuffer(values.data, np.uint8), 0, WINDOW_BYTES
        while at < len(data):
            tokens = tokenize(data[at : at + size], self._delimiters)
            window, is_cut = self._window(tokens, at, values)
            if len(window.starts):
                at = int(window.ends[-1])
                yield window
            if is_cut or not (len(window.starts) or self._may_be_longer(at, size, values)):
                refused = self._refused(at, values)
                at, size = int(refused.ends[-1]), _FIRST_WINDOW_BYTES
                yield refused
            elif not len(window.starts) or size < WINDOW_BYTES:
                size *= 2

    def _window(self, tokens: MessageTokens, at: int, values: ColumnValues) -> tuple[_Window, bool]:
        """Return the records from here on, and whether some are left, as they may be cut wrongly.

        A record that is not sound goes up to where one begins again. Where it was cut there, too, those
        behind it were cut rightly; else they are not looked at.
        """
        ends = tokens.ends + at
        starts = np.concatenate([[at], ends])[: len(ends)]
        of, count, wrong = values.which(starts), len(ends), dict[int, str]()
        is_sound = tokens.is_sound & (of == values.which(ends - 1))
        for place in np.flatnonzero(~is_sound).tolist():
            start, end = int(starts[place]), int(ends[place])
            if self._stop(start, values) != end:
                count = place
                break
            wrong[place] = self._reason(values.data[start:end])
        window = _Window(values, tokens, starts[:count], ends[:count], of[:count], wrong)
        return window, count < len(ends)

    def _stop(self, at: int, values: ColumnValues) -> int:
        """Return where a record begins again behind this place, or where its value ends."""
        end = int(values.bounds[values.which_one(at) + 1])
        found = self._beginning.search(values.data, at, end)
        return found.end(1) if found else end

    @staticmethod
    def _may_be_longer(at: int, size: int, values: ColumnValues) -> bool:
        return at + size < int(values.bounds[values.which_one(at) + 1])

    def _refused(self, at: int, values: ColumnValues) -> _Window:
        """Return what begins here, and what is not sound right behind it, as records without fields."""
        value, bounds, reasons = values.which_one(at), [at, self._stop(at, values)], list[str]()
        end = int(values.bounds[value + 1])
        while True:
            reasons.append(self._reason(values.data[bounds[-2] : bounds[-1]]))
            if bounds[-1] == end or bounds[-1] - at >= WINDOW_BYTES:
                break
            stop = self._stop(bounds[-1], values)
            if stop == end or not self._has_open_string(values.data[bounds[-1] : stop]):
                break
            bounds.append(stop)
        starts, ends = np.array(bounds[:-1]), np.array(bounds[1:])
        nothing = MessageTokens(
            *(ends, np.zeros(len(bounds), np.int64), pa.array([], pa.binary())),
            *(np.zeros(0, bool), np.zeros(len(ends), bool)),
        )
        return _Window(
            values, nothing, starts, ends, np.full(len(ends), value), dict(enumerate(reasons))
        )

    def _has_open_string(self, data: bytes) -> bool:
        """Return whether the bytes before a start are one record with an unterminated string.

        The string delimiter of the beginning would end it, and IBM stands behind that: no field is so.
        """
        record, string = bytes([self._delimiters.record]), bytes([self._delimiters.string])
        return data.count(record) == 1 and data.count(string) % 2 == 1

    def _reason(self, data: bytes) -> str:
        """Say what is wrong with a record; quotation marks of print look right, and are named."""
        if any(mark in data for mark in self._marks_of_print):
            return "a field is quoted with a typographic quotation mark instead of the string delimiter"
        string, end = bytes([self._delimiters.string]), bytes([self._delimiters.record])
        if data.count(string) % 2 or not data.endswith(end):
            return "its delimiter is missing, or a field has a string delimiter in its middle"
        return "a field is only partly quoted, or has a string delimiter in its middle"

    def _read(self, window: _Window, progress: _Progress, refusals: Refusals) -> Db2Changes | None:
        tokens, counts = window.tokens, np.diff(window.tokens.first_fields)[: len(window.starts)]
        firsts = tokens.first_fields[:-1][: len(window.starts)]
        is_empty = (counts == 1) & (window.ends - window.starts == 1)
        is_read = ~is_empty
        is_read[np.array(list(window.wrong), np.int64)] = False
        chosen = np.flatnonzero(is_read & (counts >= FIELDS))
        window.add_reason(np.flatnonzero(is_read & (counts < FIELDS)), "fewer than 12 fields")
        places = (firsts[chosen, None] + np.arange(FIELDS)).ravel()
        fields = tokens.values.take(pa.array(places))
        is_right = quoting_is_right(tokens.is_quoted[places].reshape(-1, FIELDS), fields)
        window.add_reason(chosen[~is_right], "a header field is quoted wrongly")
        headers = read_headers(fields, self._encoding)
        window.add_reasons(chosen, headers.wrong)
        is_update = np.zeros(len(counts), np.int64)
        is_update[chosen] = np.asarray(pc.fill_null(pc.equal(headers.kinds, UPDATE), False))
        numbers, rows = progress.numbers(window.of, np.where(is_read, 1 + is_update, 0))
        images = self._images(window, headers, chosen, firsts[chosen] + FIELDS, counts[chosen] - FIELDS)
        for record in sorted(window.wrong):
            refusals.refuse(
                int(window.starts[record]),
                int(window.ends[record]),
                window.wrong[record],
                int(numbers[record]),
            )
        return _changes(window, headers, chosen, rows, images, self._is_skipped(headers))

    def _is_skipped(self, headers: MessageHeaders) -> _Bools:
        if self._settings.other_tables == "fail" or not self._readers:
            return np.zeros(len(headers.kinds), bool)
        return np.asarray(pc.is_null(pc.index_in(headers.tables, value_set=self._names)))

    def _images(
        self,
        window: _Window,
        headers: MessageHeaders,
        chosen: IntArray,
        fields: IntArray,
        counts: IntArray,
    ) -> _Images:
        """Decode the fields behind the header, before values and after values."""
        is_insert, is_delete = (_is(headers.kinds, kind) for kind in (INSERT, DELETE))
        half, is_odd = counts // 2, counts % 2 == 1
        is_cut = is_odd & ~self._ends_in_nothing(window.tokens, fields + counts - 1, is_odd)
        window.add_reason(chosen[is_cut], "the numbers of before and after values differ")
        filled = np.concatenate([[0], np.cumsum(np.asarray(window.tokens.values.is_valid()))])
        has_before = filled[fields + half] > filled[fields]
        has_after = filled[fields + 2 * half] > filled[fields + half]
        window.add_reason(chosen[is_insert & has_before], "insert with before values")
        window.add_reason(chosen[is_delete & has_after], "delete with after values")
        before, after = np.flatnonzero(~is_insert), np.flatnonzero(~is_delete)
        if not self._readers:
            sides = ((before, fields), (after, fields + half))
            both = [[self._undeclared(window, chosen, s, f[s], half[s])] for s, f in sides]
            return both[0], both[1]
        return self._declared(window, headers, chosen, fields, half, (~is_insert, ~is_delete))

    @staticmethod
    def _ends_in_nothing(tokens: MessageTokens, last: IntArray, is_odd: _Bools) -> _Bools:
        """Return whether the last field is NULL: a column delimiter precedes the record's."""
        is_null = np.asarray(tokens.values.is_null())
        return np.where(is_odd, is_null[last], False)

    def _undeclared(
        self, window: _Window, chosen: IntArray, side: IntArray, fields: IntArray, counts: IntArray
    ) -> Image:
        tokens = window.tokens
        rows, wrong = undeclared_rows(tokens.values, tokens.is_quoted, fields, counts, self._encoding)
        window.add_reasons(chosen[side], wrong)
        return Image(side, rows)

    def _declared(
        self,
        window: _Window,
        headers: MessageHeaders,
        chosen: IntArray,
        fields: IntArray,
        half: IntArray,
        has: tuple[_Bools, _Bools],
    ) -> _Images:
        table = pc.index_in(headers.tables, value_set=self._names)
        tables = np.asarray(pc.fill_null(table, -1))
        if self._settings.other_tables == "fail":
            unknown = np.flatnonzero(tables < 0)
            window.add_reasons(
                chosen, {int(p): f"table {headers.tables[p]} is not declared" for p in unknown}
            )
        befores: list[Image] = []
        afters: list[Image] = []
        for number, reader in enumerate(self._readers):
            width, is_mine = len(reader.table.columns), tables == number
            others = np.flatnonzero(is_mine & (half != width))
            window.add_reasons(
                chosen, {int(p): f"{half[p]} columns instead of {width}" for p in others}
            )
            is_mine &= half == width
            for images, side, first in ((befores, has[0], fields), (afters, has[1], fields + width)):
                mine = np.flatnonzero(is_mine & side)
                tokens, is_hex = window.tokens, headers.is_hex[mine]
                rows, wrong = reader.read(tokens.values, tokens.is_quoted, first[mine], is_hex)
                window.add_reasons(chosen[mine], wrong)
                images.append(Image(mine, rows))
        return befores, afters


def _joined(windows: list[_Window]) -> _Window:
    """Return windows that follow on each other as one."""
    if len(windows) == 1:
        return windows[0]
    counts = [len(each.starts) for each in windows]
    fields = [int(each.tokens.first_fields[n]) for each, n in zip(windows, counts, strict=True)]
    records_before, fields_before = (np.cumsum([0, *each]) for each in (counts, fields))
    wrong = {
        place + int(before): reason
        for each, before in zip(windows, records_before, strict=False)
        for place, reason in each.wrong.items()
    }
    firsts = [
        each.tokens.first_fields[:n] + before
        for each, n, before in zip(windows, counts, fields_before, strict=False)
    ]
    tokens = MessageTokens(
        np.concatenate([each.ends for each in windows]),
        np.concatenate([*firsts, fields_before[-1:]]),
        pa.concat_arrays([w.tokens.values.slice(0, n) for w, n in zip(windows, fields, strict=True)]),
        np.concatenate([w.tokens.is_quoted[:n] for w, n in zip(windows, fields, strict=True)]),
        np.ones(sum(counts), bool),
    )
    starts, of = (np.concatenate([getattr(w, name) for w in windows]) for name in ("starts", "of"))
    return _Window(windows[0].values, tokens, starts, tokens.ends, of, wrong)


def _changes(
    window: _Window,
    headers: MessageHeaders,
    chosen: IntArray,
    ordinals: IntArray,
    images: _Images,
    is_skipped: _Bools,
) -> Db2Changes | None:
    """Leave out what is wrong or skipped."""
    is_wrong = np.isin(chosen, np.array(sorted(window.wrong), np.int64))
    kept = np.flatnonzero(~is_wrong & ~is_skipped)
    if not len(kept):
        return None
    taken = pa.array(kept)
    segments = headers.segments.take(taken)
    about = {
        "_commit_lsn": headers.commit_lsns.take(taken),
        "_commit_timestamp": headers.commit_times.take(taken).cast(pa.timestamp("us", "UTC")),
        "_change_ordinal": pa.array(ordinals[chosen][kept]),
        "_transaction_id": headers.transactions.take(taken),
        "_table": headers.tables.take(taken),
        "_segment": segments,
        "_is_last_segment": pc.equal(segments, 0),
        "_header": headers.header.take(taken),
    }
    images = only(images, kept, len(chosen))
    return Db2Changes(headers.kinds.take(taken), *images, about, window.of[chosen][kept])


def _is(kinds: pa.Array, kind: str) -> _Bools:
    return np.asarray(pc.fill_null(pc.equal(kinds, kind), False))


def _marks_of_print(encoding: CodePage) -> list[bytes]:
    marks = []
    for mark in "\u201c\u201d":
        with contextlib.suppress(UnicodeEncodeError):
            marks.append(encoding.encode(mark))
    return marks


def _beginning(encoding: CodePage, delimiters: Delimiters) -> re.Pattern[bytes]:
    """Match the end of a record in front of a type, and an identifier that begins with IBM."""
    digits = b"".join(encoding.encode(digit) for digit in "0123456789")
    string, record, column = (
        re.escape(bytes([byte])) for byte in (delimiters.string, delimiters.record, delimiters.column)
    )
    ibm = re.escape(encoding.encode("IBM"))
    return re.compile(b"(" + record + b")(?=[" + digits + b"]{1,9}" + column + string + ibm + b")")
