"""The ODBC functions we call, reached by ctypes in one C library.

Rule: this module knows ODBC and nothing of CDC. Only the narrow functions are used: the Informix
driver's wide ones take 4-byte characters on Linux, where every driver manager passes 2-byte ones.
The driver's library is loaded directly; a driver manager exports the same functions and is used
only when the user names its library. unixODBC asks a 4-byte driver for its errors through
SQLGetDiagRecW, and that overruns its buffers (measured with unixODBC 2.3.14: the process aborts).

Nothing is loaded before `load_library` is called. ctypes releases the GIL during every call.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from ctypes import POINTER, c_char_p, c_int, c_short, c_size_t, c_ssize_t, c_ushort, c_void_p
from pathlib import Path
from typing import Any

from informix_capture_client.dialects import INFORMIX, Dialect
from informix_capture_client.errors import AccessRefused, BadOption
from informix_capture_client.transport.odbc_errors import Diagnostic, OdbcFailure

ENVIRONMENT, CONNECTION, STATEMENT = 1, 2, 3
SUCCESS, SUCCESS_WITH_INFO, NO_DATA = 0, 1, 100
NULL_DATA, NO_TOTAL = -1, -4
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


def is_driver_manager(path: str) -> bool:
    """Whether the library is unixODBC's or iODBC's, which hands everything to a driver."""
    return Path(path).name.startswith(("libodbc.", "libiodbc."))


def find_driver(named: str, environment: Mapping[str, str], dialect: Dialect = INFORMIX) -> str:
    """Return the library to load: the one named, else the product's under INFORMIXDIR or GBASEDBTDIR.

    A bare name such as libodbc.so.2 is left to the system's loader.
    """
    if named:
        if "/" in named and not Path(named).is_file():
            raise BadOption(f"The ODBC driver {named} does not exist.", "Correct option driver.")
        return named
    home = environment.get(dialect.home, "")
    places = [Path(home, "lib", "cli", name) for name in dialect.libraries] if home else []
    for place in places:
        if place.is_file():
            return str(place)
    searched = ", ".join(map(str, places)) or f"{dialect.home} is not set"
    raise AccessRefused(
        f"No {dialect.product} ODBC driver was found ({searched}).",
        f"Install the {dialect.product} Client SDK and set {dialect.home},"
        f" or name its {dialect.libraries[0]} in option driver.",
    )


def installation_of(driver: str) -> Path | None:
    """Return the client kit that a driver lies in: `<dir>/lib/cli/x.so` gives `<dir>`."""
    for path in (Path(driver).absolute(), Path(driver).resolve()):
        if path.parts[-3:-1] == ("lib", "cli"):
            return path.parents[2]
    return None


def load_library(
    driver: str,
    environment: MutableMapping[str, str] = os.environ,
    dlopen: Callable[..., ctypes.CDLL] = ctypes.CDLL,
    dialect: Dialect = INFORMIX,
) -> ctypes.CDLL:
    """Load the driver, and before it whatever libraries of its installation it asks for.

    Raises:
        BadOption: it cannot be loaded; the message says what the system's loader missed.
    """
    if is_driver_manager(driver) or "/" not in driver:
        return _open_plainly(driver, dialect, dlopen)
    installation = installation_of(driver)
    if installation and not environment.get(dialect.home):
        # the driver looks there for its messages and locales, and reads the variable when it loads
        environment[dialect.home] = str(installation)
    folders = _library_folders(driver, installation, environment.get(dialect.home, ""))
    return _Preloader(driver, dialect, folders, dlopen).open()


def _open_plainly(driver: str, dialect: Dialect, dlopen: Callable[..., ctypes.CDLL]) -> ctypes.CDLL:
    try:
        return dlopen(driver)
    except OSError as reason:
        raise _not_loadable(driver, dialect, str(reason)) from None


def _not_loadable(driver: str, dialect: Dialect, reason: str) -> BadOption:
    return BadOption(
        f"The ODBC driver {driver} cannot be loaded: {reason}.",
        f"Correct option driver, or set LD_LIBRARY_PATH to ${dialect.home}/lib, lib/esql and lib/cli"
        " before Python starts.",
    )


def _library_folders(driver: str, installation: Path | None, home: str) -> list[Path]:
    """The client kit's folders, in the order its manual gives for LD_LIBRARY_PATH.

    The driver's own kit goes before the environment's: libraries of two releases do not mix.
    """
    roots = [installation] if installation else []
    roots += [Path(home)] if home else []
    below = [root / "lib" / name for root in roots for name in ("", "esql", "cli")]
    return [Path(driver).absolute().parent, *below]


# glibc's words, the only C library the driver is built for
_MISSING = re.compile(r"^(?P<name>[^\s/:]+): cannot open shared object file")


class _Preloader:
    """Opens a library whose dependencies the system's loader cannot find.

    LD_LIBRARY_PATH is read when the process starts, so setting it here would do nothing. Instead we
    let the load fail, take the missing library's name from the loader's message, open that one by
    its full path, and try again: a library that is already open is found by its SONAME. Unlike
    reading DT_NEEDED this needs no ELF parser, follows dependencies of dependencies and opens
    nothing that is found without help. Each name is tried once, so it ends.

    What is needed is opened with RTLD_GLOBAL, for libraries that use another one's symbols without
    naming it; the driver itself is not, or its functions could stand in for a driver manager's.
    """

    def __init__(
        self, driver: str, dialect: Dialect, folders: list[Path], dlopen: Callable[..., ctypes.CDLL]
    ) -> None:
        self._driver = driver
        self._dialect = dialect
        self._folders = folders
        self._dlopen = dlopen
        self._tried: set[str] = set()

    def open(self) -> ctypes.CDLL:
        """Return the driver, loaded."""
        return self._open(str(Path(self._driver).absolute()), ctypes.RTLD_LOCAL)

    def _open(self, path: str, mode: int) -> ctypes.CDLL:
        while True:
            try:
                return self._dlopen(path, mode=mode)
            except OSError as reason:
                self._open_missing(str(reason))

    def _open_missing(self, reason: str) -> None:
        """Open the library that the loader's message names, or give up."""
        match = _MISSING.match(reason)
        name = match["name"] if match else ""
        path = next((each / name for each in self._folders if (each / name).is_file()), None)
        if not name or path is None or name in self._tried:
            raise _not_loadable(self._driver, self._dialect, reason) from None
        self._tried.add(name)
        self._open(str(path), ctypes.RTLD_GLOBAL)
