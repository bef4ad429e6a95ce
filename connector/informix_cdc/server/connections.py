"""Open connections according to the options: transport, database, locale.

Rule: the only place that knows all transports; each is imported when it is used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from informix_capture_client import statements
from informix_capture_client.catalog import Catalog, check_locale, no_such_database, read_databases
from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    DriverAnswer,
    InformixCdcError,
    ServerRefused,
)
from informix_capture_client.findings import require
from informix_capture_client.statements import CDC_DATABASE, SYSTEM_DATABASE
from informix_capture_client.transport import ConnectionSettings, Transport, checked_rows
from informix_capture_client.transport.sqli import WireTrace
from informix_cdc.options import ConnectionOptions, fetch_password

# A server that sends not even TIMEOUT records for this many timeouts is considered dead.
_SILENT_TIMEOUTS = 3
_SILENT_SECONDS = 5.0


def _odbc(settings: ConnectionSettings, receive_timeout_seconds: float) -> Transport:
    from informix_capture_client.transport import OdbcTransport

    if _traces:
        raise BadOption(
            "--trace-wire cannot trace transport=odbc: its driver communicates with the server"
            " directly.",
            "Add --transport sqli.",
        )
    return OdbcTransport(settings, receive_timeout_seconds)


def _sqli(settings: ConnectionSettings, receive_timeout_seconds: float) -> Transport:
    from informix_capture_client.transport import SqliTransport

    return SqliTransport(settings, receive_timeout_seconds, _traces[-1] if _traces else None)


_TRANSPORTS: dict[str, Callable[[ConnectionSettings, float], Transport]] = {
    "odbc": _odbc,
    "sqli": _sqli,
}


def silent_seconds(connection: ConnectionOptions) -> float:
    """Return the maximum time without any bytes, not even a TIMEOUT record, from a live server."""
    return connection.read_timeout_seconds * _SILENT_TIMEOUTS + _SILENT_SECONDS


Wrap = Callable[[Transport, ConnectionSettings], Transport]
_wraps: list[Wrap] = []
_traces: list[WireTrace] = []


@contextlib.contextmanager
def every_connection(wrap: Wrap) -> Iterator[None]:
    """Pass every connection opened in the block, by any thread, through `wrap`, as the recorder needs.

    Cached facts are read again, so that `wrap` sees everything that a first connection requests.
    """
    _locales.clear()
    _wraps.append(wrap)
    try:
        yield
    finally:
        _wraps.remove(wrap)


@contextlib.contextmanager
def trace_wire(trace: WireTrace) -> Iterator[None]:
    """Trace the messages of every connection opened in the block, by any thread."""
    _traces.append(trace)
    try:
        yield
    finally:
        _traces.remove(trace)


@contextlib.contextmanager
def open_catalog(connection: ConnectionOptions) -> Iterator[Catalog]:
    """Connect to the captured database to query its catalog.

    Raises:
        BadOption: option dbLocale is not its locale.
    """
    with contextlib.closing(open_connection(connection, connection.database)) as transport:
        yield Catalog(transport, connection.database)


_Server = tuple[str, str, int, str]
_locales: dict[_Server, DatabaseLocales] = {}


def open_connection(connection: ConnectionOptions, database: str) -> Transport:
    """Connect to one of the server's databases, in its own locale.

    The captured database's locale is spelled as in option dbLocale. Locales are cached for this
    process, until a database refuses one.
    """
    server = (connection.transport, connection.host, connection.port, connection.server)
    locales = _locales.setdefault(server, DatabaseLocales())
    wanted = connection.db_locale if database in (connection.database, SYSTEM_DATABASE) else ""
    return locales.open(database, lambda name, locale: _connect(connection, name, locale), wanted)


def open_snapshot_connection(
    connection: ConnectionOptions, db_locale: str, *, sorts: bool
) -> Transport:
    """Connect to the captured database to read its tables in blocks, as bytes of its own code set.

    `sorts`: the server may take long to find the first row. Without it, reading begins at once: a table
    that is read in one go stays locked while its SELECT is awaited.
    """
    from informix_capture_client.row_fetch import SELECT_SECONDS, in_database_code_set

    # Without a driver, this is the time that the server may be silent during a query.
    may_be_silent = sorts and connection.transport != "sqli"
    most_seconds = SELECT_SECONDS if may_be_silent else silent_seconds(connection)
    return _connect(connection, connection.database, db_locale, in_database_code_set, most_seconds)


def open_object_connection(connection: ConnectionOptions, db_locale: str) -> Transport:
    """Connect to the captured database to read its large objects."""
    return _connect(connection, connection.database, db_locale)


def open_in_locale(connection: ConnectionOptions, database: str, db_locale: str) -> Transport:
    """Connect to a database in a locale, right or wrong; an empty name opens none, to create one."""
    return _connect(connection, database, db_locale)


def open_capture_connection(connection: ConnectionOptions, db_locale: str) -> Transport:
    """Connect to the database for captures, in the locale of the captured database (guide, chapter 1).

    If the product allows it, that is the captured database itself: syscdcv1 has one locale, which may
    differ from that of the captured database (decision 0024).
    """
    return _connect(connection, connection.dialect.capture_database or connection.database, db_locale)


def _connect(
    connection: ConnectionOptions,
    database: str,
    db_locale: str,
    prepared: Callable[[ConnectionSettings], ConnectionSettings] = lambda settings: settings,
    most_seconds: float | None = None,
) -> Transport:
    wanted = prepared(connection.settings(database, db_locale))
    settings = replace(wanted, password=fetch_password(connection))
    transport = _TRANSPORTS[connection.transport](settings, most_seconds or silent_seconds(connection))
    for wrap in _wraps:
        transport = wrap(transport, settings)
    return transport


# sysmaster has the locale of the environment in which its disk was initialised: none, or UTF-8
_SYSTEM_LOCALES = ("en_US.819", "en_US.utf8")
_REFUSALS = {-23197, -23101}  # different code set; no files for this locale

_ConnectTo = Callable[[str, str], Transport]  # to a database, with a DB_LOCALE


class DatabaseLocales:
    """The locale of each database of one server; nothing about users is kept.

    A connection whose DB_LOCALE is missing or has another code set than the database is refused with
    -23197, as others have measured on live servers (decision 0024). So sysmaster, whose own locale is
    almost always the same, is queried for the database's locale, and every connection sets it.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def open(self, database: str, connect: _ConnectTo, wanted: str = "") -> Transport:
        """Connect to a database in its locale, spelled as wanted.

        The server is queried the first time, and again when the database refuses the cached locale,
        because it may have been created again.

        Raises:
            BadOption: the wanted locale is not the database's.
            InformixCdcError: the connection fails, or the locale cannot be read.
        """
        if database == SYSTEM_DATABASE:
            return self._open_system(connect, wanted)
        known = self._known.get(database)
        if known:
            try:
                return connect(database, wanted or known)
            except BadOption as reason:
                if not _is_of_locale(reason.answer):
                    raise
        return connect(database, self._ask(database, connect, wanted))

    def _open_system(self, connect: _ConnectTo, wanted: str = "") -> Transport:
        known = self._known.get(SYSTEM_DATABASE, "")
        refused: BadOption | None = None
        for locale in dict.fromkeys(filter(None, (known, *_SYSTEM_LOCALES, wanted))):
            try:
                transport = connect(SYSTEM_DATABASE, locale)
            except BadOption as reason:
                if not _is_of_locale(reason.answer):
                    raise
                refused = reason
            else:
                self._known[SYSTEM_DATABASE] = locale
                return transport
        assert refused is not None
        raise refused

    def _ask(self, database: str, connect: _ConnectTo, wanted: str) -> str:
        """Return the locale for a database; raise an error that names a missing database."""
        with contextlib.closing(self._open_system(connect, wanted)) as system:
            try:
                rows = checked_rows(system, statements.DATABASE_LOCALE, database)
            except (AccessRefused, ServerRefused) as reason:
                if wanted:
                    return wanted
                raise _cannot_be_asked(database, reason) from None
            there = () if rows else read_databases(system)
        locale = (rows[0][0] or "").strip() if rows else ""
        if not locale:
            _require_database(database, there)
            return wanted or _SYSTEM_LOCALES[0]
        if wanted:
            require(check_locale(database, locale, wanted))
        self._known[database] = locale
        return wanted or locale


def _is_of_locale(answer: DriverAnswer | None) -> bool:
    return answer is not None and any(native in _REFUSALS for _, native, _ in answer.diagnostics)


def _require_database(database: str, there: Sequence[str]) -> None:
    """Refuse a database that does not exist and whose locale is unknown.

    Raises:
        AccessRefused: lists the existing databases.
    """
    if there and database not in there and database != CDC_DATABASE:
        require(no_such_database(database, there))


def _cannot_be_asked(database: str, reason: InformixCdcError) -> InformixCdcError:
    return type(reason)(
        f"the locale of database {database!r} cannot be read: {reason.message}",
        "Set option dbLocale to the locale in which the database was created.",
        answer=reason.answer,
    )


# Error codes of Informix and of its access method: row or table locked, lock wait timed out, deadlock
# (finderr); which of them a server reports first is an assumption.
_LOCKED = {-107, -113, -143, -154, -233, -243, -244, -245, -246, -289}


def is_locked(reason: BaseException) -> bool:
    """Return whether an error means that others have locked the rows to read."""
    answer = getattr(reason, "answer", None)
    if not isinstance(reason, ServerRefused) or answer is None:
        return False
    natives = {answer.native, *(native for _, native, _ in answer.diagnostics)}
    return bool(natives & _LOCKED)
