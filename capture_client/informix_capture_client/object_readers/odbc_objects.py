"""Read smart large objects over ODBC, with the driver's functions.

Rule: bound as the ODBC Driver Programmer's Manual has it ("Retrieving smart-large-object data", and its
sample loselect): a structure whose size the driver reports is passed through and never interpreted.

    {call ifx_lo_open(?, ?, ?)}     descriptor out, locator in, flags in
    {call ifx_lo_stat(?, ?)}        descriptor in, status in and out
    {call ifx_lo_stat_size(?, ?)}   status in, size out
    {call ifx_lo_close(?)}          descriptor in
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from informix_capture_client.object_readers.base import (
    FLAGS,
    LOCATOR_BYTES,
    ObjectReader,
    ObjectStatus,
    SimpleObject,
)
from informix_capture_client.transport import Argument, OdbcTransport
from informix_capture_client.transport.odbc import api as odbc

_INPUT_OUTPUT = 2  # SQL_PARAM_INPUT_OUTPUT
_UDT_FIXED = -100  # SQL_INFX_UDT_FIXED, infxcli.h
_STAT_LENGTH = 2252  # SQL_INFX_LO_STAT_LENGTH

# way, C type, SQL type, the buffer, its size
_Bound = tuple[int, int, int, Any, int]


class OdbcObjects(ObjectReader):
    """Reads objects through a driver."""

    def __init__(self, transport: OdbcTransport) -> None:
        self._transport = transport
        self._status_bytes = transport.info_number(_STAT_LENGTH)

    def locators(self, statement: str, arguments: Sequence[Argument]) -> list[bytes | None]:
        """Return the locators that a SELECT finds."""
        found: list[bytes | None] = []
        with self._transport.door:
            query = self._transport.open_query()
            try:
                query.execute(self._transport.in_its_words(statement), arguments)
                while query.statement.call("SQLFetch") != odbc.NO_DATA:
                    found.append(query.value(1, odbc.C_BINARY))
            finally:
                self._transport.close_query(query)
        return found

    def simple_object(
        self, statement: str, arguments: Sequence[Argument], most_bytes: int
    ) -> SimpleObject | None:
        """Return a TEXT or BYTE: first its length, then its bytes, which drivers do not convert."""
        with self._transport.door:
            query = self._transport.open_query()
            try:
                query.execute(self._transport.in_its_words(statement), arguments)
                if query.statement.call("SQLFetch") == odbc.NO_DATA:
                    return None
                status_bytes = query.value(1)
                size = None if status_bytes is None else int(status_bytes)
                if size is None or size > most_bytes:
                    return SimpleObject(size)
                return SimpleObject(size, query.value(2, odbc.C_BINARY))
            finally:
                self._transport.close_query(query)

    def open(self, locator: bytes) -> int:
        """Open an object; see `ObjectReader`."""
        found, flags = ctypes.c_int32(-1), ctypes.c_int32(FLAGS)
        place = ctypes.create_string_buffer(locator, LOCATOR_BYTES)
        self._call(
            "{call ifx_lo_open(?, ?, ?)}",
            [
                (odbc.PARAM_OUTPUT, odbc.C_LONG, odbc.SQL_INTEGER, found, 4),
                (odbc.PARAM_INPUT, odbc.C_BINARY, _UDT_FIXED, place, LOCATOR_BYTES),
                (odbc.PARAM_INPUT, odbc.C_LONG, odbc.SQL_INTEGER, flags, 4),
            ],
        )
        return found.value

    def status(self, descriptor: int) -> ObjectStatus:
        """Return its size, and the rest."""
        of, size = ctypes.c_int32(descriptor), ctypes.c_int64(0)
        status = ctypes.create_string_buffer(self._status_bytes)
        self._call(
            "{call ifx_lo_stat(?, ?)}",
            [
                (odbc.PARAM_INPUT, odbc.C_LONG, odbc.SQL_INTEGER, of, 4),
                (_INPUT_OUTPUT, odbc.C_BINARY, _UDT_FIXED, status, self._status_bytes),
            ],
        )
        self._call(
            "{call ifx_lo_stat_size(?, ?)}",
            [
                (odbc.PARAM_INPUT, odbc.C_BINARY, _UDT_FIXED, status, self._status_bytes),
                (odbc.PARAM_OUTPUT, odbc.C_SBIGINT, odbc.SQL_BIGINT, size, 8),
            ],
        )
        return ObjectStatus(size.value, status.raw)

    def read(self, descriptor: int, most_bytes: int) -> memoryview:
        """Return the next bytes."""
        return self._transport.lo_read(descriptor, most_bytes)

    def close(self, descriptor: int) -> None:
        """Close it."""
        of = ctypes.c_int32(descriptor)
        self._call("{call ifx_lo_close(?)}", [(odbc.PARAM_INPUT, odbc.C_LONG, odbc.SQL_INTEGER, of, 4)])

    def _call(self, text: str, parameters: Sequence[_Bound]) -> None:
        """Call a function; bound buffers are kept until the statement is freed."""
        with self._transport.door:
            query = self._transport.open_query()
            try:
                for number, (way, c_type, sql_type, buffer, size) in enumerate(parameters, 1):
                    indicator = ctypes.c_ssize_t(size)
                    query.keep(buffer)
                    query.keep(indicator)
                    query.statement.call(
                        "SQLBindParameter",
                        number,
                        way,
                        c_type,
                        sql_type,
                        size if sql_type == _UDT_FIXED else 0,
                        0,
                        ctypes.addressof(buffer),
                        size,
                        ctypes.addressof(indicator),
                    )
                query.statement.call("SQLExecDirect", text.encode("ascii"), len(text))
            finally:
                self._transport.close_query(query)
