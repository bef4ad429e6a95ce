"""The limits of one micro-batch; cheap to import."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The maximum size of a batch; None means no limit. Bytes are counted as in the spool."""

    rows: int | None = None
    size_bytes: int | None = None
    transactions: int | None = None

    @property
    def are_none(self) -> bool:
        """Return whether there is no limit."""
        return self.rows is None and self.size_bytes is None and self.transactions is None
