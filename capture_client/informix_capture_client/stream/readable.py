"""Check whether the log can be read from a position on.

Rule: read until one transaction begins or ends, and keep nothing. A TIMEOUT record does not count: its
sequence number may be that of the activation.
"""

from __future__ import annotations

from collections.abc import Callable

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.stream.event_stream import ChangeStream, Read

_POLL_SECONDS = 0.1


def shows_transactions(
    stream: ChangeStream,
    within_seconds: float,
    is_stopped: Callable[[], bool],
    clock: Callable[[], float],
) -> bool:
    """Return whether a new stream reports the begin or end of a transaction in time.

    Args:
        stream: with a separate session; the caller stops it.
        within_seconds: the time limit, also for a read that does not return.
        is_stopped: whether the result is no longer needed.
        clock: a monotonic clock, in seconds.
    """
    deadline = clock() + within_seconds
    while clock() < deadline and not is_stopped():
        try:
            answer = stream.next(_POLL_SECONDS)
        except InformixCdcError:  # the position is gone, or no connection to be had: nothing is shown
            return False
        if isinstance(answer, Read) and answer.latest_time:
            return True
    return False
