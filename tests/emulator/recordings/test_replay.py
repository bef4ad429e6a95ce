"""A recorded server says what it said, in order, and nothing else."""

from __future__ import annotations

import pytest

from informix_emulator import Recording, ReplayedServer
from informix_emulator.recordings.replay import ReplayedConnection
from informix_emulator.sql_errors import SqlError


@pytest.fixture
def server() -> ReplayedServer:
    recording = Recording({"server": {"name": "ol"}}, {"stores", "syscdcv1"})
    refused = SqlError("42000", -201, "A syntax error has occurred.")
    recording.answers["stores", "SELECT x", ("1",)] = [[("a", None)], refused, [("b", "")]]
    recording.answers["stores", "SELECT none", ()] = [[]]
    recording.reads["39"] = [bytes(range(200)), b"", b"end", SqlError("08S01", -25582, "broken")]
    return ReplayedServer(recording)


def connection(server: ReplayedServer, database: str = "stores") -> ReplayedConnection:
    admitted = server.connect({"SERVER": "ol", "UID": "anybody", "PWD": "x"})
    admitted.open_database(database)
    return admitted


def ask(client: ReplayedConnection, text: str, *arguments: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in client.prepare(text).run(arguments, lambda: None).rows]


def read(client: ReplayedConnection, room: int, session: int = 39) -> bytes:
    return client.lo_read(session, room, lambda: None)


def test_answers_come_in_their_order_and_the_last_one_again_for_each_client(
    server: ReplayedServer,
) -> None:
    for client in (connection(server), connection(server, "STORES")):
        assert ask(client, "SELECT  x ;", "1") == [("a", None)]
        with pytest.raises(SqlError, match="syntax error"):
            ask(client, "SELECT x", "1")
        assert ask(client, "SELECT x", "1") == ask(client, "SELECT x", "1") == [("b", "")]
        assert ask(client, "SELECT none") == []


@pytest.mark.parametrize(
    ("text", "arguments"),
    [("SELECT x", ("2",)), ("SELECT x", ()), ("SELECT y", ("1",)), ("select x", ("1",))],
)
def test_another_question_is_refused_by_name(
    server: ReplayedServer, text: str, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SqlError, match="not in the recording") as caught:
        ask(connection(server), text, *arguments)
    assert repr(text) in caught.value.message
    if text == "SELECT x":  # the text is known, with other arguments
        assert str(list(arguments)) in caught.value.message


def test_a_question_is_one_of_its_database(server: ReplayedServer) -> None:
    with pytest.raises(SqlError, match="in database 'syscdcv1'"):
        ask(connection(server, "syscdcv1"), "SELECT x", "1")


def test_reads_are_cut_to_the_room_and_go_on_where_they_were_cut(server: ReplayedServer) -> None:
    client = connection(server)
    whole = bytes(range(200))
    assert [read(client, 128), read(client, 128)] == [whole[:128], whole[128:]]
    assert [read(client, 4096), read(client, 4096)] == [b"", b"end"]
    with pytest.raises(SqlError, match="broken"):
        read(client, 4096)
    with pytest.raises(SqlError, match="read 5 of session 39: the recording ends here"):
        read(client, 4096)
    assert read(connection(server), 200) == whole


def test_a_session_that_was_not_read_has_nothing(server: ReplayedServer) -> None:
    with pytest.raises(SqlError, match="read 1 of session 40"):
        read(connection(server), 4096, session=40)


def test_less_room_than_a_server_takes_is_refused(server: ReplayedServer) -> None:
    with pytest.raises(SqlError, match="at least 128 bytes"):
        read(connection(server), 127)


@pytest.mark.parametrize("attributes", [{"SERVER": "other"}, {}])
def test_who_asks_for_another_server_is_not_admitted(
    server: ReplayedServer, attributes: dict[str, str]
) -> None:
    with pytest.raises(SqlError) as refused:
        server.connect(attributes)
    assert refused.value.native == -761


def test_a_database_that_was_not_recorded_is_refused_by_name(server: ReplayedServer) -> None:
    with pytest.raises(SqlError, match="a connection to database 'x'"):
        connection(server, "x")
