"""The stored rows of a stream that another process captures.

Rule: the manifest is read again when its file was replaced, and continued by what was appended. It may
be shared by threads.
"""

from __future__ import annotations

import threading
from pathlib import Path

from informix_capture_client.positions import Position
from informix_checkpoints.spool.manifest import Manifest
from informix_checkpoints.spool.manifest_files import StoredManifest, read_manifest
from informix_checkpoints.spool.stored_stream import StoredStream


class SharedSpool(StoredStream):
    """Reads a folder to which another process appends.

    Raises:
        DataLoss: its manifest is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reading = threading.Lock()
        self._stored: StoredManifest | None = None
        self._manifest: Manifest | None = None
        self.refresh()

    @property
    def folder(self) -> Path:
        """The folder of the segments."""
        return self._folder

    @property
    def manifest(self) -> Manifest:
        """The manifest as it was when it was read last."""
        assert self._manifest is not None  # see `is_there`
        return self._manifest

    @property
    def is_there(self) -> bool:
        """Whether the folder had a manifest when it was read last."""
        return self._manifest is not None

    def refresh(self, high_watermark: Position | None = None) -> None:
        """Read what is new of the manifest.

        Args:
            high_watermark: as published: a later restart position is not written with each record.
        """
        with self._reading:
            former, self._stored = self._stored, read_manifest(self._folder, self._stored)
            if self._stored is None:
                self._manifest = None
            elif self._stored is not former or high_watermark is not None:
                found = self._stored.manifest
                self._manifest = found.with_restart_of(high_watermark) if high_watermark else found
