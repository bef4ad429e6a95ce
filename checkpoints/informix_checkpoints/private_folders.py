"""Remove folders whose process or stream no longer needs them.

Rule: a private folder under the system's temporary folder is named after its process. When the process
has ended, the next process removes it. Under spoolPath, an unlocked stream folder without rows is
removed, because everything in it is also in the checkpoint, unless it has requests.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from pathlib import Path

from informix_capture_client.errors import AccessRefused
from informix_checkpoints.requests import has_requests
from informix_checkpoints.spool import WriterLock, disk_errors

_PREFIX = "informix-cdc-spool-"
_SETTLING_SECONDS = 60.0  # a folder is made before its lock is taken
_STREAM = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(rf"{_PREFIX}(\d+)-.*")


def make_private_folder() -> Path:
    """Return a new folder that only this user can read.

    Raises:
        AccessRefused: the system's temporary folder cannot be written.
    """
    parent = Path(tempfile.gettempdir())
    with disk_errors(parent):
        remove_left_overs(parent)
        return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))


def remove_private_folder(folder: Path) -> None:
    """Remove a folder created by `make_private_folder`."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_left_overs(parent: Path) -> None:
    """Remove the private folders of ended processes; keep entries that are not private folders."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # a failed clean-up is not an error
            if _is_left_over(folder):
                _remove_unless_locked(folder)


def remove_empty_streams(spool_path: Path) -> None:
    """Remove the folders of streams that have no rows and no writer.

    A query that crashes before its first offset is logged leaves such a folder; a stream without
    changes creates a new one when it resumes. A folder with rows is kept: only its checkpoint tells
    whether they are
    """
    for folder in spool_path.glob("*"):
        with contextlib.suppress(OSError):  # the same here
            is_left = _STREAM.fullmatch(folder.name) and _is_own_and_settled(folder)
            if is_left and not any(folder.glob("*.arrow")) and not has_requests(folder):
                _remove_unless_locked(folder)


def _remove_unless_locked(folder: Path) -> None:
    """Remove a folder while holding its lock, so that no query starts to write there."""
    with contextlib.suppress(AccessRefused):
        WriterLock(folder, 0).remove_folder()


def _is_left_over(folder: Path) -> bool:
    """Check process and lock: a process in another container has no number here, but a lock."""
    found = _NAME.fullmatch(folder.name)
    return found is not None and _is_own_and_settled(folder) and not _is_alive(int(found[1]))


def _is_own_and_settled(folder: Path) -> bool:
    facts = folder.lstat()  # anybody may put a link there
    is_own = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()
    return is_own and time.time() - facts.st_mtime > _SETTLING_SECONDS


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
