from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from emulator.sql.asking import Asked
from informix_emulator import EmulatedServer
from informix_emulator.sql import open_session

NOW = 1_700_000_000  # 14 November 2023, 22:13:20


@pytest.fixture
def server() -> EmulatedServer:
    server = EmulatedServer(clock=lambda: NOW, users={"informix": "in4mix", "joe": "j"})
    server.create_database("stores")
    return server


@pytest.fixture
def connect(server: EmulatedServer) -> Iterator[Callable[..., Asked]]:
    """Return a function that opens sessions, which end with the test."""
    opened: list[Asked] = []

    def connect_to(
        user: str = "informix",
        database: str = "stores",
        *,
        delimits_names: bool = False,
        date_form: str = "",
    ) -> Asked:
        session = open_session(server, user, database, delimits_names, date_form=date_form)
        opened.append(Asked(session, server))
        return opened[-1]

    yield connect_to
    for asked in opened:
        asked.session.close()


@pytest.fixture
def db(connect: Callable[..., Asked]) -> Asked:
    return connect()
