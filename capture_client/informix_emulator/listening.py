"""The socket on which clients reach the emulated server.

One thread accepts connections, and one serves each connection. A waiting statement polls its socket for
a cancel or a closed connection.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from . import sqli
from .answers import Admitted
from .connection import Connection
from .server import EmulatedServer

_Connect = Callable[[Mapping[str, str]], Admitted]


class ServerSocket:
    """A server that listens on a port; 0 lets the system choose one.

    Args:
        connect: admits a client by what its login says, or raises SqlError.
        host: the address to listen on.
        port: the port.
        latency_seconds: returns the least time between the arrival of a request and its answer.
        greeting: returns how a client that logs in is received.
        tls: what every connection is encrypted with, from its first byte; None: none is.
    """

    def __init__(
        self,
        connect: _Connect,
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
        if tls is not None:
            tls.sslsocket_class = _Accepted
        self._connect = connect
        self._latency_seconds = latency_seconds
        self.port = port
        self._listener: socket.socket | None = None
        self._clients: set[socket.socket] = set()
        self._lock = Lock()
        self._stopped = Event()

    @property
    def is_encrypted(self) -> bool:
        """Whether connections are TLS from their first byte."""
        return self._tls is not None

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
            stream = sqli.ClientStream(client)
            sqli.converse(stream, self._connect, self._greeting(), self._latency_seconds)
        except (OSError, EOFError, ValueError):
            pass  # the client has closed the connection, or speaks another protocol
        finally:
            self._forget(client)

    def _wrapped(self, client: socket.socket, tls: ssl.SSLContext) -> ssl.SSLSocket:
        """Return a connection that will be encrypted, in the place of its socket."""
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


class _Accepted(ssl.SSLSocket):
    """An encrypted connection whose client may have gone before it is made; a handshake says so.

    Wrapping asks for the peer first, and leaves its new socket open when a reset answers
    (CPython 3.11, `ssl.SSLSocket._create`).
    """

    def getpeername(self) -> socket._RetAddress:
        try:
            return super().getpeername()
        except OSError:
            return None


class ListeningServer(ServerSocket):
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
    return sqli.Greeting(
        server.name,
        server.version,
        server.pose.protocols,
        server.redirect_to,
        server.prompts,
        server.names_refusals,
    )


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


def _hang_up(listener: socket.socket) -> None:
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
    listener.close()
