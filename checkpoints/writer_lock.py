"""One writer for a folder: a lock that the kernel frees when its holder dies, and a number beside it.

Rule: the lock decides. The number is for file systems on which a lock can be lost (network mounts): it
rises with every writer, stands in the names of segments, and is compared before every commit point, so
that a writer that was thought dead and comes back writes nothing more.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import BinaryIO

from informix_cdc.capture_client.errors import AccessRefused

FILE_NAME = "writer.lock"
_POLL_SECONDS = 0.1


class WriterLock:
    """Holds a folder for one writer.

    Args:
        folder: must exist.
        wait_seconds: how long to wait for a former writer to end.

    Raises:
        AccessRefused: the former writer lives on.
    """

    def __init__(self, folder: Path, wait_seconds: float) -> None:
        self._folder = folder
        self._file = _locked(folder, wait_seconds)
        self.fence = _number(self._file.read()) + 1
        self._file.seek(0)
        self._file.write(b"%d" % self.fence)
        self._file.truncate()
        self._file.flush()

    def require_ours(self) -> None:
        """Refuse to go on when somebody else has taken the folder.

        Raises:
            AccessRefused: names both numbers.
        """
        try:
            found = _number((self._folder / FILE_NAME).read_bytes())
        except FileNotFoundError:
            found = 0
        if found != self.fence:
            raise AccessRefused(
                f"the spool {self._folder} has writer number {found} now, and this one is number"
                f" {self.fence}.",
                "Another query took it over, or the folder was removed: start this one again.",
                folder=str(self._folder),
            )

    def release(self) -> None:
        """Let the next writer in."""
        self._file.close()


def is_locked(folder: Path) -> bool:
    """Tell whether a living writer holds a folder, also one of another container."""
    try:
        with (folder / FILE_NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _locked(folder: Path, wait_seconds: float) -> BinaryIO:
    file = os.fdopen(os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                file.close()
                raise AccessRefused(
                    f"another query writes the spool {folder}.",
                    "Stop it, or give this query a spoolPath of its own.",
                ) from None
            time.sleep(_POLL_SECONDS)
        else:
            return file


def _number(content: bytes) -> int:
    return int(content) if content.isdigit() else 0
