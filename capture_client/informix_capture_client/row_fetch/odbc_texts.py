"""From texts as a driver prints them to the columns that a capture has: DECIMAL, DATETIME and INTERVAL.

Rule: a whole column at a time; a text that is not of its type's form to the last sign is refused, and
so is a value that its column cannot hold exactly.

    decimal(10,2)  -1234.50    datetime hour to minute  07:05    interval day to second  -12 03:04:05
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from informix_capture_client.records import Bits, Integers
from informix_capture_client.row_fetch.declared import Form
from informix_capture_client.values import BadValue, fixed_width, refuse

FromTexts = Callable[[pa.Array], pa.Array]

FIELDS = ("year", "month", "day", "hour", "minute", "second", "fraction")
_MARKS = {"month": "-", "day": "-", "hour": " ", "minute": ":", "second": ":", "fraction": r"\."}
_MONTHS = {"year": 12, "month": 1}
_MICROSECONDS = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
}
_MOST_BELOW = {"month": 11, "hour": 23, "minute": 59, "second": 59}  # of fields that do not lead
_MOST_MONTHS, _MOST_MICROSECONDS, _MOST_DAYS = 2**31 - 1, 2**63 - 1, 106_751_991


def nulls_of(values: pa.Array) -> Bits:
    """Return which values are NULL."""
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False), np.bool_)


def decimals(arrow_type: pa.DataType) -> FromTexts:
    """Return what reads numbers with the digits of their scale."""

    def read(texts: pa.Array) -> pa.Array:
        return _cast(texts, arrow_type)

    return read


def _cast(texts: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    try:
        return texts.cast(arrow_type)
    except pa.ArrowInvalid:
        pass
    for row, text in enumerate(texts):
        try:
            text.cast(arrow_type)
        except pa.ArrowInvalid:
            raise BadValue(row, f"is not printed as a valid {arrow_type}") from None
    raise BadValue(0, f"is not printed as a valid {arrow_type}")


def floating(arrow_type: pa.DataType) -> FromTexts:
    """Return what reads floating DECIMALs, each distinct text once: exact and without an exponent."""

    def read(texts: pa.Array) -> pa.Array:
        encoded = texts.dictionary_encode()
        plain = [_plain(text.as_py()) for text in encoded.dictionary]
        if None in plain:
            raise BadValue(_row_of(encoded, plain.index(None)), "is not printed as a number")
        found = pa.array(plain, pa.string()).take(encoded.indices)
        return found if arrow_type == pa.string() else _cast(found, arrow_type)

    return read


def _row_of(encoded: pa.DictionaryArray, place: int) -> int:
    return int(pc.index(encoded.indices, pa.scalar(place, encoded.indices.type)).as_py())


def _plain(text: str) -> str | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    if not value.is_finite():
        return None
    printed = f"{value:f}" if value else "0"
    return printed.rstrip("0").rstrip(".") if "." in printed else printed


def datetime_texts(form: Form) -> FromTexts:
    """Return the check for the text of a DATETIME that is not a date."""
    pattern = _pattern(form, lead=4 if form[1] == "year" else 2)

    def read(texts: pa.Array) -> pa.Array:
        _fields(texts, pattern, "DATETIME")
        return texts

    return read


def interval_texts(form: Form) -> FromTexts:
    """Return what checks the text of an INTERVAL and cuts zeros before its leading field."""
    pattern = _pattern(form)

    def read(texts: pa.Array) -> pa.Array:
        _fields(texts, pattern, "INTERVAL")
        return pc.replace_substring_regex(texts, r"^(-?)0+(\d)", r"\1\2")

    return read


def months(form: Form) -> FromTexts:
    """Return what reads an INTERVAL of years and months."""
    pattern = _pattern(form)

    def read(texts: pa.Array) -> pa.Array:
        negative, values = _interval(texts, pattern, form)
        total = np.zeros(len(texts), np.int64)
        for name, value in values.items():
            total += value * _MONTHS[name]
        refuse(total > _MOST_MONTHS, _too_long("more months than an INT holds"))
        signed = np.where(negative, -total, total).astype(np.int32)
        return fixed_width(pa.int32(), signed, nulls_of(texts))

    return read


def durations(form: Form) -> FromTexts:
    """Return what reads an INTERVAL of days and what is below them."""
    pattern, digits = _pattern(form), int(str(form[4]))

    def read(texts: pa.Array) -> pa.Array:
        negative, values = _interval(texts, pattern, form)
        total = np.zeros(len(texts), np.uint64)
        limit = _too_long(f"more than Spark's {_MOST_DAYS:,} days")
        refuse(values.get("day", np.zeros(1, np.int64)) > _MOST_DAYS, limit)
        for name, value in values.items():
            is_fraction = name not in _MICROSECONDS
            unit = 10 ** (6 - digits) if is_fraction else _MICROSECONDS[name]
            total += value.astype(np.uint64) * np.uint64(unit)
        refuse(total > np.uint64(_MOST_MICROSECONDS), limit)
        signed = total.view(np.int64)
        signed = np.where(negative, -signed, signed)
        return fixed_width(pa.duration("us"), signed, nulls_of(texts))

    return read


def _too_long(limit: str) -> str:
    return f"is {limit}; option intervals=string keeps it as text"


def _pattern(form: Form, lead: int | None = None) -> str:
    """Return what a text of these fields looks like; with `lead` it is a DATETIME's."""
    _, first, last, _, digits = form
    chosen = FIELDS[FIELDS.index(str(first)) : FIELDS.index(str(last)) + 1]
    parts = ["^(?P<sign>-?)"] if lead is None else ["^"]
    for name in chosen:
        mark = _MARKS[name] if name != first or name == "fraction" else ""
        width = f"{{{digits}}}" if name == "fraction" else "{2}" if name != first else f"{{{lead}}}"
        parts.append(f"{mark}(?P<{name}>[0-9]{'+' if width == '{None}' else width})")
    return "".join([*parts, "$"])


def _fields(texts: pa.Array, pattern: str, what: str) -> pa.Array:
    found = pc.extract_regex(texts, pattern)
    bad = nulls_of(found) & ~nulls_of(texts)
    refuse(bad, f"is not printed as a valid {what} of its fields")
    return found


def _interval(texts: pa.Array, pattern: str, form: Form) -> tuple[Bits, dict[str, Integers]]:
    """Return which intervals are negative, and their fields; those of a NULL are 0."""
    found = _fields(texts, pattern, "INTERVAL")
    names: Sequence[str] = re.findall(r"\?P<(\w+)>", pattern)
    values = {name: _numbers(pc.struct_field(found, name)) for name in names if name != "sign"}
    for name, most in _MOST_BELOW.items():
        if name in values and name != form[1]:
            refuse(values[name] > most, f"has a {name.upper()} outside 0 to {most}")
    signs = pc.equal(pc.struct_field(found, "sign"), "-").fill_null(False)
    return np.asarray(signs.to_numpy(zero_copy_only=False), np.bool_), values


def _numbers(digits: pa.Array) -> Integers:
    filled = digits.fill_null("0")
    return np.asarray(filled.cast(pa.int64()).to_numpy(), np.int64)
