"""From interleaved records to whole transactions, in commit order.

Rule: pure; what is open waits here and nowhere else, and every pair of positions is formed here.
"""

from __future__ import annotations

from informix_capture_client.transactions.assembler import TransactionAssembler
from informix_capture_client.transactions.counters import AssemblyCounters, StreamCounters
from informix_capture_client.transactions.events import Event, Passed, Transactions
from informix_capture_client.transactions.memory import MemoryLimit
from informix_capture_client.transactions.row_records import Piece, RowRecords

__all__ = [
    "AssemblyCounters",
    "Event",
    "MemoryLimit",
    "Passed",
    "Piece",
    "RowRecords",
    "StreamCounters",
    "TransactionAssembler",
    "Transactions",
]
