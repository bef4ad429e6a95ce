"""The most that one micro-batch takes; light to import."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The most that a batch takes, each None without a limit; bytes are those in the spool."""

    rows: int | None = None
    size_bytes: int | None = None
    transactions: int | None = None

    @property
    def are_none(self) -> bool:
        """Tell whether a batch takes whatever is there."""
        return self.rows is None and self.size_bytes is None and self.transactions is None
