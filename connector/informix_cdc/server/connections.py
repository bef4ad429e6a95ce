"""Open connections by the options: which transport, which database, which locale.

Rule: the only place that knows all transports; they are imported when they are opened.
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
from informix_cdc.options import SourceOptions, fetch_password

# A server that does not even send TIMEOUT records for this many timeouts is taken for dead.
_SILENT_TIMEOUTS = 3
_SILENT_SECONDS = 5.0


def _odbc(settings: ConnectionSettings, receive_timeout_seconds: float) -> Transport:
    from informix_capture_client.transport import OdbcTransport

    if _traces:
        raise BadOption(
            "--trace-wire sees nothing of transport=odbc, whose driver speaks with the server itself.",
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


def silent_seconds(options: SourceOptions) -> float:
    """Return how long a living server may send nothing, not even a TIMEOUT record."""
    return options.read_timeout_seconds * _SILENT_TIMEOUTS + _SILENT_SECONDS


Wrap = Callable[[Transport, ConnectionSettings], Transport]
_wraps: list[Wrap] = []
_traces: list[WireTrace] = []


@contextlib.contextmanager
def every_connection(wrap: Wrap) -> Iterator[None]:
    """Let whatever is opened meanwhile, by any thread, pass through `wrap`: the recorder's way in.

    What was asked before it is asked again, so that `wrap` sees all that a first connection needs.
    """
    _locales.clear()
    _wraps.append(wrap)
    try:
        yield
    finally:
        _wraps.remove(wrap)


@contextlib.contextmanager
def trace_wire(trace: WireTrace) -> Iterator[None]:
    """Let whatever is opened meanwhile, by any thread, tell a trace what passes."""
    _traces.append(trace)
    try:
        yield
    finally:
        _traces.remove(trace)


@contextlib.contextmanager
def open_catalog(options: SourceOptions) -> Iterator[Catalog]:
    """Connect to the captured database for questions about it.

    Raises:
        BadOption: option dbLocale is not its locale.
    """
    with contextlib.closing(open_connection(options, options.database)) as transport:
        yield Catalog(transport, options.database)


_Server = tuple[str, str, int, str]
_locales: dict[_Server, DatabaseLocales] = {}


def open_connection(options: SourceOptions, database: str) -> Transport:
    """Connect to one of the server's databases, in its own locale.

    The captured database's is spelt as option dbLocale has it. What the server said is kept for
    this process, until a database refuses it.
    """
    server = (options.transport, options.host, options.port, options.server)
    locales = _locales.setdefault(server, DatabaseLocales())
    wanted = options.db_locale if database in (options.database, SYSTEM_DATABASE) else ""
    return locales.open(database, lambda name, locale: _connect(options, name, locale), wanted)


def open_snapshot_connection(options: SourceOptions, db_locale: str, *, sorts: bool) -> Transport:
    """Connect to the captured database to read its tables in blocks, in bytes of its own code set.

    `sorts` says whether a server may have to look for the first row: a table that is read whole begins
    at once, and stays locked for as long as its SELECT is waited for.
    """
    from informix_capture_client.row_fetch import SELECT_SECONDS, in_database_code_set

    # Natively it is for the time of a query that the server may be silent for so long.
    may_be_silent = sorts and options.transport != "sqli"
    most_seconds = SELECT_SECONDS if may_be_silent else silent_seconds(options)
    return _connect(options, options.database, db_locale, in_database_code_set, most_seconds)


def open_object_connection(options: SourceOptions, db_locale: str) -> Transport:
    """Connect to the captured database to read its large objects."""
    return _connect(options, options.database, db_locale)


def open_capture_connection(options: SourceOptions, db_locale: str) -> Transport:
    """Connect where captures are made, in the locale of the captured database (guide, chapter 1).

    That is the captured database itself, where the product allows it: syscdcv1 has one locale, which
    need not be that of every captured database (decision 0024).
    """
    return _connect(options, options.dialect.capture_database or options.database, db_locale)


def _connect(
    options: SourceOptions,
    database: str,
    db_locale: str,
    prepared: Callable[[ConnectionSettings], ConnectionSettings] = lambda settings: settings,
    most_seconds: float | None = None,
) -> Transport:
    wanted = prepared(options.connection(database, db_locale))
    settings = replace(wanted, password=fetch_password(options))
    transport = _TRANSPORTS[options.transport](settings, most_seconds or silent_seconds(options))
    for wrap in _wraps:
        transport = wrap(transport, settings)
    return transport


# sysmaster has what the server's environment said when its disk was initialised: nothing, or UTF-8
_SYSTEM_LOCALES = ("en_US.819", "en_US.utf8")
_REFUSALS = {-23197, -23101}  # another code set; no files of this locale

_ConnectTo = Callable[[str, str], Transport]  # to a database, with a DB_LOCALE


class DatabaseLocales:
    """In which locale each database of one server is opened; nothing of who asked is kept.

    A connection whose DB_LOCALE is absent or of another code set than the database's is refused with
    -23197, as others measured of live servers (decision 0024). So sysmaster, whose own locale hardly
    differs between servers, is asked for the database's, and every connection names one.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def open(self, database: str, connect: _ConnectTo, wanted: str = "") -> Transport:
        """Connect to a database in its locale, spelt as is wanted.

        The server is asked the first time, and again when the database refuses what is known: it may
        have been made anew.

        Raises:
            BadOption: the wanted locale is not the database's.
            InformixCdcError: there is no connection, or the locale cannot be asked for.
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
        """Return what to connect to a database with; what does not exist is refused by name."""
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
    """Refuse a database of which a server knows no locale, and which is none of those it has.

    Raises:
        AccessRefused: names those that it has.
    """
    if there and database not in there and database != CDC_DATABASE:
        require(no_such_database(database, there))


def _cannot_be_asked(database: str, reason: InformixCdcError) -> InformixCdcError:
    return type(reason)(
        f"the locale of database {database!r} cannot be asked for: {reason.message}",
        "Set option dbLocale to the locale that the database was created in.",
        answer=reason.answer,
    )


# Of Informix, and of its access method: a row or a table is locked, the wait has run out, deadlock
# (finderr); which of them a server names first is an assumption.
_LOCKED = {-107, -113, -143, -154, -233, -243, -244, -245, -246, -289}


def is_locked(reason: BaseException) -> bool:
    """Tell whether an error says that others have locked what was to be read."""
    answer = getattr(reason, "answer", None)
    if not isinstance(reason, ServerRefused) or answer is None:
        return False
    natives = {answer.native, *(native for _, native, _ in answer.diagnostics)}
    return bool(natives & _LOCKED)
