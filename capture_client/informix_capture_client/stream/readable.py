"""Check whether the log can be read from a position on.

Rule: read until one transaction begins or ends, and keep nothing. A TIMEOUT record proves nothing: its
number may be that of the activation.
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
    """Read a new stream until it shows that a transaction begins or ends; nothing in time is no.

    Args:
        stream: of a session of its own; the caller stops it.
        within_seconds: a read that does not return is not waited for any longer.
        is_stopped: whether the answer is not wanted any more.
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
