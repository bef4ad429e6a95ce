"""The limit of open files of a process that serves a port."""

from __future__ import annotations

import contextlib
import logging
import resource

from informix_capture_client.log_events import FILE_LIMIT_RAISED

logger = logging.getLogger(__name__)


def raise_file_limit() -> None:
    """Raise the limit of open files to the maximum: clients of the Flight port may use some.

    The usual soft limit of 1,024 is meant for programs that call select(), see systemd's NEWS for 240.
    The limit stays when the stream ends, because files may still be open.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    with contextlib.suppress(OSError, ValueError):  # some systems have a lower maximum
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        FILE_LIMIT_RAISED.log(logger, before=soft, now=hard)
