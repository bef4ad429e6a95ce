"""Read a session in a thread of its own, so that waiting for the server and decoding overlap.

Rule: the thread that opens the session is the only one that ever uses its connection. It does
nothing but read; a small queue hands the bytes on and holds it back when decoding is slower.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable

from informix_cdc.capture_client.errors import InformixCdcError
from informix_cdc.capture_client.session import CaptureSession

_QUEUE_DEPTH = 8
_POLL_SECONDS = 0.1


class ReadAhead:
    """Hands over the bytes of a session; an error of its thread is raised where they are taken.

    Args:
        open_session: connects, opens, captures and activates; runs in the reading thread.
        close_connection: closes what `open_session` connected; called last, in that thread.
    """

    def __init__(
        self, open_session: Callable[[], CaptureSession], close_connection: Callable[[], None]
    ) -> None:
        self._open_session = open_session
        self._close_connection = close_connection
        self._chunks: queue.Queue[bytes | BaseException] = queue.Queue(_QUEUE_DEPTH)
        self._failure: BaseException | None = None
        self._stop = threading.Event()
        self.session: CaptureSession | None = None
        self._thread = threading.Thread(target=self._run, name="informix-cdc reader", daemon=True)
        self._thread.start()

    def take(self, timeout_seconds: float) -> bytes | None:
        """Return the next bytes, or None when none came in time.

        Raises:
            InformixCdcError: whatever ended the reading thread.
        """
        if self._failure is not None:
            raise self._failure  # whoever asks again must not wait for a thread that has ended
        try:
            chunk = self._chunks.get(timeout=max(timeout_seconds, 0.0001))
        except queue.Empty:
            return None
        if isinstance(chunk, BaseException):
            self._failure = chunk
            raise chunk
        return chunk

    def stop(self, timeout_seconds: float) -> bool:
        """Close the session after the read in flight; tell whether that happened in time."""
        self._stop.set()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            try:
                self._read_on()
            finally:
                with contextlib.suppress(InformixCdcError):  # must not hide why it ends
                    self._close_connection()
        except InformixCdcError as reason:
            self._hand_over(reason)
        except BaseException as reason:  # a bug here must end the stream, not hang it
            self._hand_over(reason)
            raise

    def _read_on(self) -> None:
        self.session = session = self._open_session()
        with contextlib.closing(session):
            while not self._stop.is_set():
                self._hand_over(bytes(session.read()))

    def _hand_over(self, chunk: bytes | BaseException) -> None:
        while not self._stop.is_set():
            try:
                self._chunks.put(chunk, timeout=_POLL_SECONDS)
            except queue.Full:
                continue
            return
