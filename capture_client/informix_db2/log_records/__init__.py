"""Log records of Db2 for Linux, UNIX and Windows, as db2ReadLog hands them out.

Rule: containers, headers, rows, large objects: each file knows one layout; `transactions.py` puts them
in order, `log_reader.py` joins all.
"""

from __future__ import annotations

from informix_db2.log_records.containers import PREFIXES, orders_that_fit
from informix_db2.log_records.delivered_rows import MORE, UNDECLARED
from informix_db2.log_records.log_reader import LogReader, LogSettings

__all__ = ["MORE", "PREFIXES", "UNDECLARED", "LogReader", "LogSettings", "orders_that_fit"]
