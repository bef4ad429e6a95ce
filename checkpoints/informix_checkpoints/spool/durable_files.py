"""Write files so that a crash leaves either the old content or the new one.

Rule: the only place in the project that calls fsync.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import BinaryIO

from informix_capture_client.failpoints import failpoint


def replace_file(path: Path, content: bytes, *, durable: bool) -> None:
    """Make `path` hold `content`, or leave it untouched if we die on the way."""
    draft = path.with_suffix(".draft")
    with draft.open("wb") as file:
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
