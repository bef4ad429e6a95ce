"""Run the capture loop in a thread: start it, reconnect after lost connections, stop it.

Rule: one thread, one stream. After a lost connection it reconnects from the spool's own position; a
session that the server ended is repeated once without progress. Any other error ends the thread, and is
raised where rows are requested.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable

from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential, wait_random

from informix_capture_client.catalog import Table
from informix_capture_client.errors import ConnectionLost, InformixCdcError
from informix_capture_client.log_events import CAPTURE_FAILED, CONNECTION_LOST
from informix_capture_client.positions import Position
from informix_cdc.capture.run import STOP_MARGIN_SECONDS, CaptureRun
from informix_cdc.capture.state import CaptureState
from informix_cdc.options import SourceOptions
from informix_cdc.server import SourceTables
from informix_checkpoints.offsets import StreamOffset

logger = logging.getLogger("informix_cdc.connector.capture_thread")  # a logger name, not a module

_MOST_PAUSE_SECONDS = 5.0
_NOWHERE = object()
_STEADY_SECONDS = 60.0  # a connection that lasted this long resets the number of failures


class CaptureThread:
    """Captures one stream into its spool from `offset` on.

    Args:
        options: with the password; this object never leaves its process.
        offset: position of the stream; "not started" makes a first start.
        planned: end of a planned batch that Spark requests again.
        check_source: called with the captured tables before each session; may refuse them.
        state: a new one, or the successor of an earlier capture's.
        on_switched_on: called with a table whose full row logging was switched on; by default it is
            logged.
    """

    def __init__(
        self,
        options: SourceOptions,
        offset: StreamOffset,
        planned: Position | None = None,
        check_source: Callable[[SourceTables], None] = lambda _: None,
        state: CaptureState | None = None,
        on_switched_on: Callable[[Table], None] | None = None,
    ) -> None:
        self.state = state or CaptureState()
        self._options = options
        self._failed_since: float | None = None
        self._contacts_then = self._failures = 0
        self._progress_then: object = None
        self._session_ended_at: object = _NOWHERE
        self._tried_at = self.state.clock()
        self._stop = threading.Event()
        self._capture = CaptureRun(
            options,
            offset,
            planned,
            check_source,
            self.state,
            self._stop,
            on_switched_on=on_switched_on,
        )
        self._thread = threading.Thread(target=self._run, name="informix-cdc capture", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether the capture runs, or reconnects."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the capture; `state` has its errors."""
        self._thread.start()

    def stop(self) -> None:
        """Close the session and release the spool; can be called twice."""
        self._stop.set()
        self.state.stop()
        if self._thread.is_alive():
            self._thread.join(self._options.connection.read_timeout_seconds + 2 * STOP_MARGIN_SECONDS)
        if not self._thread.is_alive():
            self._capture.release_spool()

    def _run(self) -> None:
        try:
            self._retrying()(self._capture_once)
        except BaseException as reason:
            if not self._capture.loses_batch(reason):
                self._log_failure(reason)
            self.state.fail(reason)
            if not isinstance(reason, Exception):
                raise
        finally:
            self._capture.end_session()
            if self._stop.is_set():  # otherwise the rows in the spool may still be requested
                self._capture.release_spool()

    def _capture_once(self) -> None:
        """Capture over one connection; close the session before a retry.

        Any other error is reported first, because closing waits for the read in flight.
        """
        try:
            self._capture.run()
        except BaseException as reason:
            if self._is_worth_retrying(reason):
                self._capture.end_session()
            raise

    def _log_failure(self, reason: BaseException) -> None:
        """Log our own errors with their message, others by location only: they may quote anything."""
        ours = reason if isinstance(reason, InformixCdcError) else None
        CAPTURE_FAILED.log(
            logger,
            stream=self.state.stream,
            code=ours.code if ours else None,
            reason=str(ours) if ours else f"a bug: {type(reason).__name__}",
            traceback=None if ours else _lines_of_code(reason),
        )

    def _retrying(self) -> Retrying:
        return Retrying(
            retry=retry_if_exception(self._is_worth_retrying),
            wait=wait_exponential(multiplier=0.2, max=_MOST_PAUSE_SECONDS) + wait_random(0, 0.2),
            stop=self._is_given_up,
            sleep=self._pause,
            before_sleep=self._record_reconnect,
            reraise=True,
        )

    def _is_worth_retrying(self, reason: BaseException) -> bool:
        """Retry after a connection that once worked; report an error of the first connection at once.

        If one more session may help, no second one is opened before the stream has advanced.
        """
        if isinstance(reason, InformixCdcError) and reason.one_more_session:
            # A session that the server ended may have served for a day. A stall is no service, however
            # long TIMEOUT records arrived.
            has_served = reason.is_temporary and self._was_steady()
            return has_served or self._progress() != self._session_ended_at
        spool = self.state.spool
        if spool is not None and spool.has_lost_rows:
            return False  # only a caller that knows Spark's offset can capture them again
        was_connected = spool is not None or bool(self.state.previous_streams)
        is_away = isinstance(reason, InformixCdcError) and reason.is_temporary
        return isinstance(reason, ConnectionLost) or (is_away and was_connected)

    def _progress(self) -> object:
        """Return the stream's position; nothing else counts as progress."""
        return (spool.stream, spool.manifest.high_watermark) if (spool := self.state.spool) else None

    def _was_steady(self) -> bool:
        """Return whether the last connection lasted for a while."""
        gauges = self.state.gauges
        has_served = gauges.contact_at - self._tried_at > _STEADY_SECONDS
        return gauges.contacts > self._contacts_then and has_served

    def _is_given_up(self, attempt: RetryCallState) -> bool:
        """Count from the first failure after the last progress; silence before it is not a failure.

        Received bytes are not progress: rows that fail before they reach the spool would be retried
        forever.
        """
        now, progress = self.state.clock(), self._progress()
        if self._failed_since is None or progress != self._progress_then or self._was_steady():
            self._failed_since, self._progress_then, self._failures = now, progress, 0
            attempt.attempt_number = 1  # start with short pauses again
        self._contacts_then = self.state.gauges.contacts
        self._failures += 1
        if self._is_last_try(attempt):
            return self._stop.is_set()
        too_long = now - self._failed_since > self._options.stream.max_reconnect_seconds
        return self._stop.is_set() or too_long

    def _is_last_try(self, attempt: RetryCallState) -> bool:
        """Return whether only one more session is tried, regardless of the options."""
        reason = attempt.outcome.exception() if attempt.outcome else None
        return isinstance(reason, InformixCdcError) and reason.one_more_session

    def _pause(self, seconds: float) -> None:
        self.state.clock.wait(self._stop, seconds)
        self._tried_at = self.state.clock()

    def _record_reconnect(self, attempt: RetryCallState) -> None:
        self.state.counters.reconnect_attempts += 1
        self.state.counters.reconnects += self._failures == 1  # counts once per outage
        reason = attempt.outcome.exception() if attempt.outcome else None
        if self._is_last_try(attempt):
            self._session_ended_at = self._progress()
        CONNECTION_LOST.log(logger, stream=self.state.stream, failures=self._failures, reason=reason)


def _lines_of_code(reason: BaseException | None) -> str:
    """Return the traceback of an error and its causes, the first cause first."""
    if reason is None:
        return ""
    before = reason.__cause__ or (None if reason.__suppress_context__ else reason.__context__)
    places = "".join(traceback.format_tb(reason.__traceback__))
    return f"{_lines_of_code(before)}{type(reason).__name__}:\n{places}"
