"""A transport over ODBC, with the Informix driver.

Rule: one connection, one process. Failures are translated by `Door`, and the buffers that the driver
writes to are kept exactly as long as the statement they are bound to.

Binding of `{call ifx_lo_read(?, ?)}`, from the ODBC Driver Programmer's Manual ("ifx_lo_read") and
its loselect sample:

    1  INPUT   SQL_C_LONG    SQL_INTEGER  session id
    2  OUTPUT  SQL_C_BINARY  SQL_CHAR     buffer; its length is the number of bytes to read

The sample uses SQL_C_CHAR for the buffer; binary keeps NULs and does not convert code sets.
"""

from __future__ import annotations

import ctypes
import logging
import math
import sys
import threading

from informix_capture_client.log_events import CONNECTION_ABANDONED
from informix_capture_client.statements import LO_READ
from informix_capture_client.transport.base import (
    Argument,
    ConnectionSettings,
    Row,
    check_read,
    single_integer,
)
from informix_capture_client.transport.errors import Diagnostic, Door, OdbcFailure
from informix_capture_client.transport.odbc import api as odbc
from informix_capture_client.transport.odbc.connection_strings import (
    codec_of_client,
    connection_string,
    encode,
)
from informix_capture_client.transport.odbc.library import (
    DriverInfo,
    is_driver_manager,
    load_driver,
    read_driver_info,
)

# infxcli.h. With LO_AUTOMATIC on, "the application cannot use the ifx_lo functions" (manual).
_ATTR_LO_AUTOMATIC = 2262
_ATTR_RECEIVE_TIMEOUT = 2282
_IS_INTEGER = -6

_CLOSE_SECONDS = 5.0
_log = logging.getLogger(__name__)

_SLACK_BYTES = 8  # a driver that ends binary data with a NUL must not hurt


class OdbcTransport:
    """A `Transport` over the Informix ODBC driver.

    Args:
        settings: `driver` names the library; `extra` may contain further connection attributes.
        receive_timeout_seconds: the driver's timeout for a silent server; must exceed the
            session's own timeout. None leaves the driver's default.

    Raises:
        AccessRefused, BadOption, ConnectionLost: the connection failed.
    """

    def __init__(
        self, settings: ConnectionSettings, receive_timeout_seconds: float | None = None
    ) -> None:
        text = connection_string(settings)
        self._codec = codec_of_client(settings.client_locale)
        self._dialect = settings.dialect
        self._door = Door(settings)
        self._driver = settings.driver
        self._reads: _AlternatingReads | None = None
        self._queries: list[odbc.OdbcQuery] = []
        with self._door:
            self._api = _load(settings, self._codec)
            self._environment = self._api.open_handle(odbc.ENVIRONMENT)
            self._environment.call("SQLSetEnvAttr", odbc.ATTR_ODBC_VERSION, odbc.ODBC_3, 0)
            self._connection = self._api.open_handle(odbc.CONNECTION, self._environment)
            self._connect(encode(text, self._codec), settings)
        self._door.connected = True
        if not is_driver_manager(settings.driver):
            self._set_vendor_attributes(receive_timeout_seconds)

    def call(self, statement: str, *arguments: Argument) -> int:
        """Execute a function and return its single integer result."""
        return single_integer(self.rows(statement, *arguments))

    def rows(self, statement: str, *arguments: Argument) -> list[Row]:
        """Run a query and return all its rows, with every value as text and NULL as None."""
        with self._door:
            query = self.open_query()
            try:
                query.execute(self._dialect.statement(statement), arguments)
                return list(query.rows())
            finally:
                self.close_query(query)

    @property
    def door(self) -> Door:
        """The guard of every call on the connection, including calls on an open query."""
        return self._door

    @property
    def codec(self) -> str:
        """The Python codec of the driver's client code set."""
        return self._codec

    def open_query(self) -> odbc.OdbcQuery:
        """Open a statement, within the door."""
        query = odbc.OdbcQuery(self._api.open_handle(odbc.STATEMENT, self._connection), self._codec)
        self._queries.append(query)
        return query

    def close_query(self, query: odbc.OdbcQuery) -> None:
        """Free a statement, within the door, unless closing the connection has freed it."""
        if query in self._queries:
            self._queries.remove(query)
            query.close()

    def in_its_words(self, statement: str) -> str:
        """Return a statement in the dialect of the server's product."""
        return self._dialect.statement(statement)

    def lo_read(self, session_id: int, max_bytes: int) -> memoryview:
        """Return the next bytes of a capture session; valid until the call after the next."""
        with self._door:
            reads = self._reads
            if reads is None or reads.key != (session_id, max_bytes):
                reads = self._bind_reads(session_id, max_bytes)
            return reads.next()

    def info_number(self, what: int) -> int:
        """Return a 16-bit value of SQLGetInfo."""
        found, length = ctypes.create_string_buffer(8), ctypes.c_short()
        with self._door:
            self._connection.call("SQLGetInfo", what, found, 2, ctypes.byref(length))
        return int.from_bytes(found.raw[:2], sys.byteorder)

    def driver_info(self) -> DriverInfo | None:
        """Return the versions of driver and server; None through a driver manager.

        unixODBC would use the wide functions of a driver that has them, see `api`.
        """
        if is_driver_manager(self._driver):
            return None
        with self._door:
            return read_driver_info(self._connection, self._codec)

    def close(self) -> None:
        """Release the connection. Calling it twice is harmless."""
        if self._door.closed or self._door.is_foreign:
            return  # a forked child may not say goodbye on its parent's connection
        # A driver may wait for a server that does not answer, in another thread's call or in its own
        # end, and ODBC has no deadline for either. A daemon keeps no process from ending.
        has_ended = False
        if self._door.enter_to_close(_CLOSE_SECONDS):
            was_closed, self._door.closed = self._door.closed, True
            ending = threading.Thread(target=self._end, daemon=True)
            if not was_closed:
                ending.start()
                ending.join(_CLOSE_SECONDS)
            self._door.leave()
            has_ended = not ending.is_alive()
        self._door.closed = True
        if not has_ended:
            CONNECTION_ABANDONED.log(_log, timeout_seconds=_CLOSE_SECONDS)

    def _end(self) -> None:
        self._drop_reads()
        for query in list(self._queries):
            self.close_query(query)
        self._connection.attempt("SQLDisconnect")
        self._free()

    def _connect(self, text: bytes, settings: ConnectionSettings) -> None:
        seconds = max(1, math.ceil(settings.connect_timeout_seconds))
        self._attempt_attribute(odbc.ATTR_LOGIN_TIMEOUT, seconds)
        self._attempt_attribute(odbc.ATTR_AUTOCOMMIT, odbc.AUTOCOMMIT_ON)
        try:
            self._connection.call("SQLDriverConnect", None, text, len(text), None, 0, None, 0)
        except OdbcFailure:
            self._free()
            raise

    def _attempt_attribute(self, attribute: int, value: int) -> None:
        self._connection.attempt("SQLSetConnectAttr", attribute, value, _IS_INTEGER)

    def _set_vendor_attributes(self, receive_timeout_seconds: float | None) -> None:
        """Set attributes of the Informix driver after connecting; failures are ignored.

        Not through a driver manager: for each failure unixODBC would fetch the driver's wide
        diagnostics, see `api`. The unit is assumed to be seconds, as for the driver's other timeouts;
        no public page documents it for this one.
        """
        self._attempt_attribute(_ATTR_LO_AUTOMATIC, 0)
        if receive_timeout_seconds is not None:
            self._attempt_attribute(_ATTR_RECEIVE_TIMEOUT, max(1, math.ceil(receive_timeout_seconds)))

    def _bind_reads(self, session_id: int, max_bytes: int) -> _AlternatingReads:
        check_read(session_id, max_bytes)
        self._drop_reads()
        pair = [self._api.open_handle(odbc.STATEMENT, self._connection) for _ in range(2)]
        self._reads = _AlternatingReads(pair, session_id, max_bytes)
        return self._reads

    def _drop_reads(self) -> None:
        if self._reads is not None:
            self._reads.close()
            self._reads = None

    def _free(self) -> None:
        self._connection.free()
        self._environment.free()


def _load(settings: ConnectionSettings, codec: str) -> odbc.OdbcApi:
    _, library = load_driver(settings)
    return odbc.OdbcApi(library, lambda raw: raw.decode(codec, "replace"))


class _AlternatingReads:
    """`ifx_lo_read` for one session and size, with two alternating buffers.

    Each buffer is bound to a separate statement once, which is executed for every read. SQLExecDirect
    is used instead of SQLPrepare with SQLExecute: the manual's sample does so, and no public example
    prepares it.
    """

    def __init__(self, statements: list[odbc.Handle], session_id: int, max_bytes: int) -> None:
        self.key = (session_id, max_bytes)
        self._reads = [_LoRead(statement, session_id, max_bytes) for statement in statements]

    def next(self) -> memoryview:
        """Read into the next buffer."""
        self._reads.reverse()
        return self._reads[0].execute()

    def close(self) -> None:
        """Free both statements. Returned views keep their buffers alive."""
        for read in self._reads:
            read.close()


class _LoRead:
    """A statement of `ifx_lo_read` with its buffer."""

    def __init__(self, statement: odbc.Handle, session_id: int, max_bytes: int) -> None:
        self._statement = statement
        self._text = LO_READ.encode("ascii")
        self._max_bytes = max_bytes
        self._session_id = ctypes.c_int32(session_id)
        self._session_length = ctypes.c_ssize_t(0)
        self._buffer = ctypes.create_string_buffer(max_bytes + _SLACK_BYTES)
        self._length = ctypes.c_ssize_t(0)
        self._view = memoryview(self._buffer).cast("B").toreadonly()
        self._bind()

    def _bind(self) -> None:
        session, session_length = self._session_id, self._session_length
        buffer, length, size = self._buffer, self._length, self._max_bytes
        parameters = (
            (1, odbc.PARAM_INPUT, odbc.C_LONG, odbc.SQL_INTEGER, 0, session, 4, session_length),
            (2, odbc.PARAM_OUTPUT, odbc.C_BINARY, odbc.SQL_CHAR, size, buffer, size, length),
        )
        for number, way, c_type, sql_type, column_size, value, room, indicator in parameters:
            self._statement.call(
                "SQLBindParameter",
                number,
                way,
                c_type,
                sql_type,
                column_size,
                0,
                ctypes.addressof(value),
                room,
                ctypes.addressof(indicator),
            )

    def execute(self) -> memoryview:
        """Read once."""
        self._length.value = 0
        self._statement.attempt("SQLFreeStmt", odbc.CLOSE_CURSOR)
        self._statement.call("SQLExecDirect", self._text, len(self._text))
        count = odbc.low_32_bits(self._length)
        if count < 0:
            raise OdbcFailure([Diagnostic("HY000", count, "ifx_lo_read returned a negative length")])
        # with SQL_SUCCESS_WITH_INFO the length is what is available, not what was read
        return self._view[: min(count, self._max_bytes)]

    def close(self) -> None:
        """Free the statement."""
        self._statement.free()
