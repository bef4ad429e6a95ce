"""A CDC session: open, choose tables, activate, read, close; and a thread that reads ahead.

Rule: only this package knows the order of the CDC calls.
"""

from __future__ import annotations

from informix_capture_client.session.error_codes import PENDING_ALTER, finish_alter
from informix_capture_client.session.open_sessions import OpenSession, read_open_sessions
from informix_capture_client.session.read_ahead import ReadAhead
from informix_capture_client.session.session import (
    CapturedTable,
    CaptureSession,
    SessionSettings,
    read_api_version,
    set_full_row_logging,
)

__all__ = [
    "PENDING_ALTER",
    "CaptureSession",
    "CapturedTable",
    "OpenSession",
    "ReadAhead",
    "SessionSettings",
    "finish_alter",
    "read_api_version",
    "read_open_sessions",
    "set_full_row_logging",
]
