"""What has come over a stream's sessions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class StreamCounters:
    """Counted once for each read, never for each record."""

    received_bytes: int = 0
    received_records: int = 0
    timeouts: int = 0
