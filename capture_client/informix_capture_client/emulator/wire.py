"""Requests and responses of the emulator's protocol, as bytes.

Rule: docs/emulator-protocol.md, nothing else; all integers are little-endian.
"""

from __future__ import annotations

import struct

from .connection import Answer, Parameter
from .sql_errors import SqlError

CONNECT, EXECUTE, CANCEL = b"C", b"X", b"K"
LENGTH_BYTES = 4
_NULL = 0xFFFFFFFF
_OUT = 4  # SQL_PARAM_OUTPUT
_INTEGER, _BIGINT, _VARCHAR = (4, 10), (-5, 19), (12, 255)  # SQL type, column size
_U32 = struct.Struct("<I")
_PARAMETER = struct.Struct("<BI")


class MalformedRequest(Exception):
    """The bytes are not a request of the protocol."""


def parse_execute(message: bytes) -> tuple[str, list[Parameter]]:
    """Read statement and parameters of an execute request."""
    try:
        (length,) = _U32.unpack_from(message, 1)
        place = 5 + length
        statement = message[5:place].decode()
        count, place = message[place], place + 1
        parameters = []
        for _ in range(count):
            parameter, place = _parameter(message, place)
            parameters.append(parameter)
    except (struct.error, IndexError, UnicodeDecodeError) as reason:
        raise MalformedRequest(str(reason)) from reason
    return statement, parameters


def success(answer: Answer) -> bytes:
    """Build the response of a statement that succeeded."""
    return _response(_header(answer), answer.out)


def connected() -> bytes:
    """Build the response of a connection that is admitted."""
    return _response(struct.pack("<b", 0))


def failure(error: SqlError) -> bytes:
    """Build the response of a statement that failed."""
    text = error.message.encode()
    head = struct.pack("<b5siH", 2, error.sqlstate.encode(), error.native, len(text))
    return _response(head + text)


def _response(header: bytes, out: bytes = b"") -> bytes:
    return struct.pack("<II", len(header), len(out)) + header + out


def _header(answer: Answer) -> bytes:
    columns, rows = answer.result.columns, answer.result.rows
    parts = [struct.pack("<bqH", 0, answer.row_count, len(columns))]
    parts += [_column(name, [row[place] for row in rows]) for place, name in enumerate(columns)]
    parts.append(_U32.pack(len(rows)))
    parts += [_cell(value) for row in rows for value in row]
    return b"".join(parts)


def _column(name: str, values: list[str | int | None]) -> bytes:
    label = name.encode()
    return bytes((len(label),)) + label + struct.pack("<hI", *_sql_type(values))


def _sql_type(values: list[str | int | None]) -> tuple[int, int]:
    numbers = [value for value in values if isinstance(value, int)]
    if not numbers:
        return _VARCHAR
    return _INTEGER if max(map(abs, numbers)) < 1 << 31 else _BIGINT


def _cell(value: str | int | None) -> bytes:
    if value is None:
        return struct.pack("<i", -1)
    text = str(value).encode()
    return struct.pack("<i", len(text)) + text


def _parameter(message: bytes, place: int) -> tuple[Parameter, int]:
    direction, length = _PARAMETER.unpack_from(message, place)
    place += _PARAMETER.size
    if direction == _OUT:
        return Parameter(room=length), place
    if length == _NULL:
        return Parameter(), place
    end = place + length
    if end > len(message):
        raise MalformedRequest("a parameter is longer than its message")
    return Parameter(message[place:end].decode()), end
