"""Where a result ends for transport=sqli: however a server says it, no row is lost."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

import pytest

from harness.servers.scripted_wire import FETCH, Conversation, Login, Row, Value, error
from informix_capture_client.transport.base import ConnectionSettings
from informix_capture_client.transport.sqli.transport import SqliTransport

CLOSE, END = 10, 12
LONG = "x" * 5_000  # longer than the buffer that is fetched into: one row an answer
Falsify = Callable[[list[int], bytes], bytes]


class _ThreeRows:
    """Whatever it is asked, three long rows."""

    def admit(self, login: Login) -> None: ...

    def open_database(self, name: str) -> None: ...

    def columns(self, statement: str) -> Sequence[type]:
        return [str]

    def rows(self, statement: str, values: Sequence[Value]) -> Sequence[Row]:
        return [(LONG,)] * 3

    def lo_read(self, session_id: int, size: int) -> bytes:
        return b""


@contextmanager
def serving(falsify: Falsify) -> Iterator[SqliTransport]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError, EOFError):
                connection, _ = listener.accept()
                with connection:
                    Conversation(connection, _ThreeRows(), falsify).run()

        threading.Thread(target=serve, daemon=True).start()
        settings = ConnectionSettings(
            host="127.0.0.1",
            port=listener.getsockname()[1],
            server="informix",
            database="stores",
            user="u",
            password="p",
        )
        with closing(SqliTransport(settings, 5)) as transport:
            yield transport


def messages(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}H", *numbers)


class ThirdFetch:
    """Puts a message behind the third row; what the cursor is asked afterwards gets -400."""

    def __init__(self, message: bytes, refused: Sequence[int]) -> None:
        self._message = message
        self._refused = refused
        self._fetches = 0

    def __call__(self, codes: list[int], answer: bytes) -> bytes:
        if self._fetches >= 3 and set(codes) & set(self._refused):
            return error(-400) + messages(END)
        if FETCH in codes:
            self._fetches += 1
            if self._fetches == 3:
                return answer[:-2] + self._message + messages(END)
        return answer


ENDS = {
    "closes the cursor with it, and knows none afterwards": (messages(CLOSE), [CLOSE, FETCH]),
    "says SQLCODE 100 with it": (error(100), [FETCH]),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_server_says_with_the_last_row_that_it_is_the_last(how: str) -> None:
    """Said of live servers (docs/assumptions.md)."""
    with serving(ThirdFetch(*ENDS[how])) as transport:
        assert transport.rows("select a from t") == [(LONG,)] * 3


@pytest.mark.parametrize("statement", ["select a from t", "execute function f()"])
def test_every_row_is_fetched_where_an_answer_has_room_for_one(statement: str) -> None:
    """A function's answer of one row is taken for all of it only if another would have fitted."""
    with serving(lambda _codes, answer: answer) as transport:
        assert transport.rows(statement) == [(LONG,)] * 3
