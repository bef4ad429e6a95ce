"""An HTTP port for Prometheus that closes idle connections and limits the number of threads.

Rule: every client may hold a connection for as long as a scrape takes, and no longer. When there are
too many connections, a new one closes the oldest, so that idle clients cannot block scrapes.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from socketserver import ThreadingMixIn
from threading import Lock, Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

IDLE_SECONDS = 10.0  # maximum time between two bytes of a client
MOST_CONNECTIONS = 16


class _Handler(WSGIRequestHandler):
    timeout = IDLE_SECONDS

    def log_message(self, *_: object) -> None:
        """Log nothing: scrapes are frequent."""


class MetricsPort(ThreadingMixIn, WSGIServer):
    """An HTTP server with one thread per connection and a maximum number of connections."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self._open: dict[socket.socket, None] = {}  # in order of arrival
        self._changing = Lock()
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - socketserver's
        """Serve a connection in its own thread; close the oldest one if there are too many."""
        with self._changing:
            self._open[request] = None
            if len(self._open) > MOST_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                _end(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - socketserver's
        """Close a connection."""
        with self._changing:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - socketserver's
        """Print nothing about clients that are idle or disconnected."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _end(connection: socket.socket) -> None:
    """Wake the thread that reads from a connection; the thread closes it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def open_port(host: str, port: int, registry: CollectorRegistry) -> tuple[MetricsPort, Thread]:
    """Serve a registry in a new thread.

    Raises:
        OSError, OverflowError: the address cannot be listened on.
    """
    server = make_server(host, port, make_wsgi_app(registry), MetricsPort, _Handler)
    thread = Thread(target=server.serve_forever, name="informix-cdc metrics", daemon=True)
    thread.start()
    return server, thread
