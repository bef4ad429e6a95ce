"""What the disk says, in words that name the folder and the remedy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from informix_capture_client.errors import AccessRefused


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Name the folder and the remedy when the disk says no."""
    try:
        yield
    except OSError as reason:
        raise AccessRefused(
            f"the spool {folder} cannot be written: {reason.strerror or reason}.",
            "Make room or mend its rights, or set option spoolPath to another folder.",
            folder=str(folder),
        ) from None


@contextlib.contextmanager
def reading_errors(folder: Path) -> Iterator[None]:
    """Name the folder and the remedy when a segment is not what it was."""
    try:
        yield
    except (OSError, pa.ArrowException) as reason:
        raise AccessRefused(
            f"a segment of the spool {folder} cannot be read: {reason}.",
            "Start the query again: what the server's log still holds is captured again.",
            folder=str(folder),
        ) from None
