"""Open connections by the options: which transport, which database, which locale.

Rule: the only place that knows all transports; they are imported when they are opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from informix_capture_client.catalog import Catalog
from informix_capture_client.statements import CDC_DATABASE
from informix_capture_client.transport import ConnectionSettings, Transport
from informix_cdc.options import SourceOptions

# A server that does not even send TIMEOUT records for this many timeouts is taken for dead.
_SILENT_TIMEOUTS = 3
_SILENT_SECONDS = 5.0


def _odbc(settings: ConnectionSettings, receive_timeout_seconds: float) -> Transport:
    from informix_capture_client.transport import OdbcTransport

    return OdbcTransport(settings, receive_timeout_seconds)


def _emulator(settings: ConnectionSettings, receive_timeout_seconds: float) -> Transport:
    from informix_capture_client.transport import EmulatorTransport

    return EmulatorTransport(settings, receive_timeout_seconds)


_TRANSPORTS: dict[str, Callable[[ConnectionSettings, float], Transport]] = {
    "odbc": _odbc,
    "emulator": _emulator,
}


def silent_seconds(options: SourceOptions) -> float:
    """Return how long a living server may send nothing, not even a TIMEOUT record."""
    return options.read_timeout_seconds * _SILENT_TIMEOUTS + _SILENT_SECONDS


Wrap = Callable[[Transport, ConnectionSettings], Transport]
_wraps: list[Wrap] = []


@contextlib.contextmanager
def every_connection(wrap: Wrap) -> Iterator[None]:
    """Let whatever is opened meanwhile, by any thread, pass through `wrap`: the recorder's way in."""
    _wraps.append(wrap)
    try:
        yield
    finally:
        _wraps.remove(wrap)


def _open(options: SourceOptions, settings: ConnectionSettings) -> Transport:
    transport = _TRANSPORTS[options.transport](settings, silent_seconds(options))
    for wrap in _wraps:
        transport = wrap(transport, settings)
    return transport


@contextlib.contextmanager
def open_catalog(options: SourceOptions) -> Iterator[Catalog]:
    """Connect to the captured database for questions about it.

    In the locale that option dbLocale names: where a driver insists on one (error -23197), that helps.
    """
    transport = open_connection(options, options.database, options.db_locale)
    with contextlib.closing(transport):
        yield Catalog(transport, options.database)


def open_connection(options: SourceOptions, database: str, db_locale: str = "") -> Transport:
    """Connect to one of the server's databases."""
    return _open(options, options.connection(database, db_locale))


def open_capture_connection(options: SourceOptions, db_locale: str) -> Transport:
    """Connect to the CDC database; the locale must be the captured database's (guide, chapter 1)."""
    return open_connection(options, CDC_DATABASE, db_locale)
