"""Private spool folders under the system's temporary folder, named after the process that owns them.

Rule: a folder whose process is gone is a left-over of a crash, and the next one to come removes it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

_PREFIX = "informix-cdc-spool-"
_NAME = re.compile(rf"{_PREFIX}(\d+)-.*")


def make_private_folder() -> Path:
    """Return a new folder that only this user can read."""
    remove_left_overs(Path(tempfile.gettempdir()))
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))


def remove_private_folder(folder: Path) -> None:
    """Remove a folder that `make_private_folder` made."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_left_overs(parent: Path) -> None:
    """Remove the private folders of dead processes."""
    for folder in parent.glob(f"{_PREFIX}*"):
        found = _NAME.fullmatch(folder.name)
        if found and folder.stat().st_uid == os.getuid() and not _is_alive(int(found[1])):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
