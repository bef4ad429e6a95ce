"""The bytes of one client's socket, and out-of-band events: an interrupt, or its end.

The only file of this room that uses a socket. IBM's JDBC driver 4.50.11 and 15.0.1.0 interrupt a
statement by one urgent byte; over TLS there is no urgent byte, and they do not.
"""

from __future__ import annotations

import select
import socket
import ssl
import sys

from ..sql_errors import sql_error

_CHUNK_BYTES = 1 << 16
_IS_AT_MARK = 0x8905  # SIOCATMARK of Linux


class ClientStream:
    """A socket that is read in large pieces; `take` is what the reader of messages asks."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._unread = bytearray()

    def take(self, size: int) -> bytes:
        """Return exactly so many bytes; EOFError if the client goes first."""
        while len(self._unread) < size:
            self._fill()
        data = bytes(self._unread[:size])
        del self._unread[:size]
        return data

    def send(self, data: bytes) -> None:
        """Send an answer."""
        self._client.sendall(data)

    def pass_over_late_interrupt(self) -> None:
        """Wait for the next request; an interrupt that was sent before it, interrupts nothing."""
        while not self._unread and self._can_be_urgent:
            readable, _, urgent = select.select([self._client], [], [self._client])
            if urgent and (not readable or self._is_at_mark()):
                self._take_urgent()
            if readable:
                return

    def check(self) -> None:
        """Look at the socket while a statement waits.

        Raises:
            SqlError: -213, the client has interrupted it.
            EOFError: the client has gone.
        """
        readable, _, urgent = select.select([self._client], [], [self._client], 0)
        if urgent and self._can_be_urgent:
            self._take_urgent()
            raise sql_error(-213)
        if readable:
            self._peek()

    @property
    def _can_be_urgent(self) -> bool:
        return not isinstance(self._client, ssl.SSLSocket)

    def _fill(self) -> None:
        chunk = self._client.recv(_CHUNK_BYTES)
        if not chunk:
            raise EOFError
        self._unread += chunk

    def _peek(self) -> None:
        """Take what has come, without waiting: over TLS a readable socket may hold no data."""
        self._client.setblocking(False)
        try:
            if len(self._unread) < _CHUNK_BYTES:  # more than that is left in the socket
                self._fill()
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        finally:
            self._client.setblocking(True)

    def _take_urgent(self) -> None:
        try:
            self._client.recv(1, socket.MSG_OOB)
        except (BlockingIOError, InterruptedError, OSError):
            return  # announced, and not here yet, or gone already

    def _is_at_mark(self) -> bool:
        """Whether the urgent byte comes before what is there to be read."""
        if not sys.platform.startswith("linux"):
            return False
        import fcntl

        answer = bytearray(4)
        fcntl.ioctl(self._client.fileno(), _IS_AT_MARK, answer)
        return bool(int.from_bytes(answer, sys.byteorder))
