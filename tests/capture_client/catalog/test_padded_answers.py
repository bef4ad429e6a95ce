"""A driver that pads what it fetches with blanks tells the same as one that does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from informix_capture_client.catalog.catalog import Catalog
from informix_capture_client.catalog.log_space import read_log_space
from informix_capture_client.emulator import EmulatedServer, ListeningServer
from informix_capture_client.session.error_codes import ErrorCodes
from informix_capture_client.session.open_sessions import read_open_sessions
from informix_capture_client.session.session import CapturedTable, CaptureSession, SessionSettings
from informix_capture_client.sql_names import TableName
from informix_capture_client.transport.base import Argument, ConnectionSettings, Row
from informix_capture_client.transport.sqli import SqliTransport

ORDERS = TableName("stores", "informix", "orders")
NOW = 1_700_000_000


class Padding(SqliTransport):
    """Pads every value."""

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        found = super().rows(statement, *arguments)
        return [tuple(None if value is None else f"{value}   " for value in row) for row in found]


@pytest.fixture
def settings() -> Iterator[ConnectionSettings]:
    server = EmulatedServer(clock=lambda: NOW)
    server.create_database("stores", ansi=True)
    server.create_table(str(ORDERS), "id serial primary key, note varchar(20)", full_row_logging=True)
    server.switch_log()
    server.begin()
    with ListeningServer(server) as listening:
        yield ConnectionSettings(
            host="127.0.0.1",
            port=listening.port,
            server="informix",
            database="stores",
            user="informix",
            password="in4mix",
            db_locale="en_US.utf8",
        )


QUESTIONS: dict[str, Callable[[Catalog], object]] = {
    "logging": lambda it: it.database_logging(),
    "locale": lambda it: it.database_locale(),
    "clock": lambda it: it.clock(),
    "current position": lambda it: it.current_position(),
    "oldest position": lambda it: it.oldest_position(),
    "open transactions": lambda it: it.open_transactions(),
    "part in a cluster": lambda it: it.ha_role(),
    "version": lambda it: it.server_version(),
    "table": lambda it: it.table(ORDERS),
    "row logging": lambda it: it.logs_full_rows(it.table(ORDERS)),
    "primary key": lambda it: it.primary_keys([it.table(ORDERS)]),
    "keys": lambda it: it.keys([it.table(ORDERS)]),
    "row locks": lambda it: it.row_locks([it.table(ORDERS)]),
    "case": lambda it: it.ignores_case(),
    "log files": lambda it: read_log_space(it._transport),
    "error codes": lambda it: ErrorCodes.read(it._transport),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_catalog_says_the_same(settings: ConnectionSettings, question: str) -> None:
    with closing(SqliTransport(settings)) as plain, closing(Padding(settings)) as padding:
        answers = [QUESTIONS[question](Catalog(each, "stores")) for each in (plain, padding)]
    assert answers[0] == answers[1]


def test_sessions_are_opened_and_seen_all_the_same(settings: ConnectionSettings) -> None:
    with closing(Padding(settings)) as padding, closing(Padding(settings)) as asking:
        session = CaptureSession(padding, SessionSettings(server="informix"))
        session.start_capture(CapturedTable(str(ORDERS), ("id",), 0))
        (seen,) = read_open_sessions(asking)
        assert (seen.session_id, seen.tables) == (session.session_id, (ORDERS,))
        session.close()
