"""Counts of large objects by the result of reading them.

Rule: counted once for each object that a row refers to, by the capture thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from informix_capture_client.object_readers import GONE, NOT_READ, READ, TOO_LARGE, Content


@dataclass(slots=True)
class ContentFigures:
    """Counts since the query began.

    Attributes:
        read, gone, too_large, not_read: number of objects by result; `not_read` only counts those for
            which the time had expired.
        read_bytes: total size of contents.
    """

    read: int = 0
    gone: int = 0
    too_large: int = 0
    not_read: int = 0
    read_bytes: int = 0

    def record(self, contents: Iterable[Content]) -> None:
        """Count contents."""
        for content in contents:
            if (name := _COUNTERS.get(content.status)) is None:
                continue  # a TEXT or BYTE that is NULL
            setattr(self, name, getattr(self, name) + 1)
            self.read_bytes += len(content.data or b"")


_COUNTERS = {READ: "read", GONE: "gone", TOO_LARGE: "too_large", NOT_READ: "not_read"}
