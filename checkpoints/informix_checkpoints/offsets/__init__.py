"""Spark's offsets of a stream, and the checkpoint folder that contains them.

Rule: what Spark wrote is read and never written.
"""

from __future__ import annotations

from informix_checkpoints.offsets.checkpoint_folder import CheckpointFolder
from informix_checkpoints.offsets.offsets import NOT_STARTED, StreamOffset, in_runs
from informix_checkpoints.offsets.restart_needs import BatchAgain, RestartNeeds, restart_needs_of
from informix_checkpoints.offsets.spark_checkpoint import (
    Checkpoint,
    SourceProgress,
    planned_offset,
    read_checkpoint,
)

__all__ = [
    "NOT_STARTED",
    "BatchAgain",
    "Checkpoint",
    "CheckpointFolder",
    "RestartNeeds",
    "SourceProgress",
    "StreamOffset",
    "in_runs",
    "planned_offset",
    "read_checkpoint",
    "restart_needs_of",
]
