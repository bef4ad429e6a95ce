"""How far a position lies behind the end of the server's log, and how much headroom it has.

Rule: pure; `LogSpace` has the arithmetic, here is what of it people are shown. Bytes are whole pages of
the log, of all databases of the server, and percent is of all log files, used or not.
"""

from __future__ import annotations

from dataclasses import dataclass

from informix_capture_client.catalog.log_space import LogSpace
from informix_capture_client.positions import log_number


@dataclass(frozen=True, slots=True)
class LogDistance:
    """A stretch of the log: how many files it leads on, its bytes, and its part of the whole log."""

    logs: int
    size_bytes: int
    percent: float


@dataclass(frozen=True, slots=True)
class PlaceInLog:
    """Where a position lies.

    Attributes:
        behind: what was written since.
        headroom: what may be written until its file is used again; None if that has happened.
        headroom_seconds: how long that takes at the recent average rate; None where it is not known.
        is_beyond_end: the log has not come so far; the position is of another server, or of one that
            was restored since.
    """

    behind: LogDistance
    headroom: LogDistance | None
    headroom_seconds: float | None
    is_beyond_end: bool = False


def place_in_log(position: int, space: LogSpace, now: float) -> PlaceInLog:
    """Return where a position lies in a server's log.

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
