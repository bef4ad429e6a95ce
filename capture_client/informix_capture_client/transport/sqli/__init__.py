"""SQLI, Informix's client/server protocol: the client's side of it, without a socket.

Rule: values in, bytes out; bytes in, values out. Who opens connections, waits and gives up is
`transport.sqli`. Nothing here is specific to captures but that a capture session is read like a smart
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
