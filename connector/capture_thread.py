"""Run the capture loop in a thread: start it, keep it going over lost connections, stop it.

Rule: one thread, one stream. A lost connection is retried from the spool's own position; any other
error ends the thread and is raised wherever somebody asks for rows.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential, wait_random

from informix_cdc.capture_client.change_stream import ChangeStream
from informix_cdc.capture_client.errors import ConnectionLost, DataLoss
from informix_cdc.capture_client.positions import Position, show
from informix_cdc.checkpoints.spool import Spool
from informix_cdc.connector.capture_loop import Pending, capture
from informix_cdc.connector.capture_start import CaptureStart
from informix_cdc.connector.capture_state import CaptureState
from informix_cdc.connector.connections import open_catalog
from informix_cdc.connector.offsets import StreamOffset
from informix_cdc.connector.options import SourceOptions
from informix_cdc.connector.private_folders import make_private_folder, remove_private_folder
from informix_cdc.connector.source_tables import SourceTables, describe_tables

logger = logging.getLogger(__name__)

# How long a server may stay away before the query fails.
RECONNECT_SECONDS = 60.0
_STOP_MARGIN_SECONDS = 2.0


class CaptureThread:
    """Captures one stream into its spool from `offset` on.

    Args:
        options: with the password; this object never leaves its process.
        offset: where the stream stands; one that is not started makes a first start.
        expected_commit: the end of a batch that Spark has planned and asks for again.
    """

    def __init__(
        self,
        options: SourceOptions,
        offset: StreamOffset,
        expected_commit: int | None = None,
        check_schema: Callable[[pa.Schema], None] = lambda _: None,
    ) -> None:
        self.state = CaptureState()
        self._options = options
        self._offset = offset
        self._expected_commit = expected_commit
        self._check_schema = check_schema
        self._lost_at: float | None = None
        self._stop = threading.Event()
        self._private_folder: Path | None = None
        self._thread = threading.Thread(target=self._run, name="informix-cdc capture", daemon=True)

    def start(self) -> None:
        """Begin to capture; errors show in `state`."""
        self._thread.start()

    def stop(self) -> None:
        """Close the session and let go of the spool; safe to call twice."""
        self._stop.set()
        self.state.stop()
        if self._thread.is_alive():
            self._thread.join(self._options.read_timeout_seconds + 2 * _STOP_MARGIN_SECONDS)
        if not self._thread.is_alive():
            self._let_go()

    def _run(self) -> None:
        try:
            self._retrying()(self._capture_once)
        except BaseException as reason:
            self._fail(reason)
            if not isinstance(reason, Exception):
                raise
        finally:
            if self._stop.is_set():  # else the rows in the spool may still be asked for
                self._let_go()

    def _fail(self, reason: BaseException) -> None:
        self.state.error = reason
        self.state.notify()

    def _let_go(self) -> None:
        """Let the next writer in, and leave no private folder behind."""
        if self.state.spool is not None:
            self.state.spool.close()
        if self._private_folder is not None:
            remove_private_folder(self._private_folder)

    def _retrying(self) -> Retrying:
        return Retrying(
            retry=retry_if_exception(self._is_worth_retrying),
            wait=wait_exponential(multiplier=0.2, max=5.0) + wait_random(0, 0.2),
            stop=self._is_given_up,
            sleep=self._pause,
            before_sleep=self._note_reconnect,
            reraise=True,
        )

    def _is_worth_retrying(self, reason: BaseException) -> bool:
        """Retry what was once a working connection; a first mistake is reported at once."""
        was_connected = self.state.spool is not None
        is_away = bool(getattr(reason, "facts", {}).get("unreachable"))
        return isinstance(reason, ConnectionLost) or (is_away and was_connected)

    def _is_given_up(self, _: RetryCallState) -> bool:
        """Count from the first failure after the last contact: silence before it is no failure."""
        now = time.monotonic()
        if self._lost_at is None or self.state.last_contact > self._lost_at:
            self._lost_at = now
        return self._stop.is_set() or now - self._lost_at > RECONNECT_SECONDS

    def _pause(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def _note_reconnect(self, attempt: RetryCallState) -> None:
        self.state.reconnects += 1
        reason = attempt.outcome.exception() if attempt.outcome else None
        logger.warning("connection lost, trying again: %s", reason)

    def _capture_once(self) -> None:
        with open_catalog(self._options) as catalog:
            source = describe_tables(self._options, catalog)
            if not self.state.target_position:  # the first time, not when a connection was lost
                self.state.server_clock = catalog.clock()
                self.state.target_position = catalog.current_position()
        self._require_same_source(source)
        self._check_schema(source.schema())
        if self._stop.is_set():
            return
        if self._offset.is_started and self.state.spool is None:
            self._open_spool(source, self._offset.stream, self._offset.position)
        spool = self.state.spool
        start = CaptureStart(
            self._options,
            source,
            spool.mark if spool else None,
            self._expected(),
            self.state.counters,
        )
        stream = ChangeStream(start.begin, start.close)
        encoder = source.encoder()
        pending = Pending(spool, lambda anchor: self._open_spool(source, "", anchor))
        try:
            capture(stream, encoder, pending, self.state, self._stop)
        except BaseException as reason:
            if not self._is_worth_retrying(reason):
                self._fail(reason)  # at once: closing the session waits for the read in flight
            raise
        finally:
            if not stream.stop(self._options.read_timeout_seconds + _STOP_MARGIN_SECONDS):
                logger.warning("the server did not answer in time; the session is left to it")

    def _expected(self) -> int | None:
        """Return the commit a replay must pass, unless the spool already holds it."""
        spool, expected = self.state.spool, self._expected_commit
        return None if spool is None or expected is None or spool.mark.commit >= expected else expected

    def _require_same_source(self, source: SourceTables) -> None:
        spool = self.state.spool
        expected = spool.source if spool else self._offset.source
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
        if self._options.spool_path:
            folder = Path(self._options.spool_path) / stream
        else:
            folder = self._private_folder = make_private_folder()
        spool = Spool(
            folder,
            stream,
            source.source,
            start,
            rows=source.row_digest,
            durable=bool(self._options.spool_path),
            lock_wait_seconds=self._options.read_timeout_seconds + 5 * _STOP_MARGIN_SECONDS,
        )
        logger.info("stream %s begins at %s", stream, show(spool.mark.restart))
        self.state.spool = spool
        self.state.notify()
        return spool
