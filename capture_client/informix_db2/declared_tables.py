"""Parse declarations of Db2 tables, and derive their Arrow types.

Rule: declarations are parsed once, before decoding; types that cannot be delivered exactly are rejected
here.

    "id INTEGER NOT NULL, name VARCHAR(20), cost DECIMAL(9,2), raw CHAR(8) FOR BIT DATA"

Names in double quotes may have any character. Spark has no type for TIME and Arrow none for DECFLOAT,
so both are delivered as text, as well as TIMESTAMP(7) to (12), which exceed microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from informix_capture_client.errors import BadOption, UnsupportedColumn

MAX_PRECISION = 31  # of DECIMAL in Db2
_MICROSECOND_DIGITS = 6

_SPELLINGS = {
    "INT": "INTEGER",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "NUM": "DECIMAL",
    "FLOAT": "DOUBLE",
    "DOUBLE PRECISION": "DOUBLE",
    "CHARACTER": "CHAR",
    "CHARACTER VARYING": "VARCHAR",
    "CHAR VARYING": "VARCHAR",
    "STRING": "VARCHAR",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "BINARY VARYING": "VARBINARY",
    "ROWID": "VARBINARY",
}
_BITS = {"CHAR": "BINARY", "VARCHAR": "VARBINARY", "LONG VARCHAR": "LONG VARBINARY"}
_FIXED_TYPES = {
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "DECFLOAT": pa.string(),
    "DATE": pa.date32(),
    "TIME": pa.string(),
    **dict.fromkeys(("CHAR", "VARCHAR", "LONG VARCHAR", "CLOB", "XML"), pa.string()),
    **dict.fromkeys(("GRAPHIC", "VARGRAPHIC", "LONG VARGRAPHIC", "DBCLOB"), pa.string()),
    **dict.fromkeys(("BINARY", "VARBINARY", "LONG VARBINARY", "BLOB"), pa.binary()),
}
NUMBERS = {"SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "REAL", "DOUBLE", "DECFLOAT"}
GRAPHIC = {"GRAPHIC", "VARGRAPHIC", "LONG VARGRAPHIC", "DBCLOB"}
CHARACTERS = {"CHAR", "VARCHAR", "LONG VARCHAR", "CLOB", "XML"}
BYTES = {"BINARY", "VARBINARY", "LONG VARBINARY", "BLOB"}
LONG = {"LONG VARCHAR", "LONG VARGRAPHIC", "LONG VARBINARY"}  # the last: LONG VARCHAR FOR BIT DATA
LOBS = {"CLOB", "DBCLOB", "BLOB", "XML"}
MOMENTS = {"DATE", "TIME", "TIMESTAMP"}
_NEEDS_LENGTH = {"CHAR", "GRAPHIC", "BINARY"}

_COLUMN = re.compile(
    r"""\s*+(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<name>[^\s",()]+))\s++
    (?P<type>[A-Za-z]++(?:\s++(?:VARCHAR|VARGRAPHIC|VARYING|PRECISION))?)
    (?:\s*+\(\s*+(?P<first>\d{1,10})\s*+(?:,\s*+(?P<second>\d{1,3})\s*+)?\))?
    (?P<bits>\s++FOR\s++BIT\s++DATA)?(?P<required>\s++NOT\s++NULL)?\s*+\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_PIECES = re.compile(r'(?:"[^"]*+"|\([^()]*+\)|[^,"()]++)++')


@dataclass(frozen=True, slots=True)
class Db2Column:
    """A column as declared.

    Attributes:
        kind: Db2's name of the type, in one spelling; CHAR FOR BIT DATA is BINARY.
        length: characters or bytes declared; for DECIMAL its precision, for TIMESTAMP its digits.
        is_length_given: whether the length was declared; some formats require it.
    """

    name: str
    kind: str
    length: int
    scale: int
    is_nullable: bool
    is_length_given: bool

    @property
    def type(self) -> pa.DataType:
        """The type of its delivered values."""
        if self.kind == "DECIMAL":
            return pa.decimal128(self.length, self.scale)
        if self.kind == "TIMESTAMP":
            return pa.string() if self.length > _MICROSECOND_DIGITS else pa.timestamp("us")
        return _FIXED_TYPES[self.kind]


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """A table whose rows are typed; `name` is as in the bytes: OWNER.TABLE, or numbers."""

    name: str
    columns: tuple[Db2Column, ...]

    @property
    def type(self) -> pa.DataType:
        """The struct of its columns."""
        return pa.struct([pa.field(column.name, column.type) for column in self.columns])


def parse_tables(tables: Mapping[str, str]) -> tuple[DeclaredTable, ...]:
    """Read all declarations, in the order given.

    Raises:
        BadOption: a declaration cannot be read.
        UnsupportedColumn: a type is not supported by these formats.
    """
    return tuple(DeclaredTable(name, parse_columns(text, name)) for name, text in tables.items())


def parse_columns(text: str, table: str) -> tuple[Db2Column, ...]:
    """Read the columns of one table.

    >>> [column.type for column in parse_columns("a INT, b DECIMAL(9,2), c TIMESTAMP", "T")]
    [DataType(int32), Decimal128Type(decimal128(9, 2)), TimestampType(timestamp[us])]
    """
    pieces = _PIECES.findall(text)
    if not text.strip() or ",".join(pieces) != text:
        raise _unreadable(table, text)
    columns = tuple(_column(piece, table) for piece in pieces)
    names = [column.name.lower() for column in columns]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadOption(
            f"tables: {table} has two columns named {twice!r}; Spark ignores case in column names.",
            "Rename one of them: only the order of the columns matters.",
        )
    return columns


def _unreadable(table: str, piece: str) -> BadOption:
    return BadOption(
        f"tables: {piece.strip()!r} of {table} is not a column declaration.",
        "Write name, type and optionally NOT NULL, as in: id INTEGER NOT NULL, name VARCHAR(20).",
    )


def _column(piece: str, table: str) -> Db2Column:
    found = _COLUMN.match(piece)
    if found is None:
        raise _unreadable(table, piece)
    name = found["name"] or found["quoted"].replace('""', '"')
    written = " ".join(found["type"].upper().split())
    flags = (not found["required"], found["first"] is not None)
    kind = _SPELLINGS.get(written, written)
    if found["bits"]:
        kind = _BITS.get(kind, f"{kind} FOR BIT DATA")
    if kind not in _FIXED_TYPES and kind not in ("DECIMAL", "TIMESTAMP"):
        raise UnsupportedColumn(
            f"tables: column {name} of {table} has type {kind}, which these formats do not support.",
            "Declare the type of the stored bytes. Rows of undeclared tables are delivered as bytes.",
        )
    if written == "FLOAT" and found["first"]:
        return Db2Column(name, _float_of(int(found["first"]), f"{name} of {table}"), 0, 0, *flags)
    length, scale = _length(kind, found["first"], found["second"], f"{name} of {table}")
    return Db2Column(name, kind, length, scale, *flags)


def _float_of(digits: int, where: str) -> str:
    """Return the type of FLOAT(n), which is REAL up to 21 on z/OS and up to 24 elsewhere."""
    if not 1 <= digits <= 53 or 21 < digits < 25:
        raise BadOption(
            f"tables: column {where} is FLOAT({digits}), whose size depends on the platform or which is"
            " not valid.",
            "Write REAL for 4 bytes, or DOUBLE for 8.",
        )
    return "REAL" if digits <= 21 else "DOUBLE"


_DEFAULTS = {"DECIMAL": 5, "TIMESTAMP": 6, "CHAR": 1, "GRAPHIC": 1, "BINARY": 1, "DECFLOAT": 34}
_MOST = {"DECIMAL": MAX_PRECISION, "TIMESTAMP": 12, "DECFLOAT": 34}


def _length(kind: str, first: str | None, second: str | None, where: str) -> tuple[int, int]:
    length, scale = int(first or _DEFAULTS.get(kind, 0)), int(second or 0)
    least = 0 if kind == "TIMESTAMP" else 1
    if (first is not None and not least <= length <= _MOST.get(kind, 2**31)) or scale > length:
        raise BadOption(
            f"tables: column {where} has a length or scale that is not valid for {kind}.",
            f"Db2 allows a precision up to {MAX_PRECISION}, and TIMESTAMP(0) to TIMESTAMP(12).",
        )
    return length, scale
