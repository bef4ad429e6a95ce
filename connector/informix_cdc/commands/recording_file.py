"""Write a recording: one line of JSON for each event, in a file that only its owner may read.

Rule: append-only, a line at a time, so that what came before a crash can be looked at; the last line
has the digest of all others, and a file without it is cut short (docs/recording-format.md).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from informix_capture_client.errors import BadOption
from informix_capture_client.transport import FORMAT, VERSION, RecordedEvent

_OWNER_ONLY = 0o600


class RecordingFile:
    """A recording that is being made; its `write` is a sink of events, for any thread.

    Args:
        path: must not exist; with the suffix .gz it is compressed.
        header: more facts for the first line.
        clock: seconds from anywhere; events carry those since the beginning.

    Raises:
        BadOption: there is a file of that name.
    """

    def __init__(
        self, path: Path, header: Mapping[str, object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.reads = self.read_bytes = 0
        self._events = 0
        self._clock = clock
        self._begun_at = clock()
        self._digest = hashlib.sha256()
        self._lock = threading.Lock()
        self._file = _create(path)
        self._put({"format": FORMAT, "version": VERSION, **header})

    def write(self, event: RecordedEvent) -> None:
        """Add an event. What comes after `close` is dropped: the recording has ended."""
        with self._lock:
            if self._file.closed:
                return
            self._events += 1
            if "bytes" in event:
                self.reads += 1
                self.read_bytes += len(event["bytes"]) // 4 * 3 - event["bytes"][-2:].count("=")
            self._put({"at": round(self._clock() - self._begun_at, 6), **event})

    def close(self) -> None:
        """Add the last line and close; calling it twice is harmless."""
        with self._lock:
            if not self._file.closed:
                digest = self._digest.hexdigest()
                self._put({"what": "end", "events": self._events, "sha256": digest})
                self._file.close()

    def _put(self, value: Mapping[str, Any]) -> None:
        line = json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"
        self._digest.update(line)
        self._file.write(line)
        self._file.flush()


def _create(path: Path) -> io.BufferedIOBase:
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _OWNER_ONLY)
    except FileExistsError:
        raise BadOption(
            f"{path} is there already, and a recording is never written over.", "Name another file."
        ) from None
    plain = os.fdopen(descriptor, "wb")
    return _Compressed(plain) if path.suffix == ".gz" else plain


class _Compressed(gzip.GzipFile):
    """A gzip file that closes the file below it too."""

    def __init__(self, below: io.BufferedWriter) -> None:
        super().__init__(fileobj=below, mode="wb", mtime=0)
        self._below = below

    def close(self) -> None:
        """Write what is left, and close both."""
        super().close()
        self._below.close()
