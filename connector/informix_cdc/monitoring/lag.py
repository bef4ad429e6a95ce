"""Compute how far a stream is behind its server, and how long its position will remain in the log.

Rule: pure: facts in, figures out. Unknown figures are None, never estimates: without recent facts about
the server's log there is no lag in bytes and no headroom.

    server's log   oldest ........ restart ....... delivered ...... reached ...... current
                                               |<------------ lag ------------->|
                                                             |<- capture lag -->|
                   headroom: log to be written until `restart` is overwritten; 0 if it already is
"""

from __future__ import annotations

from dataclasses import dataclass

from informix_capture_client.catalog import LogSpace

FRESH_SECONDS = 60.0  # four times the interval between two requests
_PAGES = 2  # the current page may be half full, and the last record read may begin before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a stream; times in seconds since 1970 by the server's clock.

    Attributes:
        now: the server's time.
        restart: start position of a new session of this query; None before the first batch.
        delivered: position up to which Spark has the changes; None before the stream has begun.
        reached: position up to which the log has been read; 0 before the first record.
        read_up_to: all earlier commits have been read; None before the first record.
        waits: whether the spool has rows that Spark has not read.
        waiting_since: commit time of the oldest of these rows, if known.
        asked_at: when the server last reported the end of its log; None if it has not.
        oldest_open: when the oldest open transaction began, if there is one.
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
    """Seconds and bytes of log; None if unknown."""

    lag_seconds: float | None
    capture_lag_seconds: float | None
    lag_bytes: int | None
    capture_lag_bytes: int | None
    headroom_bytes: int | None
    log_bytes: int | None
    oldest_open_seconds: float


def lag_of(progress: Progress, space: LogSpace | None) -> Lag:
    """Compare progress with the server's log; `space` is None if that is unknown."""
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
    """Return the time before which every commit has been read; None if unknown.

    If the log has been read to the end that the server reported, that is at least the time of the
    report: the log itself shows no newer time while only one long transaction is written.
    """
    is_at_end = space is not None and lag_bytes is not None and lag_bytes <= _PAGES * space.page_bytes
    known = [time for time in (progress.read_up_to, progress.asked_at) if time is not None]
    return max(known) if is_at_end and known else progress.read_up_to


def _age(now: float, then: float | None) -> float | None:
    return None if then is None else max(0.0, round(now - then, 3))


def _bytes_since(space: LogSpace | None, position: int | None) -> int | None:
    return space.bytes_since(position) if space and position else None
