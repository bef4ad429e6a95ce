"""The limits of one micro-batch; cheap to import."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The maximum size of a batch; None means no limit. Rows and bytes are counted as in the spool.

    Attributes:
        chunk_alone: whether a snapshot chunk is a batch alone.
        until_truncate: whether a batch ends before a transaction with a TRUNCATE, which is refused.
    """

    rows: int | None = None
    size_bytes: int | None = None
    chunk_alone: bool = False
    until_truncate: bool = False

    @property
    def are_none(self) -> bool:
        """Return whether there is no limit of size."""
        return (self.rows, self.size_bytes, self.chunk_alone) == (None, None, False)
