"""Folders and files that are this user's own: nobody else's is taken, and no link is followed.

Rule: what lies in a folder that only this user may write was put there by this user, so the folder is
looked at and not each file. A link would lead elsewhere even so, and is never opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from informix_capture_client.errors import AccessRefused

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_KINDS = {stat.S_ISDIR: "folder", stat.S_ISREG: "file"}
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # nor does a pipe of that name hold us up


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
        return f"is no {_KINDS[is_kind]}"
    if facts.st_uid != os.geteuid():
        return f"belongs to user {facts.st_uid}, and this query runs as user {os.geteuid()}"
    return ""


def _open_to_others(facts: os.stat_result) -> str:
    if facts.st_mode & _OTHERS_WRITE:
        return f"may be written by others (mode {stat.S_IMODE(facts.st_mode):o})"
    return ""
