"""Spill bytes to unnamed temporary files.

Rule: the files have no name, so that a crash does not leave them behind. They are never synced, because
after a crash the server's log is read again. A file is closed, and its space freed, when no bytes in it
are referenced. Spilled rows are not decoded, so that masks are not applied yet: if columns are masked,
they are encrypted (AES-256-CTR) with a key that only the process has.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from informix_capture_client.errors import AccessRefused
from informix_checkpoints.spool.durable_files import disk_errors, make_folder

# What is kept for long holds the room of what was put aside with it; a file takes no more than this,
# or than this part of all that is put aside, so that there are never many files either.
FILE_BYTES = 64 << 20
_LARGEST_PART = 32
_KEY_BYTES, _COUNTER_BYTES = 32, 16


class SpillFiles:
    """Stores bytes in unnamed files of one folder, which is created when first needed."""

    def __init__(self, folder: Path, *, is_encrypted: bool = False) -> None:
        self._folder = folder
        self._key = algorithms.AES(os.urandom(_KEY_BYTES)) if is_encrypted else None
        self._files: weakref.WeakSet[_SpillFile] = weakref.WeakSet()
        self._newest: weakref.ref[_SpillFile] | None = None

    @property
    def size_bytes(self) -> int:
        """The disk space that the files take."""
        return sum([file.size_bytes for file in self._files])

    def keep(self, parts: Sequence[memoryview]) -> SpilledBytes:
        """Write bytes, one part after the other.

        Raises:
            AccessRefused: the folder cannot be written, or its disk is full.
        """
        cipher = None
        if self._key is not None:
            cipher = Cipher(self._key, modes.CTR(os.urandom(_COUNTER_BYTES)))
            encryptor = cipher.encryptor()
            parts = [memoryview(encryptor.update(part)) for part in parts]
        with disk_errors(self._folder):
            file = self._file_with_room()
            first = file.size_bytes
            file.append(parts)
        return SpilledBytes(file, first, file.size_bytes - first, cipher)

    def _file_with_room(self) -> _SpillFile:
        newest = self._newest() if self._newest is not None else None
        if newest is not None and newest.size_bytes < max(FILE_BYTES, self.size_bytes // _LARGEST_PART):
            return newest
        make_folder(self._folder, durable=False)
        file = _SpillFile(self._folder)
        self._files.add(file)
        self._newest = weakref.ref(file)
        return file


class _SpillFile:
    """An append-only file with random reads."""

    def __init__(self, folder: Path) -> None:
        file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed by the finalizer
        weakref.finalize(self, file.close)
        self.folder = folder
        self.size_bytes = 0
        self._descriptor = file.fileno()

    def append(self, parts: Sequence[memoryview]) -> None:
        at = self.size_bytes
        for part in parts:
            rest = part.cast("B")
            while rest:
                written = os.pwrite(self._descriptor, rest, at)
                rest, at = rest[written:], at + written
        self.size_bytes = at

    def read(self, first: int, size_bytes: int) -> bytes:
        pieces: list[bytes] = []
        at, end = first, first + size_bytes
        while at < end and (piece := os.pread(self._descriptor, end - at, at)):
            pieces.append(piece)
            at += len(piece)
        if at < end:
            raise AccessRefused(
                f"spilled rows in {self.folder} cannot be read back: only {at - first} of"
                f" {size_bytes} bytes at {first} remain.",
                "Check its disk, or set option spoolPath to another folder.",
                folder=str(self.folder),
            )
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


@dataclass(frozen=True, slots=True, eq=False)
class SpilledBytes:
    """Some bytes of a file, which stays open as long as this value exists."""

    file: _SpillFile
    first: int
    size_bytes: int
    cipher: Cipher[modes.CTR] | None = None

    def load(self) -> bytes:
        """Return the bytes.

        Raises:
            AccessRefused: they cannot be read back.
        """
        with disk_errors(self.file.folder):
            content = self.file.read(self.first, self.size_bytes)
        return content if self.cipher is None else self.cipher.decryptor().update(content)
