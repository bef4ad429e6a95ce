"""Build the requests of an open connection, without the final SQ_EOT.

Rule: identical to IBM's JDBC driver 4.50.11; the golden test lists the differences.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

from informix_capture_client.errors import BadOption
from informix_capture_client.transport.sqli.describing import (
    Description,
    Opaque,
    Routine,
    SqliColumn,
    SqliType,
)
from informix_capture_client.transport.sqli.messages import Message, long_padded, padded, u16, u32

# texts, quoted names and comments, whose question marks IBM's driver does not count either
# One that is not closed goes to the end: looking for the end of each again would take quadratic time.
_NOT_PARAMETERS = re.compile(
    rb"'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z)|--[^\n]*|/\*.*?(?:\*/|\Z)|\{[^}]*(?:\}|\Z)", re.DOTALL
)
Request = list[bytes]
BindValue = int | bytes | None

FETCH_BYTES = 4096  # or a row's, where that is longer: seen with IBM's driver 4.50.11 and 15.0.1.0
# FET_BUF_SIZE, by which IBM's driver asks for more, is at most 2 GB, and 32,767 bytes before 11.70.xC5
_CHUNK_BYTES = 32_000
_INT_PRECISION, _BIGINT_PRECISION = 0x0A00, 0x1300
_NULL_INT, _NULL_BIGINT = -(1 << 31), -(1 << 63)  # these patterns mean NULL


def information() -> Request:
    """Send the session's dbspace for temporary tables and its number of cached sub-queries."""
    pairs = padded(b"DBTEMP") + padded(b"/tmp") + padded(b"SUBQCACHESZ") + padded(b"10")
    longest_name, longest_value = len(b"SUBQCACHESZ") + 1, len(b"/tmp")
    head = u16(Message.SQ_INFO, 6, 6 + len(pairs), longest_name, longest_value)
    return [head + pairs + u16(0, 0)]


def open_database(name: bytes) -> Request:
    """Open a database for shared use."""
    return [u16(Message.SQ_DBOPEN) + padded(name) + u16(0)]


def prepare(text: bytes) -> Request:
    """Prepare a statement and request its description."""
    count = _NOT_PARAMETERS.sub(b"", text).count(b"?")
    return [
        u16(Message.SQ_PREPARE, count) + long_padded(text),
        u16(Message.SQ_NDESCRIBE),
        u16(Message.SQ_WANTDONE),
    ]


def open_cursor(statement: int, serial: int, values: Sequence[BindValue]) -> Request:
    """Open a cursor over a prepared statement."""
    name = b"_ifxc%013d" % serial
    bound = [bind(values)] if values else []
    return [_of(statement), u16(Message.SQ_CURNAME) + padded(name), *bound, u16(Message.SQ_OPEN)]


def execute(statement: int, values: Sequence[BindValue]) -> Request:
    """Execute a prepared statement without result rows."""
    bound = [bind(values)] if values else []
    return [_of(statement), *bound, u16(Message.SQ_EXECUTE)]


def bind(values: Sequence[BindValue]) -> bytes:
    """Bind values to a statement's parameters."""
    return u16(Message.SQ_BIND, len(values)) + b"".join(_bound(value) for value in values)


def _bound(value: BindValue) -> bytes:
    if value is None:
        return u16(SqliType.INTEGER, 0xFFFF, 0)
    if isinstance(value, bytes):
        return u16(SqliType.LVARCHAR_BIND, 0, 0, 0, 0) + long_padded(value)
    if _NULL_INT < value < 1 << 31:
        return u16(SqliType.INTEGER, 0, _INT_PRECISION) + struct.pack(">i", value)
    if _NULL_BIGINT < value < 1 << 63:
        return u16(SqliType.BIGINT, 0, _BIGINT_PRECISION) + struct.pack(">q", value)
    raise BadOption(
        f"The number {value} does not fit into an Informix 64-bit integer (one bit pattern is NULL)."
    )


def fetch(described: Description, room: int = FETCH_BYTES) -> Request:
    """Fetch the next rows, up to a number of bytes, but at least one."""
    return [_of(described.number), *_result_types(described.columns), _fetch(described, room)]


def fetch_more(described: Description, room: int = FETCH_BYTES) -> Request:
    """Fetch the following rows."""
    return [_of(described.number), _fetch(described, room)]


def _fetch(described: Description, room: int) -> bytes:
    return u16(Message.SQ_NFETCH) + u32(max(room, described.row_bytes)) + u16(0)


_OF_VARIABLE_SIZE: set[int] = {
    SqliType.VARCHAR,
    SqliType.NVARCHAR,
    SqliType.OPAQUE_VARIABLE,
    SqliType.OPAQUE_FIXED,
    SqliType.LVARCHAR_BIND,
    SqliType.OPAQUE_BIND,
    SqliType.BOOLEAN_BIND,
}
_NAMED = {SqliType.LVARCHAR_BIND, SqliType.OPAQUE_BIND, SqliType.BOOLEAN_BIND}
_BOOLEAN_ID = 5


def has_variable_size(columns: Sequence[SqliColumn]) -> bool:
    """Return whether IBM's driver sends result types before fetching."""
    return any(column.type in _OF_VARIABLE_SIZE for column in columns)


def _result_types(columns: Sequence[SqliColumn]) -> list[bytes]:
    if not has_variable_size(columns):
        return []
    return [u16(Message.SQ_RET_TYPE, 1, len(columns)) + b"".join(map(_result_type, columns))]


def _result_type(column: SqliColumn) -> bytes:
    kind = _sent_as(column)
    name = padded(column.owner.encode()) + padded(column.type_name.encode()) if kind in _NAMED else b""
    return u16(kind) + name + u32(column.length)


def _sent_as(column: SqliColumn) -> int:
    """Return the request of a type; an opaque type is requested by name, as it is bound."""
    if column.type == SqliType.OPAQUE_VARIABLE:
        return SqliType.LVARCHAR_BIND
    if column.type != SqliType.OPAQUE_FIXED:
        return column.type
    is_boolean = column.extended_id == _BOOLEAN_ID or column.type_name == "boolean"
    return SqliType.BOOLEAN_BIND if is_boolean else SqliType.OPAQUE_BIND


def close_cursor(statement: int) -> Request:
    """Close a statement's cursor."""
    return [_of(statement), u16(Message.SQ_CLOSE)]


def release(statement: int) -> Request:
    """Free a prepared statement."""
    return [_of(statement), u16(Message.SQ_RELEASE)]


def read_large_object(descriptor: int, max_bytes: int) -> Request:
    """Read from a smart large object, or from a capture session, whose number has 16 bits here."""
    head = u16(Message.SQ_LODATA, 0, descriptor & 0xFFFF)
    return [head + u32(max_bytes) + u16(_CHUNK_BYTES)]


def fetch_simple_object(statement: int, descriptor: bytes, size: int) -> Request:
    """Request the value of a TEXT or BYTE of a row; the descriptor is padded to a fixed size."""
    return [_of(statement), u16(Message.SQ_FETCHBLOB) + descriptor.ljust(size, b"\0")]


def find_routine(signature: bytes) -> Request:
    """Request the number of a routine for fast-path calls (gbase8sdb 1.1.1)."""
    return [u16(Message.SQ_GETROUTINE) + b"\0" + long_padded(signature) + u16(0)]


def call_routine(found: Routine, values: Sequence[int | Opaque]) -> Request:
    """Call a routine."""
    head = u16(Message.SQ_EXFPROUTINE) + padded(found.database) + u32(found.number)
    bound = b"".join(_bound(value) if isinstance(value, int) else _opaque(value) for value in values)
    return [head + u16(len(values), 0), u16(Message.SQ_BIND, len(values)) + bound]


def _opaque(value: Opaque) -> bytes:
    name = padded(value.type_name.encode())
    return u16(SqliType.OPAQUE_BIND, 0) + name + u16(0, 0) + long_padded(value.data)


def _of(statement: int) -> bytes:
    return u16(Message.SQ_ID, statement)
