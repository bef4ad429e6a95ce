"""The twelve fields in front of each change-data record.

Rule: what a row cannot do without (operation, table, transaction, log place) makes the record bad when
it is wrong; a time that is none is NULL, its text is kept, and the row is delivered: its values are
good. IBM's own page prints a commit at 18.05.67.

     1 type                   an integer, 10 of Q Capture
     2 identifier             "IBM", or which column has characters that could not be converted
     3 date, 4 time           when the message was put: "2007218" is day 218, "HHMMSSmmmmmm"
     5 owner, 6 table
     7 operation              "ISRT", "REPL", "DLET"
     8 transaction identifier "0000:0000:0388:4642:0000", 10 or 12 bytes
     9 commit LSN             10 or 16 bytes
    10 commit time            "YYYY-MM-DD-HH.mm.ss"
    11 plan name              NULL but on z/OS
    12 segment number         0001, 0002, ..., and 0000 for the last message of a transaction

(IBM, "Structure of delimited messages for Event Publishing".)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from informix_db2.changes import DELETE, INSERT, UPDATE
from informix_db2.code_pages import CodePage
from informix_db2.text_values import TextReader, moments, read_what_can_be

FIELDS = 12
_QUOTED = np.array([False] + [True] * 10 + [False])

_OPERATIONS = {b"ISRT": INSERT, b"REPL": UPDATE, b"DLET": DELETE}
_INVALID = r"^IBM-INVALID-COLUMN-(?P<column>[0-9]{1,5})-?(?P<image>[AB])-(?P<mode>HEX|NULL)$"
_GROUPS = r"^[0-9a-fA-F]{4}(:[0-9a-fA-F]{4})*$"
# The same place in the log, printed with 5 groups and with 8: one in front, two behind.
_SIXTEEN_BYTES = {24: ("0000", "00000000"), 39: ("", "")}
_INVALID_TYPE = pa.struct([("column", pa.int32()), ("image", pa.string()), ("mode", pa.string())])
HEADER = pa.struct(
    [
        ("type", pa.int32()),
        ("identifier", pa.string()),
        ("invalid", _INVALID_TYPE),
        ("put_timestamp", pa.timestamp("us")),
        ("put_date", pa.string()),
        ("put_time", pa.string()),
        ("commit_lsn", pa.string()),
        ("commit_time", pa.string()),
        ("plan_name", pa.string()),
        ("segment_number", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class MessageHeaders:
    """The headers of sound records, a column a field.

    Attributes:
        is_hex, is_null: whether characters of the row came as hexadecimal digits, or not at all.
        wrong: of each record why it cannot be delivered; None where it can.
    """

    kinds: pa.Array
    tables: pa.Array
    commit_lsns: pa.Array
    commit_times: pa.Array
    transactions: pa.Array
    segments: pa.Array
    header: pa.StructArray
    is_hex: NDArray[np.bool_]
    is_null: NDArray[np.bool_]
    wrong: dict[int, str]


def quoting_is_right(is_quoted: NDArray[np.bool_], values: pa.Array) -> NDArray[np.bool_]:
    """Return for each header whether only its strings are quoted; a plan name may be NULL."""
    is_right: NDArray[np.bool_] = (is_quoted == _QUOTED).all(axis=1)
    if is_right.all():
        return is_right
    others = is_quoted == _QUOTED
    others[:, 10] |= ~is_quoted[:, 10] & np.asarray(values.is_null()).reshape(-1, FIELDS)[:, 10]
    return np.asarray(others.all(axis=1))


def read_headers(values: pa.Array, encoding: CodePage) -> MessageHeaders:
    """Read headers whose fields lie one after another, twelve a record."""
    count = len(values) // FIELDS
    wrong: dict[int, str] = {}

    def field(number: int) -> pa.Array:
        raw = values.take(pa.array(np.arange(count) * FIELDS + number - 1))
        return _texts(raw, encoding, wrong, number)

    type_, identifier, put_date, put_time = (field(number) for number in (1, 2, 3, 4))
    invalid = pc.extract_regex(identifier, _INVALID)
    kinds = _kinds(field(7), wrong)
    commit_lsn, segment = field(9), field(12)
    return MessageHeaders(
        kinds,
        pc.binary_join_element_wise(field(5), field(6), "."),
        _sixteen_bytes(commit_lsn, wrong),
        _tolerant(moments, field(10)),
        _hex(field(8), wrong, "transaction identifier"),
        _segments(segment, wrong),
        pa.StructArray.from_arrays(
            [
                _types(type_, wrong),
                _identifier(identifier, invalid, wrong),
                _invalid_columns(invalid),
                _put_timestamps(put_date, put_time),
                put_date,
                put_time,
                commit_lsn,
                field(10),
                field(11),
                segment,
            ],
            fields=list(HEADER),
        ),
        _is(invalid, "mode", "HEX"),
        _is(invalid, "mode", "NULL"),
        wrong,
    )


def _texts(raw: pa.Array, encoding: CodePage, wrong: dict[int, str], number: int) -> pa.Array:
    texts, bad = encoding.texts_and_bad(raw)
    for place, reason in bad.items():
        wrong.setdefault(place, f"header field {number}: {reason}")
    return texts


def _add_reason(is_right: pa.Array, wrong: dict[int, str], reason: str) -> None:
    for place in np.flatnonzero(~np.asarray(pc.fill_null(is_right, False))).tolist():
        wrong.setdefault(place, reason)


def _kinds(operations: pa.Array, wrong: dict[int, str]) -> pa.Array:
    known = pa.array([name.decode() for name in _OPERATIONS], pa.string())
    kinds = pa.array(list(_OPERATIONS.values()), pa.string()).take(
        pc.index_in(operations, value_set=known)
    )
    _add_reason(kinds.is_valid(), wrong, "header field 7, operation, is not ISRT, REPL or DLET")
    return kinds


def _types(texts: pa.Array, wrong: dict[int, str]) -> pa.Array:
    is_right = pc.match_substring_regex(texts, "^[0-9]{1,9}$")
    _add_reason(is_right, wrong, "header field 1, type, is not an integer")
    return pc.if_else(pc.fill_null(is_right, False), texts, None).cast(pa.int32())


def _identifier(texts: pa.Array, invalid: pa.Array, wrong: dict[int, str]) -> pa.Array:
    is_right = pc.or_(pc.invert(pc.starts_with(texts, "IBM-INVALID")), invalid.is_valid())
    _add_reason(is_right, wrong, "header field 2, identifier, reports invalid data in an unknown form")
    return texts


def _invalid_columns(invalid: pa.Array) -> pa.Array:
    parts = invalid.flatten()
    column, image, mode = (
        pc.if_else(invalid.is_valid(), part, None) if len(part) else part.cast(pa.string())
        for part in parts
    )
    columns = [column.cast(pa.int32()), image, mode]
    return pa.StructArray.from_arrays(columns, fields=list(_INVALID_TYPE), mask=invalid.is_null())


def _is(invalid: pa.Array, name: str, wanted: str) -> NDArray[np.bool_]:
    found = pc.equal(pc.struct_field(invalid, name), wanted)
    return np.asarray(pc.fill_null(pc.and_(found, invalid.is_valid()), False))


def _hex(texts: pa.Array, wrong: dict[int, str], name: str) -> pa.Array:
    _add_reason(
        pc.match_substring_regex(texts, _GROUPS), wrong, f"{name} is not groups of four hex digits"
    )
    return pc.ascii_lower(pc.replace_substring(texts, ":", ""))


def _sixteen_bytes(texts: pa.Array, wrong: dict[int, str]) -> pa.Array:
    """Return the commit LSN in its form of 16 bytes, which sorts as the log does."""
    digits, sizes = _hex(texts, wrong, "commit LSN"), pc.binary_length(texts)
    filled = pa.nulls(len(texts), pa.string())
    for size, (front, behind) in _SIXTEEN_BYTES.items():
        whole = pc.binary_join_element_wise(front, digits, behind, "")
        filled = pc.if_else(pc.fill_null(pc.equal(sizes, size), False), whole, filled)
    _add_reason(filled.is_valid(), wrong, "commit LSN has neither 10 nor 16 bytes")
    return filled


def _segments(texts: pa.Array, wrong: dict[int, str]) -> pa.Array:
    is_right = pc.match_substring_regex(texts, "^[0-9]{4}$")
    _add_reason(is_right, wrong, "segment number is not four digits")
    return pc.if_else(pc.fill_null(is_right, False), texts, None).cast(pa.int32())


def _put_timestamps(days: pa.Array, times: pa.Array) -> pa.Array:
    """Return when messages were put: "2006030" and "182318000005" is 30 January, 18:23:18.000005."""
    is_right = pc.and_(
        pc.match_substring_regex(
            days, "^[0-9]{4}(00[1-9]|0[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9]|36[0-6])$"
        ),
        pc.match_substring_regex(times, "^([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9][0-9]{6}$"),
    )
    is_right = pc.fill_null(is_right, False)
    days = pc.if_else(is_right, days, "0001001")
    years, day = pc.utf8_slice_codeunits(days, 0, 4), pc.utf8_slice_codeunits(days, 4, 7)
    first = _tolerant(_firsts_of_years, years)
    at = pc.add(
        first.cast(pa.int64()), pc.multiply(pc.subtract(day.cast(pa.int64()), 1), 86_400_000_000)
    )
    at = pc.add(at, _microseconds(pc.if_else(is_right, times, "000000000000"))).cast(pa.timestamp("us"))
    # Day 366 of a common year would be the next year's first.
    is_right = pc.and_(is_right, pc.fill_null(pc.equal(pc.year(at), years.cast(pa.int64())), False))
    return pc.if_else(is_right, at, None)


def _firsts_of_years(years: pa.Array) -> pa.Array:
    return moments(pc.binary_join_element_wise(years, "-01-01-00.00.00", ""))


def _microseconds(times: pa.Array) -> pa.Array:
    parts = [(0, 2, 3_600_000_000), (2, 4, 60_000_000), (4, 6, 1_000_000), (6, 12, 1)]
    total = pa.array(np.zeros(len(times), np.int64))
    for first, end, unit in parts:
        total = pc.add(
            total, pc.multiply(pc.utf8_slice_codeunits(times, first, end).cast(pa.int64()), unit)
        )
    return total


def _tolerant(read: TextReader, texts: pa.Array) -> pa.Array:
    return read_what_can_be(texts, read, pa.timestamp("us"))[0]
