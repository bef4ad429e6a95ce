"""Write files so that a crash leaves the old content or the new one; name what the disk refuses.

Rule: the only place in the project that calls fsync.
"""

from __future__ import annotations

import contextlib
import errno
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from informix_capture_client.errors import AccessRefused
from informix_capture_client.failpoints import failpoint
from informix_checkpoints.spool.own_files import new_file


def replace_file(path: Path, content: bytes, *, durable: bool) -> None:
    """Make `path` hold `content`, or leave it untouched if we die on the way."""
    draft = path.with_suffix(".draft")
    with new_file(draft) as file:
        file.write(content)
        if durable:
            sync(file)
    failpoint("replace_file.before_rename")
    draft.replace(path)  # the commit point: before this line the old content stands
    failpoint("replace_file.after_rename")
    if durable:
        sync_folder(path.parent)


def sync(file: BinaryIO) -> None:
    """Force a file's content to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path, *, durable: bool) -> None:
    """Make a folder if it is missing, and those above it; what is made only this user can enter."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True, mode=0o700)
        if durable:
            sync_folder(path.parent)


class ChecksummedFile:
    """A file that keeps the CRC-32 and the size of what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.closed = False
        self.checksum = 0
        self.size_bytes = 0

    def write(self, content: bytes | memoryview) -> int:
        """Write and count."""
        self.checksum = zlib.crc32(content, self.checksum)
        self.size_bytes += len(content)
        return self._file.write(content)

    def flush(self) -> None:
        """Hand what is buffered to the system."""
        self._file.flush()

    def tell(self) -> int:
        """Return where the next byte goes."""
        return self.size_bytes

    def close(self) -> None:
        """Take no more; the file itself stays open, so that its owner can sync it."""
        self._file.flush()
        self.closed = True


_ELSEWHERE = "or set option spoolPath to another folder"
_NOT_WRITABLE = f"Let the user of this process write there, {_ELSEWHERE}."
REMOVED = (
    "Start the query again: what Spark has not taken is captured again, if the server's log still holds"
    " it. If a cleaner of temporary files removed the folder, set option spoolPath."
)
_OTHERWISE = f"Look after its disk, {_ELSEWHERE}."
_NO_INODES = (
    "its file system has room, but no free inodes",
    f"Remove files there that nobody needs (df -i shows the inodes), {_ELSEWHERE}.",
)
_REMEDIES = {
    errno.ENOSPC: f"Make room on its disk, {_ELSEWHERE}.",
    errno.EDQUOT: f"Make room or raise the quota of the user of this process, {_ELSEWHERE}.",
    errno.EROFS: f"Its file system is mounted read-only: look after the disk, {_ELSEWHERE}.",
    errno.EACCES: _NOT_WRITABLE,
    errno.EPERM: _NOT_WRITABLE,
    errno.EMFILE: "This process has as many files open as it may: raise its limit of open files (ulimit"
    " -n, or LimitNOFILE of its service).",
    errno.ENFILE: "All processes of this host together have as many files open as they may: raise the"
    " limit (sysctl fs.file-max).",
    errno.ENOENT: REMOVED,
    errno.ESTALE: REMOVED,
}


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Name the folder and the remedy when the system says no."""
    try:
        yield
    except OSError as reason:
        what, remedy = reason.strerror or reason, _REMEDIES.get(reason.errno or 0, _OTHERWISE)
        if reason.errno == errno.ENOSPC and _has_no_inodes(folder):
            what, remedy = _NO_INODES
        raise AccessRefused(
            f"the spool {folder} cannot be written: {what}.", remedy, folder=str(folder)
        ) from None


def _has_no_inodes(folder: Path) -> bool:
    """Tell whether a file system has blocks for this user, but none of its inodes; some count none."""
    place = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    with contextlib.suppress(OSError):
        facts = os.statvfs(place)
        return facts.f_bavail > 0 and facts.f_files > 0 and facts.f_favail == 0
    return False


@contextlib.contextmanager
def reading_errors(folder: Path) -> Iterator[None]:
    """Name the folder and the remedy when a segment is not what it was."""
    try:
        yield
    except (OSError, pa.ArrowException, AccessRefused) as reason:
        told = reason.message.rstrip(".") if isinstance(reason, AccessRefused) else reason
        raise AccessRefused(
            f"a segment of the spool {folder} cannot be read: {told}.",
            "Start the query again: what the server's log still holds is captured again.",
            folder=str(folder),
        ) from None
