"""`informix-cdc record`: keep a server's answers, so that they can be examined elsewhere.

Rule: the same questions and the same session as `tail`, but nothing is understood: bytes that would
stop a stream are the ones that are wanted most. The file is append-only, a line of JSON for each event,
so that what came before a crash can be inspected; it is ended properly, also after an error: its last
line has the digest of all others (docs/recording-format.md).
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import itertools
import json
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from informix_capture_client.catalog import Table
from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.sql_names import quoted
from informix_capture_client.transport import (
    FORMAT,
    VERSION,
    ConnectionSettings,
    RecordedEvent,
    RecordingTransport,
    Transport,
)
from informix_cdc.capture import CaptureStart
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables, Wrap, every_connection, look_up_tables, open_catalog
from informix_cdc.terminal import counted, say, say_stays_on, say_switched_on, shown_progress
from informix_cdc.version import __version__

_WARNING = (
    "A recording holds the rows themselves: anyone who has the file can read them. It holds no"
    " password, no user and no address."
)


@dataclass(frozen=True, slots=True)
class RecordLimits:
    """When a recording ends by itself; None: only when it is interrupted."""

    seconds: float | None = None
    reads: int | None = None

    @property
    def most_seconds(self) -> float:
        """Seconds after which it ends; infinity if it does not."""
        return self.seconds or float("inf")


def record(
    options: SourceOptions, path: Path, limits: RecordLimits, *, catalog_only: bool = False
) -> None:
    """Record the catalog and, unless `catalog_only`, a capture session until a limit or Ctrl-C.

    Raises:
        InformixCdcError: the capture cannot start or go on; what was recorded until then is kept.
    """
    say(_WARNING)
    file = RecordingFile(path, _header(options))
    with contextlib.closing(file), every_connection(_recorder(file)):
        source = look_up_tables(options)
        if not catalog_only:
            _read(options, source, limits, file)
    say(f"{_figures(file)}: {path}")


def _figures(file: RecordingFile) -> str:
    return f"{counted(file.reads, 'read')}, {counted(file.read_bytes, 'byte')} of the log"


def _recorder(file: RecordingFile) -> Wrap:
    numbers = itertools.count(1)

    def wrap(transport: Transport, settings: ConnectionSettings) -> Transport:
        return RecordingTransport(transport, settings, next(numbers), file.write)

    return wrap


def _read(
    options: SourceOptions, source: SourceTables, limits: RecordLimits, file: RecordingFile
) -> None:
    switched_on: list[Table] = []

    def on_switched_on(table: Table) -> None:
        switched_on.append(table)
        say_switched_on(table)

    start = CaptureStart(options, source, None, on_switched_on=on_switched_on)
    with (
        contextlib.closing(start),
        _until_interrupted() as stop,
        contextlib.closing(start.begin().session) as session,
    ):
        say(f"Recording {', '.join(options.tables)} from now on. Ctrl-C ends.")
        with shown_progress("Recording", limits.reads or limits.seconds) as show:
            begun_at = time.monotonic()
            for number in itertools.count():
                seconds = time.monotonic() - begun_at
                show(number if limits.reads else seconds, _figures(file))
                if stop.is_set() or number == limits.reads or seconds >= limits.most_seconds:
                    break
                session.read()
    say_stays_on(switched_on, options)


@contextlib.contextmanager
def _until_interrupted() -> Iterator[threading.Event]:
    """Yield what is set by Ctrl-C or SIGTERM: a read is never torn off in the middle."""
    stop = threading.Event()

    def stop_reading(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, stop_reading) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _header(options: SourceOptions) -> dict[str, object]:
    """Return the facts of the first line: an allow-list, so that no new option can leak into it."""
    return {
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "client": {
            "informix-cdc": __version__,
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
        },
        "server": {"name": options.server, "version": _server_version(options)},
        "options": {
            "dialect": options.dialect.name,
            "transport": options.transport,
            "database": options.database,
            "table": ",".join(options.tables),
            "columns": ",".join(".".join(map(quoted, name)) for name in options.columns),
            "unsupportedColumns": options.unsupported_columns,
            "lobs": "handle" if options.reads_objects else options.lobs,  # no contents are recorded
            "dbLocale": options.db_locale,
            "clientLocale": options.client_locale,
            "readTimeoutSeconds": options.read_timeout_seconds,
            "maxRecordsPerRead": options.max_records_per_read,
            "readBufferBytes": options.read_buffer_bytes,
        },
    }


def _server_version(options: SourceOptions) -> str:
    """Return the server's version; before the file is made, so that a mistake leaves none."""
    with open_catalog(options) as catalog:
        try:
            return catalog.server_version()
        except InformixCdcError as reason:
            return f"not told ({reason.code})"  # its words may name who asked


_OWNER_ONLY = 0o600


class RecordingFile:
    """A recording that is being made; its `write` is a sink of events, for any thread.

    Args:
        path: must not exist; with the suffix .gz it is compressed.
        header: more facts for the first line.
        clock: a monotonic clock; events carry those since the beginning.

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
