"""Make what was written to a local file system durable.

Rule: neither Spark's checkpoint nor delta-rs syncs a file. One `syncfs` before a batch makes its plan
durable, so that no table has a batch that nobody has planned, and one after it the tables, before Spark
counts it as done. Object stores acknowledge only what is durable.

Source: Linux, syncfs(2).
"""

from __future__ import annotations

import ctypes
import os

_C = ctypes.CDLL(None, use_errno=True)


def make_durable(place: str) -> None:
    """Return when everything that was written to the file system of a place is durable.

    Args:
        place: a folder, or a URL; nothing is done for one that is not local.

    Raises:
        OSError: a write to that file system has failed.
    """
    if "://" in place and not place.startswith("file://"):
        return
    path = place.removeprefix("file://").removeprefix("file:")  # Hadoop also says file:/path
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not hasattr(_C, "syncfs"):  # not Linux
            os.sync()
        elif _C.syncfs(folder):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), place)
    finally:
        os.close(folder)
