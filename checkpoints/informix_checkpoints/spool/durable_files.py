"""Crash-safe files of a spool, accessible to this user only, and remedies for disk errors.

Rule: the only module in the project that calls fsync. Files in a folder that only this user can write
were written by this user, so the folder is checked and not each file. A link could point elsewhere and
is never opened.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from informix_capture_client.errors import AccessRefused
from informix_capture_client.failpoints import failpoint

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_NO_LINK = (
    os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
)  # O_NONBLOCK: a pipe of that name must not block us


def replace_file(path: Path, content: bytes, *, durable: bool) -> None:
    """Replace the content of `path` atomically: a crash leaves the old content."""
    draft = path.with_suffix(".draft")
    with new_file(draft) as file:
        file.write(content)
        if durable:
            sync(file)
    failpoint("replace_file.before_rename")
    draft.replace(path)  # the commit point: before this line the file has the old content
    failpoint("replace_file.after_rename")
    if durable:
        sync_folder(path.parent)


def append_to_file(path: Path, content: bytes, *, durable: bool) -> None:
    """Append to a file, which is created if it does not exist; a crash may leave a part of it."""
    failpoint("journal.before_append")
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK, 0o600)
    with os.fdopen(handle, "ab", 0) as file:
        file.write(content)  # the commit point, with the last byte
        failpoint("journal.after_append")
        if durable:
            sync(file)
    if durable:
        sync_folder(path.parent)  # has the names of the files that the content mentions


def sync(file: BinaryIO) -> None:
    """Flush a file's content to disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path, *, durable: bool) -> None:
    """Create a folder and its missing parents, accessible to this user only."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True, mode=0o700)
        if durable:
            sync_folder(path.parent)


class ChecksummedFile:
    """A file that computes the CRC-32 and the size of the bytes written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.closed = False
        self.checksum = 0
        self.size_bytes = 0

    def write(self, content: bytes | memoryview) -> int:
        """Write bytes and update checksum and size."""
        self.checksum = zlib.crc32(content, self.checksum)
        self.size_bytes += len(content)
        return self._file.write(content)

    def flush(self) -> None:
        """Flush buffered bytes to the operating system."""
        self._file.flush()

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self.size_bytes

    def close(self) -> None:
        """Flush and mark as closed; the file itself stays open, so that its owner can sync it."""
        self._file.flush()
        self.closed = True


_ELSEWHERE = "or set option spoolPath to another folder"
_NOT_WRITABLE = f"Let the user of this process write there, {_ELSEWHERE}."
REMOVED = (
    "Start the query again: what Spark has not read is captured again, if the server's log still"
    " has them. If a cleaner of temporary files removed the folder, set option spoolPath."
)
_OTHERWISE = f"Check its disk, {_ELSEWHERE}."
_NO_INODES = (
    "its file system has free space, but no free inodes",
    f"Remove unneeded files there (df -i shows the inodes), {_ELSEWHERE}.",
)
_REMEDIES = {
    errno.ENOSPC: f"Free space on its disk, {_ELSEWHERE}.",
    errno.EDQUOT: f"Free space or raise the quota of the user of this process, {_ELSEWHERE}.",
    errno.EROFS: f"Its file system is mounted read-only: check the disk, {_ELSEWHERE}.",
    errno.EACCES: _NOT_WRITABLE,
    errno.EPERM: _NOT_WRITABLE,
    errno.EMFILE: "This process has reached its limit of open files: raise the limit (ulimit"
    " -n, or LimitNOFILE of its service).",
    errno.ENFILE: "This host has reached its limit of open files: raise the"
    " limit (sysctl fs.file-max).",
    errno.ENOENT: REMOVED,
    errno.ESTALE: REMOVED,
}


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Translate an `OSError` while writing into an error with folder and remedy."""
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
    """Return whether a file system has free blocks but no free inodes; some do not count inodes."""
    place = next((each for each in (folder, *folder.parents) if each.exists()), folder)
    with contextlib.suppress(OSError):
        facts = os.statvfs(place)
        return facts.f_bavail > 0 and facts.f_files > 0 and facts.f_favail == 0
    return False


@contextlib.contextmanager
def reading_errors(folder: Path) -> Iterator[None]:
    """Translate an error while reading a segment into one with folder and remedy."""
    try:
        yield
    except (OSError, pa.ArrowException, AccessRefused) as reason:
        told = reason.message.rstrip(".") if isinstance(reason, AccessRefused) else reason
        raise AccessRefused(
            f"a segment of the spool {folder} cannot be read: {told}.",
            "Start the query again: changes that the server's log still has are captured again.",
            folder=str(folder),
        ) from None


# of this user alone


def require_own_folder(folder: Path) -> None:
    """Reject a folder that belongs to another user, or that other users can write to.

    Raises:
        AccessRefused: it is a link, not a folder, another user's, or others can write to it.
    """
    facts = folder.lstat()
    if why := _not_own(facts, stat.S_ISDIR):
        remedy = _look_and_remove(facts, stat.S_ISDIR) or _OF_ANOTHER_USER
    elif why := _open_to_others(facts):
        remedy = _OPENED_AGAIN if facts.st_mode & stat.S_ISGID else _OPEN
    else:
        return
    told = f"Users who can write there can change the delivered rows. {remedy}"
    raise AccessRefused(f"the spool {folder} {why}.", told, folder=str(folder))


_OF_ANOTHER_USER = (
    "Change the owner of the folder and its content to the user of this query (chown -R). On a mount"
    " that does not store owners, set them with its mount options (uid)."
)
_OPEN = (
    "If only queries of this user wrote there, run chmod 700; otherwise move it away. On a mount"
    " that does not store modes, set them with its mount options (dir_mode or umask)."
)
# kubelet sets g+rwX,g+s on all of a volume at each mount, unless the root of it is so already:
# kubernetes.io/docs/tasks/configure-pod-container/security-context (fsGroupChangePolicy)
_OPENED_AGAIN = (
    "Run chmod 700 on it. Kubernetes and OpenShift make a volume writable for the pod's fsGroup at each"
    " mount: set fsGroupChangePolicy: OnRootMismatch in the pod's securityContext, and set spoolPath"
    " to a folder below the volume's root, whose mode does not change."
)

_MARK_OF_ANOTHER_USER = (
    "If a query of another user wrote it, it records a data loss: change its owner to the user of this"
    " query (chown, chmod 600). Otherwise remove it."
)


def read_own(path: Path) -> tuple[bytes, str]:
    """Return the content of a file of this user in a folder where others can write.

    Also return a text if others may have changed the file; then the file only proves that it was
    created.

    Raises:
        AccessRefused: it is a link, is not a file, or belongs to another user.
        OSError: it does not exist, or cannot be read.
    """
    facts = path.lstat()
    if why := _not_own(facts, stat.S_ISREG):
        raise AccessRefused(
            f"{path} {why}.",
            _look_and_remove(facts, stat.S_ISREG) or _MARK_OF_ANOTHER_USER,
        )
    return read_plain(path), _open_to_others(facts)


def read_plain(path: Path) -> bytes:
    """Return the content of a file, unless it is a link.

    Raises:
        AccessRefused: it is a link.
        OSError: it does not exist, or cannot be read.
    """
    with open_plain(path, os.O_RDONLY) as file:
        return file.read()


def open_plain(path: Path, flags: int) -> BinaryIO:
    """Open a file that is not a link; a new file is accessible to this user only.

    Raises:
        AccessRefused: it is a link.
        OSError: it cannot be opened.
    """
    try:
        number = os.open(path, flags | _NO_LINK, 0o600)
    except OSError as reason:
        if reason.errno == errno.ELOOP:
            raise AccessRefused(
                f"{path} is a link, which queries do not create.",
                "Check where it points to, and remove it.",
            ) from None
        raise
    return os.fdopen(number, "r+b" if flags & os.O_RDWR else "rb")


def new_file(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a new file, after removing a file of this name that a crashed process left."""
    try:
        return create_file(path, buffering)
    except FileExistsError:
        path.unlink()
        return create_file(path, buffering)


def create_file(path: Path, buffering: int = -1) -> BinaryIO:
    """Create a file that only this user can open.

    Raises:
        OSError: it cannot be created; FileExistsError if the name exists, also as a link.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    return os.fdopen(os.open(path, flags | _NO_LINK, 0o600), "wb", buffering)


def _look_and_remove(facts: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    return (
        "" if is_kind(facts.st_mode) else "Check what it is, and remove it: queries do not create it."
    )


def _not_own(facts: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    """Return why a folder or file is not this user's, as a text; empty if it is."""
    if stat.S_ISLNK(facts.st_mode):
        return "is a link, which queries do not create"
    if not is_kind(facts.st_mode):
        return "is not a folder" if is_kind is stat.S_ISDIR else "is not a file"
    if facts.st_uid != os.geteuid():
        return f"belongs to user {facts.st_uid}, but this query runs as user {os.geteuid()}"
    return ""


def _open_to_others(facts: os.stat_result) -> str:
    if facts.st_mode & _OTHERS_WRITE:
        return f"can be written by other users (mode {stat.S_IMODE(facts.st_mode):o})"
    return ""
