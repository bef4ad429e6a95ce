"""Deliver rows from the driver's spool to the executors.

Rule: values sent to executors are small, picklable and without secrets, except for the Flight token.
"""

from __future__ import annotations

from informix_cdc.executors.places import SegmentPlaces
from informix_cdc.executors.publisher import SegmentPublisher
from informix_cdc.executors.shares import share_out

__all__ = ["SegmentPlaces", "SegmentPublisher", "share_out"]
