"""Texts that stand for numbers, dates and times, to Arrow columns, whole columns at a time.

Rule: a text that is not exactly a value of the declared type is refused: nothing is rounded, and no
field of a time rolls over. Only midnight as 24.00.00, which Db2 has, is the next day's 00.00.00.

Forms of dates and times are those that Db2 names ISO, USA, EUR and JIS.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from informix_db2.declared_tables import Db2Column
from informix_db2.refused_bytes import BadDb2Value

_INTEGER = r"^[+-]?[0-9]+$"
_DECIMAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"
_FLOAT = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf(inity)?)$"
_DECFLOAT = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|s?nan|inf(inity)?)$"
_DATES = (
    (r"^([0-9]{4})-([0-9]{2})-([0-9]{2})$", r"\1-\2-\3"),
    (r"^([0-9]{2})/([0-9]{2})/([0-9]{4})$", r"\3-\1-\2"),
    (r"^([0-9]{2})\.([0-9]{2})\.([0-9]{4})$", r"\3-\2-\1"),
)
_TIME = (
    r"(?i)^((?:[01][0-9]|2[0-3])[.:][0-5][0-9](?:[.:][0-5][0-9])?|24[.:]00(?:[.:]00)?"
    r"|(?:0[0-9]|1[0-2])(?::[0-5][0-9])? [AP]M)$"
)
_MOMENT = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[-T ]([0-9]{2})[.:]([0-9]{2})[.:]([0-9]{2})"
    r"(?:\.([0-9]{0,6})0{0,6})?$"
)
_MIDNIGHT = r"^(.{10}[-T ])24([.:]00[.:]00(?:\.0*)?)$"
_LONG_MOMENT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[-T ]"
    r"(?:(?:[01][0-9]|2[0-3])[.:][0-5][0-9][.:][0-5][0-9](?:\.[0-9]{0,12})?|24[.:]00[.:]00(?:\.0{0,12})?)"
    r"(?:[+-](?:[01]?[0-9]|2[0-4])(?::?[0-5][0-9])?)?$"
)
# What a float may be infinite or zero for; of another text its type has no value.
_INFINITE = r"(?i)inf"
_ZERO = r"(?i)^[+-]?[0.]+(e|$)"
_YEARS = (datetime.datetime.min, datetime.datetime.max)  # 1 to 9999, as in Db2 and in Spark
_DAY = datetime.timedelta(1)

TextReader = Callable[[pa.Array], pa.Array]


def reader_of(column: Db2Column) -> TextReader:
    """Return what makes a column's values; it raises BadValue or ArrowInvalid for a bad text."""
    if column.kind in ("DECIMAL", "TIMESTAMP"):
        return _decimals(column.type) if column.kind == "DECIMAL" else _moments_of(column)
    return _READERS[column.kind]


def read_what_can_be(
    texts: pa.Array, read: TextReader, kind: pa.DataType
) -> tuple[pa.Array, list[int]]:
    """Return values, NULL for those that cannot be read, and the places of these.

    Bad ones are found half by half: columns are read whole, and one bad value costs little more.
    """
    try:
        return read(texts), []
    except (pa.ArrowInvalid, BadDb2Value):
        if len(texts) == 1:
            return pa.nulls(1, kind), [0]
    half = len(texts) // 2
    first, bad = read_what_can_be(texts[:half], read, kind)
    second, more = read_what_can_be(texts[half:], read, kind)
    return pa.concat_arrays([first, second]), [*bad, *(half + place for place in more)]


def _require(texts: pa.Array, pattern: str) -> None:
    if pc.all(pc.match_substring_regex(texts, pattern)).as_py() is False:
        raise BadDb2Value("not a valid value")


def _signless(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, r"^\+", "")


def _integers(kind: pa.DataType) -> TextReader:
    def read(texts: pa.Array) -> pa.Array:
        _require(texts, _INTEGER)
        return _signless(texts).cast(kind)

    return read


def _decimals(kind: pa.DataType) -> TextReader:
    def read(texts: pa.Array) -> pa.Array:
        _require(texts, _DECIMAL)
        return texts.cast(kind)

    return read


def _floats(kind: pa.DataType) -> TextReader:
    def read(texts: pa.Array) -> pa.Array:
        _require(texts, _FLOAT)
        values = _signless(texts).cast(kind)
        _require(texts.filter(pc.is_inf(values)), _INFINITE)
        _require(texts.filter(pc.equal(values, 0)), _ZERO)
        return values

    return read


def _as_they_are(pattern: str) -> TextReader:
    def read(texts: pa.Array) -> pa.Array:
        _require(texts, pattern)
        return texts

    return read


def dates(texts: pa.Array) -> pa.Array:
    """Return dates of any of Db2's forms.

    >>> dates(pa.array(["2007-08-06", "08/06/2007", "06.08.2007", None])).to_pylist()[1]
    datetime.date(2007, 8, 6)
    """
    for pattern, order in _DATES:
        texts = pc.replace_substring_regex(texts, pattern, order)
    _require(texts, _DATES[0][0])
    return _in_years(texts.cast(pa.date32()))


def _in_years(values: pa.Array) -> pa.Array:
    """Return dates or timestamps; years outside of Db2's range are refused, though Arrow has them."""
    found = pc.min_max(values)
    first, last = (pa.scalar(year, values.type).value for year in _YEARS)
    if found["min"].is_valid and not first <= found["min"].value <= found["max"].value <= last:
        raise BadDb2Value("not a valid year")
    return values


def moments(texts: pa.Array) -> pa.Array:
    """Return timestamps in microseconds.

    >>> moments(pa.array(["2006-06-30-18.00.52", "2006-06-30-24.00.00.000"])).to_pylist()[1]
    datetime.datetime(2006, 7, 1, 0, 0)
    """
    is_midnight = pc.match_substring_regex(texts, _MIDNIGHT)
    has_midnight = pc.any(is_midnight).as_py()
    if has_midnight:
        texts = pc.replace_substring_regex(texts, _MIDNIGHT, r"\100\2")
    _require(texts, _MOMENT)
    plain = pc.replace_substring_regex(texts, _MOMENT, r"\1T\2:\3:\4.\5000000")
    found = _in_years(pc.utf8_slice_codeunits(plain, 0, 26).cast(pa.timestamp("us")))
    if has_midnight:
        found = _in_years(pc.if_else(is_midnight, pc.add(found, pa.scalar(_DAY)), found))
    return found


def _long_moments(texts: pa.Array) -> pa.Array:
    """Return texts of timestamps that microseconds cannot hold."""
    _require(texts, _LONG_MOMENT)
    _in_years(pc.utf8_slice_codeunits(texts, 0, 10).cast(pa.date32()))
    return texts


def _moments_of(column: Db2Column) -> TextReader:
    return _long_moments if pa.types.is_string(column.type) else moments


def _same(texts: pa.Array) -> pa.Array:
    return texts


_READERS: dict[str, TextReader] = {
    "SMALLINT": _integers(pa.int16()),
    "INTEGER": _integers(pa.int32()),
    "BIGINT": _integers(pa.int64()),
    "REAL": _floats(pa.float32()),
    "DOUBLE": _floats(pa.float64()),
    "DECFLOAT": _as_they_are(_DECFLOAT),
    "DATE": dates,
    "TIME": _as_they_are(_TIME),
    **dict.fromkeys(("CHAR", "VARCHAR", "LONG VARCHAR", "CLOB", "XML"), _same),
    **dict.fromkeys(("GRAPHIC", "VARGRAPHIC", "LONG VARGRAPHIC", "DBCLOB"), _same),
}
