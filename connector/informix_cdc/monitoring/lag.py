"""How far a stream is behind its server, and how long its place in the log will be there.

Rule: pure: facts in, figures out. What is not known is None, never a guess: without fresh facts of the
server's log there is no lag in bytes and no headroom.

    server's log   oldest ........ restart ....... delivered ...... reached ...... current
                                               |<------------ lag ------------->|
                                                             |<- capture lag -->|
                   headroom: what may be written until the log of `restart` is used again; 0 if it was
"""

from __future__ import annotations

from dataclasses import dataclass

from informix_capture_client.catalog import LogSpace

FRESH_SECONDS = 60.0  # four times what lies between two questions
_PAGES = 2  # the current page may be half full, and the record that was read last may begin before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a stream has come; times in seconds since 1970 by the server's clock.

    Attributes:
        now: the server's time.
        restart: where a new session of this query would begin; None before the first batch.
        delivered: the log up to here is with Spark; None before the stream has begun.
        reached: the log up to here has been read; 0 before the first record.
        read_up_to: what committed before this time has been read; None before the first record.
        waits: whether rows lie in the spool that Spark has not taken.
        waiting_since: when the oldest of these were committed, if known.
        asked_at: when the server last answered where its log ends; None if it has not.
        oldest_open: when the oldest open transaction began, if one is open.
    """

    now: float
    restart: int | None = None
    delivered: int | None = None
    reached: int = 0
    read_up_to: float | None = None
    waits: bool = False
    waiting_since: float | None = None
    asked_at: float | None = None
    oldest_open: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """Seconds and bytes of log; None is not known."""

    lag_seconds: float | None
    capture_lag_seconds: float | None
    lag_bytes: int | None
    capture_lag_bytes: int | None
    headroom_bytes: int | None
    log_bytes: int | None
    oldest_open_seconds: float


def lag_of(progress: Progress, space: LogSpace | None) -> Lag:
    """Hold progress against the server's log; `space` is None where that is not known."""
    capture_lag_bytes = _bytes_since(space, progress.reached)
    capture_lag = _age(progress.now, _read_up_to(progress, space, capture_lag_bytes))
    waiting = _age(progress.now, progress.waiting_since)
    return Lag(
        lag_seconds=waiting if progress.waits else capture_lag,
        capture_lag_seconds=capture_lag,
        lag_bytes=_bytes_since(space, progress.delivered),
        capture_lag_bytes=capture_lag_bytes,
        headroom_bytes=space.headroom(progress.restart) if space and progress.restart else None,
        log_bytes=space.total_bytes if space else None,
        oldest_open_seconds=_age(progress.now, progress.oldest_open) or 0.0,
    )


def _read_up_to(progress: Progress, space: LogSpace | None, lag_bytes: int | None) -> float | None:
    """Return the time before which every commit has been read; None where it is not known.

    If the log has been read to the end that the server named, that is at least the time of its answer:
    the log itself shows no newer time while one long transaction is all that is written.
    """
    is_at_end = space is not None and lag_bytes is not None and lag_bytes <= _PAGES * space.page_bytes
    known = [time for time in (progress.read_up_to, progress.asked_at) if time is not None]
    return max(known) if is_at_end and known else progress.read_up_to


def _age(now: float, then: float | None) -> float | None:
    return None if then is None else max(0.0, round(now - then, 3))


def _bytes_since(space: LogSpace | None, position: int | None) -> int | None:
    return space.bytes_since(position) if space and position else None
