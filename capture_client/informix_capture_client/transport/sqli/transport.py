"""A transport over SQLI, Informix's protocol, without a driver or client kit.

Rule: one connection, one process, one request at a time. Failures are translated by `Door`; failures in
the middle of a message close the connection.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from functools import partial

from informix_capture_client.errors import InformixCdcError, ProtocolViolation
from informix_capture_client.log_events import PASSWORD_IN_CLEAR_TEXT
from informix_capture_client.transport.base import (
    MOST_RESULT_BYTES,
    NO_ENCRYPTION,
    TRUSTED,
    VALUE_BYTES,
    Argument,
    ConnectionSettings,
    Row,
    check_integer,
    check_read,
    single_integer,
)
from informix_capture_client.transport.errors import Door, OdbcFailure
from informix_capture_client.transport.sqli import requests
from informix_capture_client.transport.sqli.admission import (
    admit,
    codec_of_database,
    in_code_set,
    require,
)
from informix_capture_client.transport.sqli.answers import SqliAnswer
from informix_capture_client.transport.sqli.cursor import Fetching, SqliCursor, TupleCursor
from informix_capture_client.transport.sqli.describing import Description, Opaque, Routine
from informix_capture_client.transport.sqli.messages import Message, name_of
from informix_capture_client.transport.sqli.requests import BindValue, Request
from informix_capture_client.transport.sqli.rows import SqliRowReader, simple_object_of
from informix_capture_client.transport.sqli.trace import WireTrace

_GOODBYE_SECONDS = 1.0
_log = logging.getLogger(__name__)
_warned_addresses: set[str] = set()  # addresses to which a password went in clear text
_telling = threading.Lock()


class SqliTransport:
    """A `Transport` over SQLI.

    Args:
        settings: `driver` and `extra` are ignored.
        receive_timeout_seconds: the timeout for a silent server; None waits forever.
        trace: records the messages, without the password.

    Raises:
        AccessRefused, BadOption, ConnectionLost, ProtocolViolation: the connection
            failed.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        receive_timeout_seconds: float | None = None,
        trace: WireTrace | None = None,
    ) -> None:
        self._dialect = settings.dialect
        self._codec = codec_of_database(settings)
        self._door = Door(settings)
        self._buffers: list[bytearray] = [bytearray(), bytearray()]
        self._cursors = 0
        self._routines: dict[bytes, Routine] = {}
        with self._door:
            admission = admit(settings, trace)
        self._wire = admission.wire
        self._reader = admission.reader
        self.server_version = admission.version
        self._wire.wait_at_most(receive_timeout_seconds)
        self._door.connected = True
        _warn_of_clear_text(settings, is_loopback=self._wire.is_loopback)

    def call(self, statement: str, *arguments: Argument) -> int:
        """Execute a function and return its single integer result."""
        return single_integer(self.rows(statement, *arguments))

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        """Run a query and return all its rows, with every value as text and NULL as None."""
        text = in_code_set(self._dialect.statement(statement), self._codec)
        values = [self._value(argument) for argument in arguments]
        with self._door:
            described = self._prepare(text)
            try:
                return self._run(described, values)
            except ProtocolViolation:
                self._wire.hang_up()  # what cannot be read now will not be later
                raise
            finally:
                self._release(described.number)

    def open_tuples(self, statement: str, arguments: Sequence[Argument], room: int) -> TupleCursor:
        """Prepare a query whose rows are returned as bytes, at most `room` at a time."""
        text = in_code_set(self._dialect.statement(statement), self._codec)
        values = [self._value(argument) for argument in arguments]
        with self._door:
            described = self._prepare(text)
            cursor = self._cursor(described, values, Fetching(room, in_bulk=True))
            release = partial(self._release, described.number)
            return TupleCursor(self._door, cursor, described.columns, release)

    def simple_object(
        self, statement: str, arguments: Sequence[Argument], most_bytes: int
    ) -> tuple[int | None, bytes | None] | None:
        """Return the length and value of a TEXT or BYTE that a SELECT finds; None without a row.

        Args:
            statement: a SELECT of the column's LENGTH and of the column.
            arguments: the values of its parameters.
            most_bytes: the maximum size of a value; for a larger one only the length is returned.
        """
        text = in_code_set(self._dialect.statement(statement), self._codec)
        values = [self._value(argument) for argument in arguments]
        with self._door:
            described = self._prepare(text)
            try:
                return self._simple_object(described, values, most_bytes)
            except ProtocolViolation:
                self._wire.hang_up()
                raise
            finally:
                self._release(described.number)

    def lo_read(self, session_id: int, max_bytes: int) -> memoryview:
        """Return the next bytes of a capture session; valid until the call after the next."""
        check_read(session_id, max_bytes)
        with self._door:
            target = self._next_buffer(max_bytes)
            answer = self._ask(requests.read_large_object(session_id, max_bytes), target)
            return target[: answer.read_bytes].toreadonly()

    def call_routine(self, signature: str, *values: int | Opaque) -> bytes:
        """Call a routine by the fast path and return its single value undecoded.

        Args:
            signature: `function owner.name(types)`; the server's number for it is cached.
            values: the arguments.
        """
        text = in_code_set(self._dialect.statement(signature), self._codec)
        with self._door:
            known = self._routines.get(text) or self._ask(requests.find_routine(text)).routine
            if known is None:
                raise self._violated("no routine number in response to a request for it")
            self._routines[text] = known
            returned = self._ask(requests.call_routine(known, values)).returned
            if len(returned) != 1:
                raise self._violated(f"{len(returned)} return values of a routine that has one")
            return returned[0]

    def interrupt(self) -> None:
        """Ask the server, from any thread, to interrupt the current call, which then fails with -213.

        Over TLS an interrupt is not possible, also for IBM's driver: the connection is closed instead.
        """
        if not self._door.is_foreign:
            self._wire.interrupt()

    @contextlib.contextmanager
    def waiting_at_most(self, seconds: float) -> Iterator[None]:
        """Change the receive timeout, for example if the server may sort before its first row."""
        previous = self._wire.most_seconds
        self._wire.wait_at_most(seconds)
        try:
            yield
        finally:
            self._wire.wait_at_most(previous)

    def abandon(self) -> None:
        """Abort the connection, from any thread: a waiting call fails with a lost connection."""
        if not self._door.is_foreign:
            self._wire.cut()

    def close(self) -> None:
        """Release the connection. Calling it twice is harmless."""
        if self._door.is_foreign:
            self._wire.hang_up()  # closes this process's copy of the descriptor only
        elif not self._door.closed:
            with self._door:
                self._door.closed = True
                self._say_goodbye()

    def _prepare(self, text: bytes) -> Description:
        described = self._ask(requests.prepare(text)).description
        if described is None:
            raise self._violated("no description of a statement that it prepared")
        return described

    def _run(self, described: Description, values: list[BindValue]) -> list[Row]:
        if not described.columns:
            self._ask(requests.execute(described.number, values))
            return []
        reader = SqliRowReader(described.columns, self._codec)
        cursor = self._cursor(described, values, Fetching())
        contents: list[bytes] = []
        kept_bytes = 0
        while (answer := cursor.fetch()) is not None:
            # a row of no bytes may have 32,767 values
            kept_bytes += answer.kept_bytes + len(answer.rows) * len(described.columns) * VALUE_BYTES
            if kept_bytes > MOST_RESULT_BYTES:
                raise self._violated(f"{kept_bytes} bytes of rows for one query")
            contents += answer.rows
        return [reader.row(content) for content in contents]

    def _simple_object(
        self, described: Description, values: list[BindValue], most_bytes: int
    ) -> tuple[int | None, bytes | None] | None:
        """Request the value while the cursor is on its row: the descriptor belongs to that row."""
        serial, self._cursors = self._cursors, self._cursors + 1
        opening = requests.open_cursor(described.number, serial, values)
        found = self._ask([*opening, *requests.fetch(described)])
        if not found.rows:
            return None
        length, descriptor = simple_object_of(found.rows[0])
        if length is None or length > most_bytes:
            return length, None
        data = bytearray(length)
        size = self._dialect.descriptor_bytes
        asked = requests.fetch_simple_object(described.number, descriptor, size)
        answer = self._ask(asked, memoryview(data))
        return length, bytes(data) if answer.read_bytes == length else None

    def _cursor(
        self, described: Description, values: list[BindValue], fetching: Fetching
    ) -> SqliCursor:
        serial, self._cursors = self._cursors, self._cursors + 1

        def ask(request: Request, in_bulk: bool) -> SqliAnswer:
            return self._ask(request, in_bulk=in_bulk)

        return SqliCursor(ask, described, values, serial, fetching)

    def _release(self, number: int) -> None:
        """Free a statement; an error here must not hide an earlier one."""
        if self._wire.is_open:
            try:
                self._ask(requests.release(number))
            except OdbcFailure:
                if not self._wire.is_open:
                    raise

    def _ask(
        self, request: Request, target: memoryview | None = None, *, in_bulk: bool = False
    ) -> SqliAnswer:
        """Send a request and read its complete response, or close the connection."""
        try:
            self._wire.send(request)
            answer = self._reader.read(target, in_bulk=in_bulk)
        except BaseException:
            self._wire.hang_up()
            raise
        return require(answer, self._codec)

    def _value(self, argument: Argument) -> BindValue:
        if isinstance(argument, int):
            return check_integer(argument)
        # of a login that says DBDATE=Y4MD- this is what a date looks like
        text = argument if isinstance(argument, str) else argument.isoformat()
        return in_code_set(text, self._codec, "surrogateescape")

    def _next_buffer(self, size: int) -> memoryview:
        """Return the next buffer; another size gets a new buffer, and views keep the old one."""
        self._buffers.reverse()
        if len(self._buffers[0]) != size:
            self._buffers[0] = bytearray(size)
        return memoryview(self._buffers[0])

    def _violated(self, what: str) -> ProtocolViolation:
        self._wire.hang_up()
        return ProtocolViolation(
            f"The server sent {what}.", "Record the messages with --trace-wire FILE and report them."
        )

    def _say_goodbye(self) -> None:
        """End the session regularly; ignore a server that does not respond."""
        self._wire.wait_at_most(_GOODBYE_SECONDS)
        try:
            self._wire.send_alone(Message.SQ_EXIT.to_bytes(2))
            incoming = self._wire.incoming
            incoming.trace_message(name_of(incoming.u16()))
        except (OdbcFailure, InformixCdcError):
            pass  # it is gone, which is what is wanted
        finally:
            self._wire.hang_up()


def _warn_of_clear_text(settings: ConnectionSettings, *, is_loopback: bool) -> None:
    """Log once per server that the password was sent in clear text."""
    if settings.encryption != NO_ENCRYPTION or settings.authentication == TRUSTED or is_loopback:
        return
    with _telling:
        is_new = settings.address not in _warned_addresses
        _warned_addresses.add(settings.address)
    if is_new:
        PASSWORD_IN_CLEAR_TEXT.log(_log, address=settings.address)
