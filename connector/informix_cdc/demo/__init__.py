"""The demo: an order-entry workload on the embedded emulator, streamed through Spark and checked.

Rule: what Spark delivered is held against the workload's own account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from informix_capture_client.lazy_names import lazy_names

if TYPE_CHECKING:
    from informix_cdc.demo.database import DATABASE, LOCALE, PASSWORD, TABLE_NAMES, demo_server
    from informix_cdc.demo.demo import DemoSettings, run
    from informix_cdc.demo.workload import Workload

__all__ = [
    "DATABASE",
    "LOCALE",
    "PASSWORD",
    "TABLE_NAMES",
    "DemoSettings",
    "Workload",
    "demo_server",
    "run",
]

__getattr__ = lazy_names(
    __name__,
    {
        "DATABASE": "database",
        "DemoSettings": "demo",
        "LOCALE": "database",
        "PASSWORD": "database",
        "TABLE_NAMES": "database",
        "Workload": "workload",
        "demo_server": "database",
        "run": "demo",
    },
)
