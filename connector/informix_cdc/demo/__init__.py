"""The demo: an order-entry workload on the embedded emulator, streamed through Spark and verified.

Rule: what Spark delivered is compared with the workload's own account.
"""

from __future__ import annotations

from informix_cdc.demo.demo import DemoSettings, run

__all__ = ["DemoSettings", "run"]
