"""Decode log records of Db2 for Linux, UNIX and Windows, as returned by db2ReadLog.

Rule: each file implements one layout: containers, headers, rows, large objects. `transactions.py` puts
them in order, `log_reader.py` combines all.
"""

from __future__ import annotations

from informix_db2.log_records.containers import PREFIXES, orders_that_fit
from informix_db2.log_records.delivered_rows import MORE, UNDECLARED
from informix_db2.log_records.log_reader import LogReader, LogSettings

__all__ = ["MORE", "PREFIXES", "UNDECLARED", "LogReader", "LogSettings", "orders_that_fit"]
