"""Find the ODBC driver, load it with what it depends on, and ask it for its version.

Rule: nothing is loaded on import. The driver's dependent libraries are opened by full path, because
LD_LIBRARY_PATH is read only when a process starts.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from informix_capture_client.dialects import INFORMIX, Dialect
from informix_capture_client.errors import AccessRefused, BadOption
from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.odbc import api as odbc
from informix_capture_client.transport.odbc.elf_header import build_of, build_of_this_python

_MAX_INFO_BYTES = 512
_CLIENT_LOCALE = "en_us.utf8"  # the default, in which texts come without a driver too
# glibc's words, the only C library the driver is built for
_MISSING = re.compile(r"^(?P<name>[^\s/:]+): cannot open shared object file")


@dataclass(frozen=True, slots=True)
class DriverInfo:
    """What SQLGetInfo names: the driver's file and version, and the server's version."""

    name: str
    version: str
    server_version: str


def load_driver(settings: ConnectionSettings) -> tuple[str, ctypes.CDLL]:
    """Find and load the driver's library; return the path it was loaded by, and the library.

    Raises:
        AccessRefused, BadOption: there is none, or the system's loader refuses it.
    """
    try:
        driver = find_driver(settings.driver, os.environ, settings.dialect)
    except AccessRefused as reason:
        if asking := _asking_for_driver(settings):
            raise AccessRefused(
                f"{reason.message.removesuffix('.')}, and option {asking} requires one.",
                f"{reason.remedy.removesuffix('.')}, if option {asking} is not set.",
            ) from None
        raise
    return driver, load_library(driver, dialect=settings.dialect)


def _asking_for_driver(settings: ConnectionSettings) -> str:
    """Return the option that means nothing without a driver; empty if there is none."""
    if settings.extra:
        return "connectionString"
    return "clientLocale" if settings.client_locale.lower() != _CLIENT_LOCALE else ""


def read_driver_info(connection: odbc.Handle, codec: str) -> DriverInfo:
    """Ask the driver over a connection of it; SQLGetInfo's texts are in the connection's code set."""
    kinds = (odbc.DRIVER_NAME, odbc.DRIVER_VERSION, odbc.DBMS_VERSION)
    return DriverInfo(*(_info(connection, kind).decode(codec, "replace").strip() for kind in kinds))


def _info(connection: odbc.Handle, kind: int) -> bytes:
    text, length = ctypes.create_string_buffer(_MAX_INFO_BYTES), ctypes.c_short()
    connection.call("SQLGetInfo", kind, text, _MAX_INFO_BYTES, ctypes.byref(length))
    return text.value


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
        f" or set option driver to its {dialect.libraries[0]}; transport=sqli needs no driver.",
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
    built, wanted = build_of(driver), build_of_this_python()
    if built is not None and built != wanted:
        return BadOption(
            f"The ODBC driver {driver} is built for {built}, but this Python is {wanted}.",
            f"Install the {dialect.product} Client SDK for {wanted}, or run Spark's driver on a host of"
            f" {built}; option driver names the library. transport=sqli needs no driver.",
        )
    return BadOption(
        f"The ODBC driver {driver} cannot be loaded: {reason}.",
        f"Correct option driver, or set LD_LIBRARY_PATH to ${dialect.home}/lib, lib/esql and lib/cli"
        " before Python starts; transport=sqli needs no driver.",
    )


def _library_folders(driver: str, installation: Path | None, home: str) -> list[Path]:
    """The client kit's folders, in the order its manual gives for LD_LIBRARY_PATH.

    The driver's own kit goes before the environment's: libraries of two releases do not mix.
    """
    roots = [installation] if installation else []
    roots += [Path(home)] if home else []
    below = [root / "lib" / name for root in roots for name in ("", "esql", "cli")]
    return [Path(driver).absolute().parent, *below]


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
