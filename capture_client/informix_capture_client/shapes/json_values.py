"""Convert columns to JSON texts, all values of a column at once.

Rule: a value that is read back as the column's type is the same value, in Python's and Spark's readers:
numbers have all their digits and a DECIMAL has no exponent (Spark's `parse_json` reads such a number as
a double), a timestamp is ISO 8601, bytes are base64 (which Spark's `from_json` reads as BINARY).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from informix_capture_client.values import TWO_DIGITS, strings

_IS_SPECIAL = np.zeros(256, bool)
_IS_SPECIAL[:0x20] = True
_IS_SPECIAL[[ord('"'), ord("\\")]] = True


def escaped(values: pa.Array) -> pa.Array:
    """Escape the texts that contain special JSON characters.

    Only these are processed in Python; other texts are not changed.
    """
    first, end = values.offset, values.offset + len(values) + 1
    offsets = np.frombuffer(values.buffers()[1], np.int32)[first:end]
    content = np.frombuffer(values.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    places: NDArray[np.int64] = np.flatnonzero(_IS_SPECIAL[content])
    if not len(places):
        return values
    rows = np.unique(np.searchsorted(offsets - offsets[0], places, side="right") - 1)
    texts = (values[row].as_py() or "" for row in rows.tolist())
    return with_others(values, rows, [json.dumps(text, ensure_ascii=False)[1:-1] for text in texts])


def with_others(texts: pa.Array, rows: NDArray[np.int64], others: list[str]) -> pa.Array:
    """Return texts with some replaced by others."""
    if not others:
        return texts
    order = np.arange(len(texts))
    order[rows] = len(texts) + np.arange(len(rows))
    return pa.concat_arrays([texts, pa.array(others, pa.string())]).take(pa.array(order))


@dataclass(frozen=True, slots=True)
class JsonKind:
    """How values of a type are written; the result of `texts` for NULL is not used.

    `is_quoted`: the text is put in quotes, which are not part of it.
    """

    is_quoted: bool
    texts: Callable[[pa.Array], pa.Array]


def _printed(values: pa.Array) -> pa.Array:
    return values.cast(pa.string())


# Of larger scales Arrow writes small numbers with an exponent, as Java and SQL do.
_PLAIN_SCALE = 6


def _decimals(values: pa.Array) -> pa.Array:
    texts = _printed(values)
    if values.type.scale <= _PLAIN_SCALE:
        return texts
    has_exponent = np.flatnonzero(pc.fill_null(pc.match_substring(texts, "E"), False))
    plain = [format(Decimal(texts[row].as_py()), "f") for row in has_exponent.tolist()]
    return with_others(texts, has_exponent, plain)


_NON_FINITE = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}


def _reals(values: pa.Array) -> pa.Array:
    """Write the shortest number that reads back equal; NaN and infinities are texts."""
    texts = _printed(values)
    is_number = pc.fill_null(pc.is_finite(values), True)
    others = np.flatnonzero(~np.asarray(is_number))
    return with_others(texts, others, [_NON_FINITE[texts[row].as_py()] for row in others.tolist()])


_SEPARATOR_AT, _INSTANT_BYTES = 10, 26  # 2024-01-31 23:59:59.000000


def _instants(values: pa.Array) -> pa.Array:
    texts = _printed(values)
    _, offsets, content = texts.buffers()
    if not content:  # nothing but NULL
        return texts
    sheet = np.frombuffer(content, np.uint8).copy()
    sheet[: sheet.size // _INSTANT_BYTES * _INSTANT_BYTES].reshape(-1, _INSTANT_BYTES)[
        :, _SEPARATOR_AT
    ] = ord("T")
    buffers = [texts.buffers()[0], offsets, pa.py_buffer(sheet)]
    return pa.Array.from_buffers(texts.type, len(texts), buffers, texts.null_count, texts.offset)


_DAY = 86_400_000_000  # in microseconds
_CLOCK = b" 00:00:00.000000"


def _spans(values: pa.Array) -> pa.Array:
    """Write an INTERVAL like Informix prints DAY TO FRACTION(6), which Spark casts to an interval."""
    signed = pc.fill_null(values.cast(pa.int64()), 0).to_numpy()
    size = np.abs(signed).view(np.uint64)  # of the lowest number too
    days, within = np.divmod(size, np.uint64(_DAY))
    sheet = np.tile(np.frombuffer(_CLOCK, np.uint8), (len(size), 1))
    rest = within.astype(np.int64)
    for at in (14, 12, 10, 7, 4, 1):  # pairs of digits, from the last one: three of the fraction
        unit = 60 if at in (7, 4) else 100
        rest, pair = np.divmod(rest, unit)
        sheet[:, at : at + 2] = TWO_DIGITS[pair]
    none = np.zeros(len(size), bool)
    clock = strings(np.arange(0, sheet.size + 1, len(_CLOCK)), sheet.reshape(-1), none)
    signs = pa.array(np.array(["", "-"])[(signed < 0).astype(int)], pa.string())
    return pc.binary_join_element_wise(signs, _printed(pa.array(days)), clock, "")


def _bytes(values: pa.Array) -> pa.Array:
    encoded = [base64.b64encode(value or b"") for value in values.to_pylist()]
    return pa.array(encoded, pa.binary()).cast(pa.string())


_NUMBER = JsonKind(is_quoted=False, texts=_printed)
_REAL = JsonKind(is_quoted=False, texts=_reals)
_KINDS: dict[pa.DataType, JsonKind] = {
    pa.int16(): _NUMBER,
    pa.int32(): _NUMBER,
    pa.int64(): _NUMBER,
    pa.float32(): _REAL,
    pa.float64(): _REAL,
    pa.bool_(): _NUMBER,
    pa.date32(): JsonKind(is_quoted=True, texts=_printed),
    pa.timestamp("us"): JsonKind(is_quoted=True, texts=_instants),
    pa.duration("us"): JsonKind(is_quoted=True, texts=_spans),
    pa.string(): JsonKind(is_quoted=True, texts=escaped),
    pa.binary(): JsonKind(is_quoted=True, texts=_bytes),
}
_DECIMAL = JsonKind(is_quoted=False, texts=_decimals)


def _structs(values: pa.Array) -> pa.Array:
    """Write a struct (the content and status of a large object) as an object with all its fields."""
    children = list(map(_fields, values.type, values.flatten()))
    return pa.array(["{" + ",".join(each) + "}" for each in zip(*children, strict=True)], pa.string())


def _fields(field: pa.Field, values: pa.Array) -> list[str]:
    kind = json_kind(field.type)
    quote = '"' if kind.is_quoted else ""
    texts = zip(kind.texts(values).to_pylist(), values.is_valid().to_pylist(), strict=True)
    return [
        f'"{field.name}":{quote}{text}{quote}' if there else f'"{field.name}":null'
        for text, there in texts
    ]


_STRUCT = JsonKind(is_quoted=False, texts=_structs)


def json_kind(arrow_type: pa.DataType) -> JsonKind:
    """Return how values of a column type are written."""
    if pa.types.is_struct(arrow_type):
        return _STRUCT
    return _DECIMAL if pa.types.is_decimal(arrow_type) else _KINDS[arrow_type]
