"""Logical log data files of BMC's Log Master for Db2 on z/OS.

Rule: framing, header, segments, images, rows: each file knows one layout; `log_reader.py` joins them.
"""

from __future__ import annotations

from informix_db2.logical_log.framing import FRAMINGS
from informix_db2.logical_log.log_reader import (
    MORE,
    UNDECLARED,
    LogicalLogReader,
)
from informix_db2.logical_log.settings import LogicalLogSettings

__all__ = ["FRAMINGS", "MORE", "UNDECLARED", "LogicalLogReader", "LogicalLogSettings"]
