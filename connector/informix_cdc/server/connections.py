"""Open connections by the options: which transport, which database, which locale.

Rule: the only place that knows all transports; they are imported when they are opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from informix_capture_client.catalog import Catalog
from informix_capture_client.errors import BadOption
from informix_capture_client.statements import SYSTEM_DATABASE
from informix_capture_client.transport import ConnectionSettings, Transport
from informix_capture_client.transport.sqli import WireTrace
from informix_cdc.options import SourceOptions, fetch_password
from informix_cdc.server.database_locales import DatabaseLocales

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


def _as_it_is(settings: ConnectionSettings) -> ConnectionSettings:
    return settings


def _connect(
    options: SourceOptions,
    database: str,
    db_locale: str,
    prepared: Callable[[ConnectionSettings], ConnectionSettings] = _as_it_is,
    most_seconds: float | None = None,
) -> Transport:
    wanted = prepared(options.connection(database, db_locale))
    settings = replace(wanted, password=fetch_password(options))
    transport = _TRANSPORTS[options.transport](settings, most_seconds or silent_seconds(options))
    for wrap in _wraps:
        transport = wrap(transport, settings)
    return transport
