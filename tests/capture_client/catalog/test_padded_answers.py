"""A driver that pads what it fetches with blanks tells the same as one that does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from harness.servers.catalog_questions import ORDERS, QUESTIONS, stores
from informix_capture_client.session.open_sessions import read_open_sessions
from informix_capture_client.session.session import CapturedTable, CaptureSession, SessionSettings
from informix_capture_client.transport.base import Argument, ConnectionSettings, Row
from informix_capture_client.transport.sqli.transport import SqliTransport
from informix_emulator import ListeningServer


class Padding(SqliTransport):
    """Pads every value."""

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        found = super().rows(statement, *arguments)
        return [tuple(None if value is None else f"{value}   " for value in row) for row in found]


@pytest.fixture
def settings() -> Iterator[ConnectionSettings]:
    with ListeningServer(stores()) as listening:
        yield ConnectionSettings(
            host="127.0.0.1",
            port=listening.port,
            server="informix",
            database="stores",
            user="informix",
            password="in4mix",
            db_locale="en_US.utf8",
        )


@pytest.mark.parametrize("question", sorted(QUESTIONS.keys() - {"session"}))
def test_the_catalog_says_the_same(settings: ConnectionSettings, question: str) -> None:
    with closing(SqliTransport(settings)) as plain, closing(Padding(settings)) as padding:
        assert QUESTIONS[question](plain) == QUESTIONS[question](padding)


def test_sessions_are_opened_and_seen_all_the_same(settings: ConnectionSettings) -> None:
    with closing(Padding(settings)) as padding, closing(Padding(settings)) as asking:
        session = CaptureSession(padding, SessionSettings(server="informix"))
        session.start_capture(CapturedTable(str(ORDERS), ("id",), 0))
        (seen,) = read_open_sessions(asking)
        assert (seen.session_id, seen.tables) == (session.session_id, (ORDERS,))
        session.close()
