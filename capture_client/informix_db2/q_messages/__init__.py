"""Delimited messages of Q Replication's event publishing.

Rule: cut, header, rows: each file knows the bytes of its part; `messages.py` joins them, window by
window.
"""

from __future__ import annotations

from informix_db2.q_messages.messages import MORE, MessageReader
from informix_db2.q_messages.rows import UNDECLARED
from informix_db2.q_messages.settings import OTHER_TABLES, QMessageSettings
from informix_db2.q_messages.transcoding import TranscodedReader

__all__ = [
    "MORE",
    "OTHER_TABLES",
    "UNDECLARED",
    "MessageReader",
    "QMessageSettings",
    "TranscodedReader",
]
