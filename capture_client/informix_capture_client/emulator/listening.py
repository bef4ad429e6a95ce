"""A socket that clients reach the emulated server through.

Rule: one thread per connection, and one that accepts them. A statement that waits looks at its
socket from time to time: for a cancel, or for a client that has gone.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Protocol, Self

from . import sqli, wire
from .answers import Admitted as AdmittedToSql
from .connection import Answer, Connection, Parameter, parse_attributes
from .logical_log import LongTransactionError
from .server import EmulatedServer
from .sql_errors import SqlError, sql_error

_MAX_REQUEST_BYTES = 1 << 24
_LATE_WAKE_SECONDS = 0.0001


class Admitted(AdmittedToSql, Protocol):
    """A client's connection to a server: emulated or replayed."""

    def execute(
        self, statement: str, parameters: Sequence[Parameter], check: Callable[[], None]
    ) -> Answer:
        """Run a statement. `check` is called while it waits and may raise to end it."""


Connect = Callable[[Mapping[str, str]], Admitted]


class Listener:
    """A server that listens on a port; 0 lets the system choose one.

    Args:
        connect: admits a client by the attributes of its connection string, or raises SqlError.
        host: the address to listen on.
        port: the port.
        latency_seconds: returns the least time between the arrival of a request and its answer.
        greeting: returns how a client that logs in is received.
        tls: what every connection is encrypted with, from its first byte; None: none is.
    """

    def __init__(
        self,
        connect: Connect,
        host: str = "127.0.0.1",
        port: int = 0,
        latency_seconds: Callable[[], float] = lambda: 0.0,
        *,
        greeting: Callable[[], sqli.Greeting] = sqli.Greeting,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.host = host
        self._greeting = greeting
        self._tls = tls
        self._connect = connect
        self._latency_seconds = latency_seconds
        self.port = port
        self._listener: socket.socket | None = None
        self._clients: set[socket.socket] = set()
        self._lock = Lock()
        self._stopped = Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, and accept connections in a thread."""
        self._stopped.clear()
        self.come_up()

    def come_up(self) -> None:
        """Listen, at first or again on the same port."""
        self._listener = socket.create_server((self.host, self.port), backlog=64)
        self.port = self._listener.getsockname()[1]
        Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        """Close the port and all connections."""
        self._stopped.set()
        self._close()

    def serve_forever(self) -> None:
        """Return when `stop` is called or the user interrupts."""
        with suppress(KeyboardInterrupt):
            self._stopped.wait()

    def disconnect_all(self) -> None:
        """Break every connection, as a failing network does."""
        with self._lock:
            clients = list(self._clients)
        for client in clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            _hang_up(listener)
        self.disconnect_all()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _address = listener.accept()
            except OSError:
                return
            with self._lock:
                if self._listener is not listener:  # closed since
                    client.close()
                    return
                self._clients.add(client)
            Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                client = secured = self._wrapped(client, self._tls)
                secured.do_handshake()
            if self._speaks_sqli(client):
                stream = sqli.ClientStream(client)
                sqli.converse(stream, self._connect, self._greeting(), self._latency_seconds)
            else:
                self._serve_privately(client)
        except (OSError, EOFError, ValueError, wire.MalformedRequest):
            pass  # the client has gone, or speaks something else: there is no one to tell
        finally:
            self._forget(client)

    def _wrapped(self, client: socket.socket, tls: ssl.SSLContext) -> ssl.SSLSocket:
        """Return a connection that will be encrypted, in the place of its socket."""
        client.getpeername()  # OSError if the client has gone, where wrapping would not say so
        secured = tls.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
        with self._lock:
            self._clients.discard(client)
            self._clients.add(secured)
            is_down = self._listener is None
        if is_down:
            _hang_up(secured)
        return secured

    def _forget(self, client: socket.socket) -> None:
        with self._lock:
            self._clients.discard(client)
        client.close()

    def _speaks_sqli(self, client: socket.socket) -> bool:
        """Tell by a client's first bytes: a request of the private protocol has a 0 there."""
        if self._tls is not None:
            return True
        head = client.recv(sqli.PACKET_TYPE_PLACE + 1, socket.MSG_PEEK | socket.MSG_WAITALL)
        return head[sqli.PACKET_TYPE_PLACE :] == bytes((sqli.REQUEST_PACKET,))

    def _serve_privately(self, client: socket.socket) -> None:
        conversation = _Conversation(self._connect, client, self._latency_seconds)
        try:
            conversation.run()
        finally:
            conversation.end()


class ListeningServer(Listener):
    """An emulated server that listens on a port."""

    def __init__(
        self,
        server: EmulatedServer,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(
            partial(Connection, server),
            host,
            port,
            lambda: server.latency_seconds,
            greeting=lambda: greeting_of(server),
            tls=tls,
        )
        self.server = server

    def go_down(self) -> None:
        """Let the server die: port and connections are closed, see `EmulatedServer.recover`.

        Until `come_up` clients cannot connect.
        """
        self._close()
        self.server.recover()


def greeting_of(server: EmulatedServer) -> sqli.Greeting:
    """Return how a server receives a client that logs in now."""
    protocols, asked = server.pose.protocols, server.prompts
    return sqli.Greeting(server.name, server.version, protocols, server.redirect_to, asked)


def serve(
    server: EmulatedServer,
    host: str = "127.0.0.1",
    port: int = 0,
    on_ready: Callable[[ListeningServer], None] = lambda _listening: None,
    tls: ssl.SSLContext | None = None,
) -> None:
    """Listen until interrupted; `on_ready` is called with host and port."""
    with ListeningServer(server, host, port, tls) as listening:
        on_ready(listening)
        listening.serve_forever()


class _Conversation:
    """Requests and responses of one client."""

    def __init__(
        self, connect: Connect, client: socket.socket, latency_seconds: Callable[[], float]
    ) -> None:
        self._admit = connect
        self._client = client
        self._latency_seconds = latency_seconds
        self._connection: Admitted | None = None

    def run(self) -> None:
        """Answer requests until the client hangs up."""
        while True:
            message = self._receive()
            leaves_at = time.monotonic() + self._latency_seconds()
            if message[:1] != wire.CANCEL:  # one that comes too late cancels nothing
                response = self._respond(message)
                _wait_until(leaves_at)
                self._client.sendall(response)

    def end(self) -> None:
        """Release what the client held."""
        if self._connection is not None:
            self._connection.close()

    def _respond(self, message: bytes) -> bytes:
        handle = {wire.CONNECT: self._connect, wire.EXECUTE: self._execute}.get(message[:1])
        if handle is None:
            raise wire.MalformedRequest(f"unknown request {message[:1]!r}")
        try:
            return handle(message)
        except SqlError as error:
            return wire.failure(error)
        except LongTransactionError:
            return wire.failure(sql_error(-458))

    def _connect(self, message: bytes) -> bytes:
        self.end()
        self._connection = None
        attributes = parse_attributes(message[1:].decode(errors="replace"))
        self._connection = self._admit(attributes)
        return wire.connected()

    def _execute(self, message: bytes) -> bytes:
        statement, parameters = wire.parse_execute(message)
        if self._connection is None:
            raise sql_error(-11060)
        answer = self._connection.execute(statement, parameters, self._check)
        return wire.success(answer)

    def _check(self) -> None:
        """Raise if the client has cancelled or gone while its statement waits."""
        while select.select([self._client], [], [], 0)[0]:
            if self._receive()[:1] == wire.CANCEL:
                raise sql_error(-11010)

    def _receive(self) -> bytes:
        (length,) = struct.unpack("<I", self._exactly(wire.LENGTH_BYTES))
        if length > _MAX_REQUEST_BYTES:
            raise wire.MalformedRequest(f"a request of {length} bytes")
        return self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._client.recv(size - len(data))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)


def _wait_until(moment: float) -> None:
    """Sleep until a deadline; return at once if it is past.

    `time.sleep` overshoots by about 60 us, too much for a latency of 1 ms, so the last part is a busy
    wait. The time that the answer took to prepare is part of the wait, not added to it.
    """
    if (left := moment - time.monotonic() - _LATE_WAKE_SECONDS) > 0:
        time.sleep(left)
    while time.monotonic() < moment:
        pass


def _hang_up(listener: socket.socket) -> None:
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
    listener.close()
