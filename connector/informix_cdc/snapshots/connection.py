"""The two connections with which a table is read for a snapshot.

Rule: one reads, the other queries the server and advances the log, so that queries work while a table
is locked for reading. Only this module sends their statements.

    reading   SET ISOLATION TO COMMITTED READ LAST COMMITTED: it blocks no writer, and returns no row
              that may be rolled back (Guide to SQL: Syntax, "SET ISOLATION")
    asking    systrans, the time, the log's end; the marker
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from informix_capture_client.catalog import UNFLUSHED_LOG, Catalog
from informix_capture_client.errors import AccessRefused, BadOption, ServerRefused
from informix_capture_client.failpoints import failpoint
from informix_capture_client.incremental_snapshot import Barrier, Bounds, ChunkQuery, WholeTableQuery
from informix_capture_client.positions import page_after
from informix_capture_client.row_fetch import block_reader, key_argument
from informix_capture_client.shapes import table_schema
from informix_capture_client.sql_names import column_of, delimited
from informix_capture_client.statements import (
    BEGIN_WORK,
    COMMIT_WORK,
    DROP_MARKER,
    LAST_COMMITTED,
    LOCK_WAIT,
    MAKE_MARKER,
)
from informix_capture_client.transport import Argument, Transport
from informix_cdc.options import ConnectionOptions, SnapshotOptions
from informix_cdc.server import (
    SourceTables,
    open_connection,
    open_snapshot_connection,
)
from informix_cdc.snapshots.plan import PlannedTable

logger = logging.getLogger("informix_cdc.connector.snapshots")  # a logger name, not a module

ROWS_A_BLOCK = 4096
# Each commit ends a page of the log, or fills a part of it: so many are behind the next page.
_MOST_MARKERS = 8
_MOST_LOCKED_BYTES = (
    1 << 30
)  # maximum size of a table read in one go, because it is one chunk in memory


@dataclass(frozen=True, slots=True)
class RowsRead:
    """The rows of a chunk.

    Attributes:
        last_key: key of the last row as fetched; None if there are no rows.
        is_last: whether the table has no more rows after them.
    """

    rows: pa.Table
    last_key: Bounds | None
    is_last: bool


class SnapshotConnection:
    """Reads one table, and queries the server on a second connection.

    Args:
        connection: with the password or its location.
        source: determines how rows are decoded.
        planned: the table.
        chunk_bytes: size at which a chunk ends.
    """

    def __init__(
        self,
        connection: ConnectionOptions,
        source: SourceTables,
        planned: PlannedTable,
        chunk_bytes: int = SnapshotOptions().chunk_bytes,
    ) -> None:
        self._connection, self._source, self._planned = connection, source, planned
        self._chunk_bytes = chunk_bytes
        is_native = connection.transport == "sqli"
        self._commits = source.is_ansi and is_native
        # A driver must not commit each statement of an ANSI database, where no statement begins a
        # transaction: the next marker would be in the same one, and begin none that the stream shows.
        self._asks_anew = source.is_buffered or (source.is_ansi and not is_native)
        # markers that the user has no right to write, by their last statement: not tried again
        self._no_right: dict[str, AccessRefused] = {}
        self._is_open = False
        with contextlib.ExitStack() as on_error:
            self._reading = open_snapshot_connection(
                connection, source.db_locale, sorts=planned.key is not None
            )
            on_error.callback(self._reading.close)
            for statement in (LAST_COMMITTED, LOCK_WAIT):
                self._reading.rows(statement)
            self._asking = self._connected_to_ask()
            on_error.pop_all()
        self._catalog = Catalog(self._asking, connection.database)
        name = str(planned.table.name)
        self._blocks = block_reader(self._reading, source.rules, name)
        self._schema = table_schema(planned.table, source.rules)

    def close(self) -> None:
        """Release both connections, and all their locks."""
        self._reading.close()
        self._asking.close()

    def abandon(self) -> None:
        """Cancel the current read from another thread, if the transport can; the read then fails."""
        self._blocks.abandon()

    # queries

    def open_transactions(self) -> frozenset[int]:
        """Return the ids of all open transactions."""
        return self._catalog.open_transactions()

    def holders(self) -> str:
        """Return which sessions hold locks on the table, and its lock mode, as text."""
        sessions = self._catalog.lock_holders(self._planned.table.name)
        who = f"; sessions {', '.join(map(str, sessions))} hold locks on it" if sessions else ""
        page = "; it has page locks (LOCK MODE PAGE)" if self._planned.locks.by_page else ""
        return who + page

    def clock(self) -> int:
        """Return the server's time in whole seconds since 1970."""
        return self._catalog.clock()

    def barrier(self) -> Barrier:
        """Return a barrier that every later record passes."""
        return Barrier(self._catalog.clock(), self._log_end())

    def near_barrier(self) -> Barrier | None:
        """Write a marker; return a barrier at the log's end behind it, or None if that is not known.

        The COMMIT in an unbuffered database flushes the log buffer, which all databases share
        (docs/assumptions.md, 109). So all that was committed before is in pages that `syslogs` counts.
        """
        if self._asks_anew:
            return None
        clock = self._catalog.clock()
        if self.write_marker() is not None:
            return None
        return Barrier(clock, page_after(self._catalog.current_position()) - 1)

    def pass_barrier(self, near: Barrier) -> None:
        """Write markers until one of them is behind a near barrier, or a few have been written."""
        for _ in range(_MOST_MARKERS):
            is_beyond = self._catalog.current_position() > (near.log_end or 0)
            if self.write_marker() is not None or is_beyond:
                return

    def _log_end(self) -> int:
        """Return a position that the log, including its buffer, has not reached."""
        return self._catalog.current_position() + UNFLUSHED_LOG

    # reading

    def chunk(
        self, query: ChunkQuery, after: Bounds | None, most_rows: int, limit: Bounds = ()
    ) -> RowsRead:
        """Read the rows after a key, up to a number, and up to about a number of bytes."""
        statement = query.behind(most_rows, len(after or ()))
        arguments = _arguments(query, after, limit)
        most_bytes = self._chunk_bytes
        rows, size_bytes, last_row = self._fetched(statement, arguments, most_bytes)
        key = _of_key(query, last_row) if last_row else None
        is_last = len(rows) < most_rows and size_bytes < most_bytes
        return RowsRead(rows, key, is_last)

    def key_behind(
        self, query: ChunkQuery, after: Bounds | None, rows: int, limit: Bounds = ()
    ) -> Bounds | None:
        """Return the key of the last one of the next rows; None if there are fewer rows."""
        statement = query.row_behind(rows, len(after or ()))
        _, _, row = self._fetched(statement, _arguments(query, after, limit), 1 << 62)
        return _of_key(query, row) if row else None

    def last_before(self, query: ChunkQuery, value: str) -> Bounds:
        """Return the highest value of the first key column below a value; empty if there is none."""
        column = query.key.columns[0]
        places = [each.name for each in self._planned.table.columns].index(column.name)
        columns = [self._planned.table.columns[places]]
        statement, argument = query.last_before(), key_argument(column.type_text, value)
        with contextlib.closing(self._blocks.blocks(statement, [argument], columns, 1)) as blocks:
            found = [blocks.last_row[0] for _ in blocks]
        return tuple(text for text in found if text is not None)

    def _fetched(
        self, statement: str, arguments: Sequence[Argument], most_bytes: int
    ) -> tuple[pa.Table, int, Sequence[str | None]]:
        """Return rows, their size, and the last row as fetched; stop fetching at a size."""
        read, size_bytes = list[pa.RecordBatch](), 0
        columns = self._planned.table.columns
        with contextlib.closing(
            self._blocks.blocks(statement, arguments, columns, ROWS_A_BLOCK)
        ) as blocks:
            for block in blocks:
                read.append(block)
                size_bytes += block.nbytes
                if size_bytes >= most_bytes:
                    break
            last_row = blocks.last_row if read else ()
        rows = pa.Table.from_batches(read, read[0].schema if read else self._schema)
        return rows, size_bytes, last_row

    def lock(self, query: WholeTableQuery) -> None:
        """Lock the table in share mode: its writers wait until `release`."""
        if not (
            self._source.is_ansi or self._is_open
        ):  # an ANSI database begins transactions implicitly
            self._reading.rows(BEGIN_WORK)
            self._is_open = True
        self._reading.rows(query.lock)

    def require_lock(self) -> None:
        """Fail if the transaction that has locked the table is over.

        Raises:
            ConnectionLost: the server has ended the session, and with it the lock.
        """
        Catalog(self._reading, self._connection.database).clock()

    def whole(self, query: WholeTableQuery) -> RowsRead:
        """Read all rows of the locked table.

        Raises:
            BadOption: they do not fit into memory.
        """
        rows, size_bytes, _ = self._fetched(query.rows, (), _MOST_LOCKED_BYTES)
        if size_bytes >= _MOST_LOCKED_BYTES:
            raise BadOption(
                f"table {query.table.name} has no key and at least {_MOST_LOCKED_BYTES >> 20}"
                " MiB of rows: it does not fit into memory when it is read in one go.",
                "Set a key for it with option snapshotKey, or remove it from option initialSnapshot.",
                option="initialSnapshot",
            )
        return RowsRead(rows, None, is_last=True)

    def release(self) -> None:
        """Let the writers of a locked table continue."""
        self._reading.rows(COMMIT_WORK)

    # advancing the log

    def write_marker(self) -> ServerRefused | AccessRefused | None:
        """Write something into the log that every session receives, if allowed.

        Returns: Why a part of it could not be written, this time or, for lack of a right, permanently;
        None if all was written.

        Raises:
            InformixCdcError: the server does not answer any more.
        """
        failpoint("snapshot.before_marker")
        refusals = [refusal for marker in self._markers() if (refusal := self._written(marker))]
        if self._asks_anew or any(isinstance(each, ServerRefused) for each in refusals):
            self._ask_anew()  # a partial marker would make all later ones fail
        return refusals[0] if refusals else None

    def _written(self, marker: Sequence[str]) -> ServerRefused | AccessRefused | None:
        """Write one marker; return why it could not be written."""
        if known := self._no_right.get(marker[-1]):
            return known
        try:
            for statement in marker:
                self._asking.rows(statement)
            if self._commits:
                self._asking.rows(COMMIT_WORK)
        except AccessRefused as reason:
            if reason.is_temporary:
                raise
            self._no_right[marker[-1]] = reason
            return reason
        except ServerRefused as reason:  # its dbspace is full, or its catalog locked, for a moment
            return reason
        return None

    def _connected_to_ask(self) -> Transport:
        """Connect again; wait for a row of the heartbeat table that others have locked."""
        with contextlib.ExitStack() as on_error:
            transport = open_connection(self._connection, self._connection.database)
            on_error.callback(transport.close)
            transport.rows(LOCK_WAIT)
            on_error.pop_all()
        return transport

    def _ask_anew(self) -> None:
        """Close the connection that has written the marker, with its temporary table and transaction.

        That flushes a buffered log (Guide to SQL: Syntax, "CREATE DATABASE", WITH BUFFERED LOG).
        Otherwise a marker would not be readable before a checkpoint of the server, minutes later if it
        is idle.
        """
        previous, self._asking = self._asking, self._connected_to_ask()
        previous.close()
        self._catalog = Catalog(self._asking, self._connection.database)

    def _markers(self) -> Iterator[tuple[str, ...]]:
        """Yield the statements of each marker: a temporary table, and the heartbeat table if it is set.

        The former also ends a page of the log. A server that sends a session only transactions of
        captured tables sends the latter.
        """
        yield MAKE_MARKER, DROP_MARKER
        if (heartbeat := self._source.heartbeat) is not None:
            name = heartbeat.columns[0].name
            yield (f"UPDATE {heartbeat.name.aliased} SET {delimited(name)} = {column_of(name)}",)


def _arguments(query: ChunkQuery, after: Bounds | None, limit: Bounds) -> list[Argument]:
    columns = [column.type_text for column in query.key.columns]
    bounds, highest = (list(map(key_argument, columns, texts)) for texts in (after or (), limit))
    return query.arguments(bounds, highest)


def _of_key(query: ChunkQuery, row: Sequence[str | None]) -> Bounds:
    return tuple(text for place in query.key_places if (text := row[place]) is not None)
