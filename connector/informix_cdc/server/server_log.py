"""Read the server's current log and capture sessions, without any tables.

Rule: read-only, over one connection to the CDC database.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from informix_capture_client.catalog import Catalog, LogSpace, read_log_space
from informix_capture_client.dialects import Dialect
from informix_capture_client.errors import AccessRefused
from informix_capture_client.findings import Unanswered
from informix_capture_client.session import OpenSession, read_open_sessions
from informix_capture_client.statements import CDC_DATABASE
from informix_capture_client.transport import Transport
from informix_cdc.options import ConnectionOptions
from informix_cdc.server.connections import open_connection


@dataclass(frozen=True, slots=True)
class ServerLog:
    """A server's name, time, log, and capture sessions if the user may list them."""

    server: str
    clock: int
    current: int
    space: LogSpace
    sessions: tuple[OpenSession, ...] | Unanswered


@contextlib.contextmanager
def open_server_log(connection_options: ConnectionOptions) -> Iterator[Transport]:
    """Connect for `read_server_log`."""
    with contextlib.closing(open_connection(connection_options, CDC_DATABASE)) as connection:
        yield connection


def read_server_log(connection: Transport, dialect: Dialect) -> ServerLog:
    """Read the facts once.

    Raises:
        InformixCdcError: the server does not answer, or refuses the user.
    """
    catalog = Catalog(connection, CDC_DATABASE)
    return ServerLog(
        catalog.server_name().strip(),
        catalog.clock(),
        catalog.current_position(),
        read_log_space(connection),
        _sessions(connection, dialect),
    )


def _sessions(connection: Transport, dialect: Dialect) -> tuple[OpenSession, ...] | Unanswered:
    try:
        return read_open_sessions(connection, dialect)
    except AccessRefused as reason:  # the log may be readable all the same
        return Unanswered.of(reason)
