"""Pass connections on to a server behind a port, and bound how many may be in a handshake.

Rule: it reads no more of TLS than the types of records, and holds no key. gRPC keeps 74 KB for each
connection that has begun a handshake, has no limit of connections, and waits two minutes for each: a
stranger could take any memory. Here the connection that has waited longest of the address with most of
them gives way to a new one, so that a reader is let in while strangers hold all the others.

    half open    until the server, the client and again the server have sent application data, which
                 only the end of a handshake brings about (RFC 8446, 2)
    let in       bytes are passed on as fast as the other end takes them
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable

_MOST_HALF_OPEN = 256
_MOST_CONNECTIONS = 2048  # each uses three descriptors of the process
_HANDSHAKE_SECONDS = 10.0
_APPLICATION_DATA = 23
_HEADER_BYTES = 5  # of a record: type, version, length


class Relay:
    """Passes connections on from its creation until `close`, in a thread.

    Args:
        listening: accepts the connections.
        port_behind: returns the port of the server, on this host; called for each connection.
    """

    def __init__(self, listening: socket.socket, port_behind: Callable[[], int]) -> None:
        self.port_behind = port_behind
        self.refused = 0  # connections that ended in their handshake
        self.last_refused = ""  # the address of the latest
        self._listening = listening
        self._half_open: dict[str, dict[_Client, None]] = {}  # by address, the oldest first
        self._clients: set[_Client] = set()
        self._loop = asyncio.new_event_loop()
        self._stopped, self._closed = asyncio.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="informix-cdc relay", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Accept no more connections."""
        self._loop.call_soon_threadsafe(self._stopped.set)

    def close(self) -> None:
        """End all connections."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._loop.call_soon_threadsafe(self._closed.set)
        self._thread.join()

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        accepting = await self._loop.create_server(
            lambda: _Client(self), sock=self._listening, backlog=socket.SOMAXCONN
        )
        await self._stopped.wait()
        accepting.close()
        await self._closed.wait()
        for client in [*self._clients]:
            client.end()
        await asyncio.sleep(0)  # until they have ended

    # of connections

    def accepted(self, client: _Client) -> bool:
        """Return whether a new connection is served, for which an older one may have to go."""
        is_full = len(self._clients) >= _MOST_CONNECTIONS
        if is_full and not self._half_open:
            return False
        if is_full or sum(map(len, self._half_open.values())) >= _MOST_HALF_OPEN:
            crowded = max(self._half_open.values(), key=len)
            next(iter(crowded)).end()
        self._clients.add(client)
        self._half_open.setdefault(client.address, {})[client] = None
        return True

    def let_in(self, client: _Client) -> None:
        """Stop counting a connection among those in a handshake."""
        waiting = self._half_open.get(client.address, {})
        waiting.pop(client, None)
        if not waiting:
            self._half_open.pop(client.address, None)

    def gone(self, client: _Client) -> None:
        """Stop counting a connection."""
        self._clients.discard(client)
        if client in self._half_open.get(client.address, {}):
            self.let_in(client)
            if client.has_said_nothing:  # a probe of the port
                return
            self.refused, self.last_refused = self.refused + 1, client.address


class _End(asyncio.Protocol):
    """One end of a connection; `other` is where its bytes go."""

    transport: asyncio.Transport
    other: asyncio.Transport | None = None

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and not self.other.is_closing():
            self.other.resume_reading()


class _Client(_End):
    """The end of a client; the server is not bothered before it has said something."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._said, self._heard = _Records(), _Records()
        self._is_counted = self._is_let_in = False
        self._connecting: asyncio.Task[None] | None = None
        self._first = b""
        self.address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.address = str((transport.get_extra_info("peername") or ("",))[0])
        self._is_counted = self._relay.accepted(self)
        if not self._is_counted:
            transport.abort()
            return
        self._timer = self._relay._loop.call_later(_HANDSHAKE_SECONDS, self._expire)

    def data_received(self, data: bytes) -> None:
        if not self._is_let_in:
            self._said.add(data, is_answer=self._heard.has_application_data)
        if self.other is not None:
            self.other.write(data)
        elif self._connecting is None:
            self._first = data
            self.transport.pause_reading()
            self._connecting = self._relay._loop.create_task(self._connect())

    async def _connect(self) -> None:
        loop = self._relay._loop
        try:
            port = self._relay.port_behind()
            await loop.create_connection(lambda: _Server(self), "127.0.0.1", port)
        except OSError:
            self.end()

    @property
    def has_said_nothing(self) -> bool:
        """Whether no byte has come from the client."""
        return self._connecting is None

    def connected(self, server: asyncio.Transport) -> None:
        """Pass on what has arrived."""
        self.other = server
        server.write(self._first)
        if self.transport.is_closing():
            server.abort()
            return
        self.transport.resume_reading()

    def hear(self, data: bytes) -> None:
        """Pass on what the server says, which waits for a client to end its handshake.

        A client's data counts after the server's own: a server that asks for another first message
        (RFC 8446, 4.1.4) ignores data before that.
        """
        if not self._is_let_in:
            if self._said.has_application_data:
                self._is_let_in = True
                self._timer.cancel()
                self._relay.let_in(self)
            self._heard.add(data, is_answer=True)
        self.transport.write(data)

    def connection_lost(self, _reason: Exception | None) -> None:
        if not self._is_counted:
            return
        self._timer.cancel()
        self._relay.gone(self)
        if self.other is not None:
            self.other.close()

    def end(self) -> None:
        """Close both ends at once."""
        self._relay.gone(self)
        self.transport.abort()

    def _expire(self) -> None:
        if not self._is_let_in:
            self.end()


class _Server(_End):
    """The end of the server."""

    def __init__(self, client: _Client) -> None:
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.other = transport, self._client.transport
        self._client.connected(transport)

    def data_received(self, data: bytes) -> None:
        self._client.hear(data)

    def connection_lost(self, _reason: Exception | None) -> None:
        self._client.transport.close()


class _Records:
    """Finds the first record of application data among those that an end sends."""

    def __init__(self) -> None:
        self._header = b""
        self._body_bytes = 0  # of the current record, that are still to come
        self.has_application_data = False

    def add(self, data: bytes, *, is_answer: bool) -> None:
        """Look at more bytes, in any chunks.

        Args:
            data: the bytes.
            is_answer: whether they come after the other end's application data.
        """
        while data and not self.has_application_data:
            skipped = min(self._body_bytes, len(data))
            self._body_bytes -= skipped
            data = data[skipped:]
            wanted = _HEADER_BYTES - len(self._header)
            self._header, data = self._header + data[:wanted], data[wanted:]
            if len(self._header) == _HEADER_BYTES:
                self._body_bytes = int.from_bytes(self._header[3:])
                self.has_application_data = is_answer and self._header[0] == _APPLICATION_DATA
                self._header = b""
