"""The stored rows of a stream that another process captures.

Rule: the manifest is read again when its file was replaced. It may be shared by threads.
"""

from __future__ import annotations

import threading
from pathlib import Path

from informix_capture_client.positions import Position
from informix_checkpoints.spool.manifest import FILE_NAME, Manifest, load_manifest
from informix_checkpoints.spool.stored_stream import StoredStream


class SharedSpool(StoredStream):
    """Reads a folder to which another process appends.

    Raises:
        DataLoss: its manifest is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reading = threading.Lock()
        self._known: tuple[int, int, int] | None = None
        self._stored: Manifest | None = None
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
        """Read the manifest again if it was replaced.

        Args:
            high_watermark: as published: a later restart position is not written with each record.
        """
        with self._reading:
            path = self._folder / FILE_NAME
            try:
                facts = path.stat()
                known = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
            except FileNotFoundError:
                known = None
            if known != self._known or self._stored is None:
                # the file may be replaced after `stat`: then it is only read once more
                self._stored, self._known = load_manifest(self._folder), known
                self._manifest = self._stored
            stored = self._stored
            if stored is not None and high_watermark is not None:
                self._manifest = stored.with_restart_of(high_watermark)
