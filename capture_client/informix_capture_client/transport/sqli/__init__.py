"""The client side of SQLI, Informix's client/server protocol.

Rule: most modules convert between values and bytes only. Connecting, waiting and timeouts are in
`transport`, `admission` and `wire`. The only part specific to captures: a session is read like a smart
large object.
"""

from __future__ import annotations

from informix_capture_client.transport.sqli import requests
from informix_capture_client.transport.sqli.answers import AnswerReader
from informix_capture_client.transport.sqli.challenge import ready, response
from informix_capture_client.transport.sqli.describing import Opaque, SqliColumn, SqliType
from informix_capture_client.transport.sqli.incoming import EndOfBytes, Incoming
from informix_capture_client.transport.sqli.numbers import qualifier
from informix_capture_client.transport.sqli.protocols import Features
from informix_capture_client.transport.sqli.rows import SqliRowReader
from informix_capture_client.transport.sqli.trace import WireTrace
from informix_capture_client.transport.sqli.tuples import Tuples

__all__ = [
    "AnswerReader",
    "EndOfBytes",
    "Features",
    "Incoming",
    "Opaque",
    "SqliColumn",
    "SqliRowReader",
    "SqliType",
    "Tuples",
    "WireTrace",
    "qualifier",
    "ready",
    "requests",
    "response",
]
