from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from emulator.raw_client import RawClient
from informix_emulator import EmulatedServer, ListeningServer

ORDERS = "stores:informix.orders"
NOW = 1_700_000_000


def make_server(**settings: object) -> EmulatedServer:
    server = EmulatedServer(clock=lambda: NOW, **settings)  # type: ignore[arg-type]
    server.create_database("stores")
    server.create_table(ORDERS, "id serial, name varchar(20), qty integer", full_row_logging=True)
    return server


@pytest.fixture
def server() -> EmulatedServer:
    return make_server()


@pytest.fixture
def connect() -> Iterator[Callable[..., RawClient]]:
    """Return a function that connects to a server, which begins to listen when first asked."""
    listening: dict[int, ListeningServer] = {}
    clients: list[RawClient] = []

    def connect_to(server: EmulatedServer, **settings: str) -> RawClient:
        if id(server) not in listening:
            listening[id(server)] = ListeningServer(server)
            listening[id(server)].start()
        clients.append(RawClient(listening[id(server)].port, **settings))
        return clients[-1]

    yield connect_to
    for client in clients:
        client.close()
    for listener in listening.values():
        listener.stop()
