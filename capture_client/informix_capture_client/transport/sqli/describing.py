"""Read SQ_DESCRIBE: the columns of a prepared statement, and their type numbers.

Rule: a description is read completely and validated before rows are read. Columns may refer to the same
text, so each name has a size limit: 64 KB of columns that share a name of 1 MB would otherwise take 64
GB.

Source: descriptions that IBM's JDBC driver 4.50.11 reads, column by column, of 18 types.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from informix_capture_client.transport.sqli.incoming import Incoming

# a row holds 32,767 bytes (Administrator's Reference, "System limits"), and each column takes one
_MOST_COLUMNS = 32_767
_MOST_NAME_BYTES = (
    512  # an identifier has 128 bytes (SQL Syntax, "Identifier"); room for other code sets
)
_TYPE_BITS = 0xFF  # above: 0x100 NOT NULL, 0x800 distinct


class SqliType(IntEnum):
    """Values of syscolumns.coltype (SQL Reference); 43 and 45 as IBM's JDBC driver binds them."""

    CHAR = 0
    SMALLINT = 1
    INTEGER = 2
    FLOAT = 3
    SMALLFLOAT = 4
    DECIMAL = 5
    SERIAL = 6
    DATE = 7
    MONEY = 8
    NULL = 9
    DATETIME = 10
    BYTE = 11
    TEXT = 12
    VARCHAR = 13
    INTERVAL = 14
    NCHAR = 15
    NVARCHAR = 16
    INT8 = 17
    SERIAL8 = 18
    SET = 19
    MULTISET = 20
    LIST = 21
    ROW = 22
    COLLECTION = 23
    OPAQUE_VARIABLE = 40
    OPAQUE_FIXED = 41
    LVARCHAR_BIND = 43
    OPAQUE_BIND = 44
    BOOLEAN_BIND = 45
    BIGINT = 52
    BIGSERIAL = 53


class StatementKind(IntEnum):
    """Kinds of statements that a client handles differently."""

    SELECT = 2
    EXECUTE = 56  # EXECUTE FUNCTION


@dataclass(frozen=True, slots=True)
class SqliColumn:
    """A column of a result; `length` is encoded as in syscolumns.collength."""

    name: str
    type: int
    length: int
    extended_id: int = 0
    owner: str = ""
    type_name: str = ""


@dataclass(frozen=True, slots=True)
class Description:
    """A prepared statement; `row_bytes` is the maximum size of a row."""

    kind: int
    number: int
    columns: tuple[SqliColumn, ...]
    row_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Routine:
    """A routine for fast-path calls."""

    database: bytes
    number: int


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value of an opaque type, for a routine."""

    type_name: str
    data: bytes


def read_description(incoming: Incoming) -> Description:
    """Read the fields of an SQ_DESCRIBE."""
    kind, number = incoming.u16(), incoming.u16()
    incoming.take(4)  # cost
    row_bytes = incoming.u16()
    count = incoming.u16()
    if count > _MOST_COLUMNS:
        incoming.refuse(f"a description of {count} columns")
    table_bytes = incoming.u32()
    heads = [_read_head(incoming) for _ in range(count)]
    table = incoming.padded_bytes(table_bytes)
    columns = [_named(incoming, table, place, head) for place, head in heads]
    return Description(kind, number, tuple(columns), row_bytes)


def _read_head(incoming: Incoming) -> tuple[int, SqliColumn]:
    """Read one column; its name follows after all columns, at the returned offset."""
    place = incoming.u32()
    incoming.u32()  # where its bytes begin in a row, if those before are as long as they may be
    kind, extended_id = incoming.u16() & _TYPE_BITS, incoming.u32()
    owner = _text(incoming.padded(_MOST_NAME_BYTES))
    type_name = _text(incoming.padded(_MOST_NAME_BYTES))
    incoming.take(8)
    return place, SqliColumn("", kind, incoming.u32(), extended_id, owner, type_name)


def _named(incoming: Incoming, table: bytes, place: int, head: SqliColumn) -> SqliColumn:
    end = table.find(b"\0", place)
    if place > len(table) or end < 0:
        incoming.refuse(f"a description whose name at {place} is not in its {len(table)} bytes")
    if end - place > _MOST_NAME_BYTES:
        incoming.refuse(f"a column's name of {end - place} bytes")
    name = _text(table[place:end])
    return SqliColumn(name, head.type, head.length, head.extended_id, head.owner, head.type_name)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
