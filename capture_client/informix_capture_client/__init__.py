"""Speaks to Informix: transport, session, records, transactions, values, shapes; and the emulator.

Rule: no Spark, and no files but those that a spilling transaction is handed. At the root lies what
everybody may use and what is light to import; `decode_payloads` decodes rows without a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from informix_capture_client.errors import (
    AccessRefused,
    BadOption,
    ConnectionLost,
    DataLoss,
    InformixCdcError,
    ProtocolViolation,
    ServerRefused,
    UnsupportedColumn,
)
from informix_capture_client.lazy_names import lazy_names
from informix_capture_client.positions import Position

if TYPE_CHECKING:
    from informix_capture_client.values import decode_payloads

__all__ = [
    "AccessRefused",
    "BadOption",
    "ConnectionLost",
    "DataLoss",
    "InformixCdcError",
    "Position",
    "ProtocolViolation",
    "ServerRefused",
    "UnsupportedColumn",
    "decode_payloads",
]

__getattr__ = lazy_names(__name__, {"decode_payloads": "values"})
