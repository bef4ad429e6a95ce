"""When a run of a query ends, and the figures that it shows."""

from __future__ import annotations

from enum import Enum

Figure = int | float | bool | str | None


class Trigger(Enum):
    """When a run of a query ends.

    Attributes:
        CONTINUOUS: never.
        AVAILABLE_NOW: when everything committed before its start has been delivered.
        ONLY_BATCH: the same, but with a single batch (Trigger.Once).
    """

    CONTINUOUS = "continuous"
    AVAILABLE_NOW = "available-now"
    ONLY_BATCH = "only-batch"
