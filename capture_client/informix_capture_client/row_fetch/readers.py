"""The block reader of a connection, by the transport that it is, and how to connect for one.

Rule: one table; a transport that is not in it reads no blocks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace

from informix_capture_client.choices import DecodeRules
from informix_capture_client.errors import BadOption
from informix_capture_client.row_fetch.base import SELECT_SECONDS, BlockReader, FetchedBatch, RowTexts
from informix_capture_client.row_fetch.declared import require_declared
from informix_capture_client.row_fetch.odbc_blocks import OdbcBlocks
from informix_capture_client.row_fetch.tuple_columns import TupleDecoder
from informix_capture_client.transport import (
    Argument,
    ConnectionSettings,
    OdbcTransport,
    SqliTransport,
    Transport,
    read_keywords,
)
from informix_capture_client.transport.sqli import SqliRowReader, Tuples
from informix_capture_client.values import Column

# Of one answer. IBM's driver asks for 4,096 unless FET_BUF_SIZE says more, which may be 2 GB.
ROOM_BYTES = 256 * 1024
_MOST_BYTES = 16 << 20  # of a block: of wide rows fewer are decoded at once


class SqliBlocks(BlockReader):
    """A `BlockReader` over a native connection.

    Args:
        transport: the connection; between two blocks it may be used for other things.
        rules: what columns become where there is a choice.
        table: the table's name, for error texts.
    """

    def __init__(self, transport: SqliTransport, rules: DecodeRules, table: str = "?") -> None:
        self._transport = transport
        self._rules = rules
        self._table = table

    def _batches(
        self, statement: str, arguments: Sequence[Argument], columns: Sequence[Column], most: int
    ) -> Generator[FetchedBatch]:
        decoder = TupleDecoder(columns, self._table, self._rules)
        # What is prepared is answered at once: a connection that is dead shows here.
        with contextlib.closing(
            self._transport.open_tuples(statement, arguments, ROOM_BYTES)
        ) as cursor:
            require_declared(cursor.columns, columns, self._table)
            reader = SqliRowReader(cursor.columns, self._rules.codec, "surrogateescape")
            with (
                self._transport.waiting_at_most(SELECT_SECONDS),
                contextlib.closing(cursor.fetched()) as rows,
            ):
                for tuples in _in_blocks(rows, most):
                    yield decoder.decode(tuples), _last(reader, tuples[-1])

    def abandon(self) -> None:
        """End the connection under a query: its thread gets `ConnectionLost`, and the server stops."""
        self._transport.abandon()


def _last(reader: SqliRowReader, tuples: Tuples) -> Callable[[], RowTexts]:
    begin, length = int(tuples.starts[-1]), int(tuples.lengths[-1])
    row = tuples.data[begin : begin + length]  # not the block, which may be gone by then
    return lambda: reader.row(row)


def _in_blocks(fetched: Iterator[Tuples], most: int) -> Iterator[list[Tuples]]:
    """Join runs of rows up to a block, and cut the last at its border."""
    block, rows, size = list[Tuples](), 0, 0
    for run in fetched:
        while len(run):
            part, run = run.cut(most - rows)
            block.append(part)
            rows, size = rows + len(part), size + len(part.data)
            if rows == most or size >= _MOST_BYTES:
                yield block
                block, rows, size = [], 0, 0
    if block:
        yield block


_FOR_BLOCKS = {"LEAVE_TRAILING_SPACES": "1", "FETCHBUFFERSIZE": "262144"}


def block_reader(transport: Transport, rules: DecodeRules, table: str = "?") -> BlockReader:
    """Return what reads blocks over a connection.

    Args:
        transport: a native connection, or one over ODBC.
        rules: what columns become where there is a choice, the database's code set included.
        table: the table's name, for error texts.

    Raises:
        BadOption: it is neither, or an ODBC driver that talks in another code set.
    """
    if isinstance(transport, SqliTransport):
        return SqliBlocks(transport, rules, table)
    if isinstance(transport, OdbcTransport):
        return OdbcBlocks(transport, rules, table)
    raise BadOption(
        f"{type(transport).__name__} does not support block fetches.",
        "Use transport=sqli or transport=odbc.",
    )


def in_database_code_set(settings: ConnectionSettings) -> ConnectionSettings:
    """Return how to connect for blocks: a driver neither converts characters nor cuts blanks.

    Natively it changes nothing. Without a database locale the driver's client locale stands.
    LEAVE_TRAILING_SPACES keeps the blanks at the end of a VARCHAR, which a driver may cut by default,
    and FETCHBUFFERSIZE is what a driver asks a server for at once (HCL's ODBC manual, keywords); a
    keyword of the user's own stands.
    """
    taken = {keyword.name.upper() for keyword in read_keywords(settings.extra)}
    added = [f"{name}={value}" for name, value in _FOR_BLOCKS.items() if name not in taken]
    return replace(
        settings,
        client_locale=settings.db_locale or settings.client_locale,
        extra=";".join([part for part in (settings.extra.strip("; "), *added) if part]),
    )
