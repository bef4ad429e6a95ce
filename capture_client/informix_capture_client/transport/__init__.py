"""Connections to a server: ODBC, the SQLI protocol, and a recorder for either.

Rule: a transport transfers statements, results and bytes; it does not depend on capture.
"""

from __future__ import annotations

from informix_capture_client.transport.base import (
    NO_ENCRYPTION,
    PASSWORD,
    SLOWEST_BYTES_PER_SECOND,
    TLS,
    TRUSTED,
    Argument,
    ConnectionSettings,
    Row,
    Transport,
    addresses,
)
from informix_capture_client.transport.checked_rows import (
    MOST_32_BITS,
    checked_rows,
    integer,
    integers,
    real,
    selected_columns,
)
from informix_capture_client.transport.keywords import Keyword, read_keywords
from informix_capture_client.transport.odbc.connection_strings import PROTOCOLS
from informix_capture_client.transport.odbc.library import (
    find_driver,
    installation_of,
    load_driver,
)
from informix_capture_client.transport.odbc.transport import OdbcTransport
from informix_capture_client.transport.recorder import (
    FORMAT,
    VERSION,
    RecordedEvent,
    RecordingTransport,
)
from informix_capture_client.transport.sqli.cursor import TupleCursor
from informix_capture_client.transport.sqli.transport import SqliTransport

__all__ = [
    "FORMAT",
    "MOST_32_BITS",
    "NO_ENCRYPTION",
    "PASSWORD",
    "PROTOCOLS",
    "SLOWEST_BYTES_PER_SECOND",
    "TLS",
    "TRUSTED",
    "VERSION",
    "Argument",
    "ConnectionSettings",
    "Keyword",
    "OdbcTransport",
    "RecordedEvent",
    "RecordingTransport",
    "Row",
    "SqliTransport",
    "Transport",
    "TupleCursor",
    "addresses",
    "checked_rows",
    "find_driver",
    "installation_of",
    "integer",
    "integers",
    "load_driver",
    "read_keywords",
    "real",
    "selected_columns",
]
