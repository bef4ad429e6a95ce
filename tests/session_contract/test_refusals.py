"""What a server turns down, by the name that its own table gives the code (guide, chapter 5)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import pytest

from harness.servers.capture_server import CaptureServer
from informix_capture_client import statements
from informix_capture_client.errors import BadOption, DataLoss, ServerRefused
from informix_capture_client.session.session import CaptureSession
from informix_capture_client.transport.base import Argument
from informix_cdc.proving.sql_text import ContractTable


@dataclass
class Scene:
    """An open session and a table with full row logging."""

    server: CaptureServer
    session: CaptureSession
    table: ContractTable

    def call(self, statement: str, *arguments: Argument) -> str:
        """Call a function; return the name of its error, or "ok"."""
        answer = self.session._transport.call(statement, *arguments)
        return self.session.codes.name(answer) if answer < 0 else "ok"

    def capture(self, table: str = "", columns: str = "id") -> str:
        """Ask for a table's changes."""
        name = table or self.table.full_name
        return self.call(statements.START_CAPTURE, self.session.session_id, 0, name, columns, 1)

    def activate(self, position: int) -> str:
        """Activate the session."""
        return self.call(statements.ACTIVATE_SESSION, self.session.session_id, position)

    def log_rows(self, table: str) -> str:
        """Switch full row logging on."""
        return self.call(statements.SET_FULL_ROW_LOGGING, table, 1)

    def open(self, *arguments: Argument) -> str:
        """Open another session, over another connection."""
        with self.server.cdc_connection() as transport:
            answer = transport.call(statements.OPEN_SESSION, *arguments)
            return self.session.codes.name(answer) if answer < 0 else "ok"


def _unlogged_table(scene: Scene) -> str:
    server = scene.server
    name = f"{server.database}_unlogged"
    with server.catalog() as catalog:
        known = catalog._transport.rows(statements.DATABASE_LOGGING, name)
    if not known:
        server.run(f"CREATE DATABASE {name}")
    return scene.log_rows(f"{name}:{server.owner}.nothing")


def _view(scene: Scene) -> str:
    view = f"v{scene.table.name}"
    scene.server.run(f"CREATE VIEW {view} AS SELECT id FROM {scene.table.name}")
    return scene.capture(scene.table.full_name.replace(scene.table.name, view))


def _other_locale(scene: Scene) -> str:
    """Ask for a UTF-8 table over a connection with another DB_LOCALE (guide, cdc_startcapture)."""
    scene.server.needs_captures_of_any_code_set()
    assert scene.server.sibling
    with scene.server.sibling("en_US.8859-1").open_session() as session:
        return Scene(scene.server, session, scene.table).log_rows(scene.table.full_name)


def _no_row_logging(scene: Scene) -> str:
    return scene.capture(scene.server.create_table({"id": "integer"}).full_name)


def _twice(call: Callable[[Scene], str]) -> Callable[[Scene], str]:
    def second(scene: Scene) -> str:
        assert call(scene) == "ok"
        return call(scene)

    return second


REFUSALS: dict[str, tuple[str, Callable[[Scene], str]]] = {
    "an unknown table": ("CDC_E_NOTAB", lambda s: s.log_rows(f"{s.server.database}:x.nothing")),
    "an unknown database": ("CDC_E_NODB", lambda s: s.log_rows("nowhere:informix.t")),
    "an unknown column": ("CDC_E_NOCOL", lambda s: s.capture(columns="id,nothing")),
    "a database without logging": ("CDC_E_DBNOTLOGGED", _unlogged_table),
    "a view": ("CDC_E_TABPROPERTIES", _view),
    "a table without full row logging": ("CDC_E_TABPROPERTIES", _no_row_logging),
    "a table that is captured already": ("CDC_E_TABCAPTURED", _twice(Scene.capture)),
    "a table that is not captured": (
        "CDC_E_TABNOTCAPTURED",
        lambda s: s.call(statements.END_CAPTURE, s.session.session_id, 0, s.table.full_name),
    ),
    "a session of another number": (
        "CDC_E_NOSES",
        lambda s: s.call(statements.ACTIVATE_SESSION, s.session.session_id + 4_711, 0),
    ),
    "a position in a log that is gone": ("CDC_E_LSN", lambda s: s.activate(1 << 12)),
    "a database of another locale": ("CDC_E_LOCALEMISMATCH", _other_locale),
    "another version of the API": ("CDC_E_APIVERS", lambda s: s.open(s.server.name, 0, 1, 64, 9, 1)),
    "another server's name": ("CDC_E_ARG1", lambda s: s.open("no_such_server", 0, 1, 64, 1, 1)),
    "too many records a read": ("CDC_E_ARG4", lambda s: s.open(s.server.name, 0, 1, 1000, 1, 1)),
}


@pytest.fixture
def table(server: CaptureServer) -> ContractTable:
    return server.create_table({"id": "integer", "note": "varchar(9,0)"})


@pytest.mark.parametrize("what", REFUSALS)
def test_what_is_refused_has_the_name_of_the_guide(
    server: CaptureServer, table: ContractTable, what: str
) -> None:
    name, attempt = REFUSALS[what]
    with server.open_session() as session:
        session.log_full_rows(table.full_name)
        assert attempt(Scene(server, session, table)) == name


def test_a_second_session_on_one_connection_is_refused(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.open_session() as session:
        again = session._transport.call(statements.OPEN_SESSION, server.name, 0, 1, 64, 1, 1)
        assert session.codes.name(again) == "CDC_E_DUPLSESS"


def test_row_logging_cannot_be_switched_off_while_a_session_captures(
    server: CaptureServer, table: ContractTable
) -> None:
    with server.session(table) as session, pytest.raises(ServerRefused) as caught:
        session._transport.call(statements.SET_FULL_ROW_LOGGING, table.full_name, 0)
    assert abs(caught.value.answer.native) == 19816  # type: ignore[arg-type]


def test_our_errors_say_what_to_do_about_it(server: CaptureServer, table: ContractTable) -> None:
    with server.open_session() as session:
        with pytest.raises(BadOption, match="CDC_E_NOTAB"):
            session.log_full_rows(f"{server.database}:x.nothing")
        with pytest.raises(DataLoss, match="CDC_E_LSN"):
            session.activate(1 << 12)


def test_every_code_of_the_servers_table_has_a_name_and_a_text(server: CaptureServer) -> None:
    with server.open_session() as session:
        assert all(session.codes.names.values())
        assert all(session.codes.descriptions.values())


def test_the_server_has_a_text_for_an_error_by_its_name(server: CaptureServer) -> None:
    with server.cdc_connection() as transport:
        ((text,),) = transport.rows(statements.ERROR_TEXT, "CDC_E_TABCAPTURED", "en_us.819")
    assert text
    assert text.strip()


@pytest.mark.assumption(63)
def test_the_first_number_of_an_error_is_that_of_the_statement(server: CaptureServer) -> None:
    with (
        closing(server.connect(server.database)) as transport,
        pytest.raises(ServerRefused) as refused,
    ):
        transport.rows(f"SELECT a FROM {server.owner}.nowhere_at_all")
    answer = refused.value.answer
    assert answer is not None
    assert answer.native == -206
    others = [native for _, native, _ in answer.diagnostics[1:]]  # type: ignore[attr-defined]
    assert others in ([], [-111]), "what else a driver tells is the ISAM code"
