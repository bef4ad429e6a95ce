"""Connections to a server: ODBC, the emulator's socket, and a recorder around either.

Rule: a transport moves statements, answers and bytes; it knows nothing of capture.
"""

from __future__ import annotations

from informix_capture_client.transport.base import ConnectionSettings, Row, Transport
from informix_capture_client.transport.emulator import EmulatorTransport
from informix_capture_client.transport.odbc import OdbcTransport
from informix_capture_client.transport.odbc_library import load_driver
from informix_capture_client.transport.recorder import FORMAT, VERSION, Event, RecordingTransport

__all__ = [
    "FORMAT",
    "VERSION",
    "ConnectionSettings",
    "EmulatorTransport",
    "Event",
    "OdbcTransport",
    "RecordingTransport",
    "Row",
    "Transport",
    "load_driver",
]
