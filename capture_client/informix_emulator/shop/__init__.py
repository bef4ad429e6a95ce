"""A shop's database and its order entry: what the demo, the playground and examples stream.

Rule: rows are plain dictionaries, and all chance comes in as an argument.
"""

from __future__ import annotations

from .database import (
    COLUMNS,
    CUSTOMERS,
    DATABASE,
    ITEMS,
    LOCALE,
    ORDERS,
    PASSWORD,
    TABLE_NAMES,
    RowDict,
    demo_server,
)
from .workload import CommittedTransaction, ExpectedChange, Workload

__all__ = [
    "COLUMNS",
    "CUSTOMERS",
    "DATABASE",
    "ITEMS",
    "LOCALE",
    "ORDERS",
    "PASSWORD",
    "TABLE_NAMES",
    "CommittedTransaction",
    "ExpectedChange",
    "RowDict",
    "Workload",
    "demo_server",
]
