"""The capture: reads the server's log into the spool. Read `loop.py` first.

Rule: no Spark; one thread writes, and notifies the threads that wait.
"""

from __future__ import annotations

from informix_cdc.capture.counts import Counters, Gauges
from informix_cdc.capture.liveness import Liveness, LogFacts
from informix_cdc.capture.pending import UNSEEN_WAIT_SECONDS
from informix_cdc.capture.recovery import can_recover
from informix_cdc.capture.start import CaptureStart
from informix_cdc.capture.state import CaptureState
from informix_cdc.capture.thread import CaptureThread

__all__ = [
    "UNSEEN_WAIT_SECONDS",
    "CaptureStart",
    "CaptureState",
    "CaptureThread",
    "Counters",
    "Gauges",
    "Liveness",
    "LogFacts",
    "can_recover",
]
