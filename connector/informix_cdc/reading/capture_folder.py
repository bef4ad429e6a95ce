"""The folder of a capture, as the processes see it that read it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

from informix_capture_client.errors import AccessRefused, BadOption, ConnectionLost
from informix_checkpoints.readers import Readers, ReaderState
from informix_checkpoints.shared_captures import FILE_NAME, PublishedCapture, load_published
from informix_checkpoints.spool import SharedSpool, has_writer

_POLL_SECONDS = 0.01
_CHECK_SECONDS = 0.5
# A standby takes over, or systemd starts the process again, within this time.
AWAY_SECONDS = 60.0


class NotDecided(Exception):
    """A wait has taken as long as it may, and is to be repeated."""


class CaptureFolder:
    """The folder of a shared capture, as it is now; it may be used by the readers of a process.

    Args:
        path: option spoolPath of the capture.
        clock: a monotonic clock.
        sleep: waits for so many seconds.
    """

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.path, self._clock, self._sleep = path, clock, sleep
        self._away_since: float | None = None
        self._checked_at = -math.inf  # whether a capture is running
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

    def spool(self, stream: str) -> SharedSpool | None:
        """Return the stored rows of a stream, read again if there are new ones; None if it has none.

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
        return spool if spool.is_there else None

    @property
    def is_running(self) -> bool:
        """Whether a capture on this host writes to the folder."""
        return has_writer(self.path)

    @property
    def is_away(self) -> bool:
        """Whether no capture was running when a reader waited last."""
        return self._away_since is not None

    def question(self, reader: ReaderState) -> int:
        """Return the number under which a reader asks for the end of the log."""
        answered = self.published.answered.get(reader.name, 0)  # of this name, ever
        return max(reader.asked, answered) + 1

    def has_all(self, name: str, question: int) -> bool:
        """Return whether all is stored that was committed before a reader's question."""
        return self.published.answered.get(name, 0) >= question

    def wait_for(
        self,
        is_true: Callable[[], bool],
        timeout_seconds: float | None,
        most_seconds: float,
        name: str,
    ) -> None:
        """Look again and again; `reading/reader.py` has the contract.

        Raises:
            NotDecided: `most_seconds` have passed.
            InformixCdcError: an error has ended the capture, or it is away and the run cannot end.
        """
        begun = self._clock()
        while not is_true():
            self._require_running(name, can_end=timeout_seconds is not None)
            waited = self._clock() - begun
            if timeout_seconds is not None and waited >= timeout_seconds:
                return
            if waited >= most_seconds:
                raise NotDecided
            self._sleep(_POLL_SECONDS)

    def _require_running(self, name: str, *, can_end: bool) -> None:
        """Check that somebody will write what is awaited.

        Raises:
            InformixCdcError: an error has ended the capture, or it is away and the run cannot end.
        """
        now = self._clock()
        if now - self._checked_at < _CHECK_SECONDS:
            return
        self._checked_at = now
        if self.is_running:
            self._away_since = None
            return
        if self._away_since is None:  # it may have stored rows just before its end: look again
            self._away_since, self._checked_at = now, -math.inf
            return
        if (error := self.published.error) is not None:
            raise error.raised(f"the capture {self.path} has ended: ")
        if not can_end and now - self._away_since >= AWAY_SECONDS:
            raise ConnectionLost(
                f"no capture is running at {self.path}, and reader {name} waits for rows that are not"
                " stored.",
                "Start informix-cdc capture, and the query again.",
            )
