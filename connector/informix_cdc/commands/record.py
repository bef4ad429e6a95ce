"""`informix-cdc record`: record a server's responses for analysis elsewhere.

Rule: it sends the same requests and opens the same session as `tail`, but decodes nothing, so that it
also records bytes that would stop a stream. The file is append-only with one line of JSON per event, so
that it can be inspected after a crash. It is always completed, even after an error: the last line has
the digest of all others (docs/recording-format.md).
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
from dataclasses import dataclass, replace
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
from informix_cdc.options import ConnectionOptions, SourceOptions
from informix_cdc.server import SourceTables, Wrap, every_connection, look_up_tables, open_catalog
from informix_cdc.terminal import counted, say, say_stays_on, say_switched_on, shown_progress
from informix_cdc.version import __version__

_WARNING = (
    "The recording contains table rows in plain text: protect the file. It contains no"
    " password, user name or address."
)


@dataclass(frozen=True, slots=True)
class RecordLimits:
    """Limits that end a recording; None: it ends only when interrupted."""

    seconds: float | None = None
    reads: int | None = None

    @property
    def most_seconds(self) -> float:
        """The limit in seconds, or infinity."""
        return self.seconds or float("inf")


def record(
    options: SourceOptions, path: Path, limits: RecordLimits, *, catalog_only: bool = False
) -> None:
    """Record the catalog and, unless `catalog_only`, a capture session until a limit or Ctrl-C.

    Raises:
        InformixCdcError: the capture cannot start or continue; everything recorded until then is kept.
    """
    say(_WARNING)
    options = _without_masked(options)
    file = RecordingFile(path, _header(options))
    with contextlib.closing(file), every_connection(_recorder(file)):
        source = look_up_tables(options)
        if not catalog_only:
            _read(options, source, limits, file)
    say(f"{_figures(file)}: {path}")


def _without_masked(options: SourceOptions) -> SourceOptions:
    """Return options that do not capture masked columns: a recording has the server's bytes."""
    if not options.columns.masks:
        return options
    kept = tuple(
        (table.name.owner, table.name.table, column.name)
        for table in look_up_tables(options).tables
        for column in table.columns
        if column.mask is None
    )
    columns = replace(options.columns, chosen=kept, masks=(), mask_key_file="")
    return replace(options, columns=columns)


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
        say(f"Recording {', '.join(options.tables.listed)} from now on. Press Ctrl-C to stop.")
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
    """Yield an event that Ctrl-C or SIGTERM sets, so that no read is interrupted halfway."""
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
    """Return the header. Its fields are listed one by one, so that new options cannot leak into it."""
    return {
        "recorded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "client": {
            "informix-cdc": __version__,
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
        },
        "server": {"name": options.connection.server, "version": _server_version(options.connection)},
        "options": {
            "dialect": options.connection.dialect.name,
            "transport": options.connection.transport,
            "database": options.connection.database,
            "table": ",".join(options.tables.listed),
            "columns": ",".join(".".join(map(quoted, name)) for name in options.columns.chosen),
            "unsupportedColumns": options.columns.unsupported,
            "lobs": "handle"
            if options.columns.reads_objects
            else options.columns.lobs,  # contents are not recorded
            "dbLocale": options.connection.db_locale,
        },
    }


def _server_version(connection: ConnectionOptions) -> str:
    """Return the server's version; called before the file is created: an error leaves no file."""
    with open_catalog(connection) as catalog:
        try:
            return catalog.server_version()
        except InformixCdcError as reason:
            return f"unknown ({reason.code})"  # the message may contain the user name


_OWNER_ONLY = 0o600


class RecordingFile:
    """A recording in progress; threads may call `write` concurrently.

    Args:
        path: must not exist; the suffix .gz compresses the file.
        header: additional fields of the first line.
        clock: a monotonic clock; events have the seconds since the beginning.

    Raises:
        BadOption: the file exists.
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
        """Append an event. Events after `close` are dropped."""
        with self._lock:
            if self._file.closed:
                return
            self._events += 1
            if "bytes" in event:
                self.reads += 1
                self.read_bytes += len(event["bytes"]) // 4 * 3 - event["bytes"][-2:].count("=")
            self._put({"at": round(self._clock() - self._begun_at, 6), **event})

    def close(self) -> None:
        """Write the last line and close the file; can be called twice."""
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
            f"{path} already exists; record never overwrites a file.", "Choose another file name."
        ) from None
    plain = os.fdopen(descriptor, "wb")
    return _Compressed(plain) if path.suffix == ".gz" else plain


class _Compressed(gzip.GzipFile):
    """A gzip file that also closes the underlying file."""

    def __init__(self, below: io.BufferedWriter) -> None:
        super().__init__(fileobj=below, mode="wb", mtime=0)
        self._below = below

    def close(self) -> None:
        """Flush and close both files."""
        super().close()
        self._below.close()
