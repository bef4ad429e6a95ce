"""`informix-cdc capture FILE.toml`: capture for any number of queries, until SIGTERM or Ctrl-C.

retention = "7 days"             # how long rows are kept that a registered reader has not read
retentionBytes = "200g"          # how many bytes; default: no limit but maxSpoolBytes
listen = "0.0.0.0:8815"          # serve readers on other hosts; default: none
mirror = true                    # rows as `informix-cdc mirror` needs them

[source]                         # options of the format, as in readStream; no password
host = "db1"
server = "ids1"
database = "stores"
table = "informix.*"
passwordFile = "/run/secrets/informix"
spoolPath = "/var/spool/informix-cdc/stores"
metricsAddress = "9187"
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from informix_cdc.capture import CaptureState
from informix_cdc.commands.configuration import read_capture_file
from informix_cdc.daemon import CaptureProcess, CaptureSettings
from informix_cdc.monitoring import log_to_standard_error
from informix_cdc.terminal import say
from informix_checkpoints.readers import ReaderState


def run_capture(path: Path, continues: str = "") -> None:
    """Capture until SIGTERM or Ctrl-C.

    Args:
        path: of the file with the settings.
        continues: the checkpoint of a query whose stream is taken over.

    Raises:
        InformixCdcError: the capture cannot start or continue.
    """
    settings = read_capture_file(path)
    log_to_standard_error(settings.source.reports.log_level)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    CaptureProcess(settings, on_step=_say_once(settings)).run(stop, continues)


def _say_once(settings: CaptureSettings) -> Callable[[CaptureState, Sequence[ReaderState]], None]:
    """Return a function that reports the beginning of the stream."""
    said: list[str] = []

    def on_step(state: CaptureState, _readers: Sequence[ReaderState]) -> None:
        stream = state.stream
        if stream is not None and said != [stream]:
            said[:] = [stream]
            folder = settings.source.spool.path
            say(f"Capturing stream {stream} into {folder}. Queries read it with captureAt={folder}.")

    return on_step
