"""Capture one stream until its connection ends: describe, open the spool, begin, loop.

Rule: no thread and no retry here; one call is one connection's life. What the next connection needs
is in the spool, or in the offset that Spark handed over.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from informix_cdc.capture_client.change_stream import ChangeStream, MakeReader
from informix_cdc.capture_client.errors import DataLoss
from informix_cdc.capture_client.positions import Position, show
from informix_cdc.capture_client.read_ahead import ReadAhead
from informix_cdc.checkpoints.spool import Spool
from informix_cdc.connector.capture_loop import Pending, capture
from informix_cdc.connector.capture_start import CaptureStart
from informix_cdc.connector.capture_state import CaptureState
from informix_cdc.connector.connections import open_catalog
from informix_cdc.connector.offsets import StreamOffset
from informix_cdc.connector.options import SourceOptions
from informix_cdc.connector.private_folders import make_private_folder, remove_private_folder
from informix_cdc.connector.segment_delivery import copies_for
from informix_cdc.connector.source_tables import SourceTables, describe_tables

logger = logging.getLogger(__name__)

STOP_MARGIN_SECONDS = 2.0


@dataclass(slots=True)
class CaptureRun:
    """Captures one stream into its spool from `offset` on.

    Args:
        options: with the password; this object never leaves its process.
        offset: where the stream stands; one that is not started makes a first start.
        expected_commit: the end of a batch that Spark has planned and asks for again.
        check_schema: refuses the schema of the tables if it is not the declared one.
        read: how a session is read.
        clock: seconds from anywhere.
    """

    options: SourceOptions
    offset: StreamOffset
    expected_commit: int | None
    check_schema: Callable[[pa.Schema], None]
    state: CaptureState
    stop: threading.Event
    read: MakeReader = ReadAhead
    clock: Callable[[], float] = time.monotonic
    _private_folder: Path | None = field(default=None, init=False)

    def once(self, on_error: Callable[[BaseException], None]) -> None:
        """Capture until told to stop, or until the connection is lost.

        Args:
            on_error: told at once, since closing the session waits for the read in flight.
        """
        with open_catalog(self.options) as catalog:
            source = describe_tables(self.options, catalog)
            if not self.state.target_position:  # the first time, not when a connection was lost
                self.state.server_clock = catalog.clock()
                self.state.target_position = catalog.current_position()
        self._require_same_source(source)
        self.check_schema(source.schema())
        if self.stop.is_set():
            return
        if self.offset.is_started and self.state.spool is None:
            self._open_spool(source, self.offset.stream, self.offset.position)
        self._capture(source, on_error)

    def let_go(self) -> None:
        """Let the next writer in, and leave no private folder behind."""
        if self.state.spool is not None:
            self.state.spool.close()
        if self._private_folder is not None:
            remove_private_folder(self._private_folder)

    def _capture(self, source: SourceTables, on_error: Callable[[BaseException], None]) -> None:
        spool = self.state.spool
        start = CaptureStart(
            self.options,
            source,
            spool.mark if spool else None,
            self._expected(),
            self.state.counters,
        )
        stream = ChangeStream(start.begin, start.close, self.read)
        pending = Pending(spool, lambda anchor: self._open_spool(source, "", anchor), self.clock)
        try:
            capture(stream, source.encoder(), pending, self.state, self.stop)
        except BaseException as reason:
            on_error(reason)
            raise
        finally:
            if not stream.stop(self.options.read_timeout_seconds + STOP_MARGIN_SECONDS):
                logger.warning("the server did not answer in time; the session is left to it")

    def _expected(self) -> int | None:
        """Return the commit a replay must pass, unless the spool already holds it."""
        spool, expected = self.state.spool, self.expected_commit
        return None if spool is None or expected is None or spool.mark.commit >= expected else expected

    def _require_same_source(self, source: SourceTables) -> None:
        spool = self.state.spool
        expected = spool.source if spool else self.offset.source
        if expected and expected != source.source:
            raise DataLoss(
                f"the stream was begun on source {expected}, but server, database"
                f" and tables now make source {source.source}.",
                "A table was dropped, re-created or altered, or the options changed: start a new stream"
                " with a new checkpoint.",
                expected=expected,
                found=source.source,
            )

    def _open_spool(self, source: SourceTables, stream: str, start: Position) -> Spool:
        stream = stream or secrets.token_hex(8)
        if self.options.spool_path:
            folder = Path(self.options.spool_path) / stream
        else:
            folder = self._private_folder = make_private_folder()
        spool = Spool(
            folder,
            stream,
            source.source,
            start,
            rows=source.row_digest,
            durable=bool(self.options.spool_path),
            lock_wait_seconds=self.options.read_timeout_seconds + 5 * STOP_MARGIN_SECONDS,
            copies=copies_for(self.options, stream),
        )
        logger.info("stream %s begins at %s", stream, show(spool.mark.restart))
        self.state.spool = spool
        self.state.notify()
        return spool
