"""How a column is bound in blocks over ODBC, and what becomes of what a driver puts there.

Rule: the declared type decides; a value that was cut, or that its type cannot have, is refused. Texts
are bytes of the database's code set, so that the code of captures reads them.

    integers, SERIALs         SQL_C_SBIGINT
    FLOAT, SMALLFLOAT         SQL_C_DOUBLE
    DATE, DATETIME of a date  SQL_C_TYPE_TIMESTAMP
    BOOLEAN                   SQL_C_BIT
    DECIMAL, MONEY, other DATETIMEs, INTERVAL, characters   SQL_C_CHAR
    BLOB, CLOB                SQL_C_BINARY: the locator
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from informix_capture_client.choices import DecodeRules
from informix_capture_client.records import Bits, Integers
from informix_capture_client.row_fetch import odbc_texts
from informix_capture_client.row_fetch.declared import Form, declared_form
from informix_capture_client.row_fetch.odbc_texts import FromTexts
from informix_capture_client.transport.odbc import api as odbc
from informix_capture_client.values import (
    BadValue,
    Column,
    FixedType,
    VariableType,
    byte_strings,
    compile_type,
    fixed_width,
    refuse,
)

CellBytes = NDArray[np.uint8]  # a row of bytes for each row of the block
_Read = Callable[[CellBytes, Integers], pa.Array]  # the cells and their lengths, -1 of a NULL
_ToText = Callable[[bytes, str], str]

# SQL types that drivers describe columns as: first that of HCL's ODBC manual (ids_odbc_083 and 086),
# then those of ODBC 2, of "Report Standard ODBC Types" and of other vendors' drivers.
_DESCRIBED = {
    "smallint": frozenset((odbc.SQL_SMALLINT,)),
    "integer": frozenset((odbc.SQL_INTEGER,)),
    "bigint": frozenset((odbc.SQL_INFX_BIGINT, odbc.SQL_BIGINT)),
    "int8": frozenset((odbc.SQL_BIGINT, odbc.SQL_INFX_BIGINT)),
    "smallfloat": frozenset((odbc.SQL_REAL,)),
    "float": frozenset((odbc.SQL_DOUBLE, odbc.SQL_FLOAT)),
    "decimal": frozenset((odbc.SQL_DECIMAL, odbc.SQL_NUMERIC, odbc.SQL_INFX_DECIMAL)),
    "date": frozenset((odbc.SQL_DATE, odbc.SQL_DATE_2)),
    "datetime": frozenset((odbc.SQL_TIMESTAMP, odbc.SQL_TIMESTAMP_2)),
    "datetime of a date": frozenset(
        (odbc.SQL_TIMESTAMP, odbc.SQL_TIMESTAMP_2, odbc.SQL_DATE, odbc.SQL_DATE_2)
    ),
    "datetime of a time": frozenset((odbc.SQL_TIMESTAMP, odbc.SQL_TIMESTAMP_2, *odbc.SQL_TIMES)),
    "interval of months": frozenset(odbc.SQL_INTERVALS_OF_MONTHS),
    "interval of seconds": frozenset(odbc.SQL_INTERVALS_OF_SECONDS),
    "boolean": frozenset((odbc.SQL_BIT,)),
    "char": frozenset((odbc.SQL_CHAR, odbc.SQL_WCHAR)),
    "varchar": frozenset((odbc.SQL_VARCHAR, odbc.SQL_WVARCHAR)),
    "lvarchar": frozenset(
        (odbc.SQL_VARCHAR, odbc.SQL_WVARCHAR, *odbc.SQL_LONG_TEXTS, *odbc.SQL_INFX_OPAQUE)
    ),
    **dict.fromkeys(
        ("blob", "clob"),
        frozenset((*odbc.SQL_INFX_OPAQUE, *odbc.SQL_BINARIES, *odbc.SQL_LONG_TEXTS)),
    ),
}
MOST_BOUND_BYTES = 2048  # of a value: of longer ones each is asked for by itself
_PARTS = ("month", "day", "hour", "minute", "second")
_TIMESTAMP = np.dtype([("year", "i2"), *((name, "u2") for name in _PARTS), ("nanosecond", "u4")])
_LOCATOR_BYTES, _HANDLE_BYTES = 72, 76
_FLOATING = 255
_NUMBER_ROOM, _FIELDS_ROOM = 12, 40  # in addition to the digits: sign, point, blanks, a final NUL
_FLOATING_ROOM = 300  # of 1e-130 with 32 digits, written out
_BLANK, _NULL_BOOLEAN = 0x20, 0x0100


@dataclass(frozen=True, slots=True, eq=False)
class BoundColumn:
    """One column of a block.

    Attributes:
        c_type: what a driver is asked to deliver.
        room: the bytes of one value, an ending NUL included.
        read: makes the column of what it delivered.
        text: the text of one value.
        is_long: whether values are asked for one by one, and come as long as they are.
    """

    name: str
    arrow_type: pa.DataType
    c_type: int
    room: int
    read: _Read
    text: _ToText
    is_long: bool = False


def bound_column(column: Column, table: str, rules: DecodeRules) -> BoundColumn:
    """Return how a column is bound.

    Raises:
        UnsupportedColumn: its type cannot be carried.
    """
    kind, form = compile_type(column, table, rules), declared_form(column.type_text)
    c_type, room, read, text = _BINDINGS[str(form[0])](kind, form, rules)
    if isinstance(kind, VariableType):
        room = _declared_size(column.type_text) + 1
    is_long = room > MOST_BOUND_BYTES + 1 and c_type == odbc.C_CHAR and isinstance(kind, VariableType)
    return BoundColumn(column.name, kind.arrow_type, c_type, room, read, text, is_long)


def is_as_declared(described: odbc.OdbcColumn, column: Column) -> bool:
    """Return whether a driver describes a column as its declaration.

    Sizes are compared where a declaration has one: the bytes of CHAR and VARCHAR, precision and scale
    of a DECIMAL.
    """
    form = declared_form(column.type_text)
    if described.type not in _described_types(form):
        return False
    if form[0] == "char":
        return described.length == form[1]
    if form[0] == "varchar":
        return described.length == _declared_size(column.type_text)
    if form[0] == "decimal" and form[2] != _FLOATING:
        return (described.length, described.scale) == form[1:]
    return True


def _described_types(form: Form) -> frozenset[int]:
    name, *parts = map(str, form)
    if name == "interval":
        name = "interval of months" if parts[0] in ("year", "month") else "interval of seconds"
    if name == "datetime" and parts[:2] == ["year", "day"]:
        name = "datetime of a date"
    if name == "datetime" and parts[0] == "hour":
        name = "datetime of a time"
    if form[0] == "decimal" and form[2] == _FLOATING:
        return _DESCRIBED["decimal"] | _DESCRIBED["float"]
    return _DESCRIBED[name]


def _declared_size(type_text: str) -> int:
    return int(type_text.partition("(")[2].rstrip(")").split(",")[0] or 1)


Binding = tuple[int, int, _Read, _ToText]


def _integer(kind: FixedType, _form: Form, _rules: DecodeRules) -> Binding:
    native = kind.arrow_type.to_pandas_dtype()
    lowest = np.iinfo(native).min  # represents NULL, and is not a value

    def read(cells: CellBytes, lengths: Integers) -> pa.Array:
        nulls = lengths < 0
        values = np.where(nulls, 0, cells.view(np.int64).reshape(-1))
        refuse((values > np.iinfo(native).max) | (values <= lowest), "is out of range for its type")
        return fixed_width(kind.arrow_type, values.astype(native), nulls)

    return odbc.C_SBIGINT, 8, read, lambda raw, _: str(int.from_bytes(raw, "little", signed=True))


def _real(kind: FixedType, _form: Form, _rules: DecodeRules) -> Binding:
    native = kind.arrow_type.to_pandas_dtype()

    def read(cells: CellBytes, lengths: Integers) -> pa.Array:
        values = cells.view(np.float64).reshape(-1).astype(native)
        return fixed_width(kind.arrow_type, values, lengths < 0)

    return odbc.C_DOUBLE, 8, read, lambda raw, _: repr(float(np.frombuffer(raw, np.float64)[0]))


def _date(kind: FixedType, form: Form, _rules: DecodeRules) -> Binding:
    last, digits = ("day", 0) if form == ("date",) else (str(form[2]), int(str(form[4])))

    def read(cells: CellBytes, lengths: Integers) -> pa.Array:
        nulls = lengths < 0
        fields = cells.view(_TIMESTAMP).reshape(-1)
        days = _days(fields, nulls)
        if kind.arrow_type == pa.date32():
            return fixed_width(kind.arrow_type, days.astype(np.int32), nulls)
        return fixed_width(kind.arrow_type, _microseconds(fields, days, nulls), nulls)

    return odbc.C_TIMESTAMP, _TIMESTAMP.itemsize, read, lambda raw, _: _moment(raw, last, digits)


def _days(fields: NDArray[Any], nulls: Bits) -> Integers:
    """Return days since 1970-01-01, refusing what the calendar does not know."""
    year, month, day = (np.where(nulls, 1, fields[name]) for name in ("year", "month", "day"))
    is_none = (year < 1) | (year > 9999) | (month < 1) | (month > 12)
    refuse(is_none, "is not a date of the years 1 to 9999")
    months = ((year.astype(np.int64) - 1970) * 12 + month - 1).astype("M8[M]")
    first = months.astype("M8[D]").astype(np.int64)
    lengths = (months + 1).astype("M8[D]").astype(np.int64) - first
    refuse((day < 1) | (day > lengths), "has a DAY that its month does not have")
    return np.asarray(first + day - 1, np.int64)


def _microseconds(fields: NDArray[Any], days: Integers, nulls: Bits) -> Integers:
    hour, minute, second, nanosecond = (
        np.where(nulls, 0, fields[name]).astype(np.int64)
        for name in ("hour", "minute", "second", "nanosecond")
    )
    is_none = (hour > 23) | (minute > 59) | (second > 59) | (nanosecond > 999_999_999)
    refuse(is_none | (nanosecond % 1000 != 0), "is not a time of day in microseconds")
    seconds = (days * 24 + hour) * 3600 + minute * 60 + second
    return np.asarray(seconds * 1_000_000 + nanosecond // 1000, np.int64)


_SHOWN = {"day": 10, "hour": 13, "minute": 16, "second": 19}


def _moment(raw: bytes, last: str, digits: int) -> str:
    year, month, day, hour, minute, second, nanosecond = np.frombuffer(raw, _TIMESTAMP)[0].tolist()
    text = f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{nanosecond:09}"
    return text[: _SHOWN.get(last, 20 + digits)]


def _texts(from_texts: FromTexts, room: int) -> Binding:
    """Return the binding of a value that is printed in ASCII; blanks around it mean nothing."""

    def read(cells: CellBytes, lengths: Integers) -> pa.Array:
        nulls = lengths < 0
        starts = np.arange(len(cells)) * cells.shape[1]
        printed = byte_strings(cells.reshape(-1), starts, np.where(nulls, 0, lengths), nulls)
        try:
            texts = pc.ascii_trim(printed.cast(pa.string()), " ")
        except pa.ArrowInvalid:
            raise BadValue(0, "is printed with an invalid character") from None
        return from_texts(texts)

    return odbc.C_CHAR, room, read, lambda raw, _: raw.decode("ascii", "replace").strip(" ")


def _decimal(kind: FixedType, form: Form, _rules: DecodeRules) -> Binding:
    if form[2] == _FLOATING:
        return _texts(odbc_texts.floating(kind.arrow_type), _FLOATING_ROOM)
    return _texts(odbc_texts.decimals(kind.arrow_type), int(str(form[1])) + _NUMBER_ROOM)


def _datetime(kind: FixedType, form: Form, rules: DecodeRules) -> Binding:
    if kind.arrow_type == pa.string():
        return _texts(odbc_texts.datetime_texts(form), _FIELDS_ROOM)
    return _date(kind, form, rules)


def _interval(kind: FixedType, form: Form, _rules: DecodeRules) -> Binding:
    readers = {
        pa.string(): odbc_texts.interval_texts,
        pa.int32(): odbc_texts.months,
        pa.duration("us"): odbc_texts.durations,
    }
    return _texts(readers[kind.arrow_type](form), _FIELDS_ROOM)


def _boolean(kind: FixedType, _form: Form, _rules: DecodeRules) -> Binding:
    def read(cells: CellBytes, lengths: Integers) -> pa.Array:
        flags = np.where(lengths < 0, _NULL_BOOLEAN, cells[:, 0].astype(np.uint16))
        return kind.decode(flags.astype(">u2"))

    return odbc.C_BIT, 1, read, lambda raw, _: str(raw[0])


def _as_it_stands(raw: bytes, codec: str) -> str:
    return raw.decode(codec, "surrogateescape")


def _char(kind: FixedType, form: Form, _rules: DecodeRules) -> Binding:
    width = int(str(form[1]))

    def read(cells: CellBytes, lengths: Integers) -> pa.Array:
        """Fill up with blanks, which a driver may have cut: then it is as in a row of the log."""
        sheet = cells[:, :width].copy()
        sheet[np.arange(width) >= np.maximum(lengths, 0)[:, None]] = _BLANK
        sheet[lengths < 0] = np.frombuffer(kind.null, np.uint8)
        return kind.decode(sheet.reshape(-1).view(f"V{width}"))

    return odbc.C_CHAR, width + 1, read, _as_it_stands


def _varying(kind: VariableType, _form: Form, _rules: DecodeRules) -> Binding:
    def read(cells: CellBytes, lengths: Integers) -> pa.Array:
        nulls = lengths < 0
        starts = np.arange(len(cells)) * cells.shape[1]
        return kind.content(cells.reshape(-1), starts, np.where(nulls, 0, lengths), nulls)

    return odbc.C_CHAR, 0, read, _as_it_stands


def long_values(values: Sequence[bytes | None]) -> tuple[CellBytes, Integers]:
    """Return values that came one by one as those that were bound have come."""
    lengths = np.array([-1 if value is None else len(value) for value in values], np.int64)
    width = max(int(lengths.max(initial=0)), 1)
    padded = b"".join((value or b"").ljust(width, b"\0") for value in values)
    return np.frombuffer(padded, np.uint8).reshape(-1, width), lengths


def _handle(kind: FixedType, _form: Form, _rules: DecodeRules) -> Binding:
    def read(cells: CellBytes, lengths: Integers) -> pa.Array:
        is_cut = (lengths >= 0) & (lengths != _LOCATOR_BYTES)
        refuse(is_cut, f"is not a large object's locator of {_LOCATOR_BYTES} bytes")
        handles = np.zeros((len(cells), _HANDLE_BYTES), np.uint8)
        handles[:, _HANDLE_BYTES - _LOCATOR_BYTES :] = cells
        handles[lengths < 0] = np.frombuffer(kind.null, np.uint8)
        return kind.decode(handles.reshape(-1).view(f"V{_HANDLE_BYTES}"))

    return odbc.C_BINARY, _LOCATOR_BYTES, read, lambda raw, _: raw.hex()


_BINDINGS: dict[str, Callable[[Any, Form, DecodeRules], Binding]] = {
    **dict.fromkeys(("smallint", "integer", "bigint", "int8"), _integer),
    **dict.fromkeys(("smallfloat", "float"), _real),
    "date": _date,
    "datetime": _datetime,
    "interval": _interval,
    "decimal": _decimal,
    "boolean": _boolean,
    "char": _char,
    **dict.fromkeys(("varchar", "lvarchar"), _varying),
    **dict.fromkeys(("blob", "clob"), _handle),
}
