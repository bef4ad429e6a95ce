"""Open a capture session where a stream begins or continues.

Rule: every request that must precede the first byte is made here, in the order that loses nothing
(docs/design.md, section 5).

    first start   full row logging on -> position S -> transactions open now -> capture from S
    in the past   full row logging on -> read from S for transactions older than S -> again from S
    resume        same source? full row logging still on? -> capture from the restart position
    recovery      like a start in the past, from where data was lost
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from informix_capture_client.catalog import Catalog, Table, require_in_log, unqualified
from informix_capture_client.errors import BadOption, DataLoss, ServerRefused
from informix_capture_client.log_events import HIDDEN_COLUMNS_OMITTED, ROW_LOGGING_SWITCHED_ON
from informix_capture_client.positions import (
    UNKNOWN_END,
    LogEnd,
    Position,
    log_number,
    page_after,
    parse,
    show,
)
from informix_capture_client.session import CapturedTable, CaptureSession, SessionSettings
from informix_capture_client.shell_commands import command, command_for_log, table_argument
from informix_capture_client.stream import (
    Begun,
    Creation,
    PreviousTables,
    transactions_older_than_start,
)
from informix_capture_client.transactions import (
    AssemblyCounters,
    MemoryLimit,
    TransactionAssembler,
)
from informix_capture_client.transport import Transport
from informix_cdc.capture.guard import row_logging_off
from informix_cdc.capture.recovery import LostStream
from informix_cdc.options import SourceOptions, connection_arguments
from informix_cdc.server import (
    SourceTables,
    open_capture_connection,
    open_catalog,
    require_capturing_server,
)
from informix_cdc.table_changes import Joining, Switched
from informix_checkpoints.spool import SpillFiles

logger = logging.getLogger("informix_cdc.connector.capture_start")  # a logger name, not a module

_NEAR_BYTES = 16 << 20  # maximum log that is read again to verify that it is the same


_MOST_NAMED = 3  # in the event about several tables


def log_switches(options: SourceOptions, tables: Sequence[Table]) -> None:
    """Log that full row logging of tables was switched on, and how to undo that."""
    connection = connection_arguments(options)
    if len(tables) > 1:
        shown = ", ".join(str(table.name) for table in tables[:_MOST_NAMED])
        if (more := len(tables) - _MOST_NAMED) > 0:
            shown += f" and {more} more"
        words = ("status", *connection, "--row-logging")
        ROW_LOGGING_SWITCHED_ON.log(logger, table=shown, remedy=command_for_log(*words))
        return
    for table in tables:
        # A query does not know the location of its checkpoint: Spark does not pass it to sources.
        words = ("release", table_argument(table.name), *connection, "--checkpoint", "PLACE")
        ROW_LOGGING_SWITCHED_ON.log(logger, table=table.name, remedy=command_for_log(*words))


@dataclass(slots=True)
class CaptureStart:
    """Begins sessions of one stream; `position` None means that the stream has not started.

    `lost` is set if it continues a stream that lost data. `on_switched_on` is called with a table whose
    full row logging was switched on. `joining` has tables of the source that are not in the stream yet:
    they are logged, but not captured. `joined_at` is the commit at which the last of the others joined,
    up to which everything is delivered; 0 if none did.

    Call `begin` and `close` in one thread, which owns the connection.
    """

    options: SourceOptions
    source: SourceTables
    position: Position | None
    expected_commit: int | None = None
    lost: LostStream | None = None
    counters: AssemblyCounters = field(default_factory=AssemblyCounters)
    loss: DataLoss | None = None  # to be raised after the expected commit
    logged: LogEnd | None = None  # as in `StreamOffset`; read where a stream begins
    probe_reads: int = 0  # reads for older transactions before there is a session
    on_switched_on: Callable[[Table], None] | None = None  # by default it is logged
    joining: Joining | None = None
    joined_at: int = 0
    _connection: Transport | None = None
    _previous: PreviousTables = field(default_factory=PreviousTables)

    def begin(self) -> Begun:
        """Connect, open, capture and activate.

        Raises:
            DataLoss: row logging is off, or the log does not reach back to the position.
            AccessRefused, BadOption, ServerRefused: the server refused a request.
        """
        self._connection = open_capture_connection(self.options.connection, self.source.db_locale)
        session = CaptureSession(self._connection, self._session_settings())
        with contextlib.ExitStack() as on_error:
            on_error.callback(session.close)
            begun = self._begin(session)
            on_error.pop_all()
        return begun

    def _begin(self, session: CaptureSession) -> Begun:
        with open_catalog(self.options.connection) as catalog:
            require_capturing_server(catalog, self.options.connection.dialect)
            self._previous = self._previous_tables(catalog)
            # The order of the guide: full row logging on, then cdc_startcapture for each table, then
            # cdc_activatesess. The facts about the log are read before the first capture.
            if self.position is None:
                assembler, place = self._first_start(session, catalog)
            else:
                assembler, place = self._resume(self.position, session, catalog)
            self._start_captures(session, catalog)
        self._activate(session, place, assembler)
        self.counters.begin_session()
        assembler.counters = self.counters
        assembler.limit_memory(self._memory_limit())
        # The heartbeat table comes after the user's tables, whose numbers are their indexes.
        heartbeat = len(self.source.tables) if self.source.heartbeat else None
        return Begun(session, assembler, heartbeat, self._previous)

    def _previous_tables(self, catalog: Catalog) -> PreviousTables:
        """Return the previous tables whose rows to skip: none if the stream began at the log's end."""
        if not self.joined_at and (self.logged or (self.position is None and self._begins_now)):
            return PreviousTables()
        tables = self.source.tables
        created = zip(tables, catalog.created(tables), strict=True)
        return PreviousTables([Creation(str(table.name), at) for table, at in created])

    @property
    def _begins_now(self) -> bool:
        return self.lost is None and self.options.stream.starting_position == "latest"

    def _memory_limit(self) -> MemoryLimit:
        folder = Path(self.options.spool.path or tempfile.gettempdir())
        return MemoryLimit(
            self.options.spool.max_transaction_memory_bytes,
            SpillFiles(folder, is_encrypted=bool(self.options.columns.masks)),
        )

    def _record_loss(
        self, loss: DataLoss, session: CaptureSession, catalog: Catalog, tables: Sequence[Table]
    ) -> None:
        """Refuse to continue, but deliver a planned batch first, whose rows were logged before.

        The replay needs row logging. If a loss ends the query, row logging stays off, because switching
        it on would hide the loss from the next start.
        """
        if self.options.stream.fails_on_data_loss or self.expected_commit is None:
            raise loss
        self._switch_on(session, catalog, tables)
        self.loss = loss

    def close(self) -> None:
        """Release the connection."""
        if self._connection is not None:
            self._connection.close()

    def _switch_on(self, session: CaptureSession, catalog: Catalog, tables: Sequence[Table]) -> None:
        """Switch full row logging on; from then on the server refuses to alter the tables."""
        were_on, switched = catalog.log_full_rows(tables), list[Table]()
        try:
            for table, was_on in zip(tables, were_on, strict=True):
                session.log_full_rows(str(table.name))
                if table.hidden:
                    shown = ",".join(table.hidden)
                    HIDDEN_COLUMNS_OMITTED.log(logger, table=table.name, columns=shown)
                if not was_on:
                    switched.append(table)
                    if self.on_switched_on is not None:
                        self.on_switched_on(table)
        finally:  # also if the server refuses one of them
            if self.on_switched_on is None:
                log_switches(self.options, switched)

    def _start_captures(self, session: CaptureSession, catalog: Catalog | None) -> None:
        if (
            self.source.heartbeat and catalog is not None
        ):  # otherwise an earlier session has captured it
            self._switch_on(session, catalog, [self.source.heartbeat])
        for number, table in enumerate(self.source.all_tables):
            if self._is_joining(table):
                continue
            names = tuple(column.name for column in table.columns)
            session.start_capture(CapturedTable(str(table.name), names, number))

    def _is_joining(self, table: Table) -> bool:
        """Return whether a table is not captured yet; its full row logging may be off."""
        return self.joining is not None and unqualified(str(table.name)) in self.joining.names

    def _log_late(self, session: CaptureSession, catalog: Catalog) -> None:
        """Switch row logging of joining tables on, then read from where it is on and what is open."""
        late = [table for table in self.source.tables if self._is_joining(table)]
        if late and self.joining is not None:
            self._switch_on(session, catalog, late)
            # In this order: a transaction that begins in between is after the position; listing it is
            # harmless.
            place, still_open = catalog.next_position(), catalog.open_transactions()
            log_end = page_after(catalog.current_position())
            self.joining.switched = Switched(place, still_open, log_end)

    def log_joining(self) -> None:
        """Switch full row logging of joining tables on, without a session that captures."""
        connection = open_capture_connection(self.options.connection, self.source.db_locale)
        session = CaptureSession(connection, self._session_settings())
        closing = contextlib.closing
        with closing(connection), closing(session), open_catalog(self.options.connection) as catalog:
            self._log_late(session, catalog)

    def begin_at(self, place: int) -> Begun:
        """Connect and activate a session at a position to test what it receives; nothing is kept."""
        self._connection = open_capture_connection(self.options.connection, self.source.db_locale)
        session = CaptureSession(self._connection, self._session_settings())
        with contextlib.ExitStack() as on_error:
            on_error.callback(session.close)
            self._start_captures(session, None)
            session.activate(place)
            on_error.pop_all()
        return Begun(session, TransactionAssembler(None, floor=place))

    def _session_settings(self) -> SessionSettings:
        return SessionSettings(
            server=self.options.connection.server,
            timeout_seconds=self.options.connection.read_timeout_seconds,
            max_records=self.options.stream.max_records_per_read,
            buffer_bytes=self.options.stream.read_buffer_bytes,
            dialect=self.options.connection.dialect,
        )

    def _first_start(
        self, session: CaptureSession, catalog: Catalog
    ) -> tuple[TransactionAssembler, int]:
        begins_in_the_past = self.lost is None and not self._begins_now
        if begins_in_the_past:
            self._require_row_logging(catalog)
        # First of all, so that every row after S is complete in the log: without full row logging a
        # server logs partial rows, from which no row can be restored (CDC guide).
        self._switch_on(session, catalog, self.source.tables)
        if self.lost is not None:
            return self._recover(self.lost, catalog)
        if begins_in_the_past:
            return self._start_in_the_past(catalog)
        # S before the open transactions: one that begins in between has its BEGINTX after S, and being
        # listed as unseen does no harm. In the other order it would be in neither (decision 0004). The
        # end of the log after them: a listed transaction that began before it is older than the stream.
        place, still_open = catalog.next_position(), catalog.open_transactions()
        self.logged = LogEnd(page_after(catalog.current_position()), catalog.clock())
        assembler = TransactionAssembler(
            None,
            unseen=still_open,
            log_end=self.logged,
            floor=place,
            restart_bound=place,
        )
        return assembler, place

    def _require_row_logging(self, catalog: Catalog) -> None:
        """Refuse to begin in the past if changes since then are certainly incomplete."""
        for table in catalog.without_row_logging(self.source.tables):
            words = (table_argument(table.name), *connection_arguments(self.options))
            acquire = command("acquire", *words)
            raise BadOption(
                f"option 'startingPosition' is {self.options.stream.starting_position}, but full row"
                f" logging of {table.name} is off now: changes made since then cannot be"
                " captured.",
                "Start at the position that acquire prints, or later; or set startingPosition"
                f" to latest, and load earlier changes by other means. Run: {acquire}",
                option="startingPosition",
            )

    def _start_in_the_past(self, catalog: Catalog) -> tuple[TransactionAssembler, int]:
        # The log is read twice: the transactions to skip must be known before the first batch. Later an
        # older transaction could not be distinguished from one whose begin is lost (decision 0004).
        place = _chosen_position(self.options.stream.starting_position, catalog)
        first_position = Position(place, place, tuple(sorted(self._older_than(place, catalog))))
        return TransactionAssembler(first_position, restart_bound=place), place

    def _recover(self, lost: LostStream, catalog: Catalog) -> tuple[TransactionAssembler, int]:
        oldest, end = catalog.oldest_position(), page_after(catalog.current_position())
        place = lost.begins_at(oldest, end)
        first_position = lost.first_position(place, end, self._older_than(place, catalog))
        return TransactionAssembler(first_position, restart_bound=place), place

    def _older_than(self, place: int, catalog: Catalog) -> frozenset[int]:
        """Read the log from a position for the transactions that were open there."""
        still_open = catalog.open_transactions()  # first: what ends after this, ends before `up_to`
        up_to = page_after(catalog.current_position())
        connection = open_capture_connection(self.options.connection, self.source.db_locale)
        session = CaptureSession(connection, self._session_settings())
        with contextlib.closing(connection), contextlib.closing(session) as probe:
            self._start_captures(probe, catalog)
            probe.activate(place)
            older = transactions_older_than_start(probe, up_to, self._count_read)
        return older | still_open

    def _count_read(self) -> None:
        self.probe_reads += 1

    def _resume(
        self, position: Position, session: CaptureSession, catalog: Catalog
    ) -> tuple[TransactionAssembler, int]:
        # First detect another server, because its other facts would be meaningless. A server sends
        # nothing at all from a position after the end of its log (docs/assumptions.md).
        require_in_log(position, catalog.current_position())
        # If it is off now, it may have been off for a while: rows changed meanwhile are incomplete.
        # Switching it on again here would hide that (decision 0005, docs/design.md section 5). Checked
        # twice, so that one wrong answer does not end a stream permanently.
        present = [table for table in self.source.tables if not self._is_joining(table)]
        seen_off = catalog.without_row_logging(present)
        if unlogged := catalog.without_row_logging(seen_off):
            names = [str(table.name) for table in unlogged]
            self._record_loss(row_logging_off(names, position), session, catalog, unlogged)
        self._log_late(session, catalog)
        place = _resumes_at(position, catalog)
        # Once a table has joined, everything that was open when the stream began has ended. The unseen
        # ids belong to later transactions, and may be reused within the stream's first second.
        log_end = UNKNOWN_END if self.joined_at else self.logged
        assembler = TransactionAssembler(
            position,
            log_end=log_end or UNKNOWN_END,
            begins_at=place,
            expected_commit=self.expected_commit,
            delivered_up_to=self.joined_at,
            restart_bound=position.restart,
        )
        return assembler, place

    def _activate(self, session: CaptureSession, place: int, assembler: TransactionAssembler) -> None:
        try:
            session.activate(place)
        except (DataLoss, ServerRefused):
            if self.position is not None and place < self.position.restart:
                assembler.skip_continuity_check()  # its log file was overwritten meanwhile
                session.activate(self.position.restart)
            elif self.position is None and self._begins_now:
                # The guide documents only 0 and positions that a session has returned.
                session.activate(0)
            else:
                raise


def _resumes_at(position: Position, catalog: Catalog) -> int:
    """Return where to resume from a position: at its last delivered commit, if that is near.

    A position lower than `restart` is valid too: commits at or before `commit` are not delivered again.
    """
    known, space = position.last_delivered, catalog.log_space()
    if known is None or space is None:
        return position.restart
    # The oldest log file may be overwritten before the session begins, while that of `restart` remains.
    is_same = log_number(known.begin) == log_number(position.restart)
    if not is_same and log_number(known.begin) <= space.oldest.number:
        return position.restart
    distance = space.bytes_since(known.begin) - space.bytes_since(position.restart)
    return min(known.begin, position.restart) if distance <= _NEAR_BYTES else position.restart


def _chosen_position(text: str, catalog: Catalog) -> int:
    """Return the position of option startingPosition, if the server has it.

    The server sends nothing from a position after its end, so that is refused here.
    """
    oldest = catalog.oldest_position()
    place = oldest if text == "earliest" else parse(text)
    end = page_after(catalog.current_position())
    if not oldest <= place <= end:
        raise BadOption(
            f"option 'startingPosition' is {show(place)}, but the server's log ranges from"
            f" {show(oldest)} to {show(end)}.",
            "Set it to a position in that range, as informix-cdc acquire prints one, to"
            " earliest (the oldest log file) or to latest (now); load earlier changes by other"
            " means.",
            option="startingPosition",
        )
    return place
