"""What a mirror reports of a micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from informix_checkpoints.table_states import SnapshotState


@dataclass(frozen=True, slots=True)
class Maintained:
    """What maintenance has done.

    Attributes:
        files, bytes: that were written anew, as new files.
        replaced: files that these have replaced.
        removed, removed_bytes: files that were removed.
        seconds: that it has worked.
    """

    files: int = 0
    bytes: int = 0
    replaced: int = 0
    removed: int = 0
    removed_bytes: int = 0
    seconds: float = 0.0

    def __add__(self, other: Maintained) -> Maintained:
        """Return the sum."""
        pairs = ((getattr(self, n), getattr(other, n)) for n in Maintained.__slots__)
        return Maintained(*(one + two for one, two in pairs))


@dataclass(frozen=True, slots=True)
class MirroredBatch:
    """The result of a micro-batch.

    Attributes:
        changes: number of changes by owner.table.
        commit: sequence number of the commit that all targets have reached.
        stopped: tables that are no longer mirrored, with reasons.
        snapshots: snapshot states by table.
        verified: number of differences by table, for verifications that have ended in this batch.
        loading: tables that may not equal Informix yet: their rows are being read, or will be.
        maintained: what maintenance has done since the start.
    """

    number: int
    changes: Mapping[str, int]
    commit: int
    committed_at: datetime | None
    seconds: float
    stopped: Mapping[str, str]
    snapshots: Mapping[str, SnapshotState]
    verified: Mapping[str, int] = field(default_factory=dict)
    loading: tuple[str, ...] = ()
    maintained: Maintained = field(default_factory=Maintained)
