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
    if why := _not_own(folder.lstat(), stat.S_ISDIR):
        raise AccessRefused(
            f"the spool {folder} {why}.",
            "Whoever may write there decides what is delivered. Look what it is, and remove it or give"
            " it to the user of this query alone (chown, chmod 700). A mount that keeps no owners and"
            " modes of its own takes them from its options (uid, dir_mode or umask).",
            folder=str(folder),
        )


def read_own(path: Path) -> bytes:
    """Return the content of a file that lies where others may write.

    Raises:
        AccessRefused: it is a link or no file, of another user, or others may write to it.
        OSError: it is not there, or cannot be read.
    """
    if why := _not_own(path.lstat(), stat.S_ISREG):
        raise AccessRefused(
            f"{path} {why}.",
            "Look what it is. If a query under another user kept it, give it to the user of this query"
            " (chown, chmod 600), else remove it.",
        )
    return read_plain(path)


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
        return _made(path, buffering)
    except FileExistsError:
        path.unlink()
        return _made(path, buffering)


def _made(path: Path, buffering: int) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    return os.fdopen(os.open(path, flags | _NO_LINK, 0o600), "wb", buffering)


def _not_own(facts: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    """Return what is wrong with a folder or a file, in words; nothing if it is this user's own."""
    if stat.S_ISLNK(facts.st_mode):
        return "is a link, which no query makes"
    if not is_kind(facts.st_mode):
        return f"is no {_KINDS[is_kind]}"
    if facts.st_uid != os.geteuid():
        return f"belongs to user {facts.st_uid}, and this query runs as user {os.geteuid()}"
    if facts.st_mode & _OTHERS_WRITE:
        return f"may be written by others (mode {stat.S_IMODE(facts.st_mode):o})"
    return ""
