from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from informix_capture_client.errors import AccessRefused
from informix_capture_client.session.open_sessions import OpenSession, read_open_sessions
from informix_capture_client.session.session import CapturedTable, CaptureSession, SessionSettings
from informix_capture_client.sql_names import TableName
from informix_capture_client.transport.base import ConnectionSettings, Transport
from informix_capture_client.transport.sqli.transport import SqliTransport
from informix_emulator import EmulatedServer, ListeningServer

NOW = 1_700_000_000
ORDERS = TableName("stores", "informix", "orders")


@pytest.fixture
def server() -> Iterator[ListeningServer]:
    emulated = EmulatedServer(clock=lambda: NOW)
    emulated.create_database("stores")
    emulated.create_table(str(ORDERS), "id serial, name varchar(20)", full_row_logging=True)
    with ListeningServer(emulated) as listening:
        yield listening


@pytest.fixture
def connections() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def connect(server: ListeningServer, connections: ExitStack, user: str = "informix") -> Transport:
    settings = ConnectionSettings(
        host=server.host,
        port=server.port,
        server="informix",
        database="stores",
        db_locale="en_US.utf8",
        user=user,
        password="in4mix",
    )
    return connections.enter_context(closing(SqliTransport(settings)))


def test_sessions_of_others_are_seen_with_their_tables(
    server: ListeningServer, connections: ExitStack
) -> None:
    asking = connect(server, connections)
    assert read_open_sessions(asking) == ()
    for timeout_seconds in (3, 4):
        settings = SessionSettings(server="informix", timeout_seconds=timeout_seconds)
        session = CaptureSession(connect(server, connections), settings)
    session.start_capture(CapturedTable(str(ORDERS), ("id", "name"), 0))
    assert read_open_sessions(asking) == (
        OpenSession(1, (1, 1), 3, NOW, 0),
        OpenSession(2, (1, 1), 4, NOW, 0, (ORDERS,)),
    )


def test_the_latest_error_of_a_session_is_seen(server: ListeningServer, connections: ExitStack) -> None:
    CaptureSession(connect(server, connections), SessionSettings(server="informix"))
    server.server.kill_session(1)
    (session,) = read_open_sessions(connect(server, connections))
    assert session.error_code < 0


def test_a_user_who_may_not_see_the_sessions_is_told_who_may_and_by_which_grant(
    server: ListeningServer, connections: ExitStack
) -> None:
    server.server.users["joe"], server.server.cdc_users = "in4mix", frozenset({"informix", "joe"})
    with pytest.raises(AccessRefused, match=r"cannot be listed: .*-272") as refused:
        read_open_sessions(connect(server, connections, "joe"))
    assert "user informix" in refused.value.remedy
    assert "GRANT SELECT ON syscdcsess" in refused.value.remedy
    assert "\n" not in str(refused.value)
