"""Ensure one writer per folder: a lock that the kernel releases with its process, and a number.

Rule: the lock decides. The number is for file systems that can lose a lock (network mounts): it rises
with every writer, is part of the names of segments, and is checked before every commit point, so that a
previous writer that resumes cannot write.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from informix_capture_client.errors import AccessRefused
from informix_capture_client.log_events import SPOOL_AWAITED, SPOOL_TAKEN_OVER
from informix_checkpoints.spool.durable_files import (
    make_folder,
    open_plain,
    read_plain,
    require_own_folder,
    sync,
)

FILE_NAME = "writer.lock"
_MOMENT = "lock"
_POLL_SECONDS = 0.1
_LOCKS = Path("/proc/locks")
logger = logging.getLogger("informix_cdc.checkpoints.spool")  # a name in logs, not a module


class WriterLock:
    """Locks a folder for one writer.

    Args:
        folder: created if missing.
        wait_seconds: how long to wait for a previous writer to end.
        durable: whether folder and number must survive a crash of the host.
        on_wait: called again and again while it waits; ends that with an exception.

    Raises:
        AccessRefused: the previous writer is still running, or the folder does not belong to this user.
    """

    def __init__(
        self,
        folder: Path,
        wait_seconds: float,
        *,
        durable: bool = False,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder = folder
        self._durable = durable
        self._file = _locked(folder, wait_seconds, durable, on_wait)
        self.fence = _number(self._file.read())

    def take_number(self, above: int = 0) -> None:
        """Use the next higher writer number; `above` is a number known from elsewhere."""
        self.fence = max(self.fence, above) + 1
        self._file.seek(0)
        self._file.write(b"%d" % self.fence)
        self._file.truncate()
        self._file.flush()
        if self._durable:
            sync(self._file)

    @property
    def is_in_place(self) -> bool:
        """Return whether the locked file is still the one in the folder."""
        return _is_still(self._file, self._folder / FILE_NAME)

    def require_ours(self) -> None:
        """Check that no other query has taken over the folder.

        Raises:
            AccessRefused: another query has; the error names both numbers.
        """
        try:
            found = _number(read_plain(self._folder / FILE_NAME))
        except FileNotFoundError:
            found = 0
        if found != self.fence:
            raise AccessRefused(
                f"the spool {self._folder} now has writer number {found}, but this query has number"
                f" {self.fence}.",
                "Another query uses the folder, or the folder was removed: start this query again.",
                folder=str(self._folder),
            )

    def remove_folder(self) -> None:
        """Remove the folder and release the lock; a waiting query creates the folder again."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Release the lock."""
        self._file.close()


def has_writer(folder: Path) -> bool:
    """Return whether a process on this host has the lock of a folder."""
    try:
        file = open_plain(folder / FILE_NAME, os.O_RDWR)
    except FileNotFoundError:
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextlib.contextmanager
def locked_folder(folder: Path, *, waits: bool = True) -> Iterator[None]:
    """Let one process at a time change the files of a folder, for a moment; the folder is made.

    Raises:
        BlockingIOError: without `waits`, another process has the lock.
        OSError: it cannot be made or locked.
    """
    make_folder(folder, durable=True)
    with open_plain(folder / _MOMENT, os.O_RDWR | os.O_CREAT) as file:
        if waits:
            fcntl.flock(file, fcntl.LOCK_EX)
        elif not _is_locked_now(file):
            raise BlockingIOError(errno.EAGAIN, "another process has the lock", str(folder))
        yield


def _locked(folder: Path, wait_seconds: float, durable: bool, on_wait: Callable[[], None]) -> BinaryIO:
    begun, is_awaited = time.monotonic(), False
    while True:
        _make_own(folder, durable)
        path = folder / FILE_NAME
        file = open_plain(path, os.O_RDWR | os.O_CREAT)
        if _is_locked_now(file) and _is_still(file, path):
            if is_awaited:
                SPOOL_TAKEN_OVER.log(logger, spool=folder, seconds=round(time.monotonic() - begun, 1))
            return file
        holder = _holder(file)
        file.close()
        if time.monotonic() >= begun + wait_seconds:
            process = f" (process {holder})" if holder else ""
            raise AccessRefused(
                f"another query is writing to the spool {folder}{process}.",
                "Stop it. If this is another query, give it a spoolPath of its own.",
            )
        if not is_awaited:
            SPOOL_AWAITED.log(logger, spool=folder, process=holder, most_seconds=wait_seconds)
            is_awaited = True
        on_wait()
        time.sleep(_POLL_SECONDS)


def _holder(file: BinaryIO) -> int | None:
    """Return the process that holds the lock, if known to this host's kernel: proc_locks(5)."""
    facts = os.fstat(file.fileno())
    device = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
    try:
        locks = [line.split() for line in _LOCKS.read_text().splitlines()]
    except OSError:
        return None
    found = [int(lock[4]) for lock in locks if lock[1:2] == ["FLOCK"] and lock[5] == device]
    return next((process for process in found if process > 0), None)  # 0: of another PID namespace


def _make_own(folder: Path, durable: bool) -> None:
    """Create a folder for this user only, or check that it is one; a link is rejected."""
    if not folder.is_symlink():
        make_folder(folder, durable=durable)
    require_own_folder(folder)


def _is_locked_now(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(file: BinaryIO, path: Path) -> bool:
    """Return whether a locked file is still in its folder, which may have been removed."""
    try:
        return os.fstat(file.fileno()).st_ino == path.lstat().st_ino
    except FileNotFoundError:
        return False


def _number(content: bytes) -> int:
    return int(content) if content.isdigit() else 0
