"""Decode three Db2 formats from a binary column, in batches and streams.

Rule: functions on a column, not data sources: Spark reads the bytes from any source. Spark is loaded
only when one of them is used; `inspect` works without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from informix_capture_client.lazy_names import lazy_names

if TYPE_CHECKING:
    from informix_cdc.db2.functions import FILES, log_records, logical_log, q_messages
    from informix_cdc.db2.inspected_file import Report, inspect
    from informix_cdc.db2.segments import whole_transactions

__all__ = [
    "FILES",
    "Report",
    "inspect",
    "log_records",
    "logical_log",
    "q_messages",
    "whole_transactions",
]

__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("FILES", "log_records", "logical_log", "q_messages"), "functions"),
        **dict.fromkeys(("Report", "inspect"), "inspected_file"),
        "whole_transactions": "segments",
    },
)
