"""Files of a spool: whole after a crash, of this user alone; and the remedy where the disk refuses.

Rule: the only place in the project that calls fsync. What lies in a folder that only this user may
write was put there by this user, so the folder is inspected and not each file. A link would lead
elsewhere even so, and is never opened.
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
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # nor does a pipe of that name hold us up


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


# of this user alone


def require_own_folder(folder: Path) -> None:
    """Refuse a folder that somebody else prepared, or may write to.

    Raises:
        AccessRefused: it is a link or no folder, of another user, or others may write to it.
    """
    facts = folder.lstat()
    if why := _not_own(facts, stat.S_ISDIR):
        remedy = _look_and_remove(facts, stat.S_ISDIR) or _OF_ANOTHER_USER
    elif why := _open_to_others(facts):
        remedy = _OPENED_AGAIN if facts.st_mode & stat.S_ISGID else _OPEN
    else:
        return
    told = f"Whoever may write there decides what is delivered. {remedy}"
    raise AccessRefused(f"the spool {folder} {why}.", told, folder=str(folder))


_OF_ANOTHER_USER = (
    "Give it to the user of this query with all that is in it (chown -R). A mount that keeps no owners"
    " of its own takes them from its options (uid)."
)
_OPEN = (
    "If only queries of this user wrote there, chmod 700; else move it away. A mount that keeps"
    " no modes of its own takes them from its options (dir_mode or umask)."
)
# kubelet sets g+rwX,g+s on all of a volume at each mount, unless the root of it is so already:
# kubernetes.io/docs/tasks/configure-pod-container/security-context (fsGroupChangePolicy)
_OPENED_AGAIN = (
    "chmod 700 it. On Kubernetes and OpenShift a volume is opened again at each mount for the fsGroup"
    " of its pod: set fsGroupChangePolicy: OnRootMismatch in the pod's securityContext, and spoolPath"
    " to a folder below the volume's root, whose mode stays as it is."
)

_MARK_OF_ANOTHER_USER = (
    "If a query under another user kept it, it is the memory of a loss: give it to the user of this"
    " query (chown, chmod 600). If no query of yours did, remove it."
)


def read_own(path: Path) -> tuple[bytes, str]:
    """Return the content of a file that this user made where others may write.

    With it, in words, whether others may have changed it since: the file tells no more then than that
    it was made.

    Raises:
        AccessRefused: it is a link or no file, or of another user.
        OSError: it is not there, or cannot be read.
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
        OSError: it is not there, or cannot be read.
    """
    with open_plain(path, os.O_RDONLY) as file:
        return file.read()


def open_plain(path: Path, flags: int) -> BinaryIO:
    """Open a file that is no link; one that is made is this user's alone.

    Raises:
        AccessRefused: it is a link.
        OSError: it cannot be opened.
    """
    try:
        number = os.open(path, flags | _NO_LINK, 0o600)
    except OSError as reason:
        if reason.errno == errno.ELOOP:
            raise AccessRefused(
                f"{path} is a link, which no query makes.", "Look where it leads, and remove it."
            ) from None
        raise
    return os.fdopen(number, "r+b" if flags & os.O_RDWR else "rb")


def new_file(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a file that is new; what has its name, left by somebody who died, goes before."""
    try:
        return create_file(path, buffering)
    except FileExistsError:
        path.unlink()
        return create_file(path, buffering)


def create_file(path: Path, buffering: int = -1) -> BinaryIO:
    """Create a file that only this user can open.

    Raises:
        OSError: it cannot be created; FileExistsError if anything has its name, a link too.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    return os.fdopen(os.open(path, flags | _NO_LINK, 0o600), "wb", buffering)


def _look_and_remove(facts: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    return "" if is_kind(facts.st_mode) else "Look what it is, and remove it: no query made it."


def _not_own(facts: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    """Return why this user did not make a folder or a file, in words; nothing if he did."""
    if stat.S_ISLNK(facts.st_mode):
        return "is a link, which no query makes"
    if not is_kind(facts.st_mode):
        return "is no folder" if is_kind is stat.S_ISDIR else "is no file"
    if facts.st_uid != os.geteuid():
        return f"belongs to user {facts.st_uid}, and this query runs as user {os.geteuid()}"
    return ""


def _open_to_others(facts: os.stat_result) -> str:
    if facts.st_mode & _OTHERS_WRITE:
        return f"may be written by others (mode {stat.S_IMODE(facts.st_mode):o})"
    return ""
