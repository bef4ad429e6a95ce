"""The process of `informix-cdc capture`: one capture for many readers. Read `process.py` first.

Rule: no Spark. It owns session, spool, password and metrics; readers see its folder only.
"""

from __future__ import annotations

from informix_cdc.daemon.process import CaptureProcess
from informix_cdc.daemon.settings import CaptureSettings

__all__ = ["CaptureProcess", "CaptureSettings"]
