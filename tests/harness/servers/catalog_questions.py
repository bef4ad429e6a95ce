"""Every question that the catalog is asked, a server that answers, and one that answers anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from harness.servers.in_process import InProcessConnection
from informix_capture_client.catalog.catalog import Catalog
from informix_capture_client.catalog.log_space import read_log_space
from informix_capture_client.session.error_codes import ErrorCodes
from informix_capture_client.session.open_sessions import read_open_sessions
from informix_capture_client.session.session import CaptureSession, SessionSettings
from informix_capture_client.sql_names import TableName
from informix_capture_client.transport.base import Argument, Row, Transport
from informix_capture_client.transport.odbc.transport import single_integer
from informix_emulator import EmulatedServer

ORDERS = TableName("stores", "informix", "orders")
PARTS = TableName("stores", "informix", "parts")
NOWHERE = TableName("stores", "informix", "order")
NOW = 1_700_000_000

Question = Callable[[Transport], object]


def _asked(ask: Callable[[Catalog], object]) -> Question:
    return lambda transport: ask(Catalog(transport, "stores"))


QUESTIONS: dict[str, Question] = {
    "name": _asked(lambda it: it.server_name()),
    "logging": _asked(lambda it: it.database_logging()),
    "locale": _asked(lambda it: it.database_locale()),
    "clock": _asked(lambda it: it.clock()),
    "current position": _asked(lambda it: it.current_position()),
    "next position": _asked(lambda it: it.next_position()),
    "oldest position": _asked(lambda it: it.oldest_position()),
    "open transactions": _asked(lambda it: it.open_transactions()),
    "part in a cluster": _asked(lambda it: it.ha_role()),
    "version": _asked(lambda it: it.server_version()),
    "table": _asked(lambda it: it.table(ORDERS)),
    "table that is not there": _asked(lambda it: it.find_table(NOWHERE)),
    "tables there": _asked(lambda it: it.tables_there()),
    "databases": _asked(lambda it: it.databases()),
    "row logging": _asked(lambda it: it.log_full_rows(it.tables([ORDERS, PARTS]))),
    "created": _asked(lambda it: it.created(it.tables([ORDERS, PARTS]))),
    "pending alters": _asked(lambda it: it.pending_alters(it.tables([ORDERS, PARTS]))),
    "primary key": _asked(lambda it: it.primary_keys([it.table(ORDERS)])),
    "keys": _asked(lambda it: it.keys([it.table(ORDERS)])),
    "row locks": _asked(lambda it: it.row_locks([it.table(ORDERS)])),
    "lock holders": _asked(lambda it: it.lock_holders(ORDERS)),
    "case": _asked(lambda it: it.ignores_case()),
    "log files": read_log_space,
    "error codes": ErrorCodes.read,
    "sessions": read_open_sessions,
    "session": lambda it: CaptureSession(it, SessionSettings(server="informix")).record_kinds,
}


def stores() -> EmulatedServer:
    """Return a server that has something to say to every question."""
    server = EmulatedServer(clock=lambda: NOW)
    server.create_database("stores", ansi=True)
    server.create_table(str(ORDERS), "id serial primary key, note varchar(20)", full_row_logging=True)
    server.create_table(str(PARTS), "id serial primary key")
    server.switch_log()
    server.begin()
    return server


class Answers:
    """Gives answers from a list to whatever is asked; when they are used up, the last again."""

    def __init__(self, answers: Iterable[list[Row]]) -> None:
        self._left = list(answers) or [[]]

    def rows(self, _statement: str, *_arguments: Argument) -> list[Row]:
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]

    def call(self, statement: str, *arguments: Argument) -> int:
        return single_integer(self.rows(statement, *arguments))


def sound_answers(question: str) -> list[list[Row]]:
    """Return what an emulated server answers to what a question asks, in order."""
    login = {"SERVER": "informix", "UID": "informix", "PWD": "in4mix", "DB_LOCALE": "en_US.utf8"}
    connection = InProcessConnection(stores(), login, "stores")
    given: list[list[Row]] = []

    class Noting:
        def rows(self, statement: str, *arguments: Argument) -> list[Row]:
            given.append(connection.rows(statement, *arguments))
            return given[-1]

        def call(self, statement: str, *arguments: Argument) -> int:
            return single_integer(self.rows(statement, *arguments))

    QUESTIONS[question](cast("Any", Noting()))
    return given


def ask(question: str, answers: Iterable[list[Row]]) -> object:
    """Put a question to a server that gives these answers."""
    return QUESTIONS[question](cast("Any", Answers(answers)))
