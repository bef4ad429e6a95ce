"""Call ODBC functions of a C library with ctypes.

Rule: this module is about ODBC only, not CDC. Only the narrow functions are used: the Informix driver's
wide ones take 4-byte characters on Linux, where every driver manager passes 2-byte ones. The driver's
library is loaded directly; a driver manager exports the same functions and is used only if the user
names its library. unixODBC requests a 4-byte driver's errors through SQLGetDiagRecW, and that overruns
its buffers (measured with unixODBC 2.3.14: the process aborts).

`odbc_library` finds and loads the library. ctypes releases the GIL during every call.
"""

from __future__ import annotations

import ctypes
import datetime
from collections.abc import Callable, Iterator, Sequence
from ctypes import POINTER, c_char_p, c_int, c_short, c_size_t, c_ssize_t, c_ushort, c_void_p
from typing import Any, NamedTuple

from informix_capture_client.errors import BadOption, ProtocolViolation
from informix_capture_client.transport.base import (
    MOST_RESULT_BYTES,
    VALUE_BYTES,
    Argument,
    Row,
    check_integer,
)
from informix_capture_client.transport.errors import Diagnostic, OdbcFailure
from informix_capture_client.transport.odbc.connection_strings import encode

ENVIRONMENT, CONNECTION, STATEMENT = 1, 2, 3
SUCCESS, SUCCESS_WITH_INFO, NO_DATA = 0, 1, 100
NULL_DATA, NTS, NO_TOTAL = -1, -3, -4
PARAM_INPUT, PARAM_OUTPUT = 1, 4
C_CHAR, C_LONG, C_BINARY, C_SBIGINT = 1, 4, -2, -25
C_DOUBLE, C_BIT, C_DATE, C_TIMESTAMP = 8, -7, 91, 93
SQL_CHAR, SQL_INTEGER, SQL_VARCHAR, SQL_BIGINT, SQL_DATE = 1, 4, 12, -5, 91
SQL_NUMERIC, SQL_DECIMAL, SQL_SMALLINT, SQL_FLOAT, SQL_REAL, SQL_DOUBLE = 2, 3, 5, 6, 7, 8
SQL_BIT, SQL_WCHAR, SQL_WVARCHAR, SQL_TIMESTAMP = -7, -8, -9, 93
SQL_DATE_2, SQL_TIMESTAMP_2, SQL_TIMES = 9, 11, (92, 10)  # `_2`: in ODBC 2
SQL_LONG_TEXTS, SQL_BINARIES = (-1, -10), (-2, -3, -4)
# YEAR, MONTH, YEAR TO MONTH; then those of days, hours, minutes and seconds; of ODBC 3 and of ODBC 2
SQL_INTERVALS_OF_MONTHS = (101, 102, 107, -80, -81, -82)
SQL_INTERVALS_OF_SECONDS = (*range(103, 107), *range(108, 114), *range(-92, -82))
# infxcli.h; the last five: SQL_INFX_UDT_FIXED, _VARYING, _BLOB, _CLOB, _LVARCHAR
SQL_INFX_DECIMAL, SQL_INFX_BIGINT, SQL_INFX_OPAQUE = -113, -114, (-100, -101, -102, -103, -104)
ATTR_ODBC_VERSION, ODBC_3 = 200, 3
ATTR_AUTOCOMMIT, AUTOCOMMIT_ON = 102, 1
ATTR_LOGIN_TIMEOUT = 103
ATTR_ROW_BIND_TYPE, BIND_BY_COLUMN = 5, 0
ATTR_ROW_STATUS_PTR, ATTR_ROWS_FETCHED_PTR, ATTR_ROW_ARRAY_SIZE = 25, 26, 27
ROW_SUCCESS, ROW_SUCCESS_WITH_INFO = 0, 6
CLOSE_CURSOR = 0
DRIVER_NAME, DRIVER_VERSION, DBMS_VERSION = 6, 7, 18

# SQLLEN and SQLULEN are 64 bits wide on 64-bit Linux, SQLSMALLINT 16 and SQLINTEGER 32.
_PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "SQLAllocHandle": (c_short, c_void_p, POINTER(c_void_p)),
    "SQLFreeHandle": (c_short, c_void_p),
    "SQLSetEnvAttr": (c_void_p, c_int, c_void_p, c_int),
    "SQLSetConnectAttr": (c_void_p, c_int, c_void_p, c_int),
    "SQLDriverConnect": (
        c_void_p,
        c_void_p,
        c_char_p,
        c_short,
        c_char_p,
        c_short,
        POINTER(c_short),
        c_ushort,
    ),
    "SQLGetInfo": (c_void_p, c_ushort, c_char_p, c_short, POINTER(c_short)),
    "SQLDisconnect": (c_void_p,),
    "SQLPrepare": (c_void_p, c_char_p, c_int),
    "SQLExecute": (c_void_p,),
    "SQLExecDirect": (c_void_p, c_char_p, c_int),
    "SQLBindParameter": (
        c_void_p,
        c_ushort,
        c_short,
        c_short,
        c_short,
        c_size_t,
        c_short,
        c_void_p,
        c_ssize_t,
        c_void_p,
    ),
    "SQLNumResultCols": (c_void_p, POINTER(c_short)),
    "SQLDescribeCol": (
        c_void_p,
        c_ushort,
        c_char_p,
        c_short,
        POINTER(c_short),
        POINTER(c_short),
        POINTER(c_size_t),
        POINTER(c_short),
        POINTER(c_short),
    ),
    "SQLSetStmtAttr": (c_void_p, c_int, c_void_p, c_int),
    "SQLBindCol": (c_void_p, c_ushort, c_short, c_void_p, c_ssize_t, c_void_p),
    "SQLFetch": (c_void_p,),
    "SQLGetData": (c_void_p, c_ushort, c_short, c_void_p, c_ssize_t, c_void_p),
    "SQLFreeStmt": (c_void_p, c_ushort),
    "SQLGetDiagRec": (
        c_short,
        c_void_p,
        c_short,
        c_char_p,
        POINTER(c_int),
        c_char_p,
        c_short,
        POINTER(c_short),
    ),
}

_PIECE_BYTES = 65_536
_MOST_VALUE_BYTES = 1 << 31
_DATE_DIGITS = 10
_MAX_DIAGNOSTICS = 16
_MAX_MESSAGE_BYTES = 32_766  # the most that a SQLSMALLINT can announce


class OdbcApi:
    """The functions of one loaded library, with the types they expect.

    Args:
        library: the result of `load_library`.
        decode: decodes a message's bytes.
    """

    def __init__(self, library: ctypes.CDLL, decode: Callable[[bytes], str]) -> None:
        self._functions = {name: _function(library, name) for name in _PROTOTYPES}
        self._decode = decode

    def call(self, name: str, *arguments: Any) -> int:  # noqa: ANN401 - any type that ctypes converts
        """Call a function and return its return code."""
        return int(self._functions[name](*arguments))

    def open_handle(self, kind: int, parent: Handle | None = None) -> Handle:
        """Allocate a handle under its parent."""
        pointer = c_void_p()
        above = parent.pointer if parent else None
        code = self.call("SQLAllocHandle", kind, above, ctypes.byref(pointer))
        if code not in (SUCCESS, SUCCESS_WITH_INFO):
            raise OdbcFailure(list(parent.diagnostics()) if parent else [])
        return Handle(self, kind, pointer)

    def diagnostics(self, kind: int, pointer: c_void_p) -> Iterator[Diagnostic]:
        """Yield every diagnostic record of the last call on a handle."""
        state = ctypes.create_string_buffer(6)
        native, length = c_int(), c_short()
        text = ctypes.create_string_buffer(_MAX_MESSAGE_BYTES + 1)
        for number in range(1, _MAX_DIAGNOSTICS + 1):
            code = self.call(
                "SQLGetDiagRec",
                kind,
                pointer,
                number,
                state,
                ctypes.byref(native),
                text,
                _MAX_MESSAGE_BYTES,
                ctypes.byref(length),
            )
            if code not in (SUCCESS, SUCCESS_WITH_INFO):
                return
            sqlstate = state.value.decode("ascii", "replace")
            yield Diagnostic(sqlstate, native.value, self._decode(text.value))


class Handle:
    """An environment, connection or statement, and the calls made on it."""

    def __init__(self, api: OdbcApi, kind: int, pointer: c_void_p) -> None:
        self._api = api
        self._kind = kind
        self.pointer = pointer

    def call(self, name: str, *arguments: Any) -> int:  # noqa: ANN401 - any type that ctypes converts
        """Call a function on this handle; a warning is a success, an error is an `OdbcFailure`."""
        code = self._api.call(name, self.pointer, *arguments)
        if code not in (SUCCESS, SUCCESS_WITH_INFO, NO_DATA):
            raise OdbcFailure(list(self.diagnostics()))
        return code

    def failure(self) -> OdbcFailure:
        """Return the failure for a call that succeeded only partly."""
        return OdbcFailure(list(self.diagnostics()))

    def attempt(self, name: str, *arguments: Any) -> int:  # noqa: ANN401 - as above
        """Call a function whose failure can be ignored; return its return code."""
        return self._api.call(name, self.pointer, *arguments)

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Yield the diagnostics of the last call."""
        return self._api.diagnostics(self._kind, self.pointer)

    def free(self) -> None:
        """Release the handle; further calls do nothing."""
        if self.pointer:
            self._api.call("SQLFreeHandle", self._kind, self.pointer)
            self.pointer = c_void_p()


class _Date(ctypes.Structure):
    """SQL_DATE_STRUCT."""

    _fields_ = (("year", ctypes.c_int16), ("month", ctypes.c_uint16), ("day", ctypes.c_uint16))


class OdbcColumn(NamedTuple):
    """A column of a result as the driver describes it: SQL type, size in bytes or digits, scale."""

    type: int
    length: int
    scale: int


class OdbcQuery:
    """A statement: bind, execute, fetch. Keeps bound buffers alive until it is closed."""

    def __init__(self, statement: Handle, codec: str) -> None:
        self.statement = statement
        self._codec = codec
        self._bound: list[object] = []
        self._piece = ctypes.create_string_buffer(_PIECE_BYTES)
        self._length = ctypes.c_ssize_t()

    def execute(self, text: str, arguments: Sequence[Argument]) -> None:
        """Prepare, bind the arguments and execute."""
        encoded = encode(text, self._codec)
        self.statement.call("SQLPrepare", encoded, len(encoded))
        for number, argument in enumerate(arguments, 1):
            if isinstance(argument, int):
                value = ctypes.c_int64(check_integer(argument))
                self._bind(number, C_SBIGINT, SQL_BIGINT, 0, value, 8)
            elif isinstance(argument, str):
                self._bind_text(number, encode(argument, self._codec, "surrogateescape"))
            else:
                self._bind_date(number, argument)
        self.statement.call("SQLExecute")

    def keep(self, buffer: object) -> None:
        """Keep buffers that the driver may write to alive until the statement is freed."""
        self._bound.append(buffer)

    def described(self) -> list[OdbcColumn]:
        """Return the columns of the result, after `execute`."""
        count = c_short()
        self.statement.call("SQLNumResultCols", ctypes.byref(count))
        return [self._described(place) for place in range(1, count.value + 1)]

    def _described(self, place: int) -> OdbcColumn:
        name_bytes, kind, scale, nullable, size = c_short(), c_short(), c_short(), c_short(), c_size_t()
        shorts = (ctypes.byref(kind), ctypes.byref(size), ctypes.byref(scale), ctypes.byref(nullable))
        self.statement.call("SQLDescribeCol", place, None, 0, ctypes.byref(name_bytes), *shorts)
        # a driver that stores 4 bytes of the size leaves the other four
        return OdbcColumn(kind.value, size.value & 0xFFFFFFFF, scale.value)

    def close(self) -> None:
        """Free the statement, then its bound buffers."""
        self.statement.free()
        self._bound.clear()

    def _bind_date(self, number: int, day: datetime.date) -> None:
        value = _Date(day.year, day.month, day.day)
        size = ctypes.sizeof(value)
        self._bind(number, C_DATE, SQL_DATE, _DATE_DIGITS, value, size)

    def _bind_text(self, number: int, value: bytes) -> None:
        # a column size of 0 is an error in ODBC, even for an empty text
        buffer = ctypes.create_string_buffer(value)
        self._bind(number, C_CHAR, SQL_VARCHAR, max(len(value), 1), buffer, len(value))

    def _bind(
        self, number: int, c_type: int, sql_type: int, size: int, value: ctypes._CData, length: int
    ) -> None:
        indicator = ctypes.c_ssize_t(length)
        self._bound += [value, indicator]
        self.statement.call(
            "SQLBindParameter",
            number,
            PARAM_INPUT,
            c_type,
            sql_type,
            size,
            0,
            ctypes.addressof(value),
            length,
            ctypes.addressof(indicator),
        )

    def rows(self) -> Iterator[Row]:
        """Fetch row by row; every value as text.

        Raises:
            ProtocolViolation: the result exceeds the memory limit.
        """
        count, total_bytes = ctypes.c_short(), 0
        self.statement.call("SQLNumResultCols", ctypes.byref(count))
        while count.value and self.statement.call("SQLFetch") != NO_DATA:
            row = tuple(self._text(column) for column in range(1, count.value + 1))
            total_bytes += sum(VALUE_BYTES + len(value or "") for value in row)
            if total_bytes > MOST_RESULT_BYTES:
                raise ProtocolViolation(
                    f"The server sent {total_bytes} bytes of rows for one query.",
                    "Check that host, port and server name the right database server.",
                )
            yield row

    def _text(self, column: int) -> str | None:
        raw = self.value(column)
        return None if raw is None else raw.decode(self._codec, "replace")

    def value(self, column: int, c_type: int = C_CHAR) -> bytes | None:
        """Return a column of the last fetched row; text is in the driver's code set.

        Raises:
            ProtocolViolation: the driver reports more than 2 GiB, the maximum of ODBC.
        """
        pieces: list[bytes] = []
        more = True
        while more:
            more, piece = self._next_piece(column, c_type)
            if piece is None:
                return None
            pieces.append(piece)
            if len(pieces) * _PIECE_BYTES > _MOST_VALUE_BYTES:
                raise ProtocolViolation(
                    f"The driver returned {len(pieces)} pieces of a value and reports more.",
                    "Report this error with the driver's version.",
                )
        return b"".join(pieces)

    def _next_piece(self, column: int, c_type: int) -> tuple[bool, bytes | None]:
        """Return whether more follows, and the piece; the NUL that ends a text is not data."""
        most = _PIECE_BYTES - (c_type != C_BINARY)
        self._length.value = 0
        self._piece[0] = b"\0"
        target, length = ctypes.addressof(self._piece), ctypes.addressof(self._length)
        code = self.statement.call("SQLGetData", column, c_type, target, _PIECE_BYTES, length)
        left = low_32_bits(self._length)
        if code == NO_DATA:
            return False, b""
        if left == NULL_DATA:
            return False, None
        if left == NTS:  # a length for arguments: here it says that the text ends with its NUL
            return code == SUCCESS_WITH_INFO, self._piece.value
        if left == NO_TOTAL or left > most:
            return True, self._piece.raw[:most]
        if left < 0:
            raise OdbcFailure([Diagnostic("HY000", left, "SQLGetData returned a negative length")])
        return False, ctypes.string_at(target, left)


def low_32_bits(indicator: ctypes.c_ssize_t) -> int:
    """Read an indicator that the driver may have written with 4 or 8 bytes."""
    return ctypes.c_int32(indicator.value & 0xFFFFFFFF).value


def _function(library: ctypes.CDLL, name: str) -> Callable[..., int]:
    try:
        function = getattr(library, name)
    except AttributeError:
        raise BadOption(
            f"The library {library._name} is not an ODBC driver: it has no function {name}.",
            "Set option driver to libthcli.so or iclit09b.so of the Client SDK.",
        ) from None
    function.argtypes, function.restype = _PROTOTYPES[name], c_short
    return function  # type: ignore[no-any-return]
