"""Compute the distance of a position from the end of the server's log, and its headroom.

Rule: no I/O; `LogSpace` has the arithmetic, this module the displayed values. Bytes are whole pages of
the log, of all databases of the server, and percent is of all log files, used or not.
"""

from __future__ import annotations

from dataclasses import dataclass

from informix_capture_client.catalog.log_space import LogSpace
from informix_capture_client.positions import log_number


@dataclass(frozen=True, slots=True)
class LogDistance:
    """A range of the log: the files it spans, its bytes, and its share of the whole log."""

    logs: int
    size_bytes: int
    percent: float


@dataclass(frozen=True, slots=True)
class PlaceInLog:
    """The location of a position in the log.

    Attributes:
        behind: the log written since the position.
        headroom: the log that can be written until its file is overwritten; None if it was.
        headroom_seconds: the time for this at the recent average rate; None if unknown.
        is_beyond_end: the position is after the log's end: from another server, or one that
            was restored.
    """

    behind: LogDistance
    headroom: LogDistance | None
    headroom_seconds: float | None
    is_beyond_end: bool = False


def place_in_log(position: int, space: LogSpace, now: float) -> PlaceInLog:
    """Return the location of a position in a server's log.

    Args:
        position: a sequence number.
        space: the server's log files.
        now: the server's clock, in seconds since 1970.
    """
    number = log_number(position)
    behind = _distance(space.current.number - number, space.bytes_since(position), space)
    if space.is_overwritten(position):
        return PlaceInLog(behind, None, None)
    headroom_bytes, rate = space.headroom(position), space.bytes_per_second(now)
    headroom = _distance(number - space.oldest.number, headroom_bytes, space)
    seconds = headroom_bytes / rate if rate else None
    return PlaceInLog(behind, headroom, seconds, space.is_beyond_end(position))


def _distance(logs: int, size_bytes: int, space: LogSpace) -> LogDistance:
    return LogDistance(max(logs, 0), size_bytes, round(100 * size_bytes / space.total_bytes, 1))
