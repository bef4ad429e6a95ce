"""A shared capture in a thread of the test, and readers of it as Spark would have them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness.runs.patience import wait_until
from harness.servers.options import parsed
from harness.servers.stores import source_options
from informix_cdc.daemon import CaptureProcess, CaptureSettings
from informix_cdc.options import OF_ROWS
from informix_cdc.reading import CaptureAccess, published_schema
from informix_cdc.spark.reader import InformixStreamReader
from informix_cdc.spark.schema import to_spark


class RunningCapture:
    """A capture that runs until `stop`; `error` has what ended it."""

    def __init__(self, settings: CaptureSettings, continues: str = "") -> None:
        self.process = CaptureProcess(settings)
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(continues,))
        self._thread.start()

    def _run(self, continues: str) -> None:
        try:
            self.process.run(self._stop, continues)
        except Exception as reason:  # noqa: BLE001 - the test looks at it
            self.error = reason

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def has_published(self) -> bool:
        if self.error is not None:
            raise self.error
        return self.process.publication.published is not None and self.process.state.spool is not None

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def capture_settings(
    port: int, folder: Path, given: dict[str, object] | None = None, /, **changes: str
) -> CaptureSettings:
    """Return the settings of a capture of orders into a folder."""
    source = source_options(port, spoolPath=str(folder), **changes)
    return CaptureSettings.of(given or {}, source)


@contextmanager
def capturing(
    port: int,
    folder: Path,
    given: dict[str, object] | None = None,
    /,
    continues: str = "",
    **changes: str,
) -> Iterator[RunningCapture]:
    """Run a capture for the length of a block, which begins when its stream has begun."""
    running = RunningCapture(capture_settings(port, folder, given, **changes), continues)
    try:
        wait_until(running.has_published)
        yield running
    finally:
        running.stop()


def of_capture(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a stream that its capture has."""
    return {name: value for name, value in options.items() if name not in OF_ROWS}


def of_reader(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a stream that decide what a reader makes of it."""
    return {n: value for n, value in options.items() if n in (*OF_ROWS, "tableEvents")}


def options_of_reader(folder: Path, name: str, served_port: int = 0) -> dict[str, str]:
    """Return the options of a reader, by files or, with a port, over Flight."""
    if not served_port:
        return {"captureAt": str(folder), "reader": name}
    file = folder / f"{name}.reader"
    if not file.exists():
        file.touch(0o600)
        file.write_text(CaptureAccess(folder).add(name).to_text())
    at = f"grpc+tls://127.0.0.1:{served_port}"
    return {"captureAt": at, "reader": name, "readerFile": str(file)}


@contextmanager
def shared_reader(
    folder: Path, name: str = "one", served_port: int = 0, **changes: str
) -> Iterator[InformixStreamReader]:
    """Return a reader of a shared capture, as a new process of Spark's would have it."""
    options = parsed({**options_of_reader(folder, name, served_port), **changes})
    made = InformixStreamReader(options, to_spark(published_schema(options)))
    try:
        yield made
    finally:
        made.stop()
