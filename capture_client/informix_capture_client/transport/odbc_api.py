"""The ODBC functions we call, reached by ctypes in one C library.

Rule: this module knows ODBC and nothing of CDC. Only the narrow functions are used: the Informix
driver's wide ones take 4-byte characters on Linux, where every driver manager passes 2-byte ones.
The driver's library is loaded directly; a driver manager exports the same functions and is used
only when the user names its library. unixODBC asks a 4-byte driver for its errors through
SQLGetDiagRecW, and that overruns its buffers (measured with unixODBC 2.3.14: the process aborts).

`odbc_library` finds and loads the library. ctypes releases the GIL during every call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from ctypes import POINTER, c_char_p, c_int, c_short, c_size_t, c_ssize_t, c_ushort, c_void_p
from typing import Any

from informix_capture_client.errors import BadOption
from informix_capture_client.transport.odbc_errors import Diagnostic, OdbcFailure

ENVIRONMENT, CONNECTION, STATEMENT = 1, 2, 3
SUCCESS, SUCCESS_WITH_INFO, NO_DATA = 0, 1, 100
NULL_DATA, NTS, NO_TOTAL = -1, -3, -4
PARAM_INPUT, PARAM_OUTPUT = 1, 4
C_CHAR, C_LONG, C_BINARY, C_SBIGINT = 1, 4, -2, -25
SQL_CHAR, SQL_INTEGER, SQL_VARCHAR, SQL_BIGINT = 1, 4, 12, -5
ATTR_ODBC_VERSION, ODBC_3 = 200, 3
ATTR_AUTOCOMMIT, AUTOCOMMIT_ON = 102, 1
ATTR_LOGIN_TIMEOUT = 103
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

_MAX_DIAGNOSTICS = 16
_MAX_MESSAGE_BYTES = 32_766  # the most that a SQLSMALLINT can announce


class OdbcApi:
    """The functions of one loaded library, with the types they expect.

    Args:
        library: what `load_library` returned.
        decode: turns a message's bytes into text.
    """

    def __init__(self, library: ctypes.CDLL, decode: Callable[[bytes], str]) -> None:
        self._functions = {name: _function(library, name) for name in _PROTOTYPES}
        self._decode = decode

    def call(self, name: str, *arguments: Any) -> int:  # noqa: ANN401 - whatever ctypes converts
        """Call a function and return its code, whatever it is."""
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

    def call(self, name: str, *arguments: Any) -> int:  # noqa: ANN401 - whatever ctypes converts
        """Call a function on this handle; a warning is a success, an error is an `OdbcFailure`."""
        code = self._api.call(name, self.pointer, *arguments)
        if code not in (SUCCESS, SUCCESS_WITH_INFO, NO_DATA):
            raise OdbcFailure(list(self.diagnostics()))
        return code

    def attempt(self, name: str, *arguments: Any) -> int:  # noqa: ANN401 - as above
        """Call a function whose failure changes nothing for us; return its code."""
        return self._api.call(name, self.pointer, *arguments)

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Yield what the driver says about the last call."""
        return self._api.diagnostics(self._kind, self.pointer)

    def free(self) -> None:
        """Release the handle; the second time does nothing."""
        if self.pointer:
            self._api.call("SQLFreeHandle", self._kind, self.pointer)
            self.pointer = c_void_p()


def _function(library: ctypes.CDLL, name: str) -> Callable[..., int]:
    try:
        function = getattr(library, name)
    except AttributeError:
        raise BadOption(
            f"The library {library._name} is not an ODBC driver: it has no {name}.",
            "Name libthcli.so or iclit09b.so of the Client SDK in option driver.",
        ) from None
    function.argtypes, function.restype = _PROTOTYPES[name], c_short
    return function  # type: ignore[no-any-return]
