"""A shop's database and its order-entry workload, for the demo, the playground and the examples.

Rows are plain dictionaries. Random generators are arguments.
"""

from __future__ import annotations

from .database import (
    COLUMNS,
    CUSTOMERS,
    DATABASE,
    ITEMS,
    KEYS,
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
    "KEYS",
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
