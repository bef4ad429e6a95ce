"""Blocks over ODBC: a driver writes columns into arrays, many rows a call.

Rule: a column is an array, and what a driver may write to lives as long as the statement that it is
bound to. A row that a driver could not deliver, and a value that it cut, end the block.

    short values only   SQLBindCol column by column, SQL_ATTR_ROW_ARRAY_SIZE rows a fetch
    a long one          a row a fetch, values by SQLGetData in the order of the columns

Sources: HCL's ODBC manual, "fetch array"; SQLGetData gives no row of an array (ODBC, SQLGetData).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Protocol

import numpy as np
import pyarrow as pa

from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption, InformixCdcError
from informix_capture_client.records import Integers
from informix_capture_client.row_fetch.base import BlockReader, FetchedBatch, RowTexts
from informix_capture_client.row_fetch.declared import require_each
from informix_capture_client.row_fetch.odbc_columns import (
    BoundColumn,
    CellBytes,
    bound_column,
    is_as_declared,
    long_values,
)
from informix_capture_client.transport import Argument, OdbcTransport
from informix_capture_client.transport.odbc import api as odbc
from informix_capture_client.values import BadValue, Column, bad_value

_MOST_ROWS = 4096  # of an array: what they need stays in the cache of a core
_MOST_LONG_ROWS = 512  # of values that come one by one: all are given the room of the longest
_MOST_BYTES = 8 << 20
_SLACK_BYTES = 8  # a driver that ends binary data with a NUL must not hurt
_DELIVERED = (odbc.ROW_SUCCESS, odbc.ROW_SUCCESS_WITH_INFO)


class OdbcBlocks(BlockReader):
    """A `BlockReader` over an ODBC connection.

    Args:
        transport: the connection, whose driver talks in the database's code set.
        rules: what columns become where there is a choice.
        table: the table's name, for error texts.

    Raises:
        BadOption: the driver talks in another code set: characters could be lost on the way.
    """

    def __init__(self, transport: OdbcTransport, rules: DecodeRules, table: str = "?") -> None:
        if transport.codec != rules.codec:
            raise BadOption(
                f"The ODBC driver uses {transport.codec}, but the database's code set is"
                f" {rules.codec}: block fetches require the same code set on both sides.",
                "Connect with the database's locale as client locale.",
            )
        self._transport = transport
        self._rules = rules
        self._table = table

    def abandon(self) -> None:
        """Do nothing: the effect of SQLCancel during a call is not documented for IBM's driver."""

    def _batches(
        self, statement: str, arguments: Sequence[Argument], columns: Sequence[Column], most: int
    ) -> Generator[FetchedBatch]:
        bound = [bound_column(column, self._table, self._rules) for column in columns]
        transport = self._transport
        with transport.door:
            query = transport.open_query()
            source = _source(query, bound, most)
        try:
            with transport.door:
                source.bind()
                query.execute(transport.in_its_words(statement), arguments)
                require_each(query.described(), columns, self._table, is_as_declared)
            while rows := self._next(source):
                yield self._batch(bound, source, rows), self._last(bound, source, rows)
        finally:
            self._free(query)

    def _next(self, source: _Source) -> int:
        with self._transport.door:
            return source.fetch()

    def _free(self, query: odbc.OdbcQuery) -> None:
        door = self._transport.door
        if not door.closed and not door.is_foreign:
            with suppress(InformixCdcError), door:
                self._transport.close_query(query)

    def _batch(self, bound: Sequence[BoundColumn], source: _Source, rows: int) -> pa.RecordBatch:
        arrays: list[pa.Array] = []
        for place, column in enumerate(bound):
            try:
                cells, lengths = source.column(place, rows)
                _refuse_cut(column, cells, lengths)
                arrays.append(column.read(cells, lengths))
            except BadValue as bad:
                where = f"row {bad.row} of a block"
                raise bad_value(self._table, column.name, where, bad) from None
        schema = pa.schema([(column.name, column.arrow_type) for column in bound])
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _last(self, bound: Sequence[BoundColumn], source: _Source, rows: int) -> Callable[[], RowTexts]:
        """Keep the last row, before a driver writes over it."""
        kept: list[bytes | None] = []
        for place, column in enumerate(bound):
            cells, lengths = source.column(place, rows)
            length = int(lengths[rows - 1])
            size = length if column.c_type == odbc.C_CHAR else column.room
            kept.append(None if length < 0 else cells[rows - 1, :size].tobytes())
        codec = self._rules.codec
        return lambda: tuple(
            None if raw is None else column.text(raw, codec)
            for column, raw in zip(bound, kept, strict=True)
        )


def _refuse_cut(column: BoundColumn, cells: CellBytes, lengths: Integers) -> None:
    room = cells.shape[1] if column.is_long else column.room - (column.c_type == odbc.C_CHAR)
    if column.c_type in (odbc.C_CHAR, odbc.C_BINARY) and (is_cut := lengths > room).any():
        row = int(np.flatnonzero(is_cut)[0])
        what = f"has {int(lengths[row])} bytes, but its type has {room}"
        raise BadValue(
            row,
            what,
            "Check whether the table was altered, and that dbLocale is the database's locale.",
        )


class _Source(Protocol):
    """Fetches rows into arrays."""

    def bind(self) -> None:
        """Tell the driver where to write."""

    def fetch(self) -> int:
        """Fetch the next rows, and return how many; none: there are no more."""
        ...

    def column(self, place: int, rows: int) -> tuple[CellBytes, Integers]:
        """Return the cells of a column, and their lengths, -1 of a NULL."""
        ...


def _source(query: odbc.OdbcQuery, columns: Sequence[BoundColumn], most: int) -> _Source:
    if any(column.is_long for column in columns):
        return _OneByOne(query, columns, most)
    return _Arrays(query, columns, most)


class _Arrays:
    """Columns as arrays, filled by one call for many rows."""

    def __init__(self, query: odbc.OdbcQuery, columns: Sequence[BoundColumn], most: int) -> None:
        width = sum(column.room + np.dtype(np.int64).itemsize for column in columns)
        self._rows = max(1, min(most, _MOST_ROWS, _MOST_BYTES // width))
        self._query = query
        self._columns = columns
        sizes = [self._rows * column.room + _SLACK_BYTES for column in columns]
        self._cells = [np.zeros(size, np.uint8) for size in sizes]
        self._lengths = [np.zeros(self._rows, np.int64) for _ in columns]
        self._status = np.zeros(self._rows, np.uint16)
        self._fetched = ctypes.c_size_t()
        for buffer in (*self._cells, *self._lengths, self._status, self._fetched):
            query.keep(buffer)

    def bind(self) -> None:
        """Tell the driver where to write."""
        for attribute, value in (
            (odbc.ATTR_ROW_BIND_TYPE, odbc.BIND_BY_COLUMN),
            (odbc.ATTR_ROW_ARRAY_SIZE, self._rows),
            (odbc.ATTR_ROW_STATUS_PTR, self._status.ctypes.data),
            (odbc.ATTR_ROWS_FETCHED_PTR, ctypes.addressof(self._fetched)),
        ):
            self._query.statement.call("SQLSetStmtAttr", attribute, value, 0)
        for place, column in enumerate(self._columns):
            data, lengths = self._cells[place].ctypes.data, self._lengths[place].ctypes.data
            self._query.statement.call(
                "SQLBindCol", place + 1, column.c_type, data, column.room, lengths
            )

    def fetch(self) -> int:
        """Fetch the next rows."""
        self._fetched.value = 0
        for lengths in self._lengths:
            lengths.fill(0)  # a driver that stores 4 bytes of one leaves the other four
        statement = self._query.statement
        if statement.call("SQLFetch") == odbc.NO_DATA:
            return 0
        rows = self._fetched.value & 0xFFFFFFFF
        if rows > self._rows or not np.isin(self._status[:rows], _DELIVERED).all():
            raise statement.failure()
        return rows

    def column(self, place: int, rows: int) -> tuple[CellBytes, Integers]:
        """Return what the driver has written."""
        room = self._columns[place].room
        cells = self._cells[place][: rows * room].reshape(rows, room)
        return cells, _lengths(self._lengths[place][:rows], cells)


def _lengths(indicators: Integers, cells: CellBytes) -> Integers:
    """Return lengths from what a driver may have filled with 4 bytes or with 8.

    Raises:
        BadValue: one is negative and does not mean NULL.
    """
    lengths = indicators.astype(np.int32).astype(np.int64)
    if (to_nul := lengths == odbc.NTS).any():
        ends = cells[to_nul] == 0
        lengths[to_nul] = np.where(ends.any(axis=1), ends.argmax(axis=1), cells.shape[1])
    if (unknown := lengths < odbc.NULL_DATA).any():
        row = int(np.flatnonzero(unknown)[0])
        raise BadValue(row, f"has the invalid length {int(lengths[row])}")
    return lengths


class _OneByOne:
    """A row a fetch, and each of its values by itself: for values that are too long for arrays."""

    def __init__(self, query: odbc.OdbcQuery, columns: Sequence[BoundColumn], most: int) -> None:
        self._query = query
        self._columns = columns
        self._rows = min(most, _MOST_LONG_ROWS)
        self._values: list[list[bytes | None]] = []

    def bind(self) -> None:
        """Nothing is bound."""

    def fetch(self) -> int:
        """Fetch rows until there are enough of them, or of their bytes."""
        self._values = [[] for _ in self._columns]
        size = rows = 0
        while rows < self._rows and size < _MOST_BYTES:
            if self._query.statement.call("SQLFetch") == odbc.NO_DATA:
                break
            rows += 1
            for place, column in enumerate(self._columns, 1):
                value = self._query.value(place, column.c_type)
                self._values[place - 1].append(value)
                size += len(value or b"")
        return rows

    def column(self, place: int, rows: int) -> tuple[CellBytes, Integers]:
        """Return the values of a column, as if they had been bound."""
        column = self._columns[place]
        cells, lengths = long_values(self._values[place])
        if column.is_long or cells.shape[1] >= column.room:
            return cells, lengths
        wider = np.zeros((rows, column.room), np.uint8)
        wider[:, : cells.shape[1]] = cells
        return wider, lengths
