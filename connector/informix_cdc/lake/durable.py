"""Make what was written to a local file system durable, before Spark counts a batch as done.

Rule: delta-rs syncs no file. One `syncfs` for a batch replaces a sync of each file and folder. Object
stores acknowledge only what is durable.

Source: Linux, syncfs(2).
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

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
    folder = os.open(place.removeprefix("file://"), os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not hasattr(_C, "syncfs"):  # not Linux
            os.sync()
        elif _C.syncfs(folder):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), place)
    finally:
        os.close(folder)


def make_file_durable(path: Path) -> None:
    """Return when a file and its name in its folder are durable."""
    for each, flags in ((path, os.O_RDONLY), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
        opened = os.open(each, flags)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
