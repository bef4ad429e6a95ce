"""How rows get from the driver's spool to the executors that read them.

Rule: what travels is small, picklable and without secrets, but for the Flight server's token.
"""

from __future__ import annotations

from informix_cdc.executors.places import SegmentPlaces
from informix_cdc.executors.publisher import SegmentPublisher
from informix_cdc.executors.shares import share_out

__all__ = ["SegmentPlaces", "SegmentPublisher", "share_out"]
