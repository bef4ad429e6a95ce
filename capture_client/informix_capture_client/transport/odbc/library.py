"""Find the ODBC driver, load it with its dependencies, and query its version.

Rule: nothing is loaded on import. The driver's dependent libraries are opened by full path, because
LD_LIBRARY_PATH is read only when a process starts.
"""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from informix_capture_client.dialects import INFORMIX, Dialect
from informix_capture_client.errors import AccessRefused, BadOption
from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.odbc import api as odbc
from informix_capture_client.transport.odbc.elf_header import build_of, build_of_this_python
from informix_capture_client.transport.odbc.named_library import named_library

_MAX_INFO_BYTES = 512
_HEAD_BYTES = 64  # of an ELF file: its header
_CLIENT_LOCALE = "en_us.utf8"  # the default, in which texts come without a driver too
# glibc's words, the only C library the driver is built for
_MISSING = re.compile(r"^(?P<name>[^\s/:]+): cannot open shared object file")


@dataclass(frozen=True, slots=True)
class DriverInfo:
    """Values of SQLGetInfo: the driver's file and version, and the server's version."""

    name: str
    version: str
    server_version: str


def load_driver(settings: ConnectionSettings) -> tuple[str, ctypes.CDLL]:
    """Find and load the driver's library; return its path and the library.

    Raises:
        AccessRefused, BadOption: it was not found, or cannot be loaded.
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
    """Return an option that requires a driver; empty if none is set."""
    is_chosen = settings.client_locale.lower() != _CLIENT_LOCALE
    return "connectionString" if settings.extra or is_chosen else ""


def read_driver_info(connection: odbc.Handle, codec: str) -> DriverInfo:
    """Query a connection's driver; SQLGetInfo's texts are in the connection's code set."""
    kinds = (odbc.DRIVER_NAME, odbc.DRIVER_VERSION, odbc.DBMS_VERSION)
    return DriverInfo(*(_info(connection, kind).decode(codec, "replace").strip() for kind in kinds))


def _info(connection: odbc.Handle, kind: int) -> bytes:
    text, length = ctypes.create_string_buffer(_MAX_INFO_BYTES), ctypes.c_short()
    connection.call("SQLGetInfo", kind, text, _MAX_INFO_BYTES, ctypes.byref(length))
    return text.value


def is_driver_manager(path: str) -> bool:
    """Return whether the library is a driver manager: unixODBC or iODBC."""
    return Path(path).name.startswith(("libodbc.", "libiodbc."))


def find_driver(named: str, environment: Mapping[str, str], dialect: Dialect = INFORMIX) -> str:
    """Return the library to load: option driver, or the one under INFORMIXDIR or GBASEDBTDIR.

    A name without a folder, such as libodbc.so.2, is resolved by the system's loader.
    """
    if named:
        if "/" in named and not Path(named).is_file():
            raise BadOption(f"The ODBC driver {named} does not exist.", "Correct option driver.")
        return named
    home = environment.get(dialect.home, "")
    folders = [Path(home, "lib", "cli"), Path(home, "lib")] if home else []
    for folder in folders:
        for name in dialect.libraries:
            if found := [each for each in sorted(folder.glob(name)) if each.is_file()]:
                return str(found[0])
    names = ", ".join(dialect.libraries)
    searched = f"{names} in {' and '.join(map(str, folders))}" if home else f"{dialect.home} is not set"
    raise AccessRefused(
        f"No {dialect.product} ODBC driver was found ({searched}).",
        f"Install the {dialect.product} Client SDK and set {dialect.home},"
        f" or set option driver to its {dialect.libraries[0]}; transport=sqli needs no driver.",
    )


def installation_of(driver: str) -> Path | None:
    """Return the client kit's folder of a driver.

    `<dir>/lib/cli/x.so` gives `<dir>`, and so does `<dir>/lib/libthcli15a.so`, unless that is the
    system's own folder of libraries.
    """
    for path in (Path(driver).absolute(), Path(driver).resolve()):
        if path.parts[-3:-1] == ("lib", "cli"):
            return path.parents[2]
        home = path.parents[1]
        if path.parts[-2] == "lib" and (home / "msg").is_dir():
            return home
    return None


def load_library(
    driver: str,
    environment: MutableMapping[str, str] = os.environ,
    dlopen: Callable[..., ctypes.CDLL] = ctypes.CDLL,
    dialect: Dialect = INFORMIX,
) -> ctypes.CDLL:
    """Load the driver, after the libraries of its installation that it requires.

    Raises:
        BadOption: it cannot be loaded; the message has the system loader's error.
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
    """The client kit's library folders, in the order that its manual gives for LD_LIBRARY_PATH.

    The driver's kit precedes the environment's: libraries of two releases must not be mixed.
    """
    roots = [installation] if installation else []
    roots += [Path(home)] if home else []
    below = [root / "lib" / name for root in roots for name in ("", "esql", "cli")]
    return [Path(driver).absolute().parent, *below]


class _Preloader:
    """Opens a library whose dependencies the system's loader cannot find.

    LD_LIBRARY_PATH is read when the process starts, so setting it here has no effect. Instead, we let
    the load fail, take the missing library's name from the loader's message, open that one by its full
    path, and try again: a library that is already open is found by its SONAME. Unlike reading DT_NEEDED
    this needs no ELF parser, follows dependencies of dependencies and opens nothing that the loader
    finds itself. If the loader still misses the name, the file has another SONAME (libifgls.so of HCL's
    client 15): then a library of that name is opened, which needs the file by its path. Each name is
    tried twice, so it terminates.

    Dependencies are opened with RTLD_GLOBAL, for libraries that use another one's symbols without
    naming it. The driver itself is not, because its functions could then replace a driver manager's.
    """

    def __init__(
        self, driver: str, dialect: Dialect, folders: list[Path], dlopen: Callable[..., ctypes.CDLL]
    ) -> None:
        self._driver = driver
        self._dialect = dialect
        self._folders = folders
        self._dlopen = dlopen
        self._tried: Counter[str] = Counter()

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
        """Open the library that the loader's message names, or raise."""
        match = _MISSING.match(reason)
        name = match["name"] if match else ""
        path = next((each / name for each in self._folders if (each / name).is_file()), None)
        if not name or path is None or self._tried[name] == len(_WAYS):
            raise _not_loadable(self._driver, self._dialect, reason) from None
        open_by_way = _WAYS[self._tried[name]]
        self._tried[name] += 1
        open_by_way(self, name, path)

    def _open_by_path(self, _name: str, path: Path) -> None:
        self._open(str(path), ctypes.RTLD_GLOBAL)

    def _open_by_name(self, name: str, path: Path) -> None:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        try:
            library = named_library(name, str(path.absolute()), head)
        except ValueError as reason:
            raise _not_loadable(self._driver, self._dialect, str(reason)) from None
        with tempfile.NamedTemporaryFile(prefix="informix-cdc-", suffix=".so") as made:
            made.write(library)
            made.flush()
            self._open(made.name, ctypes.RTLD_GLOBAL)  # once it is mapped, the file is not needed


_WAYS = (_Preloader._open_by_path, _Preloader._open_by_name)
