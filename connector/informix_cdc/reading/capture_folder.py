"""The folder of a capture, as the processes see it that read it."""

from __future__ import annotations

import threading
from pathlib import Path

from informix_capture_client.errors import AccessRefused, BadOption
from informix_checkpoints.readers import Readers
from informix_checkpoints.shared_captures import FILE_NAME, PublishedCapture, load_published
from informix_checkpoints.spool import SharedSpool, has_writer


class CaptureFolder:
    """The folder of a shared capture, as it is now; it may be used by the readers of a process.

    Args:
        path: option spoolPath of the capture.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.readers = Readers(path)
        self._reading = threading.Lock()
        self._known: tuple[int, int] | None = None
        self._published: PublishedCapture | None = None
        self._spools: dict[str, SharedSpool] = {}

    @property
    def published(self) -> PublishedCapture:
        """What the capture publishes.

        Raises:
            BadOption: no capture has begun in this folder.
            DataLoss, AccessRefused: its file is damaged, or cannot be read.
        """
        with self._reading:
            try:
                facts = (self.path / FILE_NAME).stat()
                known = (facts.st_ino, facts.st_mtime_ns)
            except FileNotFoundError:
                known = None
            except OSError as reason:
                raise AccessRefused(f"{self.path} cannot be read: {reason.strerror}.") from None
            if known != self._known or self._published is None:
                self._published, self._known = load_published(self.path), known
            if self._published is None:
                raise BadOption(
                    f"no capture has begun in {self.path}.",
                    "Start it first: informix-cdc capture FILE.toml, whose spoolPath is that folder.",
                    option="captureAt",
                )
            return self._published

    def spool(self, stream: str) -> SharedSpool:
        """Return the stored rows of a stream, read again if there are new ones.

        Raises:
            AccessRefused: its folder is not there.
            DataLoss: its manifest is damaged.
        """
        offset = self.published.offset  # read first: the manifest then has what it names
        with self._reading:
            spool = self._spools.get(stream) or SharedSpool(self.path / stream)
            self._spools[stream] = spool
        is_current = offset is not None and offset.stream == stream
        spool.refresh(offset.position if offset is not None and is_current else None)
        return spool

    @property
    def is_running(self) -> bool:
        """Whether a capture on this host writes to the folder."""
        return has_writer(self.path)
