"""Read a session in a separate thread, so that waiting for the server and decoding overlap.

Rule: only the thread that opens the session uses its connection. It does nothing but read. Reading
pauses while too many bytes wait to be decoded. Reads that follow each other quickly are joined, so that
the cost per block is spread over many records.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from informix_capture_client.errors import InformixCdcError
from informix_capture_client.failpoints import failpoint
from informix_capture_client.session.session import CaptureSession

# A block this large costs little compared with its records; a larger one only arrives later.
JOINED_BYTES = 1 << 20
# In a busy stream bytes are handed on this often, not 256 records at a time: every block costs a good
# part of a millisecond by itself. Busy is what has just had this many bytes; others do not wait.
JOINING_SECONDS = 0.01
BUSY_BYTES = 8 * 1024
# The reader runs ahead by two blocks, or by so many reads if these are small.
_WAITING_BYTES = 2 * JOINED_BYTES
_WAITING_CHUNKS = 64
# A thread that comes back from a read gets the interpreter after this long, not after Python's 5 ms:
# the next read must be on its way while the last one is decoded. Measured with reads of 1 ms beside a
# thread of plain Python: 8 % of their rate with 5 ms, 78 % with 0.1 ms.
_SWITCH_SECONDS = 0.0001


class ReadAhead:
    """Provides the bytes of a session; an error of the reading thread is raised by `read`.

    Args:
        open_session: connects, opens, captures and activates; runs in the reading thread.
        close_connection: closes the connection of `open_session`; called last, in that thread.
        clock: a monotonic clock.

    Attributes:
        began_at: when the last of the reads that `read` returned began, by the clock.
    """

    def __init__(
        self,
        open_session: Callable[[], CaptureSession],
        close_connection: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))  # of this process
        self._open_session = open_session
        self._close_connection = close_connection
        self._clock = clock
        lock = threading.Lock()  # guards all that follows
        self._has_come = threading.Condition(lock)
        self._is_worth_handing_over = threading.Condition(lock)
        self._was_handed_over = threading.Condition(lock)
        self._chunks: deque[tuple[float, bytes]] = deque()  # with the time when its read began
        self._waiting_bytes = 0
        self._next_at = 0.0  # of the monotonic clock: when the next block is due
        self._failure: BaseException | None = None
        self._is_stopped = False
        self.session: CaptureSession | None = None
        self.began_at = 0.0
        self._thread = threading.Thread(target=self._run, name="informix-cdc reader", daemon=True)
        self._thread.start()

    def read(self, timeout_seconds: float) -> list[bytes] | None:
        """Return the next bytes, one item per read, or None if none arrived in time.

        Raises:
            InformixCdcError: the error that ended the reading thread, after all bytes that it had read;
                again at each further call.
        """
        with self._has_come:
            if not self._has_come.wait_for(self._has_news, max(timeout_seconds, 0)):
                return None
            self._is_worth_handing_over.wait_for(self._is_enough, self._next_at - time.monotonic())
            if not self._chunks:
                assert self._failure is not None  # there is news
                raise self._failure
            return self._joined_chunks()

    def stop(self, timeout_seconds: float) -> bool:
        """Close the session after the current read; return whether that happened in time."""
        with self._was_handed_over:
            self._is_stopped = True
            self._was_handed_over.notify()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _has_news(self) -> bool:
        return bool(self._chunks) or self._failure is not None

    def _is_enough(self) -> bool:
        return self._waiting_bytes >= JOINED_BYTES or self._is_full() or self._failure is not None

    def _joined_chunks(self) -> list[bytes]:
        joined: list[bytes] = []
        size = 0
        while self._chunks and (not joined or size + len(self._chunks[0][1]) <= JOINED_BYTES):
            self.began_at, chunk = self._chunks.popleft()
            joined.append(chunk)
            size += len(joined[-1])
        self._waiting_bytes -= size
        self._next_at = time.monotonic() + JOINING_SECONDS if size >= BUSY_BYTES else 0.0
        self._was_handed_over.notify()
        return joined

    def _run(self) -> None:
        try:
            try:
                self._read_on()
            finally:
                with contextlib.suppress(InformixCdcError):  # must not hide why it ends
                    self._close_connection()
        except InformixCdcError as reason:
            self._fail(reason)
        except BaseException as reason:  # a bug here must end the stream, not hang it
            self._fail(reason)
            raise

    def _fail(self, reason: BaseException) -> None:
        with self._has_come:
            self._failure = reason
            self._notify_consumer()

    def _read_on(self) -> None:
        self.session = session = self._open_session()
        with contextlib.closing(session):
            while self._has_room():
                began_at = self._clock()
                chunk = bytes(session.read())  # a copy: the buffer is used again
                failpoint("capture.after_lo_read")
                self._hand_over(began_at, chunk)

    def _has_room(self) -> bool:
        """Wait until `read` has returned the previous bytes; return False if `stop` was called."""
        with self._was_handed_over:
            self._was_handed_over.wait_for(lambda: self._is_stopped or not self._is_full())
            return not self._is_stopped

    def _is_full(self) -> bool:
        return self._waiting_bytes >= _WAITING_BYTES or len(self._chunks) >= _WAITING_CHUNKS

    def _hand_over(self, began_at: float, chunk: bytes) -> None:
        with self._has_come:
            self._chunks.append((began_at, chunk))
            self._waiting_bytes += len(chunk)
            self._notify_consumer()

    def _notify_consumer(self) -> None:
        self._has_come.notify()
        if self._is_enough():
            self._is_worth_handing_over.notify()
